"""Facts of a healthy Spark before a run, for tests to break one thing at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_watch.model import GIB, Gpu, GpuIdentity, Machine, Memory, Zone
from spark_watch.preflight.boots import Boots
from spark_watch.preflight.cage import Answers
from spark_watch.preflight.facts import Facts
from spark_watch.preflight.launches import Launches
from spark_watch.preflight.packages import Installed

POOL = round(121.7 * GIB)
MIB = 1 << 20


def memory(**parts: Any) -> Memory:
    """A pool with 112 GiB available, 4 GiB of cache and 16 GiB of unused swap."""
    usual: dict[str, Any] = {
        "total_bytes": POOL,
        "free_bytes": 109 * GIB,
        "available_bytes": 112 * GIB,
        "cached_bytes": 4 * GIB,
        "buffers_bytes": 0,
        "shared_bytes": 0,
        "locked_bytes": 0,
        "anonymous_bytes": 3 * GIB,
        "swap_total_bytes": 16 * GIB,
        "swap_free_bytes": 16 * GIB,
        "huge_pages_total": 0,
        "huge_pages_free": 0,
        "huge_page_bytes": 2 * MIB,
        "cma_total_bytes": 128 * MIB,
        "cma_free_bytes": 64 * MIB,
    }
    return Memory(**(usual | parts))


def torch(**parts: Any) -> Answers:
    """What a healthy torch for CUDA 13 answers on an idle GPU."""
    steps: dict[str, Any] = {
        "import": {"version": "2.9.1+cu130", "cuda": "13.0", "arches": ["sm_120", "sm_121a"]},
        "cudart": {"loaded": True},
        "kernel": {"ran": True, "capability": [12, 1]},
    }
    return Answers(steps=steps | parts)


def facts(**parts: Any) -> Facts:
    """A healthy GB10 at rest, its environment for CUDA 13, nothing else on the GPU."""
    usual: dict[str, Any] = {
        "machine": Machine(
            gpu_name="NVIDIA GB10", driver_version="580.173.02", memory_total_bytes=POOL
        ),
        "gpus": (
            Gpu(
                index=0,
                power_watts=5.6,
                temperature_celsius=44.0,
                sm_hertz=208e6,
                utilization_ratio=0.0,
            ),
        ),
        "identities": (GpuIdentity(index=0, name="NVIDIA GB10", compute_capability=(12, 1)),),
        "processes": (),
        "memory": memory(),
        "free_blocks": {4096: 262_144, 32 * MIB: 3_456},
        "zones": tuple(
            Zone(zone=number, type="acpitz", temperature_celsius=45.0 + number)
            for number in range(7)
        ),
        "boots": Boots(clean=1),
        "sysctls": {
            "min_free_kbytes": 67_584,
            "watermark_boost_factor": 15_000,
            "watermark_scale_factor": 10,
        },
        "guards": (),
        "loader": (("libcudart.so.13", "/usr/local/cuda/lib64/libcudart.so.13"),),
        "container": ("/.dockerenv",),
        "python": Path("/opt/train/bin/python"),
        "installed": Installed(
            sites=(Path("/opt/train/lib/python3.12/site-packages"),),
            versions={"torch": "2.9.1+cu130", "transformers": "5.1.0"},
            links={"torch": frozenset({13})},
        ),
        "torch": torch(),
        "flash": Answers(
            steps={"import": {"error": "ModuleNotFoundError: No module named 'flash_attn'"}}
        ),
        "launches": Launches(files=1),
        "launch_named": True,
        "now_seconds": 1.8e9,
    }
    return Facts(**(usual | parts))
