"""The daemon: follows the logs, keeps the totals durable, shows them to Prometheus.

SIGHUP reloads the configuration, SIGTERM and SIGINT commit and end. Each flag overrides the configuration file.
"""

from __future__ import annotations

import argparse
import sqlite3
from dataclasses import replace
from typing import cast

from capwatch.config.kinds import LISTEN
from capwatch.config.schema import Config
from capwatch.console.configured import load
from capwatch.daemon import log
from capwatch.daemon.run import Daemon, Flags
from capwatch.errors import StateError, UsageError
from capwatch.keep.database import trouble

EXAMPLE = "capwatch run --config.file capwatch.yml"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--config.file", dest="config", metavar="FILE", required=True, help="the configuration")
    parser.add_argument("--state-dir", metavar="DIR", help="where the state lies")
    parser.add_argument("--state.reset", dest="reset", action="store_true", help="move the state aside and begin anew")
    parser.add_argument(
        "--web.listen-address", dest="listen", metavar="HOST:PORT", action="append", help="where to listen; repeatable"
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config",
        metavar="FILE",
        help="TLS, client certificates and passwords, as exporters of Prometheus have them",
    )
    parser.add_argument(
        "--web.telemetry-path", dest="path", metavar="PATH", default="/metrics", help="where the metrics are (/metrics)"
    )
    parser.add_argument("--web.enable-lifecycle", dest="lifecycle", action="store_true", help="allow POST /-/reload")
    parser.add_argument(
        "--log.level", dest="level", choices=log.LEVELS, default="info", help="least level to log (info)"
    )
    parser.add_argument(
        "--log.format", dest="form", choices=("logfmt", "json"), default="logfmt", help="form of the log"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run until told to stop."""
    if not arguments.path.startswith("/"):
        raise UsageError(f"--web.telemetry-path: {arguments.path!r} must begin with /, such as /metrics")
    log.begin(arguments.level, arguments.form)

    def configured() -> Config:
        return _overridden(load(arguments.config), arguments)

    flags = Flags(
        listen=_addresses(arguments.listen or []),
        web_config=arguments.web_config or None,  # exporters take an empty name for none
        telemetry_path=arguments.path,
        lifecycle=arguments.lifecycle,
        reset=arguments.reset,
    )
    try:
        config = configured()
        daemon = Daemon(config, configured, flags)
    except StateError as error:
        raise UsageError(str(error)) from None
    except (OSError, sqlite3.Error) as error:
        why = trouble(config.state_dir, error)
        raise UsageError(f"{config.state_dir}: {why}; see to that, or name another with --state-dir") from None
    return daemon.run()


def _overridden(config: Config, arguments: argparse.Namespace) -> Config:
    if arguments.state_dir is not None:
        config = replace(config, state_dir=arguments.state_dir)
    return config


def _addresses(given: list[str]) -> tuple[str, ...]:
    try:
        return tuple(cast("str", LISTEN.read(text)) for text in given)
    except ValueError as error:
        raise UsageError(f"--web.listen-address: {error}") from None
