"""Web configuration files: what is taken, what is refused with one line, and that promtool judges alike."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from capwatch.errors import ConfigError
from capwatch.web.door import Door
from capwatch.web.door.document import parse

from .authority import Authority, hashed

HASH = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
PAIR = "cert_file: server.pem, key_file: server.key"
CLIENTS = f"{PAIR}, client_ca_file: authority.pem, client_auth_type: RequireAndVerifyClientCert"

GOOD = {
    "nothing": "",
    "a comment": "# nothing yet\n",
    "TLS": f"tls_server_config: {{{PAIR}}}",
    "client certificates": f"tls_server_config: {{{CLIENTS}}}",
    "client certificates where there are some": f"tls_server_config: {{{CLIENTS}}}".replace(
        "RequireAndVerifyClientCert", "VerifyClientCertIfGiven"
    ),
    "versions": f"tls_server_config: {{{PAIR}, min_version: TLS13, max_version: TLS13}}",
    "suites": f"tls_server_config: {{{PAIR}, prefer_server_cipher_suites: false, cipher_suites:"
    " [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_RSA_WITH_AES_256_CBC_SHA, TLS_AES_128_GCM_SHA256]}",
    "suites of TLS 1.3": f"tls_server_config: {{{PAIR}, cipher_suites: [TLS_AES_128_GCM_SHA256]}}",
    "a curve": f"tls_server_config: {{{PAIR}, curve_preferences: [X25519]}}",
    "HTTP/2 or not": "http_server_config: {http2: false}",
    "headers": "http_server_config: {headers: {X-Frame-Options: sameorigin, Strict-Transport-Security: max-age=1,"
    " X-Content-Type-Options: nosniff, X-XSS-Protection: '0', Content-Security-Policy: default-src 'self'}}",
    "users": f"basic_auth_users: {{alice: {HASH}, 'bob b': {HASH.replace('2y', '2b')}}}",
}
BAD = {
    "an unknown key": ("tls_config: {}", "tls_config"),
    "a key twice": (f"tls_server_config: {{{PAIR}, {PAIR}}}", "cert_file"),
    "a certificate without a key": ("tls_server_config: {cert_file: server.pem}", "tls_server_config.key_file"),
    "a key without a certificate": ("tls_server_config: {key_file: server.key}", "tls_server_config.cert_file"),
    "a file that is not there": ("tls_server_config: {cert_file: no.pem, key_file: server.key}", "no.pem"),
    "a key for a certificate": ("tls_server_config: {cert_file: server.key, key_file: server.key}", "cert_file"),
    "another's key": ("tls_server_config: {cert_file: server.pem, key_file: authority.key}", "key_file"),
    "an authority nobody asks for": (
        f"tls_server_config: {{{PAIR}, client_ca_file: authority.pem}}",
        "tls_server_config.client_auth_type",
    ),
    "an unknown way to ask": (f"tls_server_config: {{{PAIR}, client_auth_type: Maybe}}", "client_auth_type"),
    "an unknown suite": (f"tls_server_config: {{{PAIR}, cipher_suites: [TLS_FOO]}}", "cipher_suites[0]"),
    "an unknown curve": (f"tls_server_config: {{{PAIR}, curve_preferences: [CurveP257]}}", "CurveP256"),
    "an unknown version": (f"tls_server_config: {{{PAIR}, min_version: TLS14}}", "min_version"),
    "another header": ("http_server_config: {headers: {X-Foo: a}}", "http_server_config.headers.X-Foo"),
    "another value": ("http_server_config: {headers: {X-Frame-Options: maybe}}", "headers.X-Frame-Options"),
    "a plain password": ("basic_auth_users: {alice: secret}", "basic_auth_users.alice"),
    "users in a list": (f"basic_auth_users: [{HASH}]", "basic_auth_users"),
    "a hash without a user": (f"basic_auth_users: {HASH}", "basic_auth_users"),
}
STRICTER = {
    "TLS without a certificate": ("tls_server_config: {min_version: TLS12}", "tls_server_config.cert_file"),
    "certificates of clients, unverified": (
        f"tls_server_config: {{{PAIR}, client_auth_type: RequireAnyClientCert}}",
        "tls_server_config.client_auth_type",
    ),
    "certificates of clients, asked for": (
        f"tls_server_config: {{{PAIR}, client_auth_type: RequestClientCert}}",
        "tls_server_config.client_auth_type",
    ),
    "certificates of clients by anybody": (
        f"tls_server_config: {{{PAIR}, client_auth_type: RequireAndVerifyClientCert}}",
        "tls_server_config.client_ca_file",
    ),
    "an authority that is none": (
        f"tls_server_config: {{{CLIENTS.replace('authority.pem', 'server.key')}}}",
        "tls_server_config.client_ca_file",
    ),
    "TLS 1.1": (f"tls_server_config: {{{PAIR}, min_version: TLS11}}", "tls_server_config.min_version"),
    "TLS 1.0 at most": (
        f"tls_server_config: {{{PAIR}, min_version: TLS10, max_version: TLS10}}",
        "tls_server_config.min_version",
    ),
    "no version": (f"tls_server_config: {{{PAIR}, min_version: TLS13, max_version: TLS12}}", "min_version"),
    "no suite": (
        f"tls_server_config: {{{PAIR}, max_version: TLS12, cipher_suites: [TLS_AES_128_GCM_SHA256]}}",
        "tls_server_config.cipher_suites",
    ),
    "two curves": (f"tls_server_config: {{{PAIR}, curve_preferences: [X25519, CurveP256]}}", "curve_preferences"),
    "a user with a colon": (f"basic_auth_users: {{'a:b': {HASH}}}", "basic_auth_users['a:b']"),
    "a header in two lines": ('http_server_config: {headers: {X-XSS-Protection: "a\\r\\nb"}}', "X-XSS-Protection"),
}
"""What promtool takes and capwatch does not: Python's ssl cannot do it, or it leaves a door open unsaid."""


