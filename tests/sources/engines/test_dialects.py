"""Engines' own pages in several versions, written from their documented names."""

from __future__ import annotations

import pytest

from spark_watch.errors import Unavailable
from spark_watch.model import Progress
from spark_watch.sources.engines.dialects import DIALECTS
from spark_watch.sources.engines.exposition import Page

VLLM_V1 = b"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 8.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
# TYPE vllm:num_preemptions counter
vllm:num_preemptions_total{engine="0",model_name="m"} 3.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.76e+09
vllm:prompt_tokens_total{engine="0",model_name="m"} 1.5e+06
vllm:prompt_tokens_total{engine="1",model_name="m"} 500000.0
vllm:generation_tokens_total{engine="0",model_name="m"} 31415.0
vllm:generation_tokens_total{engine="1",model_name="m"} 926.0
vllm:generation_tokens_created{engine="0",model_name="m"} 1.76e+09
vllm:iteration_tokens_total_bucket{engine="0",le="8.0",model_name="m"} 4.0
vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 4.0
"""

VLLM_V0 = b"""vllm:num_requests_running{model_name="m"} 1.0
vllm:num_requests_swapped{model_name="m"} 0.0
vllm:num_requests_waiting{model_name="m"} 0.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
vllm:cpu_cache_usage_perc{model_name="m"} 0.9
vllm:num_preemptions_total{model_name="m"} 0.0
vllm:prompt_tokens_total{model_name="m"} 10.0
vllm:generation_tokens_total{model_name="m"} 20.0
"""

NIM = b"""num_requests_running{model_name="m"} 1.0
num_requests_waiting{model_name="m"} 0.0
gpu_cache_usage_perc{model_name="m"} 0.5
prompt_tokens_total{model_name="m"} 10.0
generation_tokens_total{model_name="m"} 20.0
"""

SGLANG = b"""sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="0"} 2.0
sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="1"} 2.0
sglang:num_queue_reqs{engine_type="unified",model_name="m",priority="0",tp_rank="0"} 1.0
sglang:num_queue_reqs{engine_type="unified",model_name="m",tp_rank="1"} 1.0
sglang:token_usage{engine_type="unified",model_name="m",tp_rank="0"} 0.28
sglang:generation_tokens_total{model_name="m"} 7.0
sglang:prompt_tokens_total{model_name="m"} 8.0
sglang:realtime_tokens_total{mode="decode",model_name="m",tp_rank="0"} 900.0
sglang:realtime_tokens_total{mode="decode",model_name="m",tp_rank="1"} 901.0
sglang:realtime_tokens_total{mode="prefill_compute",model_name="m",tp_rank="0"} 100.0
sglang:realtime_tokens_total{mode="prefill_cache",model_name="m",tp_rank="0"} 50.0
sglang:num_retracted_requests_total{model_name="m",tp_rank="0"} 5.0
"""

SGLANG_OLD = b"""sglang:num_running_reqs{model_name="m"} 2.0
sglang:num_queue_reqs{model_name="m"} 0.0
sglang:token_usage{model_name="m"} 0.28
sglang:generation_tokens_total{model_name="m"} 7.0
"""

LLAMA_CPP = b"""# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
llamacpp:prompt_tokens_total 400
llamacpp:tokens_predicted_total 200
llamacpp:n_decode_total 250
llamacpp:n_busy_slots_per_decode 1.5
llamacpp:requests_processing 3
llamacpp:requests_deferred 1
"""

LLAMA_CPP_OLD = b"""llamacpp:prompt_tokens_total 400
llamacpp:tokens_predicted_total 200
llamacpp:kv_cache_usage_ratio 0.5
llamacpp:requests_processing 3
llamacpp:requests_deferred 1
"""

TENSORRT = b"""trtllm_kv_cache_hit_rate{engine_type="undefined",model_name="m"} 0.5
trtllm_kv_cache_utilization{engine_type="undefined",model_name="m"} 0.125
trtllm_num_requests_running{engine_type="undefined",model_name="m"} 3.0
trtllm_num_requests_waiting{engine_type="undefined",model_name="m"} 1.0
"""

TGI = b"""tgi_batch_current_size 4
tgi_queue_size 2
tgi_batch_inference_count{method="prefill"} 10
tgi_batch_inference_count{method="decode"} 990
tgi_request_generated_tokens_sum 5000
tgi_request_generated_tokens_count 50
"""

OLLAMA = b'{"models": [{"name": "a", "size": 6000000000, "size_vram": 5}, {"size": 1000000000}]}'


@pytest.mark.parametrize(
    ("engine", "text", "expected"),
    [
        pytest.param(
            "vllm",
            VLLM_V1,
            Progress(
                workload="w",
                generation_tokens_total=32341,
                prompt_tokens_total=2e6,
                requests_running=12,
                requests_waiting=2,
                preemptions_total=3,
                kv_cache_usage_ratio=0.75,
            ),
            id="vllm-v1-two-engines",
        ),
        pytest.param(
            "vllm",
            VLLM_V0,
            Progress(
                workload="w",
                generation_tokens_total=20,
                prompt_tokens_total=10,
                requests_running=1,
                requests_waiting=0,
                preemptions_total=0,
                kv_cache_usage_ratio=0.5,
            ),
            id="vllm-v0",
        ),
        pytest.param(
            "vllm",
            NIM,
            Progress(
                workload="w",
                generation_tokens_total=20,
                prompt_tokens_total=10,
                requests_running=1,
                requests_waiting=0,
                kv_cache_usage_ratio=0.5,
            ),
            id="nim-without-prefix",
        ),
        pytest.param(
            "sglang",
            SGLANG,
            Progress(
                workload="w",
                generation_tokens_total=901,
                prompt_tokens_total=150,
                requests_running=2,
                requests_waiting=1,
                preemptions_total=5,
                kv_cache_usage_ratio=0.28,
            ),
            id="sglang-two-ranks",
        ),
        pytest.param(
            "sglang",
            SGLANG_OLD,
            Progress(
                workload="w", requests_running=2, requests_waiting=0, kv_cache_usage_ratio=0.28
            ),
            id="sglang-that-counts-finished-requests-alone",
        ),
        pytest.param(
            "llama.cpp",
            LLAMA_CPP,
            Progress(
                workload="w",
                steps_total=250,
                generation_tokens_total=200,
                prompt_tokens_total=400,
                requests_running=3,
                requests_waiting=1,
            ),
            id="llama.cpp",
        ),
        pytest.param(
            "llama.cpp",
            LLAMA_CPP_OLD,
            Progress(
                workload="w", requests_running=3, requests_waiting=1, kv_cache_usage_ratio=0.5
            ),
            id="llama.cpp-before-it-counted-decodes",
        ),
        pytest.param(
            "tensorrt-llm",
            TENSORRT,
            Progress(
                workload="w", requests_running=3, requests_waiting=1, kv_cache_usage_ratio=0.125
            ),
            id="tensorrt-llm",
        ),
        pytest.param(
            "tgi",
            TGI,
            Progress(
                workload="w",
                steps_total=1000,
                generation_tokens_total=5000,
                requests_running=4,
                requests_waiting=2,
            ),
            id="tgi",
        ),
        pytest.param("ollama", OLLAMA, Progress(workload="w", model_bytes=7e9), id="ollama"),
        pytest.param("ollama", b'{"models": []}', None, id="ollama-with-nothing-loaded"),
    ],
)
def test_page(engine: str, text: bytes, expected: Progress | None) -> None:
    """Every version's page means what its engine documents."""
    assert DIALECTS[engine].read("w", text) == (expected or Progress(workload="w"))


