"""The commands. Each module here is one: its arguments and what it is wired to."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from spark_watch import __version__
from spark_watch.errors import OutputError, SparkWatchError, UsageError

COMMANDS: Final = (
    "run",
    "check",
    "preflight",
    "explain",
    "status",
    "record",
    "replay",
    "convert",
    "postmortem",
    "who",
    "probe",
    "progress",
    "simulate",
    "config",
)
"""In the order of ``--help``; a module each, with ``HELP``, ``EXAMPLE``, ``arguments``, ``run``."""


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line and whose exit code is 64."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands.

    Args:
        only: load the arguments of this command alone; the others stay names.
    """
    root = _Parser(
        prog="spark-watch",
        description="Watches one NVIDIA DGX Spark and names how it is about to fail.",
        epilog="exit codes: 0 ok or info, 1 warning, 2 critical, 3 nothing could be judged; "
        "64 usage, 65 bad input, 74 input or output, 78 configuration",
    )
    root.add_argument("--version", action="version", version=f"spark-watch {__version__}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module: Any = import_module(f"spark_watch.cli.{name}")
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            epilog=f"example: {module.EXAMPLE}",
        )
        if only is None or only == name:
            module.arguments(command)
        command.set_defaults(run=module.run)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command and return its exit code. Errors are one line on standard error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    named = next((word for word in given if word in COMMANDS), None)
    try:
        options = parser(only=named).parse_args(given)
        command: Callable[[argparse.Namespace], int] = options.run
        code = command(options)
        sys.stdout.flush()
    except SparkWatchError as error:
        print(f"spark-watch: {error}", file=sys.stderr)  # noqa: T201 - the command line's answer
        return error.exit_code
    except BrokenPipeError:
        # the reader of our output has gone (a pager, head): nothing is left to say
        _abandon_output()
        return 0
    except OSError as error:
        # every file and socket has its own words; what is left is our own output
        _abandon_output()
        reason = (error.strerror or str(error)).lower()
        print(f"spark-watch: cannot write: {reason}", file=sys.stderr)  # noqa: T201 - see above
        return OutputError.exit_code
    except KeyboardInterrupt:
        return 130
    return code


def _abandon_output() -> None:
    """Let what is still buffered for standard output go nowhere, so that the end is quiet."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
