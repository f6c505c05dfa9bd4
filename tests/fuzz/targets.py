"""What the fuzzer feeds: by name, a function of bytes that raises where something is wrong."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress

from capwatch import wrappers
from capwatch.config import parse
from capwatch.dialect import Decoder, Options
from capwatch.engines import page
from capwatch.errors import ConfigError
from capwatch.explain import as_json, as_text, explain
from capwatch.formats import shelf
from capwatch.keep.codec import DamagedError, unpack
from capwatch.replay.files import blocks

NEAR = 1_772_530_000.0
LONGEST = 4096


def lines(name: str) -> Callable[[bytes], None]:
    """A format, decoded and explained; or a wrapper around lines of the format `jsonl`."""
    wrapper = wrappers.shelf().get(name)
    form = shelf()["jsonl" if wrapper else name]

    def read(data: bytes) -> None:
        decoded = Decoder(form, Options(), wrapper(LONGEST) if wrapper else None).decode(data, NEAR)
        assert decoded.read == decoded.counted + decoded.skipped + decoded.dropped.total()
        for one in explain(data.split(b"\n"), form, Options(), wrapper(LONGEST) if wrapper else None, NEAR):
            as_json(one)
            as_text(one, Options())

    return read


def engine_page(data: bytes) -> None:
    """A page of an engine's metrics."""
    page(data.decode("utf-8", "replace"))


def configuration(data: bytes) -> None:
    """A configuration file: read, or one error of ours."""
    try:
        parse(data.decode("utf-8", "replace"), "c.yml", {}, formats=frozenset(shelf()), is_root=True)
    except ConfigError as error:
        told = str(error)
    else:
        told = ""
    assert "\n" not in told


def splitting(data: bytes) -> None:
    """Blocks of a finished file: no byte more and no line twice, whatever the size of a read."""
    size, longest = (data[0] % 32 + 1, data[1] % 64 + 1) if len(data) > 2 else (1, 1)
    body = data[2:]
    found = list(blocks(io.BytesIO(body), size, longest))
    assert sum(length for length, *_ in found) == len(body)
    kept = [line for line in body.removeprefix(b"\xef\xbb\xbf").split(b"\n") if len(line) <= longest]
    assert b"".join(kept) == b"".join(lines for _, lines, _, _ in found).replace(b"\n", b"")


def state(data: bytes) -> None:
    """Bytes of a state: refused unless they are what was written."""
    with suppress(DamagedError):
        unpack(data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    **{name: lines(name) for name in (*shelf(), *wrappers.shelf())},
    "page": engine_page,
    "config": configuration,
    "blocks": splitting,
    "state": state,
}
