"""The demo's logs: every line is read, it tells what the simulation says, and rotation loses none."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from capwatch.config.schema import Source
from capwatch.demo.columns import columns
from capwatch.demo.draw import Rows
from capwatch.demo.simulation import Simulation, Statistic
from capwatch.demo.workload import KV_TOKENS, REPLICAS
from capwatch.demo.writers import Writers
from capwatch.dialect import Decoded
from capwatch.record import LABELS, NUMBERS
from capwatch.sourcing import decoder_for

ROOT = Path(__file__).parents[2]
BEGIN = 1_767_225_600.0
END = BEGIN + 300.0


def decoded(form: str, *paths: Path) -> Decoded:
    """What a reader finds in files, one after the other."""
    source = Source("log", (), form)
    return decoder_for(source, 1 << 20).decode(b"".join(path.read_bytes() for path in paths), END)


@pytest.fixture(scope="module")
def told() -> tuple[Rows, list[list[Statistic]]]:
    """Five minutes with the change in them, and what the replicas said at their end and ten seconds before."""
    simulation = Simulation("new-tenant", 3, BEGIN, 60.0)
    parts, statistics = [], []
    for at in (END - 10, END):
        parts.append(simulation.until(at))
        statistics.append(simulation.statistics(at))
    return Rows.join(*parts), statistics


@pytest.fixture(scope="module")
def folder(told: tuple[Rows, list[list[Statistic]]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of all that."""
    folder = tmp_path_factory.mktemp("logs")
    writers = Writers(folder / "requests.jsonl", folder / "vllm", seed=3, max_bytes=1 << 30)
    rows, (earlier, later) = told
    writers.begin(BEGIN)
    writers.write(rows.take(rows.ended <= END - 10), earlier, END - 10)
    writers.write(rows.take(rows.ended > END - 10), later, END)
    writers.close()
    return folder


def test_the_gateway_s_lines_are_the_short_road(folder: Path, told: tuple[Rows, list[list[Statistic]]]) -> None:
    """The reader makes of the lines what `columns` makes of the requests, ids apart; no line is dropped."""
    found, meant = decoded("litellm", folder / "requests.jsonl"), columns(told[0])
    assert (found.counted, found.skipped, found.dropped.total()) == (len(told[0]), 0, 0)
    for name in NUMBERS:
        np.testing.assert_allclose(found.batch[name], meant[name], rtol=0, atol=1e-6, err_msg=name)
    for name in LABELS:
        rows = range(len(meant))
        assert [found.batch.labels[name][row] for row in rows] == [meant.labels[name][row] for row in rows], name
    for name in ("outcome", "usage", "status", "stream", "limiter", "cache_hit", "uncapped"):
        assert getattr(found.batch, name).tolist() == getattr(meant, name).tolist(), name


def test_ids_tell_requests_apart(folder: Path) -> None:
    """No two lines share an id."""
    ids = decoded("litellm", folder / "requests.jsonl").batch.request_id
    assert len(set(ids)) == len(ids)


def shipped(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The callback that is shipped for the gateway, with a stand-in for the gateway."""
    for name in ("litellm", "litellm.integrations"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    stand_in = SimpleNamespace(CustomLogger=object)
    monkeypatch.setitem(sys.modules, "litellm.integrations.custom_logger", stand_in)
    spec = spec_from_file_location("capwatch_callback", ROOT / "deploy" / "litellm" / "capwatch_callback.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_are_as_the_callback_writes_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped callback would keep every key of a line, and write it in the same form."""
    callback = shipped(monkeypatch)
    for line in (folder / "requests.jsonl").read_text().splitlines():
        row = json.loads(line)
        kept = callback.kept(row, callback.KEEP) | {"request_tags": []}
        assert json.dumps(kept, separators=(",", ":"), sort_keys=True) == json.dumps(
            row, separators=(",", ":"), sort_keys=True
        )
        assert line == json.dumps(row, separators=(",", ":"))


def test_engines_say_what_was_simulated(folder: Path, told: tuple[Rows, list[list[Statistic]]]) -> None:
    """The reader finds each replica's capacity, and its statistics as far as they are printed; no line is dropped."""
    for replica in range(REPLICAS):
        found = decoded("vllm", folder / "vllm" / f"vllm-{replica}.log")
        (_, capacity), *samples = found.samples
        assert (found.dropped.total(), capacity.kv_capacity_tokens) == (0, KV_TOKENS)
        assert [sample.at for _, sample in samples] == [END - 10, END]
        for (_, sample), meant in zip(samples, (one[replica] for one in told[1]), strict=True):
            assert (sample.running, sample.waiting) == (meant.running, meant.waiting)
            numbers = (sample.kv_utilisation, sample.prefix_hit_ratio)
            assert numbers == pytest.approx((meant.kv_share, meant.hit_share), abs=0.0005001)
            rates = (sample.prompt_tokens_per_s, sample.output_tokens_per_s)
            assert rates == pytest.approx((meant.prompt_tokens_per_s, meant.output_tokens_per_s), abs=0.05001)


def test_an_answer_has_a_line_at_its_replica(folder: Path, told: tuple[Rows, list[list[Statistic]]]) -> None:
    """Each replica's log has a line for each of its answers."""
    lines = [(folder / "vllm" / f"vllm-{r}.log").read_text().count('"POST /v1/chat/completions') for r in range(12)]
    assert lines == np.bincount(told[0].replica[told[0].replica >= 0], minlength=REPLICAS).tolist()


def test_rotation_renames_and_loses_nothing(told: tuple[Rows, list[list[Statistic]]], tmp_path: Path) -> None:
    """Rotated files hold, oldest last, exactly the lines of one file that was never rotated."""
    for name, size in (("whole", 1 << 30), ("cut", 200_000)):
        writers = Writers(tmp_path / name / "requests.jsonl", tmp_path / name, seed=3, max_bytes=size, kept=99)
        for second in range(300):
            ended = told[0].ended
            part = told[0].take((ended > BEGIN + second) & (ended <= BEGIN + second + 1))
            writers.write(part, (), BEGIN + second + 1)
        writers.close()
    rotated = sorted((tmp_path / "cut").glob("requests.jsonl.*"), key=lambda path: -int(path.suffix[1:]))
    joined = b"".join(path.read_bytes() for path in (*rotated, tmp_path / "cut" / "requests.jsonl"))
    assert len(rotated) > 5
    assert joined == (tmp_path / "whole" / "requests.jsonl").read_bytes()


def test_the_oldest_file_goes(told: tuple[Rows, list[list[Statistic]]], tmp_path: Path) -> None:
    """Only so many rotated files are kept."""
    writers = Writers(tmp_path / "requests.jsonl", tmp_path, seed=3, max_bytes=1000, kept=2)
    for _ in range(5):
        writers.write(told[0].take(np.arange(10)), (), END)
    writers.close()
    assert sorted(path.name for path in tmp_path.glob("requests.*")) == [
        "requests.jsonl",
        "requests.jsonl.1",
        "requests.jsonl.2",
    ]
