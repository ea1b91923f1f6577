"""Ports of servers, from their command lines."""

from __future__ import annotations

import pytest

from spark_watch.sources.commands import understand


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("python3 /usr/local/bin/vllm serve m", 8000),
        ("/usr/bin/vllm serve m --port 8123", 8123),
        ("python3 -m vllm.entrypoints.openai.api_server --model m --port=9000", 9000),
        ("vllm serve m --config c.yaml", None),
        ("vllm serve m --config c.yaml --port 1", 1),
        ("vllm bench serve", None),
        ("python3 -m sglang.launch_server --model-path m --port 31000", 31000),
        ("sglang serve m", 30000),
        ("/app/llama-server -m m.gguf --port 8090", 8090),
        ("llama-server -m m.gguf", 8080),
        ("llama-bench -m m.gguf", None),
        ("trtllm-serve m --port 8355", 8355),
        ("trtllm-build m", None),
        ("text-generation-launcher -p 8081", 8081),
        ("text-generation-router --port 3000", None),
        ("ollama serve", 11434),
        ("ollama runner --model /usr/share/ollama/.ollama/models/blobs/x --port 41000", None),
        ("llama-server --model /usr/share/ollama/.ollama/models/blobs/x --port 41000", None),
        ("vllm serve m --port 70000", None),
        ("vllm serve m --port 0", None),
        ("vllm serve m --port secret", None),
        ("vllm serve m --port", None),
        ("python3 train.py --port 29500", None),
    ],
)
def test_port(line: str, expected: int | None) -> None:
    """Only a server has one: its flag's, or its engine's default."""
    assert understand(line.replace(" ", "\0").encode(), b"x").port == expected
