"""The Dockerfile is clean by hadolint and keeps what the README promises of the image."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, continuation lines joined, comments gone."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", text)
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in joined.splitlines() if line]


def test_hadolint_finds_nothing() -> None:
    """The Dockerfile breaks no rule of hadolint, none is ignored."""
    program = Path(sys.executable).with_name("hadolint")
    result = subprocess.run([program, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


def test_the_image_runs_as_a_numeric_user_who_is_not_root() -> None:
    """The last word about the user is a number other than 0, which Kubernetes can verify."""
    users = [argument for name, argument in instructions() if name == "USER"]
    assert users[-1:] == ["65532:65532"]


def test_the_health_check_is_a_program_of_the_image() -> None:
    """The health check needs only Python, and its program compiles."""
    (check,) = [argument for name, argument in instructions() if name == "HEALTHCHECK"]
    program, flag, source = json.loads(check[check.index("[") :])
    compile(source, "healthcheck", "exec")
    assert (program, flag) == ("python", "-c")


def test_what_the_build_copies_is_let_through() -> None:
    """Every path copied from the checkout is one that .dockerignore does not hold back."""
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [argument.split()[:-1] for name, argument in instructions() if name == "COPY" and "--from" not in argument]
    assert {path for paths in copied for path in paths} == allowed
