"""What strangers find: loopback unless it is said otherwise, no file of the machine, and nothing to read beside it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

import pytest
import yaml

from tests.bench.scrapes import HALF_OPEN, Target, repeated, rude
from tests.end_to_end.command import COMMAND
from tests.end_to_end.programs.process import free_port, until
from tests.web.door.authority import Authority, basic
from tests.web.talk import Address, request

from .guarded import TLS, documented, guarded


def test_the_default_is_loopback(tmp_path: Path, authority: Authority) -> None:
    """A daemon without a word about addresses cannot be reached from outside."""
    command = [*COMMAND, "check-config", str(tmp_path / "capwatch.yml")]
    (tmp_path / "capwatch.yml").write_text(f"state_dir: {tmp_path}\n")
    told = yaml.safe_load(subprocess.run(command, capture_output=True, check=False).stdout)
    assert told["listen"] == "127.0.0.1:10077"


@pytest.mark.parametrize(("users", "warned"), [(False, True), (True, False)])
def test_other_addresses_are_warned_of(tmp_path: Path, authority: Authority, users: bool, warned: bool) -> None:
    """An address that others reach is taken; without a password there is a warning that names it."""
    document = documented(tls=TLS, users=users)
    with guarded(tmp_path, authority, document, "--web.listen-address=0.0.0.0:PORT") as found:
        assert found.curl("--user", "prometheus:sesame")[1] == "200"
        told = f"listen: 0.0.0.0:{found.port} can be reached from outside without a password"
        assert (told in found.log, "level=warning" in found.log) == (warned, warned)


def test_there_may_be_several_addresses(tmp_path: Path, authority: Authority) -> None:
    """The flag may be repeated; each of them is answered, and each is judged."""
    other = free_port()
    flags = ("--web.listen-address=127.0.0.1:PORT", f"--web.listen-address=:{other}")
    with guarded(tmp_path, authority, None, *flags) as found:
        for port in (found.port, other):
            assert Address(port).get("/-/healthy").status == 200
        assert f"listen: :{other} can be reached from outside" in found.log
        assert f"listen: 127.0.0.1:{found.port} can be reached" not in found.log


def test_one_taken_address_of_several_is_refused(tmp_path: Path, authority: Authority) -> None:
    """Exit 2 and one line; the daemon does not run on half of what it was told."""
    (tmp_path / "capwatch.yml").write_text(f"state_dir: {tmp_path / 'state'}\n")
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        flags = [f"--web.listen-address=127.0.0.1:{port}" for port in (free_port(), taken.getsockname()[1])]
        command = [*COMMAND, "run", "--config.file", str(tmp_path / "capwatch.yml"), *flags]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    (line,) = result.stderr.splitlines()
    assert (result.returncode, flags[1][21:] in line) == (2, True)


@pytest.mark.parametrize(
    ("raw", "statuses"),
    [
        (request("GET", "/../../etc/passwd"), [404]),
        (request("GET", "/%2e%2e/%2e%2e/etc/passwd"), [404]),
        (request("GET", "/..%2f..%2fetc%2fpasswd"), [404]),
        (request("GET", "//etc/passwd"), [404]),
        (request("GET", "file:///etc/passwd"), [404]),
        (b"GET /\0 HTTP/1.1\r\nHost: here\r\n\r\n", [400]),
        (request("GET", "/" + "a" * 100_000), [414]),
        (request("GET", "/metrics", cookie="a" * 100_000), [431]),
        (request("PUT", "/metrics"), [405]),
        (request("TRACE", "/metrics"), [405]),
        (request("CONNECT", "example.org:443"), [405]),
        (request("GET", "/-/healthy") * 3, [200, 200, 200]),
        (request("GET", "/-/healthy") + request("BREW", "/") + request("GET", "/nowhere"), [200, 405, 404]),
        (request("GET", "/metrics", transfer_encoding="chunked") + b"zz\r\nGET / HTTP/1.1\r\n\r\n", [400]),
        (request("GET", "/metrics", content_length="44", transfer_encoding="chunked") + b"0\r\n\r\n", [400]),
    ],
)
def test_no_file_is_served(stranger: Address, raw: bytes, statuses: list[int]) -> None:
    """Whatever is asked, it is answered by a fixed line, and everything that follows in order."""
    with closing(stranger.connect()) as client:
        replies = [client.say(raw).answer(), *(client.answer() for _ in statuses[1:])]
    assert [reply.status for reply in replies] == statuses
    assert not any(b"root:" in reply.body or b"etc/passwd" in reply.body for reply in replies)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Address:  # type: ignore[misc]
    """The address of a daemon that is open to all."""
    with guarded(tmp_path_factory.mktemp("open"), authority, None) as found:
        yield Address(found.port)


def test_credentials_of_any_size_are_survived(tmp_path: Path, authority: Authority) -> None:
    """Wrong, unknown, long and very long ones are refused, and the log has no traceback."""
    with guarded(tmp_path, authority, documented(users=True)) as found:
        address = Address(found.port)
        for user, password in (("alice", "wrong"), ("mallory", "x"), ("alice", "x" * 15_000), ("x" * 15_000, "")):
            assert address.get("/metrics", authorization=basic(user, password)).status == 401
        assert address.get("/metrics", authorization=basic("x" * 75_000, "x")).status == 431
        assert address.get("/metrics", authorization=basic("alice", "rabbit")).status == 200
        assert "Traceback" not in found.log


def test_nothing_is_left_for_others_to_read(tmp_path: Path, authority: Authority) -> None:
    """Folder and files of the state are for their owner alone, whatever the umask."""
    before = os.umask(0)
    try:
        with guarded(tmp_path, authority, None) as found:
            state = found.folder / "state"
            kept = ("capwatch.db", "capwatch.db-wal", "capwatch.lock", "capwatch.sock", "history.db", "label.key")
            until(lambda: all((state / name).exists() for name in kept), "it has everything")
            modes = {path.name: path.stat().st_mode & 0o777 for path in state.rglob("*")}
            assert state.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_a_reload_asked_for_too_early_is_kept(tmp_path: Path) -> None:
    """SIGHUP and SIGTERM wait while the daemon starts: it comes up, does what it was told, and ends with code 0."""
    (tmp_path / "capwatch.yml").write_text(f"state_dir: {tmp_path / 'state'}\nlisten: 127.0.0.1:{free_port()}\n")
    command = [*COMMAND, "run", "--config.file", str(tmp_path / "capwatch.yml")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: _holds(process.pid, signal.SIGHUP), "it has begun")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, "listens on" in told, "stopped" in told) == (0, True, True)


def _holds(process: int, number: signal.Signals) -> bool:
    """Whether the main thread of a process has blocked a signal."""
    status = Path(f"/proc/{process}/status").read_text()
    return bool(int(status.split("SigBlk:")[1].split()[0], 16) >> number - 1 & 1)


@pytest.mark.parametrize("shut", [False, True], ids=["in the clear", "TLS and password"])
def test_rude_clients_delay_no_scrape(tmp_path: Path, authority: Authority, shut: bool) -> None:
    """Among 200 who never finish, 20 who read a byte a second, and four who try passwords, a scrape takes no second."""
    document = documented(tls=TLS, users=True, cost=8) if shut else None
    with guarded(tmp_path, authority, document) as found, ExitStack() as stack:
        headers = {"Authorization": basic("prometheus", "sesame")} if shut else {}
        target = Target(found.port, authority.client() if shut else None, headers)
        target.seconds(1, anew=True)  # from now on it is known
        for number, once in rude(target):
            stack.enter_context(repeated(number, once))
        until(lambda: len(list(Path(f"/proc/{found.process.pid}/fd").iterdir())) > HALF_OPEN, "they have come")
        assert median(target.seconds(15, anew=True)) < 1.0
        assert median(target.seconds(15, anew=False)) < 1.0
        assert "Traceback" not in found.log
