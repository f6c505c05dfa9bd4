"""The how-to page on TLS and passwords: its commands run, its files are taken, and what it says of them is so."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import bcrypt
import pytest
import yaml

from capwatch.web.door import Door
from tests.web.door.authority import Authority

from .test_howto import section

PAGE = section("TLS and passwords")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [line for language, text in BLOCKS if not language for line in text.splitlines()]
DOCUMENT, PROMETHEUS = (text for language, text in BLOCKS if language == "yaml")


def command(beginning: str) -> str:
    """The one that begins like this."""
    (found,) = (str(line) for line in COMMANDS if line.startswith(beginning))
    return found


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """The page's web configuration file, with the certificates that it names: the server's by the page's command."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    Authority(tmp_path)
    subprocess.run(command("openssl"), shell=True, cwd=tmp_path, check=True, capture_output=True)
    path = tmp_path / "web.yml"
    path.touch(0o600)
    path.write_text(DOCUMENT)
    return path


def test_the_file_is_taken_without_a_warning(web: Path) -> None:
    """The certificate that the command makes is one that clients would take."""
    door = Door(str(web))
    assert (list(door.warnings()), door.asks) == ([], True)


def test_promtool_takes_the_file(web: Path) -> None:
    """By the page's command."""
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed (Debian: prometheus)")
    subprocess.run(command("promtool"), shell=True, cwd=web.parent, check=True, capture_output=True)


def test_the_hash_is_of_the_password_it_names() -> None:
    """What one tries first works."""
    (hashed,) = yaml.safe_load(DOCUMENT)["basic_auth_users"].values()
    (password,) = re.findall(r'the password is "(\w+)"', DOCUMENT)
    assert bcrypt.checkpw(password.encode(), hashed.encode())


def test_the_command_makes_a_hash() -> None:
    """Of the password that it asks for; here it has no terminal and reads it from its input."""
    words = command("python3").replace("python3", sys.executable, 1)
    result = subprocess.run(
        words, shell=True, input="rabbit\n", capture_output=True, text=True, check=True, start_new_session=True
    )
    assert bcrypt.checkpw(b"rabbit", result.stdout.splitlines()[-1].removeprefix("Password: ").encode())


def test_prometheus_is_told_the_same_user() -> None:
    """The two files belong together."""
    (job,) = yaml.safe_load(PROMETHEUS)["scrape_configs"]
    assert list(yaml.safe_load(DOCUMENT)["basic_auth_users"]) == [job["basic_auth"]["username"]]
    assert job["scheme"] == "https"
