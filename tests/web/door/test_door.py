"""The door in use: TLS, certificates of clients, passwords; files that change while it stands open."""

from __future__ import annotations

import logging
import os
import socket
import ssl
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.errors import ConfigError
from capwatch.web import Door, Limits
from tests.web.talk import PATIENCE_S, Address, request, serving

from .authority import Authority, basic, hashed

SCRAPE = request("GET", "/metrics")
USERS = f"basic_auth_users: {{alice: {hashed('sesame')}}}\n"


@pytest.fixture
def web(authority: Authority, tmp_path: Path) -> Path:
    """A web configuration file with TLS, in a folder of its own."""
    for name in ("server.pem", "server.key", "authority.pem"):
        (tmp_path / name).write_bytes((authority.folder / name).read_bytes())
    (tmp_path / "server.key").chmod(0o600)
    path = tmp_path / "web.yml"
    path.touch(0o600)
    path.write_text(tls())
    return path


def tls(*more: str) -> str:
    """A document with TLS and more of its keys."""
    return f"tls_server_config: {{{', '.join(('cert_file: server.pem', 'key_file: server.key', *more))}}}\n"


CLIENTS = tls("client_ca_file: authority.pem", "client_auth_type: RequireAndVerifyClientCert")


def moved(path: Path, text: str | bytes) -> None:
    """Put a new file in the place of one, in one step."""
    fresh = path.with_suffix(".new")
    fresh.touch(path.stat().st_mode & 0o777)
    fresh.write_bytes(text if isinstance(text, bytes) else text.encode())
    fresh.rename(path)


def serial(address: Address) -> str:
    """Number of the certificate that a server shows."""
    with closing(address.connect()) as client:
        assert isinstance(client.line, ssl.SSLSocket)
        found = client.line.getpeercert()
        assert found is not None
        return str(found["serialNumber"])


def test_a_scrape_by_tls(web: Path, authority: Authority) -> None:
    """Requests in a row go over one connection; what is spoken in the clear is not understood, nor answered."""
    with serving(door=Door(str(web))) as address:
        secure = replace(address, tls=authority.client())
        with closing(secure.connect()) as client:
            assert isinstance(client.line, ssl.SSLSocket)
            assert client.line.version() == "TLSv1.3"
            assert [client.say(SCRAPE).answer().status for _ in range(2)] == [200, 200]
        with closing(address.connect()) as plain, suppress(ConnectionResetError):
            assert b"HTTP" not in plain.say(SCRAPE).line.recv(1000)


def test_a_connection_ends_as_tls_ends(web: Path, authority: Authority) -> None:
    """The client is told that nothing more comes, so that nobody can cut an answer short unnoticed."""
    context = authority.client()
    with serving(door=Door(str(web))) as address:
        plain = socket.create_connection(("127.0.0.1", address.port), PATIENCE_S)
        with context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as line:
            line.sendall(request("GET", "/-/healthy", connection="close"))
            heard = b""
            while more := line.recv(1000):  # an end without a word would be an SSLEOFError
                heard += more
    assert heard.endswith(b"capwatch is alive\n")


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_both_good_versions_are_spoken(web: Path, authority: Authority, version: str) -> None:
    """TLS 1.2 and 1.3, whichever the client has."""
    context = authority.client()
    context.maximum_version = ssl.TLSVersion[version]
    with serving(door=Door(str(web))) as address:
        assert replace(address, tls=context).ask(SCRAPE).status == 200


def test_old_versions_are_refused(web: Path, authority: Authority) -> None:
    """A client that can do no more than TLS 1.1 does not come in."""
    context = authority.client()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with serving(door=Door(str(web))) as address, pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"):
        replace(address, tls=context).connect()


def answered(address: Address, context: ssl.SSLContext) -> bool:
    """Whether a client gets its scrape; it may hear only after its handshake that it may not stay."""
    try:
        with closing(replace(address, tls=context).connect()) as client:
            return client.say(SCRAPE).hear() is not None
    except (ssl.SSLError, ConnectionError):
        return False


