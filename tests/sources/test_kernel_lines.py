"""Which lines of the kernel log count, as what, and which only look like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.sources.kernel_lines import Recogniser, take_apart


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (b"4,812,5123456,-;NVRM: text\n SUBSYSTEM=pci\n", (0, 812, b"NVRM: text")),
        (b"6,9,5123456,-,caller=T71;text", (0, 9, b"text")),
        (b"30,813,5123460,-;systemd[1]: text\n", (3, 813, b"systemd[1]: text")),
        (b"12,814,5123470,c;text\n", (1, 814, b"text")),
        (b"[ 5123.456789] NVRM: text", (0, None, b"NVRM: text")),
        (b"[ 5123.456789][  T712] NVRM: text", (0, None, b"NVRM: text")),
        (b"<4>[ 5123.456789] NVRM: text", (0, None, b"NVRM: text")),
        (b"<30>[ 5123.456789] systemd[1]: text", (3, None, b"systemd[1]: text")),
        (b"NVRM: text", (0, None, b"NVRM: text")),
        (b"", (0, None, b"")),
        (b"4,812;text", (0, None, b"4,812;text")),
        (b"99999,1,1,-;text", (0, None, b"99999,1,1,-;text")),
    ],
)
def test_a_line_is_taken_apart(line: bytes, parts: tuple[int, int | None, bytes]) -> None:
    """Facility, number and message are found in records and in what dmesg prints."""
    assert take_apart(line) == parts


@pytest.mark.parametrize(
    ("message", "meaning"),
    [
        (b"NVRM: Xid (PCI:000f:01:00): 79, pid='<unknown>', name=<unknown>, text", ("xid", 79)),
        (b"NVRM: Xid (PCI:0000000f:01:00): 119, pid=812, name=python3, Timeout", ("xid", 119)),
        (b"NVRM: Xid (PCI:000F:01:00.0): 31, pid=7", ("xid", 31)),
        (b"NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7", ("xid", 94)),
        (b"NVRM: Xid (0000:01:00): 13, 0003 00000000", ("xid", 13)),
        (b"NVRM: GPU0 Xid (PCI:000f:01:00): 154, GPU recovery action changed", ("xid", 154)),
        (b"NVRM: Xid (PCI:000f:01:00): 43, name=NV_ERR_NO_MEMORY", ("xid", 43)),
        (
            b"NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x51)",
            ("nv_err_no_memory", None),
        ),
        (b"NVRM: NV_ERR_NO_MEMORY", ("nv_err_no_memory", None)),
        (
            b"INFO: task nvidia-smi:4711 blocked for more than 122 seconds.",
            ("hung_task", "nvidia-smi"),
        ),
        (
            b"INFO: task a:b (x):1 blocked in I/O wait for more than 5 seconds.",
            ("hung_task", "a:bx"),
        ),
        (
            b"oom-kill:constraint=CONSTRAINT_NONE,global_oom,task_memcg=/,task=a,pid=4711,uid=1000",
            ("oom_kill", None),
        ),
        (b"Out of memory: Killed process 4711 (python3) total-vm:1kB", ("oom_kill", None)),
        (b"Out of memory: Kill process 4711 (python3) score 9", ("oom_kill", None)),
        (b"Memory cgroup out of memory: Killed process 4711 (python3)", ("oom_kill", None)),
        (
            b"Out of memory (oom_kill_allocating_task): Killed process 4711 (python3)",
            ("oom_kill", None),
        ),
        (
            b"pcieport 000f:00:00.0: AER: Uncorrectable (Fatal) error message received from",
            ("pcie_fatal", None),
        ),
        (
            b"pcieport 0000:00:01.0: AER: Multiple Uncorrected (Fatal) error received",
            ("pcie_fatal", None),
        ),
        (
            b"mlx5_core 0002:01:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Link",
            ("pcie_fatal", None),
        ),
    ],
)
def test_a_line_that_matters_is_recognised(
    message: bytes, meaning: tuple[str, str | int | None]
) -> None:
    """Every form that drivers and kernels print is told by kind and code."""
    assert Recogniser().meaning(message) == meaning


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x00" * 100,
        b"NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64",
        b"NVRM: XNV_ERR_NO_MEMORY_X",
        b"python3: NVRM: Xid (PCI:000f:01:00): 79",
        b"NVRM: Xid (PCI:000f:01:00): many",
        b"NVRM: Xid (PCI:000f:01:00): 123456789",
        b"audit: NV_ERR_NO_MEMORY",
        b"INFO: task nvidia-smi:4711 is blocked on a mutex likely owned by task python3:9.",
        b"INFO: task nvidia-smi:4711 blocked for more than many seconds",
        b"pcieport 0000:00:01.0: AER: Uncorrectable (Non-Fatal) error message received",
        b"pcieport 0000:00:01.0: AER: Corrected error message received",
        b"say: pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received",
        b"Out of memory: nothing left to kill",
        b"oom-kill:constraint=CONSTRAINT_NONE",
        b"python3 invoked oom-killer: gfp_mask=0x0",
        b"oom_reaper: reaped process 4711 (python3)",
        b"Killed process 4711 (python3) total-vm:1kB",
    ],
)
def test_a_line_that_only_looks_like_one_is_not(message: bytes) -> None:
    """Text inside other lines, other severities and companions of a line do not count."""
    assert Recogniser().meaning(message) is None


def test_one_kill_is_counted_once() -> None:
    """The announcement counts; the kill of the same process does not; the next kill does."""
    recogniser = Recogniser()
    announced = b"oom-kill:constraint=CONSTRAINT_MEMCG,task=python3,pid=%d,uid=1000"
    killed = b"Memory cgroup out of memory: Killed process %d (python3) total-vm:1kB"
    meanings = [
        recogniser.meaning(message)
        for message in (
            announced % 7,
            killed % 7,
            killed % 8,
            announced % 7,
            killed % 7,
            killed % 7,
        )
    ]
    kill = ("oom_kill", None)
    assert meanings == [kill, None, kill, kill, None, kill]


def test_announcements_are_remembered_within_bounds() -> None:
    """However many kills are announced and never carried out, the memory of them is bounded."""
    recogniser = Recogniser()
    for pid in range(1000):
        recogniser.meaning(b"oom-kill:constraint=X,task=a,pid=%d,uid=0" % pid)
    assert len(recogniser._announced) == 64


PIECES = st.sampled_from(
    [
        *(b"4,1,1,-;", b"NVRM: ", b"Xid (", b"PCI", b"): ", b"79", b"NV_ERR_NO_MEMORY", b"\n"),
        *(b"INFO: task ", b":1 blocked for more than 9 seconds", b"oom-kill:", b",pid=1,uid=2"),
        b"pcieport 0000:00:01.0: AER: Uncorrected (Fatal)",
    ]
)


@given(st.lists(PIECES | st.binary(max_size=6), max_size=20).map(b"".join))
def test_whatever_the_line_says_nothing_is_raised_and_no_code_invented(line: bytes) -> None:
    """A code is a number that stands in the line, or a name of the line's own characters."""
    meaning = Recogniser().meaning(take_apart(line).message)
    if meaning is None:
        return
    kind, code = meaning
    assert kind in {"nv_err_no_memory", "xid", "oom_kill", "hung_task", "pcie_fatal"}
    if kind == "xid":
        assert str(code).encode() in line
    elif code is not None:
        assert isinstance(code, str)
        assert set(code.encode()) <= set(line)
