"""The daemon on a host with GPUs: read through the real binding, counted over kill -9, and harmless where they hang."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gpus.stub import Stub, compiled

from .daemon import Daemon, until
from .scenario import source
from .test_daemon import STOP_S, configured
from .writer import line


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """A library with one card, where the daemon will find it."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    found = Stub(tmp_path / "nvml.txt")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(compiled(tmp_path).parent))
    monkeypatch.setenv("NVML_STUB", str(found.path))
    found.card(0)
    return found


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon on one source, not yet started."""
    (tmp_path / "requests.jsonl").touch()
    found = Daemon(tmp_path, configured(source("gateway", tmp_path / "requests.jsonl")))
    yield found
    found.close()


def energy(daemon: Daemon) -> float:
    """What the page says of the card's energy, J."""
    return daemon.samples().total("gpu_energy_joules_total", gpu="0", uuid="GPU-0")


def test_what_cards_count_survives_a_kill(daemon: Daemon, stub: Stub) -> None:
    """Growth while nobody looked counts once, a driver that begins anew takes nothing away."""
    daemon.start()
    until(lambda: energy(daemon) == 5000.25, "the card is shown")
    samples = daemon.samples()
    assert [samples.total("nvml_up"), samples.total("gpu_busy_ratio")] == [1, 0.75]
    daemon.kill()
    stub.card(0, millijoules=6_000_250)
    daemon.start()
    until(lambda: energy(daemon) > 5000.25, "the card is read again")
    assert energy(daemon) == 6000.25
    daemon.kill()
    stub.card(0, millijoules=500)
    daemon.start()
    until(lambda: energy(daemon) > 6000.25, "the card is read again")
    assert energy(daemon) == 6000.75


def test_a_library_that_hangs_delays_neither_logs_nor_scrapes_nor_the_end(
    daemon: Daemon, stub: Stub, tmp_path: Path
) -> None:
    """It costs the GPU metrics alone."""
    with stub.hanging("nvmlDeviceGetTemperature"):
        daemon.start()
        with (tmp_path / "requests.jsonl").open("ab") as log:
            log.write(b"".join(line(sequence, time.time()) for sequence in range(100)))
        daemon.wait_for_lines({"gateway": 100})
        assert daemon.samples().total("gpu_busy_ratio") == 0
        code, seconds = daemon.stop()
    assert code == 0
    assert seconds < STOP_S


def test_a_host_without_a_driver_says_so(daemon: Daemon, stub: Stub) -> None:
    """And everything else works."""
    stub.path.unlink()
    daemon.start()
    until(lambda: "capwatch_nvml_up 0" in (daemon.page() or ""), "the library's word is shown")
    assert "capwatch_gpu_" not in "".join(one for one in (daemon.page() or "").splitlines() if not one.startswith("#"))
