"""From a source's configuration to what reads it: its format, its options, its wrapper, its role."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from capwatch.config.schema import Source
from capwatch.dialect import Decoder, Field, Format, Options, Wrapper
from capwatch.formats import shelf as formats
from capwatch.wrappers import shelf as wrappers


def names() -> frozenset[str]:
    """The names of all formats."""
    return frozenset(formats())


def engines() -> frozenset[str]:
    """The names of the formats of engine logs."""
    return frozenset(name for name, form in formats().items() if form.kind == "engine")


def format_of(source: Source) -> Format:
    """The format that a source names."""
    return formats()[source.format]


def decoder_for(source: Source, path: str, line_bytes: int) -> Decoder:  # noqa: ARG001 - the path will tell the engine
    """A decoder for one file of a source; ``line_bytes`` bounds records that a wrapper joins."""
    options = Options(
        fields={name: Field(field.path, field.unit) for name, field in source.fields.items()},
        zone=ZoneInfo(source.timezone),
    )
    return Decoder(format_of(source), options, wrapper_of(source.wrapper, line_bytes))


def wrapper_of(name: str, line_bytes: int) -> Wrapper | None:
    """A fresh wrapper by its name in the configuration; None for `none`."""
    return None if name == "none" else wrappers()[name](line_bytes)