def test_clients_show_certificates(web: Path, authority: Authority, tmp_path: Path) -> None:
    """One that the authority has signed and that is still good; no other, and none is none."""
    web.write_text(CLIENTS)
    good, old = authority.pair("client"), authority.pair("old", days=-1)
    stranger = Authority(tmp_path / "other", "stranger").pair("client")
    with serving(door=Door(str(web))) as address:
        found = [answered(address, authority.client(pair)) for pair in (good, old, stranger, None)]
    assert found == [True, False, False, False]


def test_certificates_may_be_optional(web: Path, authority: Authority, tmp_path: Path) -> None:
    """With VerifyClientCertIfGiven none will do, but not a bad one."""
    web.write_text(CLIENTS.replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven"))
    stranger = Authority(tmp_path / "other", "stranger").pair("client")
    with serving(door=Door(str(web))) as address:
        found = [answered(address, authority.client(pair)) for pair in (authority.pair("client"), None, stranger)]
    assert found == [True, True, False]


def test_clients_may_have_to_have_a_name(web: Path, authority: Authority) -> None:
    """Any one of the alternative names will do, of whatever kind; the common name is none."""
    names = ("DNS:prometheus", "IP:10.0.0.7", "IP:0:0:0:0:0:0:0:1", "email:a@b.example", "URI:spiffe://c/d")
    clients = [authority.pair(f"named {number}", name) for number, name in enumerate(names)]
    allowed = "client_allowed_sans: [prometheus, 10.0.0.7, '::1', a@b.example, 'spiffe://c/d']"
    web.write_text(CLIENTS.replace("}", f", {allowed}}}"))
    others = [authority.pair("prometheus"), authority.pair("other", "DNS:prometheus.example")]
    with serving(door=Door(str(web))) as address:
        assert [answered(address, authority.client(pair)) for pair in clients] == [True] * len(names)
        assert [answered(address, authority.client(pair)) for pair in others] == [False, False]


def test_an_intermediate_authority_is_enough(web: Path, authority: Authority) -> None:
    """Whoever is named in `client_ca_file` is trusted, as in Go; no root is needed above it."""
    pair = authority.pair("client")
    web.write_text(CLIENTS.replace("authority.pem", str(pair.cert)))
    with serving(door=Door(str(web))) as address:
        assert answered(address, authority.client(pair))


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (basic("alice", "sesame"), 200),
        (basic("alice", "wrong"), 401),
        (basic("nobody", "sesame"), 401),
        (basic("alice", "x" * 20_000), 401),
        ("Basic ???", 401),
        ("Bearer sesame", 401),
        (None, 401),
    ],
)
def test_passwords(web: Path, header: str | None, status: int) -> None:
    """Without the right one nothing is answered on any path, by any method, and nothing of it is repeated."""
    web.write_text(USERS)
    headers = {} if header is None else {"authorization": header}
    with serving(door=Door(str(web))) as address:
        for path in ("/metrics", "/", "/api/v1/status", "/-/healthy", "/-/ready"):
            assert address.get(path, **headers).status == status
        wrong = address.ask(request("PUT", "/nowhere", **headers))
    assert wrong.status == (405 if status == 200 else 401)
    if status == 401:
        assert wrong.headers["www-authenticate"] == 'Basic realm="capwatch", charset="UTF-8"'
        assert wrong.body == b"user and password, please\n"


