"""The command line: verbs, options and exit codes (contract, section 1).

Results go to stdout, everything else to stderr. Exit 0: fine; 1: findings, or a failure at run time; 2: a mistake in
the call or the configuration, told in exactly one line that names the place and the fix.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper
from pkgutil import iter_modules
from typing import Final, NoReturn

from capwatch import __version__
from capwatch import verbs as shelf
from capwatch.errors import CapwatchError, UsageError

EXAMPLES: Final = """examples:
  capwatch replay --config.file capwatch.yml access.jsonl     what the logs amount to, as a Prometheus page
  capwatch explain --format jsonl access.jsonl                what is understood of each line
  capwatch metrics                                            what is exported
"""


class Parser(argparse.ArgumentParser):
    """A parser whose refusals are one line, without a usage block, and say where it is written how to do it right."""

    def error(self, message: str) -> NoReturn:
        """Refuse the call."""
        told = "choose from" in message
        raise UsageError(f"{self.prog}: {message}" + ("" if told else f"; see `{self.prog} --help`"))

    def parse_known_args(  # type: ignore[override]  # one way of the two that argparse has
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse; what is left over is refused by the verb that does not know it, not by the program."""
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed, left


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; ``arguments`` are those of the process where None."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    # Nothing here multiplies matrices: threads that wait for it would only cost time and memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _open_streams()
    if isinstance(sys.stdout, TextIOWrapper):  # a terminal need not know every letter that a log has
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments is None and words[:1] == [
        "run"
    ]:  # until the daemon takes them, see its `HELD`: what comes during the imports is not lost
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGTERM})
    try:
        parsed = parser(words[:1]).parse_args(words)
        code: int = parsed.run(parsed)
        sys.stdout.flush()
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    except CapwatchError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of stdout has gone, as `head` does; what it asked for it has
        _mute()
        return 0
    except OSError as error:  # such as a full disk
        _mute()
        print(CapwatchError(f"{error.filename or 'output'}: {error.strerror or error}"), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _open_streams() -> None:
    """Stand in for a stream that whoever started this has closed: what is printed to it goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process


def _mute() -> None:
    """Let what is left in the buffer of stdout go nowhere, so that the interpreter's end does not stumble over it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def verbs() -> list[str]:
    """Every verb on the shelf `capwatch.verbs`, as it is typed."""
    return sorted(module.name.replace("_", "-") for module in iter_modules(shelf.__path__))


def parser(only: Sequence[str] = ()) -> Parser:
    """The command line, with all verbs or, so that a call imports no more than it needs, with those in ``only``."""
    top = Parser(
        prog="capwatch",
        description="Capacity observability for LLM serving.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=__version__)
    entries = top.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name in [verb for verb in verbs() if verb in only] or verbs():
        module = import_module(f"capwatch.verbs.{name.replace('-', '_')}")
        text = module.__doc__ or ""
        verb = entries.add_parser(
            name,
            help=text.partition("\n")[0],
            description=text,
            epilog=f"example:\n  {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        verb.add_argument("--version", action="version", version=__version__)
        module.describe(verb)
        runner: Callable[[argparse.Namespace], int] = module.run
        verb.set_defaults(run=runner)
    return top


if __name__ == "__main__":
    sys.exit(main())