@pytest.mark.parametrize("engine", sorted(DIALECTS))
@pytest.mark.parametrize("text", [b"", b"<html>hello</html>", b"\0\xff" * 500, b"[1", b'{"a": 1}'])
def test_another_server_on_the_port(engine: str, text: bytes) -> None:
    """A page without a single known name is no engine's, and no report of zeros."""
    with pytest.raises(Unavailable):
        DIALECTS[engine].read("w", text)


def test_numbers_that_are_none() -> None:
    """NaN, infinity, negative and garbled values are not there."""
    page = Page(b"a NaN\nb +Inf\nc -1\nd x\ne 5\n", ["a", "b", "c", "d", "e"])
    assert [page.total(name) for name in "abcde"] == [None, None, None, None, 5.0]


def test_labels_with_quotes_braces_and_exemplars() -> None:
    """A label may hold what would end it, and what follows the value is not the value."""
    text = b'a{model="x} 9 \\"y{"} 5 1700000000 # {trace="z"} 1\nab 7\n'
    assert Page(text, ["a"]).total("a") == 5.0


def test_a_page_of_one_long_line_is_read_quickly() -> None:
    """A megabyte of braces and quotes takes no time that anybody would notice."""
    text = b"a{" + b'x="' * 300_000
    assert Page(text, ["a"]).total("a") is None