def test_headers_of_the_operator_stand(web: Path) -> None:
    """Those that the file sets take the place of our own, on every answer, refusals too."""
    web.write_text(
        "http_server_config: {headers: {Strict-Transport-Security: max-age=60, X-Frame-Options: sameorigin,"
        " Content-Security-Policy: default-src 'self'}}\n"
    )
    with serving(door=Door(str(web))) as address:
        for reply in (address.get("/"), address.get("/nowhere"), address.ask(b"nonsense\r\n\r\n")):
            assert reply.headers["strict-transport-security"] == "max-age=60"
            assert reply.headers["x-frame-options"] == "sameorigin"
            assert reply.headers["content-security-policy"] == "default-src 'self'"
            assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_certificate_replaced_on_disk_is_shown(web: Path, authority: Authority) -> None:
    """From the next connection on, also while pair and certificate do not match; those that are open stay open."""
    fresh = authority.server("fresh")
    with serving(door=Door(str(web))) as address:
        secure = replace(address, tls=authority.client())
        with closing(secure.connect()) as client:
            before = serial(secure)
            moved(web.parent / "server.pem", fresh.cert.read_bytes())
            assert serial(secure) == before
            moved(web.parent / "server.key", fresh.key.read_bytes())
            after = serial(secure)
            assert client.say(SCRAPE).answer().status == 200
    assert before != after


def test_a_certificate_behind_a_link_is_followed(web: Path, authority: Authority) -> None:
    """As Kubernetes swaps secrets: the name stays, what it leads to changes."""
    folder = web.parent
    for name, pair in (("one", authority.server("one")), ("two", authority.server("two"))):
        (folder / name).mkdir()
        (folder / name / "server.pem").write_bytes(pair.cert.read_bytes())
        (folder / name / "server.key").write_bytes(pair.key.read_bytes())
    (folder / "now").symlink_to("one")
    web.write_text(tls().replace("server.", "now/server."))
    with serving(door=Door(str(web))) as address:
        secure = replace(address, tls=authority.client())
        before = serial(secure)
        (folder / "next").symlink_to("two")
        (folder / "next").rename(folder / "now")
        assert serial(secure) != before


def test_users_change_without_a_restart(web: Path) -> None:
    """A new password counts from the next request on, over an open connection too."""
    web.write_text(USERS)
    with serving(door=Door(str(web))) as address, closing(address.connect()) as client:

        def status(password: str) -> int:
            return client.say(request("GET", "/metrics", authorization=basic("alice", password))).answer().status

        assert (status("sesame"), status("new")) == (200, 401)
        moved(web, f"basic_auth_users: {{alice: {hashed('new')}}}\n")
        assert (status("sesame"), status("new")) == (401, 200)


@pytest.mark.parametrize("broken", ["tls_server_config: [", "tls_server_config: {cert_file: no, key_file: no}", None])
def test_a_broken_file_changes_nothing(
    web: Path, authority: Authority, caplog: pytest.LogCaptureFixture, broken: str | None
) -> None:
    """The old terms stay, the log says once why, and a file that is mended is taken."""
    text = USERS + tls()
    web.write_text(text)
    with serving(door=Door(str(web))) as address, caplog.at_level(logging.INFO, "capwatch"):
        secure = replace(address, tls=authority.client())
        if broken is None:
            web.unlink()
        else:
            moved(web, broken)
        assert [secure.ask(SCRAPE).status for _ in range(3)] == [401] * 3
        told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert [("old one is in force" in one, "\n" in one) for one in told] == [(True, False)]
        web.write_text(text.replace("alice", "bob"))
        web.chmod(0o600)
        secure.ask(SCRAPE)
        assert caplog.records[-1].getMessage() == "web configuration loaded anew"
        assert secure.get("/metrics", authorization=basic("bob", "sesame")).status == 200


@pytest.mark.parametrize(
    ("new", "lost"),
    [
        ("", "TLS and client certificates and passwords"),
        (USERS, "TLS and client certificates"),
        (USERS + tls(), "client certificates"),
        (CLIENTS, "passwords"),
    ],
    ids=["empty", "no TLS", "no certificates of clients", "no passwords"],
)
def test_a_file_that_is_being_written_opens_nothing(
    web: Path, caplog: pytest.LogCaptureFixture, new: str, lost: str
) -> None:
    """What keeps others out is never given up on the fly: a file cut short, or empty, is one that is just written."""
    web.write_text(USERS + CLIENTS)
    door = Door(str(web))
    moved(web, new)
    with closing(door.wrap(socket.socket())) as line:
        assert isinstance(line, ssl.SSLSocket)
    assert caplog.records[-1].getMessage().endswith(f"to give up {lost} needs a restart")
    assert door.asks


