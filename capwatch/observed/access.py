"""How a query API is reached: the file of `--http.config.file`, in the form that promtool and Prometheus give it.

Passwords and tokens are named by their files alone; a file that is named relatively lies beside the document.
"""

from __future__ import annotations

import os
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Final, TypeVar, cast

from capwatch.config.load import read, text_of
from capwatch.config.shape import record
from capwatch.config.tree import Entries, Scalar, compose, fail, locate
from capwatch.errors import ConfigError

MOST_SECRET_BYTES: Final = 64 << 10
"""Tokens are kilobytes; a larger file is the wrong one."""

Part = TypeVar("Part", "Basic", "Authorization", "Tls")


@dataclass(frozen=True, slots=True)
class Basic:
    """User and password (RFC 7617)."""

    username: Annotated[str, "user"]
    password_file: Annotated[str, "file that holds the password"]


@dataclass(frozen=True, slots=True)
class Authorization:
    """The header `Authorization`, such as a bearer token."""

    credentials_file: Annotated[str, "file that holds what follows the type"]
    type: Annotated[str, "its first word"] = "Bearer"


@dataclass(frozen=True, slots=True)
class Header:
    """The values of one more header, such as the tenant of Mimir (`X-Scope-OrgID`)."""

    values: Annotated[tuple[str, ...], "values, each a header of its own"]


@dataclass(frozen=True, slots=True)
class Tls:
    """How the server's certificate is verified, and the client's own."""

    ca_file: Annotated[str | None, "certificates that sign the server's; those of the system without it"] = None
    cert_file: Annotated[str | None, "the client's certificate"] = None
    key_file: Annotated[str | None, "its key"] = None
    server_name: Annotated[str | None, "name in the server's certificate, where it is not that of the address"] = None
    insecure_skip_verify: Annotated[bool, "whether any certificate will do"] = False


@dataclass(frozen=True, slots=True)
class Access:
    """The document as a whole."""

    basic_auth: Annotated[Basic | None, "user and password"] = None
    authorization: Annotated[Authorization | None, "a token instead"] = None
    tls_config: Annotated[Tls, "TLS"] = Tls()
    http_headers: Annotated[Mapping[str, Header], "further headers"] = field(default_factory=dict)

    def headers(self) -> list[tuple[str, str]]:
        """The headers of every request; the files are read now, so that renewed tokens count.

        Raises:
            ConfigError: a file cannot be read.
        """
        found = [(name, value) for name, header in self.http_headers.items() for value in header.values]
        if self.basic_auth is not None:
            pair = f"{self.basic_auth.username}:{_secret(self.basic_auth.password_file)}"
            found.append(("Authorization", f"Basic {b64encode(pair.encode()).decode()}"))
        if self.authorization is not None:
            told = self.authorization
            found.append(("Authorization", f"{told.type} {_secret(told.credentials_file)}"))
        return found

    def context(self) -> ssl.SSLContext:
        """What TLS is spoken with.

        Raises:
            ConfigError: a file cannot be read, or holds no certificate or key.
        """
        told = self.tls_config
        context = ssl.create_default_context()
        if told.ca_file is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # these and not those of the system
            _loaded(told.ca_file, context.load_verify_locations, told.ca_file)
        if told.cert_file is not None:
            _loaded(told.cert_file, context.load_cert_chain, told.cert_file, told.key_file)
        if told.insecure_skip_verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def load(path: str) -> Access:
    """The document in a file.

    Raises:
        ConfigError: it cannot be read, or used.
    """
    root = compose(text_of(path), path)
    if isinstance(root, Scalar) and root.null:
        root = Entries({}, {}, path, None)
    found = cast("Access", read(record(Access), root, ()))
    if found.basic_auth is not None and found.authorization is not None:
        fail("given together with basic_auth; possible is one of the two", ("authorization",), locate(root, ()))
    if (found.tls_config.cert_file is None) != (found.tls_config.key_file is None):
        fail("cert_file and key_file belong together; give both", ("tls_config",), locate(root, ("tls_config",)))
    folder = os.path.dirname(path)
    return replace(
        found,
        basic_auth=found.basic_auth and _beside(folder, found.basic_auth),
        authorization=found.authorization and _beside(folder, found.authorization),
        tls_config=_beside(folder, found.tls_config),
    )


def _beside(folder: str, part: Part) -> Part:
    """The same, its files with their folder."""
    named = {each.name: getattr(part, each.name) for each in fields(part) if each.name.endswith("_file")}
    files: dict[str, Any] = {name: os.path.join(folder, file) for name, file in named.items() if file is not None}
    return replace(part, **files)


def _secret(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(MOST_SECRET_BYTES).decode().strip()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path) from None
    except UnicodeDecodeError:
        raise ConfigError("not UTF-8", path) from None


def _loaded(path: str, read_files: Callable[..., None], *files: str | None) -> None:
    try:
        read_files(*files)
    except ssl.SSLError:
        raise ConfigError("holds no certificate in PEM, or not its key", path) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path) from None
