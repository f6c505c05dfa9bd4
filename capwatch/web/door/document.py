"""What may stand in a web configuration file, read and checked; nothing of a password or a key is ever repeated."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal, cast

from capwatch.config.kinds import Kind
from capwatch.config.load import read, text_of
from capwatch.config.nearest import nearest
from capwatch.config.shape import record
from capwatch.config.tree import Entries, Path, Scalar, compose, fail, locate
from capwatch.config.units import found
from capwatch.web.door.ciphers import CURVES, MODERN, SUITES

_HASH = re.compile(r"\$2[aby]\$(?:0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}
"""Headers that may be set, and the values that are possible; none means any."""
_VERIFIED: Final = ("VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
_UNVERIFIED: Final = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
_VERSIONS: Final = ("TLS12", "TLS13")


def _bcrypt(text: str) -> str:
    if not _HASH.fullmatch(text):
        raise ValueError("found no bcrypt hash; possible is one such as `htpasswd -nBC 10 NAME` prints")
    return text


def _header(text: str) -> str:
    if not all(" " <= sign <= "~" for sign in text):
        raise ValueError("found signs that no header may have; possible is printable ASCII")
    return text


def _named(noun: str, names: Collection[str]) -> Kind:
    def read_one(text: str) -> str:
        if text not in names:
            raise ValueError(f"found {found(text)}; {nearest(text, names)}")
        return text

    return Kind(noun, read_one, str, {})


_BCRYPT: Final = Kind("a bcrypt hash", _bcrypt, str, {})
_PEM: Final = Kind("PEM text", str, str, {})
_VALUE: Final = Kind("a header's value", _header, str, {})
_SUITE: Final = _named("a cipher suite", {*SUITES, *MODERN})
_CURVE: Final = _named("a curve", CURVES)

Pem = Annotated[str | None, _PEM]
Version = Literal["TLS10", "TLS11", "TLS12", "TLS13"]
Asking = Literal[
    "NoClientCert",
    "RequestClientCert",
    "RequireAnyClientCert",
    "RequireClientCert",
    "VerifyClientCertIfGiven",
    "RequireAndVerifyClientCert",
]


@dataclass(frozen=True, slots=True)
class Tls:
    """The part about TLS. Of text and file one is given; a file that is named relatively lies beside the document."""

    cert: Annotated[Pem, "certificate and those that sign it, as text"] = None
    cert_file: Annotated[str | None, "the same in a file"] = None
    key: Annotated[Pem, "key of the certificate, as text"] = None
    key_file: Annotated[str | None, "the same in a file"] = None
    client_ca: Annotated[Pem, "certificates that sign those of clients, as text"] = None
    client_ca_file: Annotated[str | None, "the same in a file"] = None
    client_auth_type: Annotated[Asking, "whether clients are asked for certificates"] = "NoClientCert"
    client_allowed_sans: Annotated[tuple[str, ...], "alternative names, one of which a client must have"] = ()
    min_version: Annotated[Version, "oldest version spoken"] = "TLS12"
    max_version: Annotated[Version, "newest version spoken"] = "TLS13"
    cipher_suites: Annotated[tuple[Annotated[str, _SUITE], ...], "suites of TLS 1.2, best first"] = ()
    prefer_server_cipher_suites: Annotated[bool, "whether that order decides, or the client's"] = True
    curve_preferences: Annotated[tuple[Annotated[str, _CURVE], ...], "curves, best first"] = ()


@dataclass(frozen=True, slots=True)
class Http:
    """The part about HTTP."""

    http2: Annotated[bool, "allowed, and never spoken: every client of HTTP/2 speaks HTTP/1.1 as well"] = True
    headers: Annotated[Mapping[str, Annotated[str, _VALUE]], "headers of every answer, in place of our own"] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class Document:
    """A web configuration file as a whole."""

    tls_server_config: Annotated[Tls | None, "TLS; without it plain HTTP"] = None
    http_server_config: Annotated[Http, "HTTP"] = Http()
    basic_auth_users: Annotated[Mapping[str, Annotated[str, _BCRYPT]], "bcrypt hashes of passwords, by user"] = field(
        default_factory=dict
    )

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it names."""
        tls = self.tls_server_config or Tls()
        return tuple(path for path in (tls.cert_file, tls.key_file, tls.client_ca_file) if path is not None)


