"""The corpus is what it says, and the peer's program reads all of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from .corpus import CHUNK, ROUTES, TENANTS, Corpus, corpus, draw, truth
from .totals import Totals, differences, expected, from_capwatch, from_peer

LINES = 2_000
PROGRAM = Path(__file__).with_name("gw.mtail")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A corpus of 2,000 lines, shared since nobody changes it."""
    return corpus(tmp_path_factory.mktemp("corpus"), LINES)


def test_both_layouts_tell_the_truth(small: Corpus) -> None:
    """Sums over the lines of either layout are those of the truth file."""
    draws = truth(small.truth)
    ours = [json.loads(line) for line in small.capwatch.read_text().splitlines()]
    theirs = [json.loads(line) for line in small.peer.read_text().splitlines()]
    assert [line["output_tokens"] for line in ours] == draws.output.tolist()
    assert [line["usage"]["completion_tokens"] for line in theirs] == draws.output.tolist()
    assert [round(line["duration_s"] * 1e6) for line in ours] == draws.latency.tolist()
    assert [round(line["latency_ms"] * 1e3) for line in theirs] == draws.latency.tolist()
    assert [line["tenant"] for line in ours] == [line["tenant"] for line in theirs]


def test_the_layouts_are_equally_long(small: Corpus) -> None:
    """Bytes per line agree within 5 %, so that neither tool reads less."""
    assert small.capwatch.stat().st_size == pytest.approx(small.peer.stat().st_size, rel=0.05)


def test_the_corpus_grows_without_changing(small: Corpus, tmp_path: Path) -> None:
    """Times go on over the border of a chunk, and the same seed gives the same bytes."""
    first, second = draw(CHUNK + 10, np.random.default_rng(7))
    assert (len(first), len(second), bool(second.at[0] > first.at[-1])) == (CHUNK, 10, True)
    assert corpus(tmp_path, LINES).capwatch.read_bytes() == small.capwatch.read_bytes()


def test_mtail_counts_what_the_truth_says(small: Corpus) -> None:
    """Every total of metric set M that mtail prints is the truth's."""
    if shutil.which("mtail") is None:
        pytest.skip("mtail is not installed (Debian package mtail)")
    command = ["mtail", "--one_shot", "--one_shot_format=prometheus", "--progs", str(PROGRAM)]
    page = subprocess.run(
        [*command, "--logs", str(small.peer)], capture_output=True, check=True, text=True, timeout=60
    ).stdout
    assert differences(from_peer(page), expected(truth(small.truth), status=True)) == []


def test_capwatch_totals_are_read_from_its_page(small: Corpus) -> None:
    """A page that is written from the truth, models and kinds apart, reads back as the truth."""
    wanted = expected(truth(small.truth), status=False)
    assert differences(from_capwatch(page_of(wanted)), wanted) == []


def page_of(totals: Totals) -> str:
    """The exposition that capwatch owes for these totals."""
    stems = {"prompt_tokens": "prompt_tokens", "output_tokens": "output_tokens", "ttft": "ttft_seconds"}
    lines = ['capwatch_tokens_total{tenant="team-00000",route="/x",model="m",kind="output"} 5']
    for (name, *labels), value in totals.items():
        pair = f'tenant="{labels[0]}",route="{labels[-1]}"'
        if name == "requests":
            pair = f'tenant="{labels[0]}",route="{labels[1]}"'
            for model, part in (("a", value - 1), ("b", 1)):
                lines.append(f'capwatch_requests_total{{{pair},model="{model}",outcome="{labels[2]}"}} {part}')
        elif name == "cached_tokens":
            lines.append(f'capwatch_tokens_total{{{pair},model="m",kind="prompt_cached"}} {value}')
        elif name == "phase":
            lines.append(f'capwatch_phase_seconds_total{{pool="all",phase="{labels[0]}"}} {value}')
        else:
            stem, _, part_name = name.rpartition("_")
            lines.append(f"capwatch_{stems.get(stem, 'duration_seconds')}_{part_name}{{{pair}}} {value}")
    return "\n".join(lines) + "\n"


def test_a_wrong_total_is_named() -> None:
    """A total that differs, is missing or is too much is one line each."""
    found: Totals = {("phase", "queue"): 1.0, ("phase", "extra"): 2.0}
    wanted: Totals = {("phase", "queue"): 1.5, ("phase", "tool"): 3.0}
    assert differences(found, wanted) == [
        "phase extra: found 2.0, wanted 0",
        "phase queue: found 1.0, wanted 1.5",
        "phase tool: found 0, wanted 3.0",
    ]


def test_all_pairs_occur_in_a_large_corpus() -> None:
    """A chunk of 50,000 lines has most of the 2,400 pairs of tenant and route, and no other."""
    (draws,) = draw(CHUNK, np.random.default_rng(7))
    pairs = np.unique(draws.tenant * len(ROUTES) + draws.route)
    assert len(TENANTS) * len(ROUTES) * 0.9 < len(pairs) <= len(TENANTS) * len(ROUTES)
