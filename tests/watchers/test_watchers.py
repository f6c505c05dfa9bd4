"""Watchers on made-up traffic whose change is known: which one speaks, since when, from what to what, and of whom."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from capwatch.config.schema import Config, Match, Pool
from capwatch.keep.codec import pack, unpack
from capwatch.meters.watches import found_in
from capwatch.metrics import WATCHES
from capwatch.minutes.told import lines as told
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.watchers import shelf
from tests.spine import Spine, decoded, request

BEGIN = 1_767_571_200.0
CHANGE = BEGIN + 80 * 60
END = CHANGE + 20 * 60
CONFIG = Config(pools=(Pool("chat", Match(model=("chat-*",))),))
Row = dict[str, Any]
Change = Callable[[Row, random.Random], Row | list[Row]]


def traffic(change: Change, until: float = END, since: float = CHANGE, rate: float = 4.0) -> Iterator[Row]:
    """Poisson requests of three tenants from `BEGIN` on, changed from ``since`` on."""
    draw, at = random.Random(7), BEGIN
    while (at := at + draw.expovariate(rate)) < until:
        output = round(draw.lognormvariate(4.3, 0.5)) + 2
        ttft, pace = draw.uniform(0.2, 0.6), draw.uniform(0.018, 0.022)
        prompt = round(draw.lognormvariate(7.0, 0.4))
        row = request(
            finished_at=at,
            tenant=draw.choices(["acme", "globex", "initech"], [0.5, 0.3, 0.2])[0],
            prompt_tokens=prompt,
            cached_tokens=round(prompt * draw.uniform(0.4, 0.8)),
            output_tokens=output,
            max_output_tokens=1024,
            ttft_s=ttft,
            duration_s=ttft + pace * (output - 1),
        )
        found = change(row, draw) if at >= since else row
        yield from found if isinstance(found, list) else [found]


def same(row: Row, draw: random.Random) -> Row:
    """No change."""
    return row


def of_acme(**more: Any) -> Change:
    """A change of one tenant's requests."""
    return lambda row, draw: row | more if row["tenant"] == "acme" else row


def sends_again(row: Row, draw: random.Random) -> Row:
    """Requests of one tenant are tried three times."""
    return row | {"retries": 2} if row["tenant"] == "acme" else row


def long_answers(row: Row, draw: random.Random) -> Row:
    """Some answers of one tenant are many times as long, and no slower by token."""
    if row["tenant"] != "globex" or draw.random() > 0.15:
        return row
    output = 2500
    return row | {"output_tokens": output, "duration_s": row["ttft_s"] + 0.02 * (output - 1)}


def slow_steps(row: Row, draw: random.Random) -> Row:
    """Everybody's tokens take half as long again."""
    return row | {"duration_s": row["ttft_s"] + 1.5 * (row["duration_s"] - row["ttft_s"])}


def slow_start(row: Row, draw: random.Random) -> Row:
    """Requests of one tenant wait for ten seconds: tokens are as quick as before."""
    return row | {name: row[name] + 10 * (row["tenant"] == "initech") for name in ("ttft_s", "duration_s")}


def taken(pipeline: Pipeline, part: list[Row]) -> None:
    """Let a pipeline count rows; that one has no cap is told by dialects of their own, so it is told here."""
    one = decoded(*({name: value for name, value in row.items() if name != "uncapped"} for row in part))
    one.batch.uncapped[:] = [row.get("uncapped", False) for row in part]
    pipeline.take(Origin("log"), one, part[-1]["finished_at"] + 1)


def fed(rows: list[Row], size: int = 2000) -> Spine:
    """A spine after these rows."""
    spine = Spine(CONFIG)
    for begin in range(0, len(rows), size):
        taken(spine.pipeline, rows[begin : begin + size])
        spine.commit()
    return spine


def found(spine: Spine) -> list[dict[str, Any]]:
    """What the watchers say of the pool."""
    number = spine.totals.names.find("pool", "chat")
    assert number is not None
    return told(found_in(spine.totals), [number], spine.totals.names)


CASES = [
    pytest.param("retries", sends_again, 1.0, 2.0, ["acme"], id="retries"),
    pytest.param("prefix_hits", of_acme(cached_tokens=0), 0.6, 0.3, ["acme"], id="prefix hits"),
    pytest.param("output_tail", long_answers, 110, 1494, ["globex"], id="output tail"),
    pytest.param("output_caps", of_acme(max_output_tokens=None, uncapped=True), 0.0, 0.5, ["acme"], id="caps"),
    pytest.param("in_flight", slow_start, 8.3, 16.5, ["initech"], id="in flight"),
    pytest.param("decode_step", slow_steps, 0.02, 0.03, [], id="decode step"),
]


