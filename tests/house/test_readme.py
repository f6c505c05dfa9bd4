"""What the README shows is what happens."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent


def block(language: str, word: str = "") -> str:
    """The one code block of a language that has a word in it."""
    (found,) = (one for one in re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL) if word in one)
    return str(found)


def commands() -> list[str]:
    """The lines of code blocks without a language that call capwatch, in order."""
    blocks = re.findall(r"^```\n(.*?)```", README, flags=re.DOTALL | re.MULTILINE)
    return [line for one in blocks for line in one.splitlines() if line.startswith("capwatch ")]


def environment(folder: Path) -> dict[str, str]:
    """A user's environment, with a port and a state of the test's own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "CAPWATCH__LISTEN": f"127.0.0.1:{port}",
        "CAPWATCH__STATE_DIR": str(folder / "state"),
    }


def samples(page: str) -> dict[str, float]:
    """Every sample of a page by its name and labels, as the page spells them."""
    lines = (line for line in page.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the README's configuration and log."""
    (tmp_path / "capwatch.yml").write_text(block("yaml", "sources:"))
    (tmp_path / "access.jsonl").write_text(block("json"))
    return tmp_path


def test_the_example_costs_what_the_readme_says(folder: Path) -> None:
    """The README's configuration and log give the series that it prints."""
    line, _ = (one for one in commands() if one.startswith("capwatch replay"))
    result = subprocess.run(
        line, shell=True, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert list(text_string_to_metric_families(result.stdout))
    shown = re.findall(r"^(capwatch_\S+\{.*\}) (\S+)$", README, flags=re.MULTILINE)
    assert len(shown) == 4
    assert {name: samples(result.stdout)[name] for name, _ in shown} == {name: float(value) for name, value in shown}


def requests(page: str) -> float:
    """Requests on a page, whatever their labels."""
    return sum(value for name, value in samples(page).items() if name.startswith("capwatch_requests_total{"))


def until(url: str, good: Callable[[str], bool]) -> None:
    """Ask until the answer is good."""
    deadline = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:
            if good(answer.read().decode()):
                return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_every_command_works_one_after_the_other(folder: Path) -> None:
    """A newcomer with a log and nothing else comes from explain by init to a running daemon."""
    (folder / "capwatch.yml").unlink()
    env = environment(folder)
    *before, last = commands()
    for line in before:
        result = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert result.returncode == 0, (line, result.stderr)
    assert last.startswith("capwatch run ")
    address = f"http://{env['CAPWATCH__LISTEN']}"
    daemon = subprocess.Popen(last.split(), cwd=folder, env=env, stderr=subprocess.PIPE)
    try:
        until(f"{address}/-/ready", lambda _: True)
        with (folder / "access.jsonl").open("a") as log:
            log.write(block("json"))
        until(f"{address}/metrics", lambda page: requests(page) == 2)
    finally:
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(10) == 0
        assert daemon.stderr is not None
        daemon.stderr.close()


def test_the_first_command_shows_a_demo_and_ends_without_a_trace() -> None:
    """`make demo` prints where to look; Ctrl-C, which reaches make and the demo alike, ends both."""
    if not (ROOT / ".venv" / ".stamp").exists():
        pytest.skip("make has not filled .venv; run `make test`")
    with subprocess.Popen(
        ["make", "demo", "OPTIONS=--port 0"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as demo:
        assert demo.stdout is not None
        told = []
        for line in demo.stdout:
            told.append(line)
            if "Ctrl-C ends it" in line:
                os.killpg(demo.pid, signal.SIGINT)
    text = "".join(told)
    (folder,) = re.findall(r"tail -f (/\S+?)/litellm", text)
    assert "/metrics" in text
    assert text.endswith("stopped; files removed\n")
    assert not Path(folder).exists()
    assert demo.returncode in (0, -signal.SIGINT)  # make itself is interrupted, too