def load(path: str) -> Document:
    """The document in a file, the files that it names with their folder.

    Raises:
        ConfigError: it cannot be read, or used.
    """
    return parse(text_of(path), path)


def parse(text: str, file: str) -> Document:
    """A document; ``file`` is where it lies. Raises as `load` does."""
    root = compose(text, file)
    if isinstance(root, Scalar) and root.null:
        root = Entries({}, {}, file, None)
    users = locate(root, ("basic_auth_users",))
    if isinstance(users, Scalar) and not users.null:  # it may be a hash, which no error repeats
        fail("found no mapping; possible is NAME: HASH, a line for each user", ("basic_auth_users",), users)
    document = cast("Document", read(record(Document), root, ()))
    for at, violation in _violations(document):
        fail(violation, at, locate(root, at))
    tls = document.tls_server_config
    if tls is None:
        return document
    cert, key, authority = (
        None if path is None else os.path.join(os.path.dirname(file), path)
        for path in (tls.cert_file, tls.key_file, tls.client_ca_file)
    )
    tls = replace(tls, cert_file=cert, key_file=key, client_ca_file=authority)
    return replace(document, tls_server_config=tls)


def _violations(document: Document) -> Iterator[tuple[Path, str]]:
    """What the shapes cannot say."""
    if document.tls_server_config is not None:
        for key, text in (*_of_pairs(document.tls_server_config), *_of_tls(document.tls_server_config)):
            yield ("tls_server_config", key), text
    for name, value in document.http_server_config.headers.items():
        at = ("http_server_config", "headers", name)
        if name not in _HEADERS:
            yield at, f"this header cannot be set; {nearest(name, _HEADERS)}"
        elif _HEADERS[name] and value not in _HEADERS[name]:
            yield at, f"found {found(value)}; possible is {' or '.join(_HEADERS[name])}"
    for user in document.basic_auth_users:
        if ":" in user:
            yield ("basic_auth_users", user), "a user with a colon can never log in (RFC 7617)"


def _of_pairs(tls: Tls) -> Iterator[tuple[str, str]]:
    for name in ("cert", "key", "client_ca"):
        inline, file = getattr(tls, name), getattr(tls, f"{name}_file")
        if inline is not None and file is not None:
            yield name, f"given together with {name}_file; possible is one of the two"
        if inline is None and file is None and name != "client_ca":
            yield f"{name}_file", "missing; TLS needs a certificate and its key"


def _of_tls(tls: Tls) -> Iterator[tuple[str, str]]:
    asking, authority = tls.client_auth_type, tls.client_ca is not None or tls.client_ca_file is not None
    if asking in _UNVERIFIED:
        possible = " or ".join(_VERIFIED)
        yield "client_auth_type", f"{asking} is not possible here: OpenSSL verifies what it asks for; use {possible}"
    if authority and asking == "NoClientCert":
        yield "client_auth_type", f"missing; with a client CA it is {' or '.join(_VERIFIED)}"
    if asking in _VERIFIED and not authority:
        yield "client_ca_file", f"missing; {asking} needs to know who signs the certificates of clients"
    if tls.client_allowed_sans and asking != "RequireAndVerifyClientCert":
        yield "client_allowed_sans", "needs client_auth_type: RequireAndVerifyClientCert"
    for key, version in (("min_version", tls.min_version), ("max_version", tls.max_version)):
        if version not in _VERSIONS:
            yield key, f"{version} is not spoken here (RFC 8996 has ended it); possible is {' or '.join(_VERSIONS)}"
    if tls.min_version > tls.max_version:
        yield "min_version", f"newer than max_version, which is {tls.max_version}"
    if tls.cipher_suites and tls.max_version == "TLS12" and MODERN.issuperset(tls.cipher_suites):
        yield "cipher_suites", "none of these is of TLS 1.2, and max_version allows no other"
    if len(tls.curve_preferences) > 1:
        yield "curve_preferences", "Python's ssl takes one curve; without the key there are all of them"
