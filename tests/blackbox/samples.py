"""Samples of every shape, for the round trip of the trace format."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from spark_watch import model
from spark_watch.model import Machine, Sample

NAMES = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x17E, exclude_characters="\x7f"), max_size=12
).filter(str.isprintable)
COUNTS = st.integers(0, 2**63)
RATIOS = st.floats(0, 1).map(lambda value: round(value, 6))
AMOUNTS = st.floats(0, 1e9).map(lambda value: round(value, 6))
CELSIUS = st.floats(-50, 150).map(lambda value: round(value, 6))
CLOCKS = st.floats(0, 4e9).map(lambda value: round(value, 3))

_BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "temperature_celsius": CELSIUS,
    "power_watts": st.floats(0, 1e4).map(lambda value: round(value, 6)),
    "claim_ratio": RATIOS,
    "event_reasons": st.lists(NAMES, max_size=3).map(tuple),
    "event_seconds": st.dictionaries(NAMES, AMOUNTS, max_size=3),
    "performance_state": st.integers(0, 15),
    "code": NAMES | st.integers(0, 200),
    "partitioned": st.booleans(),
}


def _values_of(name: str, annotation: str) -> st.SearchStrategy[Any]:
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.endswith("_ratio"):
        return RATIOS
    return {"int": COUNTS, "float": AMOUNTS, "str": NAMES}[annotation.removesuffix(" | None")]


def records(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Any record of the kind; each field that may be ``None`` is ``None`` now and then."""
    fields = {}
    for name, field in kind.__dataclass_fields__.items():
        values = _values_of(name, field.type)
        fields[name] = st.none() | values if "None" in field.type else values
    return st.builds(kind, **fields)


def _many(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.lists(records(kind), max_size=3).map(tuple)


machines: st.SearchStrategy[Machine] = records(Machine)

samples: st.SearchStrategy[Sample] = st.builds(
    Sample,
    t=CLOCKS,
    monotonic_seconds=st.none() | CLOCKS,
    boottime_seconds=st.none() | CLOCKS,
    boot_id=st.none() | NAMES,
    failed=st.lists(records(model.Failure), max_size=2).map(tuple),
    late_seconds=st.none() | RATIOS,
    stopped=st.booleans(),
    gpus=_many(model.Gpu),
    memory=st.none() | records(model.Memory),
    pressure=st.none() | records(model.Pressure),
    vm=st.none() | records(model.Vm),
    rails=st.none() | st.dictionaries(NAMES, AMOUNTS, max_size=2),
    free_blocks=st.none() | st.dictionaries(st.integers(1, 2**40), COUNTS, max_size=3),
    zones=_many(model.Zone),
    cpu=st.none() | records(model.Cpu),
    processes=_many(model.Process),
    kernel=_many(model.KernelEvent),
    progress=_many(model.Progress),
    pending=st.dictionaries(NAMES, AMOUNTS, max_size=2),
    machine=machines,
)
