"""Names of cipher suites and curves: those of Go's crypto/tls, which the file is written in, and those of OpenSSL."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

MODERN: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""Suites of TLS 1.3. They may be listed, and are there whether they are listed or not, in Go as in OpenSSL."""
SUITES: Final[Mapping[str, str]] = {
    **{
        f"TLS_ECDHE_{key}_WITH_{go}": f"ECDHE-{key}-{openssl}"
        for key, (go, openssl) in product(
            ("ECDSA", "RSA"),
            (
                ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
                ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
                ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
                ("AES_128_CBC_SHA", "AES128-SHA"),
                ("AES_256_CBC_SHA", "AES256-SHA"),
            ),
        )
    },
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
}
"""Suites of TLS 1.2 that Go has ever called secure."""
CURVES: Final[Mapping[str, str]] = {
    "CurveP256": "prime256v1",
    "CurveP384": "secp384r1",
    "CurveP521": "secp521r1",
    "X25519": "X25519",
}
