"""curl, openssl, promtool and a real Prometheus at the door of the real daemon."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.end_to_end.programs.process import until
from tests.end_to_end.prometheus import Prometheus, prometheus
from tests.web.door.authority import Authority, hashed

from .guarded import CLIENTS, TLS, USERS, Guarded, documented, guarded

CERTIFICATE = ("--cert", "client.pem", "--key", "client.key")
PASSWORD = ("--user", "prometheus:sesame")
REFUSED_BY_TLS = {35, 55, 56}
"""curl's words for a failure in the handshake, while it sends or while it receives: TLS 1.3 tells clients late."""


@pytest.fixture(scope="module")
def shut(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Guarded]:
    """A daemon that wants both: a certificate and a password."""
    document = documented(tls=CLIENTS, users=True)
    with guarded(tmp_path_factory.mktemp("shut"), authority, document) as found:
        yield found


def test_curl_comes_in_with_both(shut: Guarded) -> None:
    """With certificate and password it gets every page, as with TLS 1.2."""
    for words in ([], ["--tls-max", "1.2"], ["--http2"]):
        code, status, body = shut.curl(*CERTIFICATE, *PASSWORD, *words)
        assert (code, status, b"capwatch_build_info" in body) == (0, "200", True)


def test_curl_without_a_certificate_is_refused(shut: Guarded) -> None:
    """The handshake fails, whatever the password."""
    code, status, _ = shut.curl(*PASSWORD)
    assert (code in REFUSED_BY_TLS, status) == (True, "000")


@pytest.mark.parametrize("words", [(), ("--user", "prometheus:wrong"), ("--user", "mallory:sesame")])
def test_curl_without_the_password_is_refused(shut: Guarded, words: tuple[str, ...]) -> None:
    """On every path there is or is not."""
    for path in ("/metrics", "/", "/-/healthy", "/nowhere", "/../../etc/passwd"):
        assert shut.curl(*CERTIFICATE, *words, path=path) == (0, "401", b"user and password, please\n")


def test_openssl_cannot_speak_tls_1_1(shut: Guarded) -> None:
    """The server answers with an alert about the version."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{shut.port}", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert (result.returncode, b"alert protocol version" in result.stderr) == (1, True)


def test_promtool_takes_the_file(shut: Guarded) -> None:
    """What this daemon runs with is a web configuration to others as well."""
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed (Debian: prometheus)")
    subprocess.run(["promtool", "check", "web-config", shut.web], check=True, capture_output=True)


def test_the_log_tells_no_secret(shut: Guarded) -> None:
    """Neither passwords nor hashes, of those who came in and of those who did not."""
    hashes = yaml.safe_load(shut.web.read_text())["basic_auth_users"].values()
    assert [secret for secret in (*USERS.values(), *hashes, "mallory", "wrong") if secret in shut.log] == []
    assert "level=warning" not in shut.log


SCRAPE = """
global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}
scrape_configs:
  - job_name: capwatch
    scheme: https
    tls_config: {{ca_file: authority.pem, cert_file: client.pem, key_file: client.key}}
    basic_auth: {{username: prometheus, password: sesame}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def up(server: Prometheus) -> float | None:
    """Whether its last scrape went well."""
    return next(iter(server.query("up", time.time()).values()), None)


def scrapes(server: Prometheus) -> float:
    """How many there have been."""
    return sum(server.query("count_over_time(up[1h])", time.time()).values())


def test_prometheus_scrapes_through_a_rotation(tmp_path: Path, authority: Authority) -> None:
    """With TLS, certificate and password; a new certificate and a new password beside the old cost it no scrape."""
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed")
    home, scraper = tmp_path / "daemon", tmp_path / "tsdb"
    home.mkdir()
    scraper.mkdir()
    for name in ("authority.pem", "client.pem", "client.key"):
        (tmp_path / name).write_bytes((authority.folder / name).read_bytes())
    fresh = authority.server("fresh")
    with guarded(home, authority, documented(tls=CLIENTS, users=True)) as found:
        with prometheus(scraper, SCRAPE.format(port=found.port)) as server:
            until(lambda: up(server) == 1, "it scrapes")
            for name, path in (("server.pem", fresh.cert), ("server.key", fresh.key)):
                (home / "next").write_bytes(path.read_bytes())
                (home / "next").rename(home / name)
            document = documented(tls=CLIENTS, users=True)
            document["basic_auth_users"]["bob"] = hashed("builder")
            (home / "next").write_text(yaml.safe_dump(document))
            (home / "next").rename(found.web)
            before = scrapes(server)
            until(lambda: scrapes(server) > before + 4, "it goes on")
            (lowest,) = server.query("min_over_time(up[1h])", time.time()).values()
            assert lowest == 1
            assert ssl.get_server_certificate(("127.0.0.1", found.port)) == fresh.cert.read_text()
            assert found.curl(*CERTIFICATE, "--user", "bob:builder")[1] == "200"
        assert "web configuration loaded anew" in found.log


def test_tls_alone_lets_everybody_in(tmp_path: Path, authority: Authority) -> None:
    """It keeps what is said secret, and asks nobody who they are."""
    with guarded(tmp_path, authority, documented(tls=TLS)) as found:
        assert found.curl()[:2] == (0, "200")
        assert found.curl(scheme="http")[1] == "000"


def test_passwords_alone_are_warned_of(tmp_path: Path, authority: Authority) -> None:
    """They work without TLS, and the log says what that means."""
    with guarded(tmp_path, authority, documented(users=True)) as found:
        assert found.curl(*PASSWORD, scheme="http")[1] == "200"
        assert found.curl(scheme="http")[1] == "401"
        assert "sent in the clear" in found.log