@pytest.mark.parametrize(("watch", "change", "before", "after", "tenants"), CASES)
def test_a_change_is_found(watch: str, change: Change, before: float, after: float, tenants: list[str]) -> None:
    """By its watcher within ten minutes, since its minute, with both values and the tenants that did it."""
    spine = fed([*traffic(change)])
    mine = [one for one in found(spine) if one["watch"] == watch]
    (one,) = mine
    assert (one["pool"], one["until"]) == ("chat", None)
    assert abs(one["since"] - CHANGE) <= 120
    assert CHANGE < one["raised_at"] <= CHANGE + 600
    assert one["before"] == pytest.approx(before, rel=0.1, abs=0.01)
    assert one["now"] == pytest.approx(after, rel=0.25)
    assert [who["tenant"] for who in one["tenants"]] == tenants
    assert all(tenant in one["sentence"] for tenant in tenants)
    assert spine.value("watch_active", pool="chat", watch=watch) == 1
    if before > 0.01:
        assert spine.value("watch_change_ratio", pool="chat", watch=watch) == pytest.approx(after / before - 1, rel=0.5)


def test_without_a_change_nothing_is_said() -> None:
    """Not by any watcher, in five hours, while the rate rises to three times and falls again."""
    rows = [*traffic(same, BEGIN + 5 * 3600, rate=3.0)]
    draw = random.Random(3)
    busy = [row for row in rows if 7200 < row["finished_at"] - BEGIN < 10800 for _ in range(draw.randint(1, 2))]
    spine = fed(sorted([*rows, *busy], key=lambda row: float(row["finished_at"])))
    assert found(spine) == []
    assert spine.total("watch_active") == 0


def bursts(hours: int, minute: int = 30) -> list[Row]:
    """At a minute of each of the first hours a tenant sends 400 requests within 90 seconds."""
    draw = random.Random(5)
    return [
        request(finished_at=BEGIN + hour * 3600 + minute * 60 + draw.uniform(0, 90), tenant="batch")
        for hour in range(hours)
        for _ in range(400)
    ]


def test_bursts_on_the_hour_are_found_and_go() -> None:
    """In the third hour; over when two hours pass without."""
    rows = sorted([*traffic(same, BEGIN + 6 * 3600, rate=2.0), *bursts(4)], key=lambda row: float(row["finished_at"]))
    spine = fed(rows)
    (one,) = found(spine)
    assert (one["watch"], one["since"]) == ("on_the_hour", BEGIN + 1800)
    assert BEGIN + 2.5 * 3600 < one["raised_at"] <= BEGIN + 2.5 * 3600 + 300
    assert [who["tenant"] for who in one["tenants"]] == ["batch"]
    assert "every hour at :30" in one["sentence"]
    assert one["until"] == pytest.approx(BEGIN + 5.5 * 3600, abs=300)
    assert one["sentence"].startswith("Over: ")


def test_what_is_over_goes() -> None:
    """Half an hour of retries is one finding with its end, and then nothing holds."""
    spine = fed([*traffic(lambda row, draw: sends_again(row, draw) if row["finished_at"] < END else row, END + 1800)])
    (one,) = found(spine)
    assert one["watch"] == "retries"
    assert END < one["until"] <= END + 720
    assert spine.total("watch_active") == 0


def test_a_restart_changes_nothing() -> None:
    """Whatever was saved goes on to the same findings, from the same minutes, to the last bit."""
    rows = [*traffic(sends_again)]
    whole, totals = fed(rows, 500), Spine(CONFIG).totals
    pipeline = Pipeline(CONFIG)
    for number, begin in enumerate(range(0, len(rows), 500)):
        if number % 10 == 1:
            saved = unpack(pack(totals.save()))
            totals = pipeline.totals()
            totals.load(saved)
        taken(pipeline, rows[begin : begin + 500])
        totals.apply(pipeline.freeze())
    assert repr(found_in(totals).save()) == repr(found_in(whole.totals).save())


def test_every_watch_has_a_file_and_a_label() -> None:
    """The shelf is the metric's label, in its order."""
    assert tuple(one.name for one in shelf()) == WATCHES
