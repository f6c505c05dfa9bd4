"""An authority of its own: certificates for servers and clients, made by the openssl of the machine."""

from __future__ import annotations

import ssl
import subprocess
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

import bcrypt

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, in files."""

    cert: Path
    key: Path


class Authority:
    """Signs what it is asked to; its own certificate is `root`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.root = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        self._openssl(
            "req", "-x509", *NEW_KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.root
        )

    def pair(self, name: str, *sans: str, days: int = 2) -> Pair:
        """A new pair for a name, with alternative names such as `DNS:localhost`; negative days have expired."""
        made = Pair(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        request, extension = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extension.write_text(f"subjectAltName={','.join(sans)}\n" if sans else "")
        self._openssl("req", *NEW_KEY, "-subj", f"/CN={name}", "-keyout", made.key, "-out", request)
        signing = ("-CA", self.root, "-CAkey", self._key, "-CAcreateserial", "-days", str(days))
        self._openssl("x509", "-req", "-in", request, *signing, "-extfile", extension, "-out", made.cert)
        return made

    def server(self, name: str = "server", *, days: int = 2) -> Pair:
        """A pair for localhost."""
        return self.pair(name, "DNS:localhost", "IP:127.0.0.1", days=days)

    def client(self, pair: Pair | None = None) -> ssl.SSLContext:
        """How a client that trusts this authority speaks TLS, and shows this pair when it is asked."""
        context = ssl.create_default_context(cafile=str(self.root))
        if pair is not None:
            context.load_cert_chain(pair.cert, pair.key)
        return context

    def _openssl(self, *words: str | Path) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def hashed(password: str, cost: int = 4) -> str:
    """A bcrypt hash, by default of the least cost there is."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


def basic(user: str, password: str) -> str:
    """The Authorization header that user and password make."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()
