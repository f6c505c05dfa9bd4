"""Which daemon a verb speaks to."""

from __future__ import annotations

import argparse
import os

from capwatch.config.load import default_state_dir
from capwatch.console.configured import load


def reach(parser: argparse.ArgumentParser) -> None:
    """The options that say where the daemon's state is."""
    parser.add_argument("--config.file", dest="config", metavar="FILE", help="the daemon's configuration")
    parser.add_argument("--state-dir", metavar="DIR", help="the daemon's state directory")


def folder(arguments: argparse.Namespace) -> str:
    """The state directory that is meant.

    Raises:
        CapwatchError: the configuration is refused.
    """
    if arguments.state_dir is not None:
        return str(arguments.state_dir)
    if arguments.config is not None:
        return load(arguments.config).state_dir
    return default_state_dir(os.environ, is_root=os.geteuid() == 0)
