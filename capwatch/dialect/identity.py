"""What tells a request without an id apart from all others, and is the same in a row that repeats it."""

from __future__ import annotations

from xxhash import xxh3_64_hexdigest


def identity(*parts: object) -> str | None:
    """A hash of what a line says of a request, fit for `dedupe_key`; None where one part is not told.

    What is hashed has to hold more than time and path (a port, a counter), or a burst would look like one request.

    >>> identity("03/Mar/2026:09:15:00.120", "/v1/responses", 33301) == identity("03/Mar/2026:09:15:00.120", "/v1", 1)
    False
    >>> identity(1772529300.12, None) is None
    True
    """
    if None in parts:
        return None
    return xxh3_64_hexdigest("\0".join(map(str, parts)).encode("utf-8", "replace"))