def test_more_locks_are_taken_on_the_fly(web: Path, authority: Authority) -> None:
    """An open door may be shut at any time."""
    web.write_text("")
    with serving(door=Door(str(web))) as address:
        assert address.get("/metrics").status == 200
        moved(web, tls() + USERS)
        assert replace(address, tls=authority.client()).ask(SCRAPE).status == 401


@pytest.mark.parametrize(
    ("text", "modes", "told"),
    [
        (CLIENTS, {}, []),
        (CLIENTS, {"web.yml": 0o644}, []),
        (CLIENTS, {"server.key": 0o644}, ["server.key"]),
        (CLIENTS, {"server.key": 0o640}, []),
        (USERS + tls(), {"web.yml": 0o644}, ["web.yml"]),
        (USERS + tls(), {"web.yml": 0o604, "server.key": 0o444}, ["web.yml", "server.key"]),
    ],
    ids=["as made", "no secrets", "key", "key of a group", "document", "both"],
)
def test_secrets_that_everybody_can_read_are_told(web: Path, text: str, modes: dict[str, int], told: list[str]) -> None:
    """A key, or a document with hashes: their names and what to do; a document without secrets may be read."""
    web.write_text(text)
    for name, mode in modes.items():
        (web.parent / name).chmod(mode)
    found = list(Door(str(web)).warnings())
    assert [os.path.basename(one.split()[0]) for one in found] == told
    assert all(one.endswith("chmod o-r") for one in found)


def test_a_certificate_that_has_expired_is_told(web: Path, authority: Authority) -> None:
    """It is served, since some clients do not care, and the log says what most of them will do."""
    old = authority.server("expired", days=-1)
    web.write_text(tls().replace("server.", str(authority.folder / "expired.")))
    assert list(Door(str(web)).warnings()) == [
        "clients will refuse the certificate in tls_server_config: certificate has expired"
    ]
    with serving(door=Door(str(web))) as address:
        assert not answered(address, authority.client())
    assert old.cert.exists()


def test_passwords_in_the_clear_are_told(web: Path) -> None:
    """Without TLS everybody on the way can read them."""
    web.write_text(USERS)
    (told,) = Door(str(web)).warnings()
    assert "in the clear" in told


def test_a_silent_client_does_not_delay_a_handshake(web: Path, authority: Authority) -> None:
    """200 that never begin theirs, with endless patience, and one that is cut off when its time is over."""
    forever = Limits(head_s=600, idle_s=600)
    with serving(door=Door(str(web)), limits=forever) as address:
        silent = [address.connect() for _ in range(200)]
        assert replace(address, tls=authority.client()).ask(SCRAPE).status == 200
        for client in silent:
            client.close()
    with serving(door=Door(str(web)), limits=Limits(head_s=0.5)) as address, closing(address.connect()) as client:
        assert client.ended()


def test_any_bytes_instead_of_tls_are_survived(web: Path, authority: Authority) -> None:
    """No stranger gets an answer in the clear, and the next client its scrape."""
    with serving(door=Door(str(web))) as address:

        @settings(max_examples=30)
        @given(st.sampled_from([b"", b"\x16\x03\x01", b"\x16\x03\x01\x00\x05\x01", SCRAPE]), st.binary(max_size=99))
        def survived(begin: bytes, rest: bytes) -> None:
            with closing(address.connect()) as client, suppress(OSError):
                client.say(begin + rest).line.shutdown(socket.SHUT_WR)
                assert b"HTTP" not in client.line.recv(1000)

        survived()
        assert replace(address, tls=authority.client()).ask(SCRAPE).status == 200


def test_a_file_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path) -> None:
    """A door that nobody has described is no door."""
    with pytest.raises(ConfigError, match="cannot be read"):
        Door(str(tmp_path / "web.yml"))
