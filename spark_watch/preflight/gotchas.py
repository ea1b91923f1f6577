"""The ten gotchas in words, once for ``spark-watch explain`` and for the runbook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spark_watch.preflight.g1_cuda import FIX_STRAY, FIX_TORCH, FIX_WHEELS
from spark_watch.preflight.g2_flash_attention import FIX_BROKEN, OVERRIDE
from spark_watch.preflight.g3_memory import LADDER
from spark_watch.preflight.g4_power import FIX_HOT, FIX_STUCK
from spark_watch.preflight.g5_bandwidth import BUDGET
from spark_watch.preflight.g6_contention import FIX as FIX_NEIGHBOUR
from spark_watch.preflight.g7_nvfp4 import FIX as FIX_NVFP4
from spark_watch.preflight.g8_playbooks import PLACES
from spark_watch.preflight.g9_container import FIX as FIX_CONTAINER
from spark_watch.preflight.g10_tensor_parallel import FIX as FIX_TENSOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Gotcha:
    """What there is to know of one failure mode.

    Args:
        number: ``G1`` to ``G10``; other tools key on it.
        title: the failure mode in one line.
        symptom: what one sees, so that the page is found from it.
        cause: why it happens.
        checks: commands that tell whether it is this.
        fixes: what helps, the first thing first.
        sources: where it was reported.
        differs: what reports and measurements say otherwise than the rule of thumb.
    """

    number: str
    title: str
    symptom: str
    cause: str
    checks: tuple[str, ...]
    fixes: tuple[str, ...]
    sources: tuple[str, ...]
    differs: tuple[str, ...]


GOTCHAS: Final = (
    Gotcha(
        number="G1",
        title="CUDA 12 and CUDA 13 libraries do not go together",
        symptom="undefined symbol at import, or a segmentation fault at the first .cuda()",
        cause="DGX OS has CUDA 13; a wheel built for CUDA 12 asks the loader for .so.12 names, "
        "finds a leftover of one and none of the others, and fails half loaded.",
        checks=(
            "spark-watch preflight --python PATH",
            "python -c 'import torch; print(torch.version.cuda)' (13.x is expected)",
            "ldconfig -p | grep libcudart",
        ),
        fixes=(FIX_TORCH, FIX_WHEELS, FIX_STRAY),
        sources=(
            "sgl-project/sglang#18203",
            "sgl-project/sglang-omni#620",
            "Dao-AILab/flash-attention#2118",
        ),
        differs=(
            (
                "NGC builds of torch carry no cu130 tag in their version and are for CUDA 13 all "
                "the same: torch.version.cuda decides."
            ),
            (
                "libcufft.so.12, libcusolver.so.12 and libcusparse.so.12 belong to CUDA 13: these "
                "libraries have numbers of their own."
            ),
            "A cu130 wheel can still be built against another torch and fail in the same way.",
        ),
    ),
    Gotcha(
        number="G2",
        title="flash-attn has no wheel for bare pip, and where it is there, Unsloth prefers it",
        symptom="pip builds flash-attn for an hour and fails; or SDPA was asked for and "
        "flash_attention_2 runs",
        cause="There are no aarch64 wheels, and a build must match the minor version of torch. NGC "
        "containers bring one; Unsloth takes whatever it can import and drops the request.",
        checks=(
            "spark-watch preflight --python PATH",
            "python -c 'import flash_attn'",
            "print(model.config._attn_implementation)",
        ),
        fixes=(f"ask for attn_implementation='sdpa'; {OVERRIDE}", FIX_BROKEN),
        sources=(
            "NVIDIA/Isaac-GR00T#474",
            "ace-step/ACE-Step-1.5#575",
            "wshobson/agents#624",
        ),
        differs=(
            (
                "torch says at import that it supports up to 12.0 while the GPU is 12.1: a "
                "warning, not a fault."
            ),
        ),
    ),
    Gotcha(
        number="G3",
        title="the pool runs out below 128 GB",
        symptom="CUDA out of memory with memory to spare in free(1); or the machine stops "
        "answering with no OOM kill and no panic",
        cause="CPU and GPU share one pool of about 121.7 GiB. CUDA calls MemFree free, which lacks "
        "the page cache; the driver's memory is never swapped; and a load can take the rest in two "
        "seconds, faster than any guard of the host acts.",
        checks=(
            "spark-watch preflight --workload-gib N",
            "spark-watch check",
            "grep -E 'MemAvailable|MemFree|HugePages' /proc/meminfo",
        ),
        fixes=(LADDER, "leave 22 to 26 GiB for the host beside a large server"),
        sources=(
            "vllm-project/vllm#56824",
            "NVIDIA/open-gpu-kernel-modules#1358",
            "unslothai/unsloth#10704",
            "Blackwellboy/model-serving-minefield#57",
        ),
        differs=(
            (
                "Little MemAvailable alone is no failure: boxes have served for weeks at 1.5 GiB. "
                "What kills is pace, swap traffic or a driver that is refused memory."
            ),
            (
                "NV_ERR_NO_MEMORY in the kernel log is neither necessary nor sufficient: one line "
                "in each of three good starts, none before some wedges."
            ),
            (
                "vLLM reads MemAvailable on unified memory by now; SGLang, CUDA itself and many "
                "tools still read MemFree."
            ),
            "Control group limits, resident sizes and systemd-oomd do not see CUDA memory.",
        ),
    ),
    Gotcha(
        number="G4",
        title="throttling, stuck low power, spontaneous reboot",
        symptom="half the speed with the GPU at 96 % and 700 MHz; or the box is off and the "
        "journal stops in the middle of a line",
        cause="Heat on the board, a platform power state that only loss of mains clears, or a "
        "power supply or unit at fault. No event reason is set for the stuck state.",
        checks=(
            "spark-watch preflight",
            "spark-watch check (under load)",
            (
                "nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu,utilization.gpu "
                "--format=csv -l 1"
            ),
        ),
        fixes=(FIX_STUCK, FIX_HOT, "after a second power-off run the field diagnostics"),
        sources=(
            "Blackwellboy/model-serving-minefield#55",
            "hasso5703/dgx-spark-qwen38#8",
            "maci0/gb10-thermal-toolkit",
            "Avarok-Cybersecurity/atlas#569",
        ),
        differs=(
            (
                "NVML's power is the GPU's rail alone: 78 to 93 W in compute and 30 to 50 W in "
                "decode are healthy. 100 W is not a sign of throttling, nor is 30 W."
            ),
            "The board runs about 10 C hotter than the die: watch its zones, not the GPU alone.",
            "Some power-offs came with the GPU idle at 5 W: nothing foretells those.",
        ),
    ),
    Gotcha(
        number="G5",
        title="the bandwidth ceiling is below the specification",
        symptom="decode is slower than 273 GB/s would give",
        cause="The specification is the memory's; what kernels reach is less.",
        checks=("a plain read of several GiB on an idle box, counted one way",),
        fixes=(f"budget {BUDGET}", "raise the batch, or quantise: fewer bytes for each token"),
        sources=(
            "antirez/ds4#773",
            "tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark#1",
            "lablup/mlxcel#684",
        ),
        differs=(
            (
                "180 to 192 GB/s is what small shapes and some probes show; healthy plain reads "
                "are at 219 to 235 GB/s."
            ),
            (
                "A figure means something only with its counting rule: a copy counted both ways "
                "reads twice as much."
            ),
        ),
    ),
    Gotcha(
        number="G6",
        title="contention on the one pool",
        symptom="a server slows down, is paged out or does not start, although nothing about it "
        "has changed",
        cause="Everything takes from the same pool. A fraction is taken of the whole pool and is "
        "no hard cap; a container's limit does not hold CUDA memory.",
        checks=("spark-watch preflight", "spark-watch check", "nvidia-smi"),
        fixes=(FIX_NEIGHBOUR, "a small job (< 4 GB) beside a server capped at 0.5 may stay"),
        sources=(
            "MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark#54",
            "vllm-project/vllm#46307",
            "Blackwellboy/model-serving-minefield#57",
        ),
        differs=(
            (
                "No report shows pinned CUDA memory of one process evicted by another: what "
                "happens is paging of host memory, eviction of mapped weights, refused starts and "
                "OOM kills."
            ),
        ),
    ),
    Gotcha(
        number="G7",
        title="NVFP4 is slower than FP8 on SM121 without sm_121a",
        symptom="the four-bit model is slower than the eight-bit one",
        cause="SM121 converts FP4 fast only in code built for sm_121a (or its family); other "
        "builds fall back to slower kernels.",
        checks=(
            "spark-watch preflight --python PATH",
            "python -c 'import torch; print(torch.cuda.get_arch_list())'",
        ),
        fixes=(FIX_NVFP4,),
        sources=(
            "vllm-project/vllm#55397",
            "vllm-project/vllm#30163",
            "flashinfer-ai/flashinfer#2649",
        ),
        differs=(
            "Measured with the wrong kernel: prefill 31 % slower, decode 17 to 24 %.",
            (
                "The ptxas of CUDA 12.8 that some wheels bring refuses sm_121a: CUDA 12.9 or newer "
                "is needed."
            ),
        ),
    ),
    Gotcha(
        number="G8",
        title="the official playbooks go stale",
        symptom="a step of a playbook fails, or names an image or an option that is not there",
        cause="Page and repository move apart, and images move on without either.",
        checks=("spark-watch preflight --playbooks DIR --playbook nvidia/vllm",),
        fixes=(f"look at {PLACES}", "prefer the repository to the page"),
        sources=(
            "NVIDIA/dgx-spark-playbooks#2",
            "NVIDIA/dgx-spark-playbooks#68",
            "NVIDIA/dgx-spark-playbooks#109",
            "vllm-project/vllm#31424",
        ),
        differs=(),
    ),
    Gotcha(
        number="G9",
        title="bare pip drifts: container first",
        symptom="it worked last week; after pip install it imports no more, or runs on the CPU",
        cause="pip resolves each package by itself; on aarch64 it takes the CPU build of torch "
        "unless an index says otherwise.",
        checks=(
            "spark-watch preflight --python PATH --lock requirements.txt",
            "pip list | grep -E '^(torch|triton|xformers|transformers) '",
        ),
        fixes=(FIX_CONTAINER, "keep a lock file beside the run and install from that alone"),
        sources=("vllm-project/vllm#28129", "gyliu513/langX101#409"),
        differs=(
            (
                "Overriding a container's entry point switches off the forward compatibility of "
                "its CUDA: kernels compiled at run time then fail."
            ),
            "No sign of a container proves that there is none.",
        ),
    ),
    Gotcha(
        number="G10",
        title="tensor parallelism across two Sparks hangs: DDP and FSDP only",
        symptom="the GPU is at 96 % and below 28 W, no step or token comes, time-outs after "
        "minutes",
        cause="Tensor parallelism waits for the other box several times in each layer; one "
        "collective that does not come leaves a spinning kernel.",
        checks=(
            "spark-watch preflight --launch FILE",
            "spark-watch check (busy_without_progress)",
            "grep -rE 'tensor.parallel|tp_size' .",
        ),
        fixes=(FIX_TENSOR,),
        sources=(
            "eugr/spark-vllm-docker#260",
            "NVIDIA/nccl#2213",
            "vllm-project/vllm#41834",
        ),
        differs=(
            (
                "Some pairs do serve with tensor parallelism for days; the hang comes with load, "
                "after 15 minutes or two days."
            ),
            "A long prefill also gives no tokens, at about 46 W: power tells the two apart.",
        ),
    ),
)
"""In the order of their numbers."""
