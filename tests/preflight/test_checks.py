"""Each check on a Spark that is healthy, one that is not, and one that cannot be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_watch.model import GIB, Gpu, GpuIdentity, Machine, Process, Zone
from spark_watch.preflight.boots import Boots
from spark_watch.preflight.cage import Answers
from spark_watch.preflight.checks import report
from spark_watch.preflight.clone import Clone
from spark_watch.preflight.estimate import Workload
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.g3_memory import LADDER, reserved_bytes
from spark_watch.preflight.launches import NODES, TENSOR, Launches, Setting
from spark_watch.preflight.packages import Installed
from spark_watch.preflight.report import Line, Result
from tests.preflight import boxes

PASS, INFO, SKIP, WARN, FAIL = Result
MIB = 1 << 20
DAY = 86_400
H200 = Machine(gpu_name="NVIDIA H200", memory_total_bytes=boxes.POOL)
SITE = Path("/opt/train/lib/python3.12/site-packages")


def said(facts: Facts, gotcha: str, check: str) -> Line:
    """Return the one line of a check."""
    (line,) = [line for line in report(facts).lines if (line.gotcha, line.check) == (gotcha, check)]
    return line


def built(cuda: str | None, version: str = "2.9.1") -> Answers:
    """A torch that was built for this CUDA."""
    return boxes.torch(**{"import": {"version": version, "cuda": cuda, "arches": []}})


def ended(end: str, value: int | str, step: str, *done: str) -> Answers:
    """A torch whose process ended within a step after others were done."""
    whole = boxes.torch().steps
    return Answers(
        steps={name: whole[name] for name in done}, unfinished=step, end=end, value=value
    )


def packages(links: dict[str, set[int]] | None = None, **versions: str) -> Installed:
    """An environment with these links and versions."""
    return Installed(
        sites=(SITE,),
        versions={name.replace("_", "-"): version for name, version in versions.items()},
        links={name: frozenset(found) for name, found in (links or {}).items()},
    )


def flash(version: str = "2.8.3", **steps: Any) -> Answers:
    """A flash-attn that imports."""
    return Answers(steps={"import": {"version": version}} | steps)


def gpu(**parts: Any) -> tuple[Gpu, ...]:
    """One GPU under load at a healthy clock."""
    usual: dict[str, Any] = {
        "index": 0,
        "power_watts": 60.0,
        "temperature_celsius": 70.0,
        "sm_hertz": 2.4e9,
        "utilization_ratio": 0.96,
    }
    return (Gpu(**(usual | parts)),)


def process(**parts: Any) -> Process:
    """A process that computes on the GPU."""
    usual: dict[str, Any] = {"pid": 900, "name": "python3", "kind": "compute", "gpu_bytes": GIB}
    return Process(**(usual | parts))


def tensor(value: int | None, *nodes: int) -> Launches:
    """One file that sets tensor parallelism, and perhaps nodes."""
    found = [Setting(kind=TENSOR, place="run.sh:3", key="--tp", value=value)]
    found += [Setting(kind=NODES, place="run.sh:2", key="--nnodes", value=each) for each in nodes]
    return Launches(settings=tuple(found), files=1)


ROWS: list[tuple[str, dict[str, Any], str, str, Result, str]] = [
    # ---------------------------------------------------------------- G1
    ("cuda 13", {}, "G1", "torch", PASS, "torch 2.9.1+cu130 built for CUDA 13.0; a kernel ran"),
    ("no cu130 tag", {"torch": built("13.1", "2.9.0a0+nv25.11")}, "G1", "torch", PASS, "13.1"),
    ("cuda 12", {"torch": built("12.8")}, "G1", "torch", FAIL, "CUDA 12.8, while CUDA 13"),
    ("cuda 14", {"torch": built("14.0")}, "G1", "torch", INFO, "CUDA 14.0, while CUDA 13"),
    ("cpu only", {"torch": built(None)}, "G1", "torch", FAIL, "built without CUDA"),
    (
        "undefined symbol",
        {"torch": Answers(steps={"import": {"error": "ImportError: undefined symbol: x"}})},
        "G1",
        "torch",
        FAIL,
        "torch cannot be imported: ImportError: undefined symbol: x",
    ),
    (
        "no torch",
        {"torch": Answers(steps={"import": {"error": "ModuleNotFoundError: No 'torch'"}})},
        "G1",
        "torch",
        INFO,
        "there is no torch in /opt/train/bin/python",
    ),
    (
        "a part of torch is missing",
        {"torch": Answers(steps={"import": {"error": "ModuleNotFoundError: No 'sympy'"}})},
        "G1",
        "torch",
        FAIL,
        "cannot be imported",
    ),
    (
        "crash at import",
        {"torch": ended("signal", 11, "import")},
        "G1",
        "torch",
        FAIL,
        "died of SIGSEGV while it imported torch",
    ),
    (
        "late",
        {"torch": ended("timeout", 0, "import")},
        "G1",
        "torch",
        SKIP,
        "python did not come back in time while it imported torch",
    ),
    (
        "crash at the first .cuda()",
        {"torch": ended("signal", 11, "kernel", "import", "cudart")},
        "G1",
        "torch",
        FAIL,
        "died of SIGSEGV in its first kernel",
    ),
    (
        "late at the first .cuda()",
        {"torch": ended("timeout", 0, "kernel", "import", "cudart")},
        "G1",
        "torch",
        SKIP,
        "did not come back in time in its first kernel",
    ),
    (
        "an error at the first .cuda()",
        {"torch": boxes.torch(kernel={"error": "RuntimeError: no kernel image"})},
        "G1",
        "torch",
        FAIL,
        "its first kernel failed: RuntimeError: no kernel image",
    ),
    (
        "a wrong sum",
        {"torch": boxes.torch(kernel={"ran": False})},
        "G1",
        "torch",
        FAIL,
        "a wrong result",
    ),
    (
        "refused",
        {"torch": Answers(end="refused", value="/x is not root's, so root does not run it")},
        "G1",
        "torch",
        SKIP,
        "is not root's",
    ),
    (
        "not asked in time",
        {"torch": None, "unread": {"torch": "timeout"}},
        "G1",
        "torch",
        SKIP,
        "was not imported: timeout",
    ),
    ("no environment", {"python": None, "torch": None}, "G1", "torch", INFO, "no Python"),
    ("not a spark", {"torch": built("12.8"), "machine": H200}, "G1", "torch", INFO, "not judged"),
    ("it loads", {}, "G1", "cudart", PASS, "libcudart.so.13 loads in /opt/train/bin/python"),
    (
        "it does not load",
        {"torch": boxes.torch(cudart={"error": "OSError: cannot open"})},
        "G1",
        "cudart",
        FAIL,
        "does not load in /opt/train/bin/python: OSError: cannot open",
    ),
    (
        "the system has none",
        {"python": None, "torch": None, "cudart": Answers(steps={"cudart": {"error": "OSError"}})},
        "G1",
        "cudart",
        INFO,
        "is not found by the system's loader",
    ),
    (
        "the system has one",
        {"python": None, "torch": None, "cudart": Answers(steps={"cudart": {"loaded": True}})},
        "G1",
        "cudart",
        PASS,
        "loads by the system's loader",
    ),
    ("not tried", {"torch": None}, "G1", "cudart", INFO, "was not tried: not_read"),
    ("no stray", {}, "G1", "stray", PASS, "no CUDA 12 library among the 1"),
    (
        "a stray",
        {"loader": (("libcudart.so.12", "/usr/local/cuda-12/lib64/libcudart.so.12"),)},
        "G1",
        "stray",
        WARN,
        "lists libcudart.so.12 (/usr/local/cuda-12/lib64/libcudart.so.12)",
    ),
    (
        "libraries of CUDA 13 that end in 12",
        {"loader": (("libcufft.so.12", "/a"), ("libcusparse.so.12", "/b"))},
        "G1",
        "stray",
        PASS,
        "no CUDA 12 library among the 2",
    ),
    (
        "no cache",
        {"loader": None, "unread": {"loader": "not_found"}},
        "G1",
        "stray",
        SKIP,
        "could not be read: not_found",
    ),
    ("wheels", {}, "G1", "wheels", PASS, "no package links CUDA 12 libraries alone"),
    (
        "a wheel for CUDA 12",
        {"installed": packages({"flash_attn_2_cuda": {12}, "torch": {13}})},
        "G1",
        "wheels",
        WARN,
        "alone: flash_attn_2_cuda",
    ),
    (
        "a build for each CUDA, and NVIDIA's own",
        {"installed": packages({"bitsandbytes": {12, 13}, "nvidia": {12}})},
        "G1",
        "wheels",
        PASS,
        "no package links",
    ),
    (
        "no folder of packages",
        {"installed": Installed(versions={}, links={})},
        "G1",
        "wheels",
        SKIP,
        "no folder of packages",
    ),
    (
        "too large",
        {"installed": replace(packages(), complete=False)},
        "G1",
        "wheels",
        SKIP,
        "too large to be looked through",
    ),
    # ---------------------------------------------------------------- G2
    ("no flash-attn", {}, "G2", "flash_attn", INFO, "is not installed"),
    (
        "it works",
        {"flash": flash(kernel={"ran": True})},
        "G2",
        "flash_attn",
        PASS,
        "flash-attn 2.8.3 imports and its kernel ran",
    ),
    ("kernel not tried", {"flash": flash()}, "G2", "flash_attn", INFO, "was not tried"),
    (
        "kernel fails",
        {"flash": flash(kernel={"error": "RuntimeError: no kernel image"})},
        "G2",
        "flash_attn",
        FAIL,
        "its first kernel failed: RuntimeError: no kernel image",
    ),
    (
        "kernel crashes",
        {"flash": Answers(steps=flash().steps, unfinished="kernel", end="signal", value=7)},
        "G2",
        "flash_attn",
        FAIL,
        "died of SIGBUS",
    ),
    (
        "import fails",
        {"flash": Answers(steps={"import": {"error": "ImportError: undefined symbol"}})},
        "G2",
        "flash_attn",
        FAIL,
        "cannot be imported: ImportError",
    ),
    (
        "import is late",
        {"flash": Answers(unfinished="import", end="timeout")},
        "G2",
        "flash_attn",
        SKIP,
        "did not come back",
    ),
    ("not asked", {"flash": None}, "G2", "flash_attn", SKIP, "was not imported: not_read"),
    ("no environment", {"python": None}, "G2", "flash_attn", INFO, "no Python environment"),
    (
        "unsloth takes it",
        {"flash": flash(), "installed": packages(unsloth="2026.11")},
        "G2",
        "unsloth",
        WARN,
        "takes flash-attn even where attn_implementation='sdpa'",
    ),
    (
        "unsloth without it",
        {"installed": packages(unsloth="2026.11")},
        "G2",
        "unsloth",
        INFO,
        "uses SDPA",
    ),
    # ---------------------------------------------------------------- G3
    ("headroom", {}, "G3", "headroom", PASS, "112.0 GiB can be allocated (MemAvailable, swap left"),
    (
        "little",
        {"memory": boxes.memory(available_bytes=6 * GIB)},
        "G3",
        "headroom",
        WARN,
        "6.0 GiB can be allocated",
    ),
    (
        "nothing",
        {"memory": boxes.memory(available_bytes=1 * GIB)},
        "G3",
        "headroom",
        FAIL,
        "1.0 GiB can be allocated",
    ),
    (
        "huge pages",
        {"memory": boxes.memory(huge_pages_total=51_200, huge_pages_free=40_960)},
        "G3",
        "headroom",
        PASS,
        "80.0 GiB can be allocated (40960 free huge pages of 51200",
    ),
    (
        "huge pages, free ones unknown",
        {"memory": boxes.memory(huge_pages_total=51_200, huge_pages_free=None)},
        "G3",
        "headroom",
        SKIP,
        "does not say",
    ),
    (
        "no meminfo",
        {"memory": None, "unread": {"memory": "malformed"}},
        "G3",
        "headroom",
        SKIP,
        "could not be read: malformed",
    ),
    (
        "it fits",
        {"workload": Workload(given_bytes=61.0 * GIB)},
        "G3",
        "workload",
        PASS,
        "the run needs 61.0 GiB (as given) of 112.0",
    ),
    (
        "it does not",
        {"workload": Workload(given_bytes=113.0 * GIB)},
        "G3",
        "workload",
        FAIL,
        "the run needs 113.0 GiB (as given) of 112.0",
    ),
    (
        "it leaves little",
        {"workload": Workload(given_bytes=106.0 * GIB)},
        "G3",
        "workload",
        WARN,
        "which leaves 6.0 for everything else",
    ),
    (
        "loading does not fit",
        {"workload": Workload(weights_bytes=60.0 * GIB, load_bytes=120.0 * GIB)},
        "G3",
        "workload",
        WARN,
        "and 120.0 for a moment while safetensors load",
    ),
    (
        "page cache in the way",
        {
            "workload": Workload(given_bytes=61.0 * GIB),
            "memory": boxes.memory(free_bytes=41 * GIB, cached_bytes=72 * GIB),
        },
        "G3",
        "workload",
        WARN,
        "CUDA sees 41.0 GiB free: page cache holds the rest",
    ),
    (
        "headroom unknown",
        {
            "workload": Workload(given_bytes=61.0 * GIB),
            "memory": boxes.memory(available_bytes=None),
        },
        "G3",
        "workload",
        SKIP,
        "what can be allocated is not known",
    ),
    ("little cache", {}, "G3", "page_cache", PASS, "4 GiB page cache; CUDA sees 109.0 GiB free"),
    (
        "much cache",
        {"memory": boxes.memory(cached_bytes=14 * GIB, free_bytes=50 * GIB)},
        "G3",
        "page_cache",
        WARN,
        "14 GiB page cache; CUDA sees 50.0 GiB free",
    ),
    (
        "shared memory is no cache to drop",
        {"memory": boxes.memory(cached_bytes=64 * GIB, shared_bytes=62 * GIB)},
        "G3",
        "page_cache",
        PASS,
        "2 GiB page cache",
    ),
    (
        "cache unknown",
        {"memory": boxes.memory(cached_bytes=None)},
        "G3",
        "page_cache",
        SKIP,
        "does not say",
    ),
    ("large blocks", {}, "G3", "fragmentation", PASS, "99% of 109 GiB free"),
    (
        "small blocks",
        {"free_blocks": {4096: 28_311_552, 32 * MIB: 32}},
        "G3",
        "fragmentation",
        WARN,
        "1% of 109 GiB free lies in blocks of 16 MiB or more",
    ),
    (
        "small blocks while serving",
        {"free_blocks": {4096: 28_311_552, 32 * MIB: 32}, "processes": (process(),)},
        "G3",
        "fragmentation",
        INFO,
        "while something runs on the GPU",
    ),
    (
        "small blocks, processes unknown",
        {
            "free_blocks": {4096: 10_485_760, 32 * MIB: 3},
            "processes": None,
            "memory": boxes.memory(free_bytes=40 * GIB, available_bytes=41 * GIB),
        },
        "G3",
        "fragmentation",
        SKIP,
        "cannot be judged without a list",
    ),
    (
        "small blocks, little free",
        {
            "free_blocks": {4096: 1_000_000, 32 * MIB: 3},
            "memory": boxes.memory(free_bytes=4 * GIB, cached_bytes=100 * GIB),
        },
        "G3",
        "fragmentation",
        INFO,
        "with so little free that says nothing",
    ),
    (
        "a kernel whose largest block is 4 MiB",
        {"free_blocks": {4096: 262_144, 4 * MIB: 27_648}},
        "G3",
        "fragmentation",
        PASS,
        "in blocks of 4 MiB or more",
    ),
    (
        "blocks unknown",
        {"free_blocks": None, "unread": {"free_blocks": "not_found"}},
        "G3",
        "fragmentation",
        SKIP,
        "not_found",
    ),
    ("swap", {}, "G3", "swap", INFO, "0.0 of 16.0 GiB swap are used"),
    ("no swap", {"memory": boxes.memory(swap_total_bytes=0)}, "G3", "swap", INFO, "no swap space"),
    (
        "swap unknown",
        {"memory": boxes.memory(swap_free_bytes=None)},
        "G3",
        "swap",
        SKIP,
        "does not say",
    ),
    ("usual reserves", {}, "G3", "sysctls", PASS, "about 0.3 GiB are kept free"),
    (
        "large reserves",
        {"sysctls": {"min_free_kbytes": 4 << 20}},
        "G3",
        "sysctls",
        WARN,
        "vm.min_free_kbytes 4194304: about 6.0 GiB are kept free",
    ),
    ("reserves unknown", {"sysctls": None}, "G3", "sysctls", SKIP, "could not be read"),
    ("no guard", {}, "G3", "guards", INFO, "no earlyoom or systemd-oomd"),
    (
        "guards",
        {"guards": ("earlyoom", "systemd-oomd")},
        "G3",
        "guards",
        INFO,
        "earlyoom and systemd-oomd run",
    ),
    ("guards unknown", {"guards": None}, "G3", "guards", SKIP, "could not be listed"),
    (
        "contiguous memory that is not there",
        {"memory": boxes.memory(cma_total_bytes=0, cma_free_bytes=940_604 << 10)},
        "G3",
        "contiguous",
        WARN,
        "0.9 GiB of it as free",
    ),
    # ---------------------------------------------------------------- G4
    ("cool", {}, "G4", "gpu0_temperature", PASS, "GPU 0 die at 44 C"),
    ("hot", {"gpus": gpu(temperature_celsius=91.0)}, "G4", "gpu0_temperature", WARN, "at 91 C"),
    (
        "warm at rest",
        {"gpus": gpu(temperature_celsius=68.0, utilization_ratio=0.0)},
        "G4",
        "gpu0_temperature",
        INFO,
        "a run that starts warm",
    ),
    ("warm at work", {"gpus": gpu()}, "G4", "gpu0_temperature", PASS, "at 70 C"),
    (
        "no temperature",
        {"gpus": gpu(temperature_celsius=None)},
        "G4",
        "gpu0_temperature",
        SKIP,
        "gives no die temperature",
    ),
    ("at rest", {}, "G4", "gpu0_clock", INFO, "5.6 W, SM 208 MHz, 0% busy: a stuck power state"),
    ("at work", {"gpus": gpu()}, "G4", "gpu0_clock", PASS, "60.0 W, SM 2400 MHz, 96% busy"),
    (
        "stuck",
        {"gpus": gpu(sm_hertz=799e6, power_watts=19.5)},
        "G4",
        "gpu0_clock",
        FAIL,
        "19.5 W, SM 799 MHz, 96% busy: this clock under load is the stuck low-power state",
    ),
    (
        "no clock",
        {"gpus": gpu(sm_hertz=None)},
        "G4",
        "gpu0_clock",
        SKIP,
        "without clock and load",
    ),
    (
        "a low clock elsewhere",
        {"gpus": gpu(sm_hertz=799e6), "machine": H200},
        "G4",
        "gpu0_clock",
        PASS,
        "799 MHz",
    ),
    (
        "no GPU",
        {"gpus": None, "unread": {"gpus": "library_not_found"}},
        "G4",
        "gpu",
        SKIP,
        "library_not_found",
    ),
    ("zones", {}, "G4", "board", PASS, "hottest of 7 zones at 51 C (zone 6)"),
    (
        "a hot zone",
        {"zones": (Zone(zone=3, type="acpitz", temperature_celsius=95.0),)},
        "G4",
        "board",
        WARN,
        "at 95 C (zone 3)",
    ),
    (
        "another device's zone",
        {
            "zones": (
                Zone(zone=0, type="acpitz", temperature_celsius=50.0),
                Zone(zone=1, type="mlx5", temperature_celsius=96.0),
            )
        },
        "G4",
        "board",
        PASS,
        "hottest of 1 zones at 50 C",
    ),
    (
        "zones that say nothing",
        {"zones": (Zone(zone=0, type="acpitz"),)},
        "G4",
        "board",
        SKIP,
        "no thermal zone gives",
    ),
    (
        "zones unknown",
        {"zones": None, "unread": {"zones": "permission_denied"}},
        "G4",
        "board",
        SKIP,
        "permission_denied",
    ),
    (
        "no zone on another machine",
        {"zones": None, "unread": {"zones": "not_found"}, "machine": H200},
        "G4",
        "board",
        INFO,
        "has no thermal zone",
    ),
    ("clean boots", {}, "G4", "boots", PASS, "ended uncleanly (1 ended cleanly)"),
    (
        "unclean boots",
        {"boots": Boots(unclean=(1_799_900_000.0, 1_799_990_000.0))},
        "G4",
        "boots",
        WARN,
        "2 boots of the last 7 days ended without a clean stop, the last at 2027-01-15 05:13 UTC",
    ),
    (
        "no record",
        {"boots": None, "unread": {"boots": "not_found"}},
        "G4",
        "boots",
        INFO,
        "no record",
    ),
    (
        "another user's record",
        {"boots": None, "unread": {"boots": "permission_denied"}},
        "G4",
        "boots",
        INFO,
        "may not be read by this user",
    ),
    (
        "a broken record",
        {"boots": None, "unread": {"boots": "malformed"}},
        "G4",
        "boots",
        SKIP,
        "could not be read: malformed",
    ),
    # ---------------------------------------------------------------- G5
    ("budget", {}, "G5", "budget", INFO, "180 to 192 GB/s"),
    ("no budget elsewhere", {"machine": H200}, "G5", "budget", INFO, "no range to budget"),
    # ---------------------------------------------------------------- G6
    ("alone", {}, "G6", "processes", PASS, "nothing else computes on the GPU"),
    (
        "a desktop",
        {"processes": (process(kind="graphics", name="Xorg"),)},
        "G6",
        "processes",
        PASS,
        "nothing else",
    ),
    ("small", {"processes": (process(),)}, "G6", "pid900", PASS, "not capped: it may stay"),
    (
        "capped",
        {"processes": (process(engine="vllm", claim_ratio=0.4, gpu_bytes=45 * GIB),)},
        "G6",
        "pid900",
        PASS,
        "vllm/900 holds 45.0 GiB, claims 0.40 of the pool: it may stay",
    ),
    (
        "a large claim",
        {"processes": (process(engine="vllm", claim_ratio=0.9, gpu_bytes=2 * GIB),)},
        "G6",
        "pid900",
        WARN,
        "claims 0.90 of the pool: too much for a neighbour",
    ),
    (
        "large and not capped",
        {"processes": (process(gpu_bytes=20 * GIB),)},
        "G6",
        "pid900",
        WARN,
        "holds 20.0 GiB, not capped: too much",
    ),
    (
        "of unknown size",
        {"processes": (process(gpu_bytes=None),)},
        "G6",
        "pid900",
        WARN,
        "holds an unknown size, not capped",
    ),
    (
        "large elsewhere",
        {"processes": (process(gpu_bytes=20 * GIB),), "machine": H200},
        "G6",
        "pid900",
        INFO,
        "this machine is no GB10",
    ),
    (
        "hidden by another namespace",
        {"memory": boxes.memory(free_bytes=30 * GIB)},
        "G6",
        "processes",
        SKIP,
        "they cannot be seen from here",
    ),
    (
        "unknown",
        {"processes": None, "unread": {"processes": "library_not_found"}},
        "G6",
        "processes",
        SKIP,
        "library_not_found",
    ),
    # ---------------------------------------------------------------- G7
    ("capability", {}, "G7", "capability", PASS, "NVIDIA GB10 has compute capability 12.1"),
    (
        "a wrong capability",
        {"identities": (GpuIdentity(index=0, name="NVIDIA GB10", compute_capability=(12, 0)),)},
        "G7",
        "capability",
        WARN,
        "12.0, and a GB10 has 12.1",
    ),
    (
        "another GPU",
        {
            "identities": (GpuIdentity(index=0, name="NVIDIA H200", compute_capability=(9, 0)),),
            "machine": H200,
        },
        "G7",
        "capability",
        INFO,
        "the rule is for 12.1",
    ),
    ("capability unknown", {"identities": ()}, "G7", "capability", SKIP, "could not be read"),
    ("built for it", {}, "G7", "torch", PASS, "torch is built for sm_120 sm_121a"),
    ("built without", {"torch": built("13.0")}, "G7", "torch", WARN, "built for nothing, not for"),
    (
        "not a spark",
        {"torch": built("13.0"), "machine": H200},
        "G7",
        "torch",
        INFO,
        "not judged",
    ),
    (
        "a variable",
        {"variables": {"TORCH_CUDA_ARCH_LIST": "8.0;9.0 12.1a+PTX"}},
        "G7",
        "torch_cuda_arch_list",
        PASS,
        "TORCH_CUDA_ARCH_LIST is built for 8.0 9.0 12.1a+PTX",
    ),
    (
        "a variable without",
        {"variables": {"FLASHINFER_CUDA_ARCH_LIST": "12.0 12.1"}},
        "G7",
        "flashinfer_cuda_arch_list",
        WARN,
        "not for sm_121a",
    ),
    (
        "a kernel package",
        {"installed": replace(packages(), targets={"vllm": frozenset({"sm_90a", "sm_120f"})})},
        "G7",
        "vllm",
        PASS,
        "vllm is built for sm_120f sm_90a",
    ),
    (
        "a kernel package without",
        {"installed": replace(packages(), targets={"vllm": frozenset({"sm_120", "sm_121"})})},
        "G7",
        "vllm",
        WARN,
        "vllm is built for sm_120 sm_121, not for sm_121a",
    ),
    ("nothing to look at", {"torch": None}, "G7", "targets", INFO, "could not be looked at"),
    # ---------------------------------------------------------------- G8
    ("no clone", {}, "G8", "clone", INFO, "no clone of the playbooks was named"),
    (
        "a fresh clone",
        {
            "clone_named": True,
            "clone": Clone(path=Path("p"), committed_seconds=1_800_000_000 - 3 * DAY),
        },
        "G8",
        "clone",
        PASS,
        "2027-01-12, 3 days ago",
    ),
    (
        "an old clone",
        {
            "clone_named": True,
            "clone": Clone(path=Path("p"), committed_seconds=1_800_000_000 - 31 * DAY),
        },
        "G8",
        "clone",
        WARN,
        "31 days ago",
    ),
    (
        "no clone there",
        {"clone_named": True, "unread": {"clone": "not_a_clone"}},
        "G8",
        "clone",
        SKIP,
        "not_a_clone",
    ),
    *(
        (
            name,
            {
                "clone_named": True,
                "clone": Clone(
                    path=Path("p"),
                    committed_seconds=1_800_000_000,
                    playbook="nvidia/vllm",
                    playbook_seconds=seconds,
                    waiting=waiting,
                ),
            },
            "G8",
            "playbook",
            result,
            words,
        )
        for name, seconds, waiting, result, words in (
            ("unchanged", 1_800_000_000, 0, PASS, "nothing fetched changes it since"),
            ("changed", 1_800_000_000, 2, WARN, "2 fetched commits change it further"),
            ("not to compare", 1_800_000_000, None, INFO, "follows no branch"),
            ("no such playbook", None, 0, SKIP, "no commit of the clone touches nvidia/vllm"),
        )
    ),
    # ---------------------------------------------------------------- G9
    ("a container", {}, "G9", "container", PASS, "this runs in a container (/.dockerenv)"),
    ("no sign", {"container": ()}, "G9", "container", INFO, "does not prove that there is none"),
    (
        "signs unknown",
        {"container": None, "unread": {"container": "timeout"}},
        "G9",
        "container",
        SKIP,
        "timeout",
    ),
    ("versions", {}, "G9", "versions", PASS, "torch 2.9.1+cu130, transformers 5.1.0"),
    (
        "the CPU build",
        {"installed": packages(torch="2.9.1+cpu")},
        "G9",
        "versions",
        FAIL,
        "is the build without CUDA",
    ),
    ("none of them", {"installed": packages()}, "G9", "versions", INFO, "none of torch"),
    ("packages unknown", {"installed": None}, "G9", "versions", SKIP, "could not be looked at"),
    (
        "as listed",
        {"pins": {"torch": "2.9.1", "triton": "3.5"}},
        "G9",
        "drift",
        PASS,
        "all 1 listed packages that are installed",
    ),
    (
        "drifted",
        {"pins": {"torch": "2.9.1", "transformers": "5.0.0"}},
        "G9",
        "drift",
        WARN,
        "1 of 2 listed packages have drifted: transformers 5.1.0 (listed 5.0.0)",
    ),
    ("another list", {"pins": {"numpy": "2.0"}}, "G9", "drift", SKIP, "nothing could be compared"),
    # ---------------------------------------------------------------- G10
    ("looked through", {}, "G10", "launch", PASS, "no tensor parallelism above 1 in 1 files"),
    (
        "fsdp across two",
        {
            "launches": Launches(
                settings=(Setting(kind=NODES, place="a:1", key="nnodes", value=2),), files=1
            )
        },
        "G10",
        "launch",
        PASS,
        "in 1 files across 2 nodes",
    ),
    ("across two", {"launches": tensor(2, 2)}, "G10", "launch", FAIL, "--tp to 2 with 2 nodes"),
    ("on one GPU", {"launches": tensor(2)}, "G10", "launch", FAIL, "so this spans boxes"),
    (
        "on several GPUs of one machine",
        {"launches": tensor(4), "machine": H200},
        "G10",
        "launch",
        INFO,
        "is no matter",
    ),
    ("only known when it runs", {"launches": tensor(None)}, "G10", "launch", SKIP, "when it runs"),
    (
        "nothing named",
        {"launches": Launches(), "launch_named": False},
        "G10",
        "launch",
        INFO,
        "no launch file was named",
    ),
    ("nothing there", {"launches": Launches()}, "G10", "launch", INFO, "no launch file was found"),
    (
        "a file that cannot be read",
        {"launches": Launches(files=1, unread=("a.yaml (permission_denied)",))},
        "G10",
        "unread",
        SKIP,
        "a.yaml (permission_denied)",
    ),
    (
        "not looked through",
        {"launches": None, "unread": {"launches": "timeout"}},
        "G10",
        "launch",
        SKIP,
        "timeout",
    ),
]


@pytest.mark.parametrize(
    ("parts", "gotcha", "check", "result", "words"),
    [pytest.param(*row[1:], id=f"{row[2]} {row[3]}: {row[0]}") for row in ROWS],
)
def test_what_a_check_says(
    parts: dict[str, Any], gotcha: str, check: str, result: Result, words: str
) -> None:
    """Each state of the machine has its result and names its reading."""
    line = said(boxes.facts(**parts), gotcha, check)
    assert (line.result, words in line.sentence) == (result, True), line.sentence


def test_every_warning_comes_with_a_fix() -> None:
    """Whatever is worth a warning or a failure says what to do."""
    for name, parts, gotcha, check, result, _ in ROWS:
        if result in {WARN, FAIL}:
            assert said(boxes.facts(**parts), gotcha, check).fix, name


def test_the_ladder_has_its_order() -> None:
    """First the page cache, then shorter packing, then a smaller method: the batch is not first."""
    facts = boxes.facts(workload=Workload(given_bytes=113.0 * GIB))
    fix = said(facts, "G3", "workload").fix
    assert fix == LADDER
    steps = [fix.index(word) for word in ("page cache", "shorter", "smaller batch", "method")]
    assert steps == sorted(steps)


def test_short_headroom_blocks() -> None:
    """A run that needs more than there is makes the verdict, whatever else is fine."""
    found = report(boxes.facts(workload=Workload(given_bytes=113.0 * GIB)))
    assert (found.verdict, found.exit_code, found.short) == ("blocked", 2, True)


def test_reserves_follow_the_kernel() -> None:
    """High is the minimum and two steps: of a quarter of it, or of the scale factor's share."""
    minimum = 4 * GIB
    assert reserved_bytes({"min_free_kbytes": minimum >> 10}, 0) == 6 * GIB
    factor = {"min_free_kbytes": 0, "watermark_scale_factor": 500}
    assert reserved_bytes(factor, 100 * GIB) == 10 * GIB


@pytest.mark.parametrize(
    ("probe", "result", "words"),
    [(231e9, PASS, "reached 231 GB/s on this machine; budget up to 80%"), (94e9, WARN, "94 GB/s")],
)
def test_a_stored_probe(probe: float, result: Result, words: str) -> None:
    """A measured figure takes the place of the range; one far below it is worth a warning."""
    facts = boxes.facts()
    settings = facts.conditions.bandwidth_ceiling.model_copy(
        update={"probe_bytes_per_second": probe}
    )
    conditions = facts.conditions.model_copy(update={"bandwidth_ceiling": settings})
    line = said(replace(facts, conditions=conditions), "G5", "budget")
    assert (line.result, words in line.sentence) == (result, True), line.sentence


def test_a_clock_lock_is_no_stuck_state() -> None:
    """With the clock locked to 800 MHz, 799 under load is what was asked for."""
    facts = boxes.facts(gpus=gpu(sm_hertz=799e6))
    settings = facts.conditions.low_power_state.model_copy(update={"gpu_clock_limit_hertz": 8e8})
    conditions = facts.conditions.model_copy(update={"low_power_state": settings})
    assert said(replace(facts, conditions=conditions), "G4", "gpu0_clock").result is PASS
