"""What can go WRONG: the short tree of errors that a person gets to read, each of them exactly one line."""

from __future__ import annotations

from capwatch.redact import redacted


class CapwatchError(Exception):
    r"""Anything capwatch tells its user instead of a traceback.

    ``str()`` is one printable line, which repeats nothing that looks like a key or an address.

    >>> print(CapwatchError("two\nlines"))
    two\nlines
    """

    def __init__(self, text: str) -> None:
        super().__init__(redacted(_one_line(text)))


class UsageError(CapwatchError):
    """What was asked for cannot be done as it is written: exit code 2. The text names the place and the fix."""


class ConfigError(UsageError):
    """A configuration that cannot be used.

    Attributes:
        file: the configuration file as it was named, or the environment variable that overrides it.
        path: the key, such as ``sources[0].format``; empty for the file as a whole.
        line: line in ``file``, counted from 1; None where there is none.
        text: what is wrong there.

    >>> str(ConfigError("unknown key; did you mean 'format'?", "capwatch.yml", "sources[0].formt", 12))
    "capwatch.yml:12: sources[0].formt: unknown key; did you mean 'format'?"
    """

    def __init__(self, text: str, file: str, path: str = "", line: int | None = None) -> None:
        place = file if line is None else f"{file}:{line}"
        super().__init__(": ".join(part for part in (place, path, text) if part))
        self.file = file
        self.path = redacted(path)
        self.line = line
        self.text = redacted(text)


class StateError(CapwatchError):
    """A state that cannot be used as it is (held by another daemon, of a newer version); the text names the way out."""


class LibraryError(CapwatchError):
    """A library of the host (such as a GPU's) that is not there or does not answer: what it would tell is absent."""


def _one_line(text: str) -> str:
    """Escape what would break the line or what a terminal cannot show."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)
