"""GPU processes with their facts and launchers, on a ``/proc`` that changes under the source."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_watch.model import Process
from spark_watch.sources.processes import ProcessesSource, Server
from tests.sources.proc_tree import ProcTree

KIB = 1024
ENGINE = Process(pid=200, kind="compute", gpu_bytes=80 * 2**30)
SERVE = ("/usr/bin/python3", "/usr/local/bin/vllm", "serve", "m", "--gpu-memory-utilization", "0.6")


@pytest.fixture
def proc(tmp_path: Path) -> ProcTree:
    """An empty ``/proc``."""
    return ProcTree(tmp_path / "proc")


@pytest.fixture
def source(proc: ProcTree, tmp_path: Path) -> Iterator[ProcessesSource]:
    """The source on that ``/proc``, with a clock of 100 ticks a second."""
    source = ProcessesSource(proc_root=proc.root, sys_root=tmp_path / "sys", ticks_per_second=100)
    yield source
    source.close()


def _spawn_vllm(proc: ProcTree) -> None:
    proc.spawn(50, "bash")
    proc.spawn(100, *SERVE, parent=50, started=4000, resident_kib=900_000)
    proc.spawn(
        200, "VLLM::EngineCore", parent=100, started=4200, resident_kib=5_000_000,
        swapped_kib=2048, major_faults=237,
    )  # fmt: skip


def test_an_engine_and_its_launcher_are_described(proc: ProcTree, source: ProcessesSource) -> None:
    """The engine has its facts and the launcher's claim; the launcher follows it in the list."""
    _spawn_vllm(proc)
    assert source.read([ENGINE]) == (
        Process(
            pid=200,
            name="VLLM::EngineCore",
            kind="compute",
            engine="vllm",
            gpu_bytes=80 * 2**30,
            resident_bytes=5_000_000 * KIB,
            swapped_bytes=2048 * KIB,
            major_faults=237,
            started_seconds=42.0,
            launcher_pid=100,
            claim_ratio=0.6,
        ),
        Process(
            pid=100,
            name="python3",
            kind="launcher",
            engine="vllm",
            resident_bytes=900_000 * KIB,
            swapped_bytes=0,
            major_faults=0,
            started_seconds=40.0,
            claim_ratio=0.6,
        ),
    )


def test_what_changes_is_read_again(proc: ProcTree, source: ProcessesSource) -> None:
    """Resident, swapped and faults follow the process; GPU bytes follow the list."""
    _spawn_vllm(proc)
    source.read([ENGINE])
    proc.spawn(
        200, "VLLM::EngineCore", parent=100, started=4200, resident_kib=7, swapped_kib=8,
        major_faults=9,
    )  # fmt: skip
    engine = source.read([replace(ENGINE, gpu_bytes=5)])[0]
    assert (engine.resident_bytes, engine.swapped_bytes) == (7 * KIB, 8 * KIB)
    assert (engine.major_faults, engine.gpu_bytes) == (9, 5)


def test_workers_find_their_launcher_through_the_engine(
    proc: ProcTree, source: ProcessesSource
) -> None:
    """A worker is two steps below the launcher, and one launcher is listed once for both."""
    _spawn_vllm(proc)
    for pid in (201, 202):
        proc.spawn(pid, f"VLLM::Worker_TP{pid - 201}", parent=200, comm="VLLM::Worker_TP")
    processes = source.read([replace(ENGINE, pid=201), replace(ENGINE, pid=202)])
    assert [(each.pid, each.name, each.launcher_pid) for each in processes] == [
        (201, "VLLM::Worker_TP0", 100),
        (202, "VLLM::Worker_TP1", 100),
        (100, "python3", None),
    ]


def test_a_worker_without_a_title_is_its_launchers_engine(
    proc: ProcTree, source: ProcessesSource
) -> None:
    """A spawned Python has no name of its own; what started it says what it is."""
    proc.spawn(
        100, "python3", "/usr/bin/trtllm-serve", "m", "--kv_cache_free_gpu_memory_fraction", "0.4"
    )
    proc.spawn(200, "python3", "-c", "from multiprocessing.spawn import spawn_main", parent=100)
    engine = source.read([ENGINE])[0]
    assert (engine.engine, engine.launcher_pid, engine.claim_ratio) == ("tensorrt-llm", 100, 0.4)


def test_a_llama_server_under_ollama_is_ollama(proc: ProcTree, source: ProcessesSource) -> None:
    """Ancestry comes before the name; without that ancestor it is llama.cpp."""
    proc.spawn(100, "/usr/bin/ollama", "serve")
    proc.spawn(200, "/usr/lib/ollama/llama-server", "--model", "m", parent=100)
    proc.spawn(300, "/usr/bin/llama-server", "--model", "m")
    found = source.read([ENGINE, replace(ENGINE, pid=300)])
    assert [(each.pid, each.engine, each.launcher_pid) for each in found] == [
        (200, "ollama", 100),
        (300, "llama.cpp", None),
        (100, "ollama", None),
    ]


