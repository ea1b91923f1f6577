"""G10: tensor parallelism across two Sparks hangs; DDP and FSDP do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spark_watch.preflight.facts import Facts
from spark_watch.preflight.launches import NODES, TENSOR, Launches, Setting
from spark_watch.preflight.report import Line, Result

FIX: Final = (
    "set tensor parallelism to 1 and use DDP or FSDP across the boxes (for serving: pipeline "
    "parallelism, or a replica on each); keep NCCL_DEBUG=INFO on for the first hour"
)


def check(facts: Facts) -> Iterator[Line]:
    """Judge tensor parallelism in launch files and in the environment."""
    found = facts.launches
    if found is None:
        yield Line(
            "G10",
            "launch",
            Result.SKIP,
            f"launch files could not be looked through: {facts.why('launches')}",
            "name the files themselves with --launch",
        )
        return
    tensor = [setting for setting in found.settings if setting.kind == TENSOR]
    nodes = [setting for setting in found.settings if setting.kind == NODES]
    yield from _tensor(facts, found, tensor, nodes)
    if found.unread:
        yield Line(
            "G10",
            "unread",
            Result.SKIP,
            f"{len(found.unread)} files could not be read: {', '.join(found.unread[:5])}",
            "look into them for tensor_parallel or tp_size",
        )


def _tensor(
    facts: Facts, found: Launches, tensor: list[Setting], nodes: list[Setting]
) -> Iterator[Line]:
    counts = [setting.value for setting in nodes if setting.value is not None]
    world = max(counts, default=None)
    values = {
        "nodes": world,
        "settings": [
            {"place": each.place, "key": each.key, "value": each.value} for each in tensor
        ],
    }
    above = [setting for setting in tensor if setting.value is not None and setting.value > 1]
    unknown = [setting for setting in tensor if setting.value is None]
    if above:
        first = above[0]
        where = f"{first.place} sets {first.key} to {first.value}"
        where += f" with {world} nodes" if world else ""
        if facts.foreign and (world or 1) == 1:
            sentence = f"{where}; on a machine with several GPUs that is no matter"
            yield Line("G10", "launch", Result.INFO, sentence, "", values)
        else:
            sentence = f"{where}: a Spark has one GPU, so this spans boxes"
            yield Line("G10", "launch", Result.FAIL, sentence, FIX, values)
    elif unknown:
        first = unknown[0]
        sentence = f"{first.place} sets {first.key} to something that is only known when it runs"
        fix = "see that it is 1 on each box, or write the number"
        yield Line("G10", "launch", Result.SKIP, sentence, fix, values)
    elif tensor or found.files:
        spread = f" across {world} nodes" if world and world > 1 else ""
        sentence = f"no tensor parallelism above 1 in {found.files} files{spread}"
        yield Line("G10", "launch", Result.PASS, sentence, "", values)
    elif not facts.launch_named:
        yield Line(
            "G10",
            "launch",
            Result.INFO,
            "no launch file was named, and the environment sets no tensor parallelism",
            "name files or folders with --launch",
            values,
        )
    elif not found.unread:
        yield Line(
            "G10",
            "launch",
            Result.INFO,
            "no launch file was found where --launch points",
            "name the file itself",
            values,
        )
