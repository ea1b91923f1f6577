"""Foreign code is asked, bounded and cleared away, whatever it does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from spark_watch.preflight import questions
from spark_watch.preflight.cage import Answers, ask, distrusted, understood
from tests.preflight.environment import TORCH, Environment

PATIENT = 30.0
"""More than any of the scripts takes on a busy machine."""
SHORT = 1.5


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """An environment without any package."""
    return Environment(tmp_path / "env")


def import_torch(
    environment: Environment, text: str, *, seconds: float = PATIENT, go: bool = False
) -> Answers:
    """Ask about a torch that is this text."""
    environment.module("torch", text)
    return ask(environment.python, questions.TORCH, seconds=seconds, go=lambda: go)


def gone(pid: int) -> bool:
    """Whether a process is neither running nor left as a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_healthy_torch_answers_all_steps(environment: Environment) -> None:
    """With an idle GPU its version, architectures and first kernel are known."""
    answers = import_torch(environment, TORCH, go=True)
    assert answers.answer("import", "version") == "2.9.1+cu130"
    assert answers.answer("import", "arches") == ["sm_80", "sm_120", "sm_121a"]
    assert answers.answer("kernel", "ran") is True
    assert (answers.end, answers.value, answers.unfinished) == ("exit", 0, None)


def test_without_leave_nothing_runs_on_the_gpu(environment: Environment) -> None:
    """Where the GPU is not known to be idle the kernel step is not even begun."""
    answers = import_torch(environment, TORCH)
    assert "import" in answers.steps
    assert "kernel" not in answers.steps
    assert answers.unfinished is None


def test_an_import_that_raises_has_answered(environment: Environment) -> None:
    """The error's type and text come back, and later steps that do not need it still run."""
    answers = import_torch(environment, "raise ImportError('undefined symbol: _ZN3c10')")
    assert answers.answer("import", "error") == "ImportError: undefined symbol: _ZN3c10"
    assert "cudart" in answers.steps


def test_a_segmentation_fault_is_named(environment: Environment) -> None:
    """The signal is known, and so is the step in which it came."""
    answers = import_torch(environment, "import ctypes; ctypes.string_at(0)")
    assert (answers.end, answers.unfinished) == ("signal", "import")
    assert answers.how == "died of SIGSEGV"


def test_a_crash_in_the_first_kernel_keeps_what_was_said(environment: Environment) -> None:
    """The version is known although the process died at the first use of the GPU."""
    text = TORCH.replace("return _Tensor(count)", "import ctypes; ctypes.string_at(0)")
    answers = import_torch(environment, text, go=True)
    assert answers.answer("import", "cuda") == "13.0"
    assert (answers.end, answers.unfinished) == ("signal", "kernel")


def test_one_that_sleeps_is_ended_in_time(environment: Environment) -> None:
    """An import that never comes back costs its time and a little more, and is called late."""
    begun = time.monotonic()
    answers = import_torch(environment, "import time; time.sleep(600)", seconds=SHORT)
    assert (answers.end, answers.unfinished) == ("timeout", "import")
    assert time.monotonic() - begun < SHORT + 4.0
    assert answers.how == "did not come back in time"


def test_noise_is_no_answer(environment: Environment) -> None:
    """Megabytes on both outputs, and rubbish among the answers, change nothing."""
    noise = (
        "import sys, os\n"
        "for _ in range(200):\n"
        "    print('{\"end\": \"import\"}' * 1000); print('x' * 20000, file=sys.stderr)\n"
        "os.write(int(sys.argv[-1]), b'\\xff\\xfe not json\\n[1]\\n{}\\n')\n"
    )
    answers = import_torch(environment, noise + TORCH)
    assert answers.answer("import", "version") == "2.9.1+cu130"


def test_a_flood_of_answers_is_cut_off(environment: Environment) -> None:
    """Whoever writes answers without end waits for a reader that has enough, and is ended."""
    text = "import os, sys\nwhile True: os.write(int(sys.argv[-1]), b'x' * 4096)"
    answers = import_torch(environment, text, seconds=SHORT)
    assert answers.end == "timeout"
    assert answers.steps == {}


def test_grandchildren_that_left_the_group_are_killed(
    environment: Environment, tmp_path: Path
) -> None:
    """A process that was forked twice into a session of its own does not outlive the question."""
    note = tmp_path / "pids"
    text = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open({str(note)!r}, "a") as file:
            file.write(str(os.getpid()) + "\\n")
        time.sleep(600)
    os._exit(0)
while not os.path.exists({str(note)!r}) or not open({str(note)!r}).read().endswith("\\n"):
    time.sleep(0.01)
"""
    answers = import_torch(environment, text + TORCH)
    assert answers.answer("import", "version") == "2.9.1+cu130"
    assert gone(int(note.read_text()))


def test_a_mild_fork_bomb_leaves_nothing(environment: Environment, tmp_path: Path) -> None:
    """Sixty processes that fork again until they are killed are all gone afterwards."""
    note = tmp_path / "pids"
    text = f"""
import os, time
for level in range(6):
    os.fork()
    if level == 0 and os.fork() == 0:
        pass
with open({str(note)!r}, "a") as file:
    file.write(str(os.getpid()) + "\\n")
time.sleep(600)
"""
    answers = import_torch(environment, text, seconds=SHORT)
    assert answers.end == "timeout"
    pids = [int(line) for line in note.read_text().split()]
    assert len(pids) > 20
    assert [pid for pid in pids if not gone(pid)] == []


def test_one_that_kills_its_warden_dies_with_it(environment: Environment, tmp_path: Path) -> None:
    """There is no report then, and the program does not go on by itself."""
    note = tmp_path / "pid"
    text = f"""
