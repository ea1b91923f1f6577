"""Where workloads report how they get on, and which engines are asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from spark_watch.settings.frozen import Frozen

FOLDER: Final = "spark-watch"


class ProgressSettings(Frozen):
    """``[progress]``: the socket that training loops write to."""

    socket: Path | None = Field(
        default=None,
        description="Unix datagram socket for spark_watch.client and spark-watch progress. Unset: "
        "progress.sock in systemd's run-time directory, else in /run/spark-watch as root, else in "
        "spark-watch under XDG_RUNTIME_DIR.",
    )
    group: str | None = Field(
        default=None,
        description="Group whose members may report. Unset: the daemon's own group, so that "
        "usermod -aG spark-watch NAME lets NAME report.",
    )


class EnginesSettings(Frozen):
    """``[engines]``: inference servers that are asked for their own counters."""

    discover: bool = Field(
        default=True,
        description="Ask the servers among the GPU's processes, on loopback or on their "
        "container's own address, at the port their command line names.",
    )
    urls: tuple[str, ...] = Field(
        default=(),
        max_length=8,
        description="Prometheus pages to ask as well, each ENGINE=http://HOST:PORT/metrics with "
        "ENGINE one of vllm, sglang, llama.cpp, tensorrt-llm, tgi, ollama.",
    )
    period_seconds: float = Field(
        default=5.0,
        ge=1.0,
        le=600.0,
        description="Seconds between two questions to one server.",
    )

    @field_validator("urls")
    @classmethod
    def _urls(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            engine, equals, url = value.partition("=")
            parts = urlsplit(url)
            known = {"vllm", "sglang", "llama.cpp", "tensorrt-llm", "tgi", "ollama"}
            if engine not in known or not equals or parts.scheme != "http" or not parts.hostname:
                message = f"{value!r} is not ENGINE=http://HOST:PORT/PATH with a known engine"
                raise ValueError(message)
        return values


def socket_path(
    settings: ProgressSettings, environment: Mapping[str, str], *, is_root: bool
) -> Path | None:
    """Return where workloads report, ``None`` where there is no place for a socket.

    The setting; else what systemd names in ``RUNTIME_DIRECTORY`` (the first of several); else, as
    root, ``/run/spark-watch``; else the user's own by the XDG base directory specification.
    """
    if settings.socket is not None:
        return settings.socket
    named = environment.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    own = environment.get("XDG_RUNTIME_DIR", "")
    if named:
        folder = Path(named)
    elif is_root:
        folder = Path("/run") / FOLDER
    elif own.startswith("/"):
        folder = Path(own) / FOLDER
    else:
        return None
    return folder / "progress.sock"
