"""The SOURCE of a command: `--state-dir DIR`, `--prometheus URL`, or `--config.file F LOG…`; exactly one of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, cast
from urllib.parse import urlsplit

from capwatch.config.schema import DEFAULT_POOL, Config, Pool, Source
from capwatch.console.configured import load
from capwatch.errors import UsageError
from capwatch.explain.fit import FIT_LINES, best_fit, find_wrapper
from capwatch.observed import access
from capwatch.observed.prometheus import Server
from capwatch.replay import Log, chosen
from capwatch.replay.files import UNREADABLE, opened

Wrapper = Literal["none", "cri", "docker", "journald"]
KINDS: Final = {
    "logs": "--config.file F LOG...",
    "state": "--state-dir DIR",
    "prometheus": "--prometheus URL",
}
"""What each kind of source is given by."""


@dataclass(frozen=True, slots=True)
class Given:
    """What was given, one of the three; the configuration may come with each."""

    config: Config | None = None
    logs: Sequence[Log] = ()
    state: str | None = None
    """The folder of a state."""
    prometheus: Server | None = None
    """A server with a query API."""

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return "state" if self.state is not None else "prometheus" if self.prometheus is not None else "logs"


def describe(parser: argparse.ArgumentParser) -> None:
    """The options of a SOURCE."""
    parser.add_argument(
        "--config.file", dest="config", metavar="FILE", help="the configuration that says how to read logs"
    )
    parser.add_argument("--source", metavar="NAME", help="the source that LOG belongs to")
    parser.add_argument("--state-dir", metavar="DIR", help="instead of logs: the history in a daemon's state directory")
    parser.add_argument("--prometheus", metavar="URL", help="instead of logs: a server with the Prometheus query API")
    parser.add_argument(
        "--http.config.file", dest="http", metavar="FILE", help="its passwords, tokens and TLS, as promtool has them"
    )
    parser.add_argument("logs", metavar="LOG", nargs="*", help="files to read; without any, those of all sources")


def given(arguments: argparse.Namespace, kinds: Sequence[str], why: str) -> Given:
    """What was given, of a kind that the command can work from.

    Args:
        arguments: the parsed ones of `describe`.
        kinds: those of `KINDS` that it can work from.
        why: what it needs, for the refusal.

    Raises:
        UsageError: none or several were given, or one that it cannot work from.
    """
    ways = [
        kind
        for kind, there in (
            ("state", arguments.state_dir is not None),
            ("prometheus", arguments.prometheus is not None),
            ("logs", bool(arguments.logs) or arguments.source is not None),
        )
        if there
    ] or (["logs"] if arguments.config is not None else [])
    if len(ways) != 1:
        possible = ", or ".join(KINDS[kind] for kind in kinds)
        raise UsageError(f"SOURCE: {'is missing' if not ways else 'several are given'}; give {possible}")
    if ways[0] not in kinds:
        possible = ", or ".join(KINDS[one] for one in kinds)
        raise UsageError(f"{KINDS[ways[0]].split()[0]}: {why}; give {possible}")
    config = load(arguments.config) if arguments.config is not None else None
    if arguments.http is not None and ways[0] != "prometheus":
        raise UsageError("--http.config.file: goes with --prometheus URL")
    if ways[0] == "state":
        return Given(config, state=arguments.state_dir)
    if ways[0] == "prometheus":
        reached = access.Access() if arguments.http is None else access.load(arguments.http)
        return Given(config, prometheus=Server(_address(arguments.prometheus), reached))
    if config is None:
        if arguments.source is not None:
            raise UsageError("--config.file: is missing; --source names one of its sources")
        config = detected(arguments.logs)
    return Given(config, _counted(chosen(config, arguments.source, arguments.logs)))


def detected(paths: Sequence[str]) -> Config:
    """A configuration that reads some logs as what they look like, with the assumed rates.

    Raises:
        UsageError: one cannot be read, looks like nothing known, or like another kind than the first.
    """
    kinds = [_kind(path) for path in paths]
    for path, kind in zip(paths, kinds, strict=True):
        if kind != kinds[0]:
            raise UsageError(f"{path}: looks like {kind[0]}, {paths[0]} like {kinds[0][0]}; give --config.file")
    form, wrapper = kinds[0]
    return Config(
        sources=(Source("log", tuple(paths), form, wrapper=cast("Wrapper", wrapper or "none")),),
        pools=(Pool(DEFAULT_POOL, assumed=True),),
    )


def _kind(path: str) -> tuple[str, str | None]:
    """Format and wrapper of a file's first lines."""
    try:
        with opened(path) as stream:
            lines = [line.rstrip(b"\n") for line in islice(stream, FIT_LINES)]
    except UNREADABLE as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    wrapper = find_wrapper(lines)
    best = best_fit(lines, wrapper)[0]
    if not best.counted:
        raise UsageError(f"{path}: looks like no format; give --config.file (`capwatch init {path}` writes one)")
    return best.format, wrapper


def _counted(logs: Sequence[Log]) -> list[Log]:
    """Logs that only add to requests of others tell of requests themselves where the others are not read."""
    if any(log.counts for log in logs):
        return list(logs)
    return [Log(log.path, log.source, counts=True) for log in logs]


def _address(text: str) -> str:
    try:
        place = urlsplit(text)
        good = place.scheme in ("http", "https") and place.hostname and (place.port or place.netloc[-1] != ":")
    except ValueError:
        good = None
    if not good or place.query or place.fragment:
        raise UsageError("--prometheus: is no address such as http://127.0.0.1:9090")
    if place.username is not None:
        raise UsageError("--prometheus: a password stays in no command line; give it by --http.config.file")
    return text.rstrip("/")
