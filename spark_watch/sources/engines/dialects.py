"""How each engine names what it counts, in the versions that are about.

A count that an engine adds to only when a request ends is no sign of life: it stands still during
one long answer. Such counts are told where another count moves with every step, and left out
otherwise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_watch.errors import Unavailable
from spark_watch.model import Progress
from spark_watch.sources.engines.exposition import Page

MOST_RATIO: Final = 1.0


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine: the paths to try, in turn, and what its answer means."""

    paths: tuple[str, ...]
    read: Callable[[str, bytes], Progress]


_VLLM: Final = ("vllm:", "")
"""Older NVIDIA NIM has vLLM's names without the prefix."""


def _both(name: str) -> tuple[str, ...]:
    return tuple(prefix + name for prefix in _VLLM)


def _vllm(workload: str, text: bytes) -> Progress:
    """In vLLM tokens are counted with every step; a series for each data-parallel engine.

    Source: vllm-project/vllm, ``vllm/v1/metrics/loggers.py``; ``gpu_cache_usage_perc`` before V1.
    """
    running, waiting = _both("num_requests_running"), _both("num_requests_waiting")
    cache = (*_both("kv_cache_usage_perc"), *_both("gpu_cache_usage_perc"))
    preempted = _both("num_preemptions_total")
    prompt, made = _both("prompt_tokens_total"), _both("generation_tokens_total")
    page = Page(text, (*running, *waiting, *cache, *preempted, *prompt, *made))
    return _told(
        Progress(
            workload=workload,
            generation_tokens_total=page.total(*made),
            prompt_tokens_total=page.total(*prompt),
            requests_running=page.total(*running),
            requests_waiting=page.total(*waiting),
            preemptions_total=page.total(*preempted),
            kv_cache_usage_ratio=_ratio(page.highest(*cache)),
        )
    )


def _sglang(workload: str, text: bytes) -> Progress:
    """SGLang's ``generation_tokens_total`` counts finished requests; ``realtime_tokens_total``, in
    newer versions, counts at every log interval.

    Source: sgl-project/sglang, ``python/sglang/srt/metrics/collector.py``.
    """
    realtime, retracted = "sglang:realtime_tokens_total", "sglang:num_retracted_requests_total"
    running, waiting = "sglang:num_running_reqs", "sglang:num_queue_reqs"
    usage = "sglang:token_usage"
    page = Page(text, (realtime, retracted, running, waiting, usage))
    return _told(
        Progress(
            workload=workload,
            generation_tokens_total=page.total(realtime, where={"mode": ("decode",)}),
            prompt_tokens_total=page.total(
                realtime, where={"mode": ("prefill_compute", "prefill_cache")}
            ),
            requests_running=page.total(running),
            requests_waiting=page.total(waiting),
            preemptions_total=page.total(retracted),
            kv_cache_usage_ratio=_ratio(page.highest(usage)),
        )
    )


def _llama_cpp(workload: str, text: bytes) -> Progress:
    """llama.cpp's ``n_decode_total`` counts every call of ``llama_decode``, tokens when they end.

    Source: ggml-org/llama.cpp, ``tools/server/README.md``; ``kv_cache_usage_ratio`` before 2025-06.
    """
    prefix = "llamacpp:"
    steps, made, prompt = (
        prefix + name
        for name in ("n_decode_total", "tokens_predicted_total", "prompt_tokens_total")
    )
    running, waiting = prefix + "requests_processing", prefix + "requests_deferred"
    usage = prefix + "kv_cache_usage_ratio"
    page = Page(text, (steps, made, prompt, running, waiting, usage))
    moves = page.total(steps)
    return _told(
        Progress(
            workload=workload,
            steps_total=moves,
            generation_tokens_total=None if moves is None else page.total(made),
            prompt_tokens_total=None if moves is None else page.total(prompt),
            requests_running=page.total(running),
            requests_waiting=page.total(waiting),
            kv_cache_usage_ratio=_ratio(page.highest(usage)),
        )
    )


def _tensorrt_llm(workload: str, text: bytes) -> Progress:
    """TensorRT-LLM tells requests and cache; it has no count that moves with every step.

    Source: NVIDIA/TensorRT-LLM, ``tensorrt_llm/metrics/collector.py``.
    """
    running, waiting = "trtllm_num_requests_running", "trtllm_num_requests_waiting"
    usage = "trtllm_kv_cache_utilization"
    page = Page(text, (running, waiting, usage))
    return _told(
        Progress(
            workload=workload,
            requests_running=page.total(running),
            requests_waiting=page.total(waiting),
            kv_cache_usage_ratio=_ratio(page.highest(usage)),
        )
    )


def _tgi(workload: str, text: bytes) -> Progress:
    """TGI counts forward passes as they begin, and tokens in a histogram as requests end.

    Source: huggingface/text-generation-inference, ``docs/source/reference/metrics.md``.
    """
    steps, made = "tgi_batch_inference_count", "tgi_request_generated_tokens_sum"
    running, waiting = "tgi_batch_current_size", "tgi_queue_size"
    page = Page(text, (steps, made, running, waiting))
    moves = page.total(steps)
    return _told(
        Progress(
            workload=workload,
            steps_total=moves,
            generation_tokens_total=None if moves is None else page.total(made),
            requests_running=page.total(running),
            requests_waiting=page.total(waiting),
        )
    )


def _ollama(workload: str, text: bytes) -> Progress:
    """Ollama has no counters: ``/api/ps`` names the loaded models and their size.

    Source: ollama/ollama, ``docs/api.md``.
    """
    try:
        answer: Any = json.loads(text)
        sizes = [float(model["size"]) for model in answer["models"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Unavailable("malformed") from error
    size = sum(sizes)
    known = math.isfinite(size) and size > 0
    return Progress(workload=workload, model_bytes=size if known else None)


def _told(report: Progress) -> Progress:
    """Return a report that says something.

    Raises:
        Unavailable: none of the names was on the page: another engine, or another version.
    """
    if report == Progress(workload=report.workload):
        raise Unavailable("no_known_names")
    return report


def _ratio(value: float | None) -> float | None:
    return None if value is None or value > MOST_RATIO else value


DIALECTS: Final[Mapping[str, Dialect]] = {
    "vllm": Dialect(("/metrics", "/v1/metrics"), _vllm),
    "sglang": Dialect(("/metrics",), _sglang),
    "llama.cpp": Dialect(("/metrics",), _llama_cpp),
    "tensorrt-llm": Dialect(("/prometheus/metrics", "/metrics"), _tensorrt_llm),
    "tgi": Dialect(("/metrics",), _tgi),
    "ollama": Dialect(("/api/ps",), _ollama),
}
"""By the engine's name."""
