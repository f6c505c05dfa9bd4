"""The real daemon behind a web configuration file, and curl on its way in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.end_to_end.command import COMMAND
from tests.end_to_end.programs.process import free_port, program
from tests.web.door.authority import Authority, hashed

TLS = {"cert_file": "server.pem", "key_file": "server.key"}
CLIENTS = {**TLS, "client_ca_file": "authority.pem", "client_auth_type": "RequireAndVerifyClientCert"}
USERS = {"prometheus": "sesame", "alice": "rabbit"}
"""Passwords by user."""


def documented(*, tls: Mapping[str, str] | None = None, users: bool = False, cost: int = 4) -> dict[str, Any]:
    """A web configuration; ``cost`` is that of the hashes."""
    document: dict[str, Any] = {} if tls is None else {"tls_server_config": dict(tls)}
    if users:
        document["basic_auth_users"] = {user: hashed(password, cost) for user, password in USERS.items()}
    return document


@dataclass(frozen=True)
class Guarded:
    """A daemon that runs."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def web(self) -> Path:
        """Its web configuration file."""
        return self.folder / "web.yml"

    @property
    def log(self) -> str:
        """What it has said."""
        return (self.folder / "daemon.log").read_text()

    def curl(self, *words: str | Path, path: str = "/metrics", scheme: str = "https") -> tuple[int, str, bytes]:
        """What curl makes of it: its exit code, the status, and the body."""
        url = f"{scheme}://127.0.0.1:{self.port}{path}"
        options = ["--silent", "--max-time", "30", "--write-out", "%{stderr}%{http_code}", "--cacert", "authority.pem"]
        command = ["curl", *options, *map(str, words), "--path-as-is", url]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, check=False)
        return result.returncode, result.stderr.decode()[-3:], result.stdout


@contextmanager
def guarded(folder: Path, authority: Authority, document: Mapping[str, Any] | None, *flags: str) -> Iterator[Guarded]:
    """A daemon with this web configuration, until the block ends; certificates lie in its folder."""
    for path in authority.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
        (folder / path.name).chmod(0o600)
    log = folder / "requests.jsonl"
    log.touch()
    source = {"name": "gateway", "path": str(log), "format": "jsonl"}
    pool = {"name": "chat", "prefill_tokens_per_second": 4000, "decode_tokens_per_second": 160}
    configuration = {"state_dir": str(folder / "state"), "sources": [source], "pools": [pool]}
    (folder / "capwatch.yml").write_text(yaml.safe_dump(configuration))
    port = free_port()
    command = [*COMMAND, "run", "--config.file", str(folder / "capwatch.yml")]
    if document is not None:
        (folder / "web.yml").touch(0o600)
        (folder / "web.yml").write_text(yaml.safe_dump(dict(document)))
        command += ["--web.config.file", str(folder / "web.yml")]
    if not any(flag.startswith("--web.listen-address") for flag in flags):
        command += [f"--web.listen-address=127.0.0.1:{port}"]
    command += [flag.replace("PORT", str(port)) for flag in flags]
    with program(command, port, folder / "daemon.log") as process:
        yield Guarded(folder, port, process)