import os, signal, time
open({str(note)!r}, "w").write(str(os.getpid()))
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(600)
"""
    answers = import_torch(environment, text)
    assert (answers.end, answers.value) == ("not_started", "no report")
    end = time.monotonic() + PATIENT
    while Path(f"/proc/{note.read_text()}").exists() and time.monotonic() < end:
        state = Path(f"/proc/{note.read_text()}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":  # its new parent has not collected it yet
            break
    assert time.monotonic() < end


def test_memory_is_bounded(environment: Environment) -> None:
    """An import that wants 40 GiB of its own gets an error instead of the machine's memory."""
    answers = import_torch(environment, "x = bytearray(40 << 30)")
    assert answers.answer("import", "error") == "MemoryError: "


def test_one_that_takes_memory_is_ended(environment: Environment) -> None:
    """What it really touches counts, as soon as it is more than was allowed."""
    environment.module("torch", "x = []\nwhile True: x.append(b'x' * (1 << 20))")
    answers = ask(environment.python, questions.TORCH, seconds=PATIENT, memory_bytes=200 << 20)
    assert (answers.end, answers.unfinished) == ("memory", "import")
    assert answers.how == "took more memory than it may have here"


def test_large_files_are_not_written(environment: Environment, tmp_path: Path) -> None:
    """Nothing beyond a small temporary file reaches the disk."""
    target = tmp_path / "large"
    text = f"open({str(target)!r}, 'wb').write(bytes(4 << 20))"
    answers = import_torch(environment, text)
    assert str(answers.answer("import", "error")).startswith("OSError: [Errno 27]")
    assert target.stat().st_size <= 1 << 20


def test_it_is_the_first_to_go_when_memory_runs_out(environment: Environment) -> None:
    """The kernel's choice falls on it before anything that ran already."""
    text = "__version__ = open('/proc/self/oom_score_adj').read().strip()\n"
    answers = import_torch(environment, TORCH.replace('__version__ = "2.9.1+cu130"', text))
    assert answers.answer("import", "version") == "1000"


def test_an_exit_in_the_middle_is_no_answer(environment: Environment) -> None:
    """The exit code is known, and the step in which it came."""
    answers = import_torch(environment, "import os; os._exit(3)")
    assert (answers.end, answers.value, answers.unfinished) == ("exit", 3, "import")
    assert answers.how == "ended with exit code 3"


def test_an_interpreter_that_cannot_start(tmp_path: Path) -> None:
    """A file that is no program is named with the kernel's reason."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_bytes(b"\x7fELF nothing of the kind")
    python.chmod(0o755)
    answers = ask(python, questions.CUDART, seconds=PATIENT)
    assert answers.end == "not_started"
    assert "Exec format error" in str(answers.value)


@pytest.mark.parametrize("what", ["absent", "folder", "not executable", "loop"])
def test_what_is_no_interpreter_is_refused(tmp_path: Path, what: str) -> None:
    """Nothing is started where there is no program to start."""
    python = tmp_path / "python"
    if what == "folder":
        python.mkdir()
    elif what == "not executable":
        python.write_text("")
        python.chmod(0o644)
    elif what == "loop":
        python.symlink_to(python)
    answers = ask(python, questions.CUDART, seconds=PATIENT)
    assert answers.end == "refused"
    assert str(python) in str(answers.value)


class TestRoot:
    """Root runs only what nobody else can change."""

    @pytest.fixture
    def owned(self, environment: Environment) -> Environment:
        """An environment whose every part is root's."""
        if os.geteuid() != 0:
            pytest.skip("only root can make files that are root's, or somebody else's")
        return environment

    def test_its_own_is_run(self, owned: Environment) -> None:
        """Nothing speaks against an environment that is root's alone."""
        owned.module("torch", TORCH)
        assert distrusted(owned.python, user=0) is None

    @pytest.mark.parametrize("part", ["bin/python", "bin", ".", "site", "site/torch"])
    def test_of_another_owner_is_refused(self, owned: Environment, part: str) -> None:
        """The link, the folders and each package must be root's; nothing of it is started."""
        owned.module("torch", "raise SystemExit")
        place = Path(str(owned.root / part).replace(f"{owned.root}/site", str(owned.site)))
        os.chown(place, 12345, 12345, follow_symlinks=False)
        answers = ask(owned.python, questions.TORCH, seconds=PATIENT)
        assert answers.end == "refused"
        assert "is not root's, so root does not run it" in str(answers.value)

    def test_what_others_may_write_is_refused(self, owned: Environment) -> None:
        """A folder that everybody may write to is nobody's."""
        owned.site.chmod(0o777)
        assert distrusted(owned.python, user=0) == (
            f"{owned.site} can be changed by others than root, so root does not run it"
        )

    def test_others_run_what_they_like(self, environment: Environment) -> None:
        """An ordinary user can only hurt himself."""
        environment.site.chmod(0o777)
        assert distrusted(environment.python, user=1000) is None


@pytest.mark.parametrize(
    "said", [b"", b"no json", b"[]", b'{"end": "exit"}', b'{"answers": 1, "end": 2}']
)
def test_a_report_that_is_none(said: bytes) -> None:
    """What the warden did not say is not made up."""
    assert understood(said) == Answers(end="not_started", value="no report")
