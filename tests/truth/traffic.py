"""Seeded traffic as a `jsonl` log: its lines in file order with the fate each must meet, and the matching set-up."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import yaml

from .draws import draw
from .options import DAMAGES, PHASES, Options
from .rows import Floats, Rows

RECORD, SKIP = "record", "skip"  # the fates besides the reasons of a drop: malformed, too_long, bad_utf8, bad_time

EAST = timezone(timedelta(hours=2))
BROKEN = "@broken@"  # stands for a damaged value until the line is text

# lines that are no records: what is written, and its fate. `bad_number` has no line: what is "nothing useful left"
# of a request whose numbers are all unreadable is not laid down.
GARBAGE: tuple[tuple[bytes, str], ...] = (
    (b"", SKIP),
    (b"   \t", SKIP),
    (b'{"request_id": "half", "finished_at": 1767225700.5, "tenant": "acme", "outcome": "upstr', "malformed"),
    (b'{"request_id": "unclosed", "finished_at": 1767225700.5, "tenant": "acme", "outcome": "ok"', "malformed"),
    (b"\0", "malformed"),
    (b"\0" * 4096, "malformed"),
    (b'{"request_id": "nul", "finished_at": 1767225700.5, "tenant": "ac\0me", "outcome": "ok"}', "malformed"),
    (b'{"request_id": "byte", "finished_at": 1767225700.5, "tenant": "ac\xffme", "outcome": "ok"}', "bad_utf8"),
    (b'{"request_id": "latin", "finished_at": 1767225700.5, "tenant": "caf\xe9", "outcome": "ok"}', "bad_utf8"),
    (b'{"request_id": "cut", "finished_at": 1767225700.5, "tenant": "\xe2\x82", "outcome": "ok"}', "bad_utf8"),
    (b"42", "malformed"),
    (b'"a text"', "malformed"),
    (b"null", "malformed"),
    (b"[1, 2, 3]", "malformed"),
    (b"Traceback (most recent call last):", "malformed"),
    (b'{"request_id": "timeless", "tenant": "acme", "outcome": "ok", "status": 200, "prompt_tokens": 5}', "bad_time"),
    (b'{"request_id": "word", "finished_at": "yesterday", "tenant": "acme", "outcome": "ok"}', "bad_time"),
    (b'{"request_id": "bool", "finished_at": true, "tenant": "acme", "outcome": "ok"}', "bad_time"),
    (b'{"request_id": "huge", "finished_at": 1e400, "tenant": "acme", "outcome": "ok"}', "bad_time"),
)


@dataclass(frozen=True)
class Line:
    """One line without its newline; `row` is its place in the rows (-1: none), `fate` RECORD, SKIP or a drop reason."""

    text: bytes
    fate: str
    row: int = -1


@dataclass(frozen=True)
class Traffic:
    """A log and the requests it tells of; `rows` in the order of the file, one for each line whose fate is RECORD.

    A second line about a row (same id, an hour at most later) has the fate SKIP.
    """

    options: Options
    rows: Rows
    lines: list[Line]

    def write(self, path: Path) -> None:
        """Writes the whole log to `path`."""
        path.write_bytes(b"".join(line.text + b"\n" for line in self.lines))


def traffic(options: Options) -> Traffic:
    """The log of `options`; the same options give the same bytes."""
    rows = draw(options)
    rng = np.random.default_rng((options.seed, 1))  # the lines' own chance: another line leaves the requests alone
    placed = [(float(i), Line(text, RECORD, i)) for i, text in enumerate(_record_lines(rows, rng))]
    placed += _duplicates(options, rows, [line for _, line in placed], rng)
    placed += _garbage(options, len(rows), rng)
    return Traffic(options, rows, [line for _, line in sorted(placed, key=lambda item: item[0])])


def configuration(options: Options, log: Path, state_dir: Path) -> str:
    """The YAML configuration under which capwatch must report the truth of these options' log."""
    document = {
        "listen": "127.0.0.1:0",
        "state_dir": str(state_dir),
        "sources": [{"name": "gateway", "path": str(log), "format": "jsonl", "start": "beginning"}],
        "pools": [
            {
                "name": pool.name,
                "match": {"model": list(pool.models)} if pool.models else {},
                "replicas": pool.replicas,
                "prefill_tokens_per_second": pool.prefill_rate,
                "decode_tokens_per_second": pool.decode_rate,
            }
            for pool in options.pools
        ],
        "classes": [{"name": kind.name, "match": {"route": list(kind.routes)}} for kind in options.classes],
        "slo": [
            {
                "match": {"route": slo.route} if slo.route else {},
                "ttft": f"{slo.ttft_s}s",
                "tpot": f"{slo.tpot_s}s",
                **({"e2e": f"{slo.e2e_s}s"} if slo.e2e_s else {}),
            }
            for slo in options.slos
        ],
        "limits": {"line_bytes": options.line_bytes},
    }
    return yaml.safe_dump(document, sort_keys=False)


