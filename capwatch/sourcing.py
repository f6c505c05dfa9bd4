"""From a source's configuration to what reads it: its format, its options, its wrapper, its role."""

from __future__ import annotations

import re
from typing import Final
from zoneinfo import ZoneInfo

from capwatch.config.schema import Source
from capwatch.dialect import Decoder, Field, Format, Options, Wrapper, notes
from capwatch.formats import shelf as formats
from capwatch.wrappers import shelf as wrappers

_ENDINGS: Final = re.compile(r"(?:\.(?:log|jsonl?|txt|out|err|gz|zst|\d+|\d{4}-\d{2}-\d{2}))+$")


def names() -> frozenset[str]:
    """The names of all formats."""
    return frozenset(formats())


def engines() -> frozenset[str]:
    """The names of the formats of engine logs."""
    return frozenset(name for name, form in formats().items() if form.kind == "engine")


def format_of(source: Source) -> Format:
    """The format that a source names."""
    return notes.FORMAT if source.format == notes.FORMAT.name else formats()[source.format]


def decoder_for(source: Source, line_bytes: int) -> Decoder:
    """A decoder for one file of a source; ``line_bytes`` bounds records that a wrapper joins."""
    return Decoder(format_of(source), options_of(source), wrapper_of(source.wrapper, line_bytes))


def options_of(source: Source) -> Options:
    """What the configuration of a source tells its reader."""
    return Options(
        fields={name: Field(field.path, field.unit) for name, field in source.fields.items()},
        zone=ZoneInfo(source.timezone),
    )


def engine_of(source: Source, path: str) -> str:
    """The label of the engine that writes a log: its configured name, or the file's, without rotation and endings.

    >>> engine_of(Source("logs", ("x",), "vllm"), "/var/log/vllm/replica-3.log.1")
    'replica-3'
    """
    if source.engine_from != "filename":
        return source.engine_from
    name = path.rpartition("/")[2]
    return _ENDINGS.sub("", name) or name


def wrapper_of(name: str, line_bytes: int) -> Wrapper | None:
    """A fresh wrapper by its name in the configuration; None for `none`."""
    return None if name == "none" else wrappers()[name](line_bytes)
