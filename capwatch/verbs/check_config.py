"""Validate a configuration: print what is in effect, and test globs and permissions.

Exit code 1 where something cannot work, such as a file that may not be read.
"""

from __future__ import annotations

import argparse
import sys

from capwatch import sourcing
from capwatch.config.check import effective, of_reach, test_paths, warnings
from capwatch.config.rules import decided
from capwatch.console.configured import load

EXAMPLE = "capwatch check-config capwatch.yml"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="the configuration")


def run(arguments: argparse.Namespace) -> int:
    """Print the effective configuration on stdout and findings on stderr."""
    config = load(arguments.file)
    print(effective(decided(config, sourcing.engines())), end="")
    for warning in (*of_reach(config.listen, auth=False), *warnings(config, sourcing.engines())):
        print(f"warning: {warning}", file=sys.stderr)
    findings = test_paths(config)
    for finding in findings:
        print(f"{finding.level}: {finding.key}: {finding.text}", file=sys.stderr)
    return int(any(finding.level == "error" for finding in findings))