def _record_lines(rows: Rows, rng: np.random.Generator) -> list[bytes]:
    forms = rng.integers(0, 5, len(rows))
    returns = rng.random(len(rows)) < 0.01  # a few lines end as they do on Windows
    lines = []
    for i, row in enumerate(_told(rows)):
        form = int(forms[i]) if "started_at" in row else 2 + int(forms[i]) % 2  # with a duration, or not
        damage = int(rows.damage[i])
        if damage >= 0:
            row[DAMAGES[damage][0]] = BROKEN
        text = json.dumps(_with_times(row, form), ensure_ascii=bool(i % 2))
        if damage >= 0:
            text = text.replace(f'"{BROKEN}"', DAMAGES[damage][1])
        lines.append(text.encode() + b"\r" * int(returns[i]))
    return lines


def _told(rows: Rows) -> list[dict[str, object]]:
    """Each row as the keys and values that its line tells; what is absent is left out, or null in every third row."""
    columns: dict[str, list[object]] = {
        "request_id": list(rows.request_id),
        "attempt_group": list(rows.attempt_group),
        "started_at": _numbers(rows.started_at),
        "finished_at": _numbers(rows.finished_at),
        "tenant": list(rows.tenant),
        "route": list(rows.route),
        "model": list(rows.model),
        "stream": rows.stream.tolist(),
        "prompt_tokens": _whole(rows.prompt_tokens),
        "cached_tokens": _whole(rows.cached_tokens),
        "output_tokens": _whole(rows.output_tokens),
        "duration_s": _numbers(rows.duration_s),
        "ttft_s": _numbers(rows.ttft_s),
        **{f"{phase}_s": _numbers(getattr(rows, f"{phase}_s")) for phase in PHASES},
        "outcome": list(rows.outcome),
        "status": rows.status.tolist(),
        "rate_limited_by": list(rows.rate_limited_by),
        "retries": _whole(rows.retries),
        "cache_hit": rows.cache_hit.tolist(),
    }
    told = []
    for i, values in enumerate(zip(*columns.values(), strict=True)):
        row = dict(zip(columns, values, strict=True))
        row["usage"] = "missing" if row["prompt_tokens"] is row["output_tokens"] is None else "provider"
        told.append({key: value for key, value in row.items() if value is not None or _spelt_out(key, i)})
    return told


def _spelt_out(key: str, i: int) -> bool:
    return i % 3 == 0 and key not in ("started_at", "finished_at")


def _numbers(column: Floats) -> list[object]:
    return [None if math.isnan(value) else value for value in column.tolist()]


def _whole(column: Floats) -> list[object]:
    return [None if math.isnan(value) else int(value) for value in column.tolist()]


def _with_times(row: dict[str, object], form: int) -> dict[str, object]:
    """The row with its times in one of five forms: both, either as epoch seconds, either as RFC 3339."""
    started, finished = row.pop("started_at", None), row.pop("finished_at")
    times: dict[str, object]
    match form:
        case 0:
            times = {"started_at": started, "finished_at": finished}
        case 1:
            times = {"started_at": started}
        case 2:
            times = {"finished_at": finished}
        case 3:
            times = {"finished_at": _rfc3339(finished, UTC).replace("+00:00", "Z")}
        case _:
            times = {"started_at": _rfc3339(started, EAST)}
    return times | row


def _rfc3339(at: object, zone: timezone) -> str:
    assert isinstance(at, float)
    return datetime.fromtimestamp(round(at, 6), zone).isoformat(timespec="microseconds")


def _duplicates(options: Options, rows: Rows, lines: list[Line], rng: np.random.Generator) -> list[tuple[float, Line]]:
    """Second copies, up to fifty lines later, of rows that have an id and are of their time."""
    chosen = np.flatnonzero(rng.random(len(rows)) < options.duplicate_share)
    return [
        (i + int(rng.integers(1, 51)) + 0.5, Line(lines[i].text, SKIP, int(i)))
        for i in chosen
        if rows.request_id[i] not in ("", "None", None) and not rows.moved[i]
    ]


def _garbage(options: Options, n: int, rng: np.random.Generator) -> list[tuple[float, Line]]:
    """Every kind of line that is no record, in turn, at random places after the first row."""
    kinds = [*GARBAGE, (_too_long(options.line_bytes), "too_long")]
    places = rng.integers(0, max(n, 1), int(n * options.garbage_share))
    return [(float(place) + 0.25, Line(*kinds[k % len(kinds)])) for k, place in enumerate(places)]


def _too_long(limit: int) -> bytes:
    start = b'{"request_id": "long", "finished_at": 1767225700.5, "tenant": "acme", "outcome": "ok", "answer": "'
    return start + b"x" * limit + b'"}'