def test_a_trainer_has_a_launcher_without_an_engine(
    proc: ProcTree, source: ProcessesSource
) -> None:
    """``torchrun`` is a launcher; what it starts is no known server and claims nothing."""
    proc.spawn(100, "/usr/bin/python3", "/usr/local/bin/torchrun", "train.py")
    proc.spawn(200, "/usr/bin/python3", "-u", "train.py", parent=100)
    trainer = source.read([ENGINE])[0]
    assert (trainer.name, trainer.engine, trainer.launcher_pid) == ("python3", None, 100)
    assert (trainer.claim_ratio, trainer.claim_bytes) == (None, None)


def test_tgi_takes_its_claim_from_the_launchers_environment(
    proc: ProcTree, source: ProcessesSource
) -> None:
    """Where the environment is readable its one known variable is the claim; else there is none."""
    variable = "CUDA_MEMORY_FRACTION=0.3\0"
    place = proc.spawn(100, "text-generation-launcher", environ=variable)
    proc.spawn(200, "text-generation-server", "serve", parent=100)
    assert source.read([ENGINE])[0].claim_ratio == 0.3
    source.close()
    (place / "environ").unlink()
    assert source.read([ENGINE])[0].claim_ratio is None
    source.close()
    flag = ("--cuda-memory-fraction", "0.5")
    proc.spawn(100, "text-generation-launcher", *flag, environ=variable)
    assert source.read([ENGINE])[0].claim_ratio == 0.5


def test_an_engine_that_lost_its_launcher_says_so(proc: ProcTree, source: ProcessesSource) -> None:
    """After the launcher's death it has none, and it is still known what it is and claims."""
    _spawn_vllm(proc)
    source.read([ENGINE])
    proc.end(100)
    proc.spawn(200, "VLLM::EngineCore", parent=1, started=4200)
    found = source.read([ENGINE])
    assert [(each.pid, each.engine, each.launcher_pid, each.claim_ratio) for each in found] == [
        (200, "vllm", None, 0.6)
    ]


@pytest.mark.parametrize("fate", ["gone", "zombie", "reused"])
def test_a_grandparents_death_is_noticed_too(
    proc: ProcTree, source: ProcessesSource, fate: str
) -> None:
    """The worker's own parent still lives, but the launcher is gone, a zombie or somebody else."""
    _spawn_vllm(proc)
    proc.spawn(201, "VLLM::Worker_TP0", parent=200, comm="VLLM::Worker_TP")
    assert source.read([replace(ENGINE, pid=201)])[0].launcher_pid == 100
    proc.end(100)
    if fate == "zombie":
        proc.spawn(100, comm="vllm", state="Z", started=4000)
    elif fate == "reused":
        proc.spawn(100, "/usr/bin/vim", started=9000)
    found = source.read([replace(ENGINE, pid=201)])
    assert [(each.pid, each.launcher_pid) for each in found] == [(201, None)]


def test_ancestors_that_go_round_come_to_an_end(proc: ProcTree, source: ProcessesSource) -> None:
    """Parents that are each other's children, as no kernel says, are not followed for ever."""
    proc.spawn(200, "python3", parent=300)
    proc.spawn(300, "python3", parent=200)
    assert [(each.pid, each.launcher_pid) for each in source.read([ENGINE])] == [(200, None)]


def test_a_reused_pid_is_somebody_new(proc: ProcTree, source: ProcessesSource) -> None:
    """Another start time means another process: nothing of the old one stays."""
    _spawn_vllm(proc)
    source.read([ENGINE])
    proc.spawn(200, "python3", "train.py", comm="VLLM::EngineCor", parent=100, started=9000)
    proc.end(100)
    (found,) = source.read([ENGINE])
    assert (found.name, found.engine, found.started_seconds) == ("python3", None, 90.0)
    assert (found.claim_ratio, found.launcher_pid) == (None, None)


def test_a_title_set_late_is_seen(proc: ProcTree, source: ProcessesSource) -> None:
    """A process that renames itself is looked at again."""
    proc.spawn(200, "python3", "-c", "x")
    assert source.read([ENGINE])[0].engine is None
    proc.spawn(200, "VLLM::EngineCore")
    found = source.read([ENGINE])[0]
    assert (found.name, found.engine) == ("VLLM::EngineCore", "vllm")


def test_a_launcher_that_holds_gpu_memory_itself_is_listed_once(
    proc: ProcTree, source: ProcessesSource
) -> None:
    """It keeps the kind NVML gave it, and is the launcher of its child."""
    _spawn_vllm(proc)
    found = source.read([ENGINE, replace(ENGINE, pid=100, gpu_bytes=1)])
    assert [(each.pid, each.kind, each.launcher_pid) for each in found] == [
        (200, "compute", 100),
        (100, "compute", None),
    ]


