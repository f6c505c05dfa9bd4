"""What is understood of each line of a log: the record, or the reason why there is none.

The source is described by options or, with --config.file, by the configuration. Without either, every format is tried
on the first 200 lines; if one makes records of them, it goes on with the best. FILE may end in .gz or .zst; - is
standard input, read line by line, as in `tail -f access.log | capwatch explain --format litellm -`. The format
engine_metrics takes the whole file as one saved /metrics page. A last line on stderr, not with --json, adds up what
became of the lines. Exit code 1 where lines were dropped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import BinaryIO

from capwatch import sourcing
from capwatch.config.load import parse
from capwatch.config.schema import Limits, Source
from capwatch.console.configured import load
from capwatch.dialect.value import UNITS
from capwatch.errors import CapwatchError, ConfigError, UsageError
from capwatch.explain import PAGE, Fit, Judged, as_json, as_text, best_fit, explain, explain_page, find_wrapper
from capwatch.explain.fit import FIT_LINES
from capwatch.replay.files import UNREADABLE, opened

EXAMPLE = "capwatch explain --format jsonl access.jsonl"

STDIN = "-"
OPTIONS = ("format", "wrapper", "timezone", "field")
SWITCHED = "docs/{page}.md says how a log that tells requests or statistics is switched on"
"""Where nothing was found: the program may well write it, into another file or not yet."""


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--format", metavar="NAME", help="the log's format, see `capwatch formats`")
    parser.add_argument("--wrapper", metavar="NAME", help="what wraps each line: none, cri, docker, journald (none)")
    parser.add_argument("--timezone", metavar="ZONE", help="zone of times that are written without one (UTC)")
    parser.add_argument(
        "--field",
        metavar="RECORD_FIELD=PATH[:UNIT]",
        action="append",
        help="where the log has a field of the record; may be repeated",
    )
    parser.add_argument("--config.file", dest="config", metavar="FILE", help="take all of this from a configuration")
    parser.add_argument("--source", metavar="NAME", help="and from this source of it")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, for machines")
    parser.add_argument("--records", action="store_true", help="show no lines that were skipped; not with --json")
    parser.add_argument("file", metavar="FILE", nargs="?", default=STDIN, help="the log; - is standard input (-)")


def run(arguments: argparse.Namespace) -> int:
    """Judge every line, and tell."""
    if arguments.records and arguments.json:
        raise UsageError("--records: --json has an object for every line; leave one of the two out")
    with _opened(arguments.file) as stream:
        return _explain(arguments, stream)


def _explain(arguments: argparse.Namespace, stream: BinaryIO) -> int:
    if arguments.format == PAGE:
        with _reading(arguments.file):
            page = stream.read()
        return _show([explain_page(page)], Source("page", (), PAGE), arguments)
    source, longest = _source(arguments)
    lines = _lines(stream, longest, arguments.file)
    if source is None:
        first = list(islice(lines, FIT_LINES))
        source = _fitting(arguments, [line for line in first if line is not None])
        lines = chain(first, lines)
    near = time.time() if arguments.file == STDIN else os.stat(arguments.file).st_mtime
    wrapper = sourcing.wrapper_of(source.wrapper, longest)
    return _show(
        explain(lines, sourcing.format_of(source), sourcing.options_of(source), wrapper, near), source, arguments
    )


def _show(judged: Iterable[Judged], source: Source, arguments: argparse.Namespace) -> int:
    """Print every result as soon as it is there; 1 if lines were dropped."""
    options = sourcing.options_of(source)
    counts: Counter[str] = Counter()
    for one in judged:
        counts[one.outcome] += 1
        if not (arguments.records and one.outcome == "skip"):
            print(as_json(one) if arguments.json else as_text(one, options), flush=arguments.file == STDIN)
    if not arguments.json and source.format != PAGE:
        print(
            f"{counts.total()} lines: {counts['record']} records, {counts['skip']} skipped, {counts['drop']} dropped"
            + ("" if counts["record"] else f"; {SWITCHED.format(page=f'formats/{source.format}')}"),
            file=sys.stderr,
        )
    return int(counts["drop"] > 0)


def _source(arguments: argparse.Namespace) -> tuple[Source | None, int]:
    """The source that is described, None where its format is not; and the longest line."""
    given = {name: getattr(arguments, name) for name in OPTIONS if getattr(arguments, name) is not None}
    if arguments.config is not None:
        for name in given:
            raise UsageError(f"--{name}: --config.file says that already; give one of the two")
        return _configured(arguments.config, arguments.source)
    if arguments.source is not None:
        raise UsageError("--source: needs --config.file, the configuration that has the source")
    source = _described(given | {"format": given.get("format", "jsonl")})
    return source if "format" in given else None, Limits().line_bytes


def _configured(path: str, name: str | None) -> tuple[Source, int]:
    config = load(path)
    chosen = [source for source in config.sources if name in (None, source.name)]
    if len(chosen) != 1:
        names = ", ".join(source.name for source in config.sources) or "none is configured"
        raise UsageError(f"--source: {'which one?' if name is None else f'no source {name!r};'} one of {names}")
    return chosen[0], config.limits.line_bytes


def _described(given: dict[str, object]) -> Source:
    """A source from the options, by the rules of the configuration."""
    fields = given.pop("field", [])
    source = {"name": "log", "path": STDIN, **given, "fields": _fields(fields if isinstance(fields, list) else [])}
    try:
        text = json.dumps({"sources": [source]})
        return parse(text, "options", {}, formats=sourcing.names(), is_root=True).sources[0]
    except ConfigError as error:
        key = error.path.removeprefix("sources[0].")
        name, _, field = key.partition(".")
        option = "--field " + field if name == "fields" else f"--{name}"
        raise UsageError(f"{option}: {error.text}") from None


def _fields(spelled: Sequence[str]) -> dict[str, dict[str, str]]:
    found = {}
    for text in spelled:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--field {text}: write RECORD_FIELD=PATH, such as tenant=metadata.team")
        where, colon, unit = path.rpartition(":")
        found[name] = {"path": where, "unit": unit} if colon and unit in UNITS else {"path": path}
    return found


def _fitting(arguments: argparse.Namespace, lines: list[bytes]) -> Source:
    """The source whose format fits the first lines best; prints how well all fit."""
    wrapper = arguments.wrapper or find_wrapper(lines) or "none"
    fits = best_fit(lines, None if wrapper == "none" else wrapper)
    print(_table(fits, wrapper), file=sys.stderr if arguments.json else sys.stdout)
    if not fits[0].counted:
        how = SWITCHED.format(page="formats")
        raise CapwatchError(f"no format makes a record of these lines; name it with --format to see why; {how}")
    return _described(
        {
            "format": fits[0].format,
            "wrapper": wrapper,
            **{name: getattr(arguments, name) for name in ("timezone", "field") if getattr(arguments, name)},
        }
    )


def _table(fits: Sequence[Fit], wrapper: str) -> str:
    """How well formats fit: those that make records, or all where none does."""
    shown = [fit for fit in fits if fit.counted] or fits
    width = max(len("format"), *(len(fit.format) for fit in shown))
    share = "understood or skipped"
    rows = [f"{fit.format:{width}}  {fit.counted:7}  {fit.share:{len(share)}.0%}" for fit in shown]
    return "\n".join([f"{'format':{width}}  records  {share}  (wrapper: {wrapper})", *rows])


def _opened(path: str) -> BinaryIO:
    if path == STDIN:
        return sys.stdin.buffer
    if not os.path.exists(path):
        raise UsageError(f"{path}: no such file")
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a directory; name a file")
    try:
        return opened(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """What cannot be read is the input's fault; what cannot be printed is not."""
    try:
        yield
    except UNREADABLE as error:
        raise CapwatchError(f"{path}: cannot be read: {_reason(error)}") from None


def _lines(stream: BinaryIO, longest: int, path: str) -> Iterator[bytes | None]:
    """The lines as they come, without line feeds and byte order mark; None for one that is too long."""

    def following() -> bytes:
        with _reading(path):
            return stream.readline(longest + 2)

    mark = b"\xef\xbb\xbf"
    while line := following():
        line, mark = line.removeprefix(mark), b""
        if line.endswith(b"\n") or len(line) <= longest:
            yield line.removesuffix(b"\n")
            continue
        while (rest := following()) and not rest.endswith(b"\n"):
            pass
        yield None
