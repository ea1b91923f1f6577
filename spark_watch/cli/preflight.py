"""``spark-watch preflight``: the ten gotchas, by number, before a run."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Final

from spark_watch.cli.common import say, settings_arguments, settings_of
from spark_watch.errors import InputError, OutputError, UsageError
from spark_watch.model import GIB
from spark_watch.preflight.estimate import (
    METHODS,
    OPTIMIZER_BYTES,
    WEIGHT_BYTES,
    Workload,
    estimate,
)
from spark_watch.settings.blackbox import SERVICE_STATE, state_directory

HELP = "check the ten gotchas before a run; read-only, safe beside a running job, <= 10 s"
EXAMPLE = "spark-watch preflight --python .venv/bin/python --params 70e9 --method qlora"

OF_PARAMS: Final = ("method", "dtype", "optimizer", "activations_gib", "gradient_checkpointing")
"""Flags that say something of ``--params`` and nothing without it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--json", metavar="FILE", help="write the report as JSON (- for the output)"
    )
    parser.add_argument(
        "--python", type=Path, metavar="PATH", help="interpreter of the environment to check"
    )
    parser.add_argument(
        "--launch",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="launch files, or folders of them, to look through for tensor parallelism",
    )
    parser.add_argument("--playbooks", type=Path, metavar="DIR", help="a clone of the playbooks")
    parser.add_argument("--playbook", metavar="NAME", help="the one you follow (nvidia/vllm)")
    parser.add_argument(
        "--lock", type=Path, metavar="FILE", help="name==version lines the environment should match"
    )
    need = parser.add_argument_group("what the run will need")
    need.add_argument("--workload-gib", type=float, metavar="N", help="a total that you know")
    need.add_argument("--params", type=float, metavar="N", help="parameters of the model (70e9)")
    need.add_argument("--method", choices=METHODS, help="default: lora")
    need.add_argument("--dtype", choices=tuple(WEIGHT_BYTES), help="of the weights; default: bf16")
    need.add_argument("--optimizer", choices=tuple(OPTIMIZER_BYTES), help="default: adamw")
    need.add_argument(
        "--activations-gib", type=float, metavar="N", help="activations, without checkpointing"
    )
    need.add_argument(
        "--gradient-checkpointing",
        action="store_true",
        default=None,
        help="which saves 30 %% of the activations",
    )
    settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print two lines at most for each check, write the report, and end with its verdict."""
    from spark_watch.preflight.checks import report  # noqa: PLC0415 - not for the daemon
    from spark_watch.preflight.g9_container import pins  # noqa: PLC0415 - see above
    from spark_watch.preflight.gather import Request, gather  # noqa: PLC0415 - loads NVML

    started = time.monotonic()
    settings = settings_of(options)
    request = Request(
        python=_interpreter(options.python),
        launch=tuple(_there("--launch", path) for path in options.launch),
        playbooks=None if options.playbooks is None else _there("--playbooks", options.playbooks),
        playbook=_playbook(options),
        pins=None if options.lock is None else pins(_text(options.lock)),
        workload=_workload(options),
        variables=dict(os.environ),
        conditions=settings.conditions_in_force(),
        recordings=(
            state_directory(settings.state_dir, os.environ, is_root=os.geteuid() == 0),
            SERVICE_STATE,
        ),
        proc_root=settings.proc_root,
        sys_root=settings.sys_root,
    )
    facts = gather(request)
    found = report(facts, took_seconds=time.monotonic() - started)
    document = json.dumps(found.as_json(), indent=2)
    if options.json == "-":
        say(document)
        return found.exit_code
    for line in found.text():
        say(line)
    if options.json is not None:
        _write(Path(options.json), document)
    return found.exit_code


def _interpreter(path: Path | None) -> Path | None:
    """Return the interpreter; of an environment's folder the one inside it."""
    if path is None:
        return None
    inside = path / "bin" / "python"
    return _there("--python", inside if path.is_dir() else path)


def _there(flag: str, path: Path) -> Path:
    if not os.path.lexists(path):
        raise UsageError(f"{flag} {path}: no such file or folder")
    return path


def _playbook(options: argparse.Namespace) -> str | None:
    name: str | None = options.playbook
    if name is not None and options.playbooks is None:
        raise UsageError("--playbook names one inside --playbooks, which was not given")
    return name


def _workload(options: argparse.Namespace) -> Workload | None:
    """Return what the run will need, ``None`` where nothing was said.

    Raises:
        UsageError: the flags contradict one another, or a value makes no sense.
    """
    given = [name for name in OF_PARAMS if getattr(options, name) is not None]
    for name in ("workload_gib", "activations_gib"):
        value = getattr(options, name)
        if value is not None and not 0.0 <= value <= 1e6:  # noqa: PLR2004 - said in the message
            raise UsageError(f"--{name.replace('_', '-')} {value:g}: must be 0 to 1000000")
    if options.workload_gib is not None:
        if options.params is not None or given:
            raise UsageError("--workload-gib is a total: leave out --params and what belongs to it")
        return Workload(given_bytes=options.workload_gib * GIB)
    if options.params is None:
        if given:
            raise UsageError(f"--{given[0].replace('_', '-')} says nothing without --params")
        return None
    return estimate(
        options.params,
        method=options.method or "lora",
        dtype=options.dtype or "bf16",
        optimizer=options.optimizer or "adamw",
        activation_gib=options.activations_gib,
        checkpointing=bool(options.gradient_checkpointing),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8: {error.reason}") from error


def _write(path: Path, document: str) -> None:
    try:
        path.write_text(document + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: {(error.strerror or str(error)).lower()}") from error
