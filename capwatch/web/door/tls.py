"""TLS: from the document to the context of OpenSSL that handshakes are made by, and the names in a certificate."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, cast

from capwatch.errors import ConfigError
from capwatch.web.door.ciphers import CURVES, MODERN, SUITES
from capwatch.web.door.document import Tls

MOST_BYTES: Final = 1 << 20
"""Of a certificate or key: chains have a few KiB, bundles of all authorities there are some 200."""
_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_MODES: Final = {"VerifyClientCertIfGiven": ssl.CERT_OPTIONAL, "RequireAndVerifyClientCert": ssl.CERT_REQUIRED}
_ASKED: Final = "PEER_DID_NOT_RETURN_A_CERTIFICATE"
_STEPS: Final = 8
"""Turns of a handshake in memory; it has two."""


def context(tls: Tls, file: str) -> tuple[ssl.SSLContext, str]:
    """What handshakes are made by, and why clients will refuse its certificate, such as that it has expired.

    Args:
        tls: a valid part of a document.
        file: where the document lies, for errors.

    Raises:
        ConfigError: files cannot be read, or are no certificate and its key.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version, made.maximum_version = _VERSIONS[tls.min_version], _VERSIONS[tls.max_version]
    made.set_alpn_protocols(["http/1.1"])
    if not tls.prefer_server_cipher_suites:
        made.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    _choose(made, tls, file)
    certificate = _content(tls.cert, tls.cert_file, file, "cert_file")
    _load_pair(made, certificate, _content(tls.key, tls.key_file, file, "key_file"), file)
    if tls.client_auth_type in _MODES:
        _load_authority(made, _content(tls.client_ca, tls.client_ca_file, file, "client_ca_file"), file)
        made.verify_mode = _MODES[tls.client_auth_type]
    return made, _refusal(made, certificate)


def _choose(made: ssl.SSLContext, tls: Tls, file: str) -> None:
    """Suites and curves; a policy of the machine may have taken some away from OpenSSL."""
    try:
        if older := [SUITES[name] for name in tls.cipher_suites if name not in MODERN]:
            made.set_ciphers(":".join(older))
        elif tls.cipher_suites:  # no suite of TLS 1.2 is no TLS 1.2
            made.minimum_version = ssl.TLSVersion.TLSv1_3
    except ssl.SSLError:
        raise _error("OpenSSL has none of these here", file, "cipher_suites") from None
    try:
        for curve in tls.curve_preferences:
            made.set_ecdh_curve(CURVES[curve])
    except (ssl.SSLError, ValueError):
        raise _error("OpenSSL does not have it here", file, "curve_preferences") from None


def allowed(peer: ssl.SSLSocket, sans: tuple[str, ...]) -> bool:
    """Whether a client's verified certificate has one of these alternative names; so it does where none are asked."""
    return not sans or not set(sans).isdisjoint(_names(peer))


def _names(peer: ssl.SSLSocket) -> Iterator[str]:
    told = cast("Mapping[str, Iterable[tuple[str, str]]]", peer.getpeercert() or {})
    for kind, name in told.get("subjectAltName", ()):
        yield str(ipaddress.ip_address(name)) if kind == "IP Address" else name


def _content(text: str | None, path: str | None, file: str, key: str) -> bytes:
    if path is None:
        return (text or "").encode()
    try:
        with open(path, "rb") as opened:
            return opened.read(MOST_BYTES)
    except OSError as error:
        raise _error(f"{path} cannot be read: {error.strerror}", file, key) from None


def _load_pair(made: ssl.SSLContext, certificate: bytes, key: bytes, file: str) -> None:
    try:
        with _lent(certificate) as certfile, _lent(key) as keyfile:
            made.load_cert_chain(certfile, keyfile, password=lambda: b"")  # or OpenSSL would ask the terminal
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise _error("the key does not belong to the certificate", file, "key_file") from None
        raise _error(f"no certificate and its unencrypted key in PEM: {_said(error)}", file, "cert_file") from None
    except OSError as error:
        raise _error(f"OpenSSL cannot be given it: {error.strerror}", file, "cert_file") from None


def _load_authority(made: ssl.SSLContext, content: bytes, file: str) -> None:
    try:
        made.load_verify_locations(cadata=content.decode("ascii", "ignore"))  # others stand in comments only
    except (ssl.SSLError, ValueError):
        raise _error("no certificates in PEM", file, "client_ca_file") from None
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whoever is named is trusted, as in Go, not roots alone


@contextmanager
def _lent(content: bytes) -> Iterator[str]:
    """A path to a file in memory: Python's ssl reads keys from files only, and these were read once already."""
    number = os.memfd_create("capwatch", os.MFD_CLOEXEC)
    try:
        with open(number, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)


def _refusal(server: ssl.SSLContext, certificate: bytes) -> str:
    """Why a client that trusts this very certificate would still refuse it; nothing where it would not."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(cadata=certificate.decode("ascii", "ignore"))
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
    try:
        for _ in range(_STEPS):
            for end in ends:
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                if end is ends[0]:
                    return ""
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except ssl.SSLError as error:
        return "" if error.reason == _ASKED else _said(error)
    return "the handshake does not end"


def _said(error: ssl.SSLError) -> str:
    """OpenSSL's own word for what is wrong."""
    return (error.reason or "unreadable").lower().replace("_", " ")


def _error(text: str, file: str, key: str) -> ConfigError:
    return ConfigError(text, file, f"tls_server_config.{key}")