def test_a_hidden_process_keeps_what_nvml_says(proc: ProcTree, source: ProcessesSource) -> None:
    """Another pid namespace, hidepid or an exit leave the list's own facts, all of them."""
    listed = Process(pid=77, name="python3", kind="graphics", gpu_bytes=None)
    assert source.read([listed]) == (listed,)
    proc.spawn(77, "/usr/bin/gnome-shell")
    assert source.read([listed])[0].name == "gnome-shell"
    proc.end(77)
    assert source.read([listed]) == (listed,)


def test_an_empty_list_is_an_empty_answer(proc: ProcTree, source: ProcessesSource) -> None:
    """After the last process nothing is kept open or remembered."""
    _spawn_vllm(proc)
    source.read([ENGINE])
    assert source.read([]) == ()
    assert source._tracked == {}


def test_container_and_refaults_come_from_the_group(
    proc: ProcTree, source: ProcessesSource, tmp_path: Path
) -> None:
    """The short container id, and the refaults of that container's group."""
    name = "system.slice/docker-" + "ab12" * 16 + ".scope"
    folder = tmp_path / "sys" / "fs" / "cgroup" / name
    folder.mkdir(parents=True)
    (folder / "memory.stat").write_text("workingset_refault_anon 4\nworkingset_refault_file 6\n")
    proc.spawn(200, "VLLM::EngineCore", cgroup=f"0::/{name}\n")
    found = source.read([ENGINE])[0]
    assert (found.container, found.cgroup_refaults) == ("ab12ab12ab12", 10)


def test_a_list_of_950_is_read_in_bounded_pieces(proc: ProcTree, source: ProcessesSource) -> None:
    """The largest 64 have facts at once, the others 32 a call; descriptors stay few."""
    listed = [Process(pid=1000 + n, kind="compute", gpu_bytes=n) for n in range(950)]
    for process in listed:
        proc.spawn(process.pid, "python3")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are wanted, not paths
    known = [sum(each.name is not None for each in source.read(listed)) for _ in range(28)]
    after = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are wanted, not paths
    assert known[:3] == [64 + 32, 64 + 64, 64 + 96]
    assert known[-1] == 950
    assert all(each.name for each in source.read(listed)[-64:])
    assert after - before <= 2 * 64


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00" * 300,
        b"200 (a b) c) S",
        b"200 a S 1",
        b"200 )a( S " + b"1 " * 40,
        b"200 (a) S -1 " + b"1 " * 40,
        b"200 (a) S " + b"9" * 30 + b" 1" * 40,
        b"200 (a) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 42",
    ],
)
def test_a_garbled_stat_leaves_what_nvml_says(
    proc: ProcTree, source: ProcessesSource, text: bytes
) -> None:
    """A process whose start cannot be read cannot be told from its successor: no facts at all."""
    (proc.spawn(200, "VLLM::EngineCore") / "stat").write_bytes(text)
    assert source.read([ENGINE]) == (ENGINE,)


@pytest.mark.parametrize("file", ["stat", "status", "cmdline", "cgroup", "environ", "cwd"])
@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "binary", "huge"])
def test_any_file_may_be_anything(
    proc: ProcTree, source: ProcessesSource, file: str, kind: str
) -> None:
    """Whatever stands in place of one file, nothing waits, nothing is raised, the pid is listed."""
    path = proc.spawn(200, "text-generation-launcher") / file
    path.unlink()
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "binary":
        path.write_bytes(bytes(range(256)))
    elif kind == "huge":
        path.write_bytes(b"9" * 300_000)
    (found,) = source.read([ENGINE])
    assert (found.pid, found.gpu_bytes) == (200, 80 * 2**30)


def test_this_very_process_is_described() -> None:
    """On the real ``/proc`` the source finds the process it runs in."""
    source = ProcessesSource()
    found = source.read([Process(pid=os.getpid(), kind="compute")])[0]
    source.close()
    assert found.name is not None
    assert found.resident_bytes is not None
    assert found.resident_bytes > 2**20
    assert found.started_seconds is not None
    assert found.started_seconds > 0


def test_a_proc_that_vanishes_leaves_the_list(proc: ProcTree, source: ProcessesSource) -> None:
    """Without any ``/proc`` every process comes back as NVML gave it."""
    _spawn_vllm(proc)
    source.read([ENGINE])
    shutil.rmtree(proc.root)
    assert source.read([ENGINE]) == (ENGINE,)


def test_servers_by_their_own_ports(proc: ProcTree, source: ProcessesSource) -> None:
    """A server is named by its GPU process, and asked at the port of its launcher."""
    _spawn_vllm(proc)
    proc.spawn(300, "/app/llama-server", "-m", "m.gguf", "--port", "8090")
    proc.spawn(400, "python3", "train.py", "--port", "29500")
    listed = [ENGINE, Process(pid=300, kind="compute"), Process(pid=400, kind="compute")]
    source.read(listed)
    assert source.servers() == (
        Server("vllm/200", "vllm", 100, 8000, None),
        Server("llama.cpp/300", "llama.cpp", 300, 8090, None),
    )
    proc.end(300)
    source.read([ENGINE])
    assert [server.workload for server in source.servers()] == ["vllm/200"]