def written(authority: Authority, text: str) -> Path:
    """A file beside the certificates."""
    path = authority.folder / "web.yml"
    path.write_text(text)
    return path


def promtool(path: Path) -> int:
    """What promtool's exit code says of a file."""
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed (Debian: prometheus)")
    return subprocess.run(["promtool", "check", "web-config", path], check=False, capture_output=True).returncode


def refused(path: Path, key: str) -> str:
    """The one line that names the file and the key."""
    with pytest.raises(ConfigError) as error:
        Door(str(path))
    told = str(error.value)
    assert (told.startswith(str(path)), key in told, "\n" in told) == (True, True, False), told
    return told


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_good_files_are_taken(authority: Authority, text: str) -> None:
    """Both by capwatch and by promtool."""
    path = written(authority, text)
    Door(str(path))
    assert promtool(path) == 0


@pytest.mark.parametrize(("text", "key"), BAD.values(), ids=BAD)
def test_bad_files_are_refused(authority: Authority, text: str, key: str) -> None:
    """Both by promtool and by capwatch, with one line that names the key."""
    path = written(authority, text)
    refused(path, key)
    assert promtool(path) == 1


@pytest.mark.parametrize(("text", "key"), STRICTER.values(), ids=STRICTER)
def test_what_cannot_be_done_is_refused(authority: Authority, text: str, key: str) -> None:
    """Nothing is taken and then not done: where promtool says yes, capwatch names the key."""
    path = written(authority, text)
    refused(path, key)
    assert promtool(path) == 0


def test_names_of_clients_need_their_certificates(authority: Authority) -> None:
    """`client_allowed_sans` is for those who must show one."""
    path = written(authority, f"tls_server_config: {{{PAIR}, client_allowed_sans: [a]}}")
    refused(path, "tls_server_config.client_allowed_sans")


def test_texts_stand_in_the_file_or_in_files(authority: Authority) -> None:
    """Certificate and key may stand in the document itself, but not twice."""
    texts = {name: (authority.folder / f"server.{name}").read_text() for name in ("pem", "key")}
    blocks = "".join(
        f"  {key}: |\n" + "".join(f"    {line}\n" for line in texts[name].splitlines())
        for key, name in (("cert", "pem"), ("key", "key"))
    )
    Door(str(written(authority, f"tls_server_config:\n{blocks}")))
    refused(written(authority, f"tls_server_config:\n{blocks}  key_file: server.key\n"), "tls_server_config.key")


@pytest.mark.parametrize(
    "text", [f"basic_auth_users: {HASH}", f"basic_auth_users: {{a: x{HASH}}}", "basic_auth_users: {a: sesame}"]
)
def test_no_error_repeats_a_secret(authority: Authority, text: str) -> None:
    """Neither a hash nor a password that somebody took for one."""
    told = refused(written(authority, text), "basic_auth_users")
    assert not any(part in told for part in (HASH[:12], HASH[-12:], "sesame"))


def test_files_lie_beside_the_document(authority: Authority) -> None:
    """Relative paths start from the folder of the file that names them, absolute ones do not."""
    document = parse(f"tls_server_config: {{{PAIR.replace('server.key', '/k')}}}", "/etc/capwatch/web.yml")
    assert document.files == ("/etc/capwatch/server.pem", "/k")


def test_a_file_that_cannot_be_read_is_refused(authority: Authority) -> None:
    """The line says why."""
    refused(authority.folder / "nowhere.yml", "No such file")


def test_an_encrypted_key_asks_nobody(authority: Authority) -> None:
    """It is refused; OpenSSL would ask the terminal."""
    encrypted = authority.folder / "encrypted.key"
    command = ["openssl", "ec", "-in", "server.key", "-aes256", "-passout", "pass:x", "-out", str(encrypted)]
    subprocess.run(command, cwd=authority.folder, check=True, capture_output=True)
    path = written(authority, "tls_server_config: {cert_file: server.pem, key_file: encrypted.key}")
    refused(path, "unencrypted")


def test_a_hash_of_the_least_cost_is_one() -> None:
    """What bcrypt makes is what the document takes."""
    assert parse(f"basic_auth_users: {{a: {hashed('a')}}}", "web.yml").basic_auth_users["a"].startswith("$2b$04$")
