"""What is the same for every condition: lost readings, idleness, subjects, restarts, events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from spark_watch.detectors.catalogue import CATALOGUE, conditions
from spark_watch.detectors.condition import Condition, Judgement, idle, spoken
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import PARTS, Tick, Timeline
from spark_watch.model import Event, Failure, Gpu, Machine, Memory, Sample, State
from spark_watch.settings.conditions import ConditionSettings
from tests.detectors.timelines import CHARACTERS, GB10, play, squeeze

START = 1e9
OK = Judgement(State.OK, "fine")
INFO = Judgement(State.INFO, "odd")
WARNING = Judgement(State.WARNING, "{what} is bad", {"what": "it"})
CRITICAL = Judgement(State.CRITICAL, "worse")
UNKNOWN = Judgement(State.UNKNOWN, "not enough")
IDLE = idle("Utilisation {ratio:.0f} %.", ratio=3)

Said = Mapping[str, Judgement | None] | None


class Scripted(Condition[Callable[[int], Said]]):
    """Says at every sample what its script says for that sample's number."""

    name = "scripted"
    gotcha = "G4"
    part = "gpus"
    sources = ("nvml",)
    summary = "says what it is told"
    remedies: ClassVar = {
        State.INFO: "look",
        State.WARNING: "do this",
        State.CRITICAL: "do that",
    }

    def __init__(self, settings: Callable[[int], Said]) -> None:
        super().__init__(settings)
        self.count = -1

    def judge(self, tick: Tick) -> Said:
        """Return the next line of the script, or nothing where the sample holds no GPU."""
        self.count += 1
        self.measures = {("count", ()): float(self.count)}
        return None if tick.sample.gpus is None else self.settings(self.count)


class OnGb10(Scripted):
    """The same with numbers for a GB10 alone."""

    name = "on_gb10"
    gb10_only = True


class Enduring(Scripted):
    """The same with a memory that outlives a restart."""

    name = "enduring"
    survives_reboot = True


def always(judgement: Judgement | None, subject: str = "gpu0") -> Callable[[int], Said]:
    """Return the script that says one thing of one subject for ever."""
    return lambda _: {subject: judgement}


def listed(*said: Said) -> Callable[[int], Said]:
    """Return the script that says one thing after the other, then the last for ever."""
    return lambda number: said[min(number, len(said) - 1)]


def at(second: float, **parts: Any) -> Sample:
    """Return a sample with one GPU, or with other parts."""
    parts.setdefault("gpus", (Gpu(index=0),))
    return Sample(t=START + second, **parts)


def lost(second: float, reason: str = "timeout") -> Sample:
    """Return a sample at which NVML was due and failed."""
    return at(second, gpus=None, failed=(Failure(source="nvml", reason=reason),))


def changes(events: list[Event]) -> list[tuple[float, str, str, str]]:
    """Return when, of which subject, from which state and to which."""
    return [
        (event.elapsed_seconds, event.subject, event.from_state.label, event.to_state.label)
        for event in events
    ]


def sentence(judge: Judge) -> str:
    """Return what the one condition says now."""
    (standing,) = judge.standing(START)
    return standing.finding.sentence


# --- a lost reading ------------------------------------------------------------------------------


@pytest.mark.parametrize("judgement", [OK, INFO, WARNING, CRITICAL])
def test_lost_reading_never_clears(judgement: Judgement) -> None:
    """The state holds for 30 s without a reading and then is unknown, whatever it was."""
    character = CHARACTERS[judgement.state]
    samples = [at(n) for n in range(5)] + [lost(n) for n in range(5, 50)]
    states, events = play(Scripted(always(judgement)), samples)
    assert squeeze(states) == f"{character}35 ?15"
    assert changes(events)[-1] == (35.0, "gpu0", judgement.state.label, "unknown")
    assert events[-1].sentence == (
        f"No gpus reading for 31 s (nvml: timeout); the last state was {judgement.state.label}."
    )


def test_lost_reading_at_a_long_interval() -> None:
    """At 60 s a reading is stale after three intervals, not after thirty seconds."""
    samples = [at(60.0 * n) for n in range(5)] + [lost(60.0 * n) for n in range(5, 12)]
    states, _ = play(Scripted(always(WARNING)), samples, interval_seconds=60.0)
    assert squeeze(states) == "w8 ?4"


def test_reading_that_comes_back_speaks_again() -> None:
    """After the loss the next reading gives the state, and both changes are events."""
    samples = [at(0), *(lost(n) for n in range(1, 40)), at(40)]
    states, events = play(Scripted(always(OK)), samples)
    assert squeeze(states) == ".31 ?9 .1"
    assert changes(events) == [
        (0.0, "gpu0", "unknown", "ok"),
        (31.0, "gpu0", "ok", "unknown"),
        (40.0, "gpu0", "unknown", "ok"),
    ]


def test_part_that_was_not_due_is_not_lost() -> None:
    """A part read once a minute leaves the state alone in between, also before its pace is known.

    The header says 1 s and nothing failed, so nothing was lost.
    """
    samples = [at(n) if n % 60 == 0 else at(n, gpus=None, memory=Memory()) for n in range(400)]
    states, events = play(Scripted(always(OK)), samples)
    assert squeeze(states) == ".400"
    assert len(events) == 1


def test_part_that_failed_when_it_was_due_is_lost() -> None:
    """A part read once in ten seconds fails once and stays away: lost, with one failure noted."""
    samples = [at(10.0 * n) for n in range(6)]
    samples += [lost(60), *(at(n, gpus=None) for n in range(61, 100))]
    states, _ = play(Scripted(always(WARNING)), samples, interval_seconds=10.0)
    assert squeeze(states) == "w27 ?19"  # six readings, the loss, 61 to 80 s; the last was at 50


def test_call_that_does_not_come_back_is_a_lost_reading() -> None:
    """A call outstanding is no failure yet, and after 30 s the reading is as lost."""
    samples = [at(0)]
    samples += [at(n, gpus=None, pending={"nvml": float(n)}) for n in range(1, 40)]
    states, events = play(Scripted(always(OK)), samples)
    assert squeeze(states) == ".31 ?9"
    assert "nvml: no_answer_yet" in events[-1].sentence


def test_part_that_stays_away_without_a_word_is_unknown_in_the_end() -> None:
    """Ten minutes without a reading and without a failure: nobody knows any more."""
    samples = [at(0), *(at(n, gpus=None) for n in range(1, 700))]
    states, _ = play(Scripted(always(OK)), samples)
    assert squeeze(states) == ".601 ?99"


def test_value_missing_in_a_part_that_came_is_lost() -> None:
    """The GPUs were read and one value was not: it was due, so 30 s apply."""
    script = listed({"gpu0": WARNING}, {"gpu0": None})
    states, _ = play(Scripted(script), [at(n) for n in range(40)])
    assert squeeze(states) == "w31 ?9"


def test_never_read_is_unknown_with_the_reason() -> None:
    """What was never read is unknown, and the sentence says why."""
    judge = Judge([Scripted(always(OK))], Timeline(machine=GB10))
    judge.update(lost(0, reason="not_supported"))
    assert sentence(judge) == "Cannot be judged: no gpus reading (nvml: not_supported)."
    assert judge.judged == set()


def test_sources_nobody_knows_are_not_remembered() -> None:
    """A recording may name whatever it likes: nothing grows with it."""
    judge = Judge([Scripted(always(OK))], Timeline(machine=GB10))
    for n in range(2000):
        failed = (Failure(source=f"source{n}", reason="timeout"),)
        judge.update(at(n, failed=failed, pending={f"other{n}": 1.0}))
    assert judge._reasons == {}


def test_measures_of_a_lost_reading_go() -> None:
    """A quantity nobody can read any more is not shown any more."""
    script = listed({"gpu0": OK}, {"gpu0": None})
    judge = Judge([Scripted(script)], Timeline(machine=GB10))
    for n in range(32):
        judge.update(at(n))
        present = bool(judge.measures)
        assert present is (n < 31)


# --- a rule that needs load ----------------------------------------------------------------------


def test_unknown_until_judged_under_load_once() -> None:
    """An idle box is not ok, it is unknown, and says that it saw no load."""
    judge = Judge([Scripted(always(IDLE))], Timeline(machine=GB10))
    judge.update(at(0))
    assert sentence(judge) == "Not judged under load since this boot. Utilisation 3 %."
    assert not judge.judged


def test_last_verdict_stands_while_idle_with_its_time() -> None:
    """An ok from under load stands for days of idleness, and the sentence says how old it is."""
    judge = Judge([Scripted(listed({"gpu0": OK}, {"gpu0": IDLE}))], Timeline(machine=GB10))
    said = {}
    for second in (0, 45, 720, 259_200):
        events = judge.update(at(second))
        said[second] = sentence(judge)
        assert len(events) == (second == 0)
    assert said == {
        0: "fine",
        45: "fine Judged under load 45 s ago; no such load since.",
        720: "fine Judged under load 12 min ago; no such load since.",
        259_200: "fine Judged under load 3 d ago; no such load since.",
    }


def test_raised_verdict_is_unknown_after_ten_idle_minutes() -> None:
    """A warning stands for ten idle minutes with its remedy, then nobody knows."""
    judge = Judge([Scripted(listed({"gpu0": WARNING}, {"gpu0": IDLE}))], Timeline(machine=GB10))
    events = [event for n in range(700) for event in judge.update(at(n))]
    assert changes(events) == [
        (0.0, "gpu0", "unknown", "warning"),
        (602.0, "gpu0", "warning", "unknown"),
    ]
    assert events[-1].sentence == (
        "Warning when last under load 10 min ago; not known whether it still is."
    )
    judge.update(at(3601))
    assert sentence(judge).startswith("Warning when last under load 60 min ago;")


def test_load_between_two_idle_times_starts_the_ten_minutes_anew() -> None:
    """A verdict under load is a new one; a rule that cannot say yet is no verdict."""
    script = [{"gpu0": WARNING}] + [{"gpu0": IDLE}] * 500 + [{"gpu0": WARNING}] + [{"gpu0": IDLE}]
    states, _ = play(Scripted(listed(*script)), [at(n) for n in range(1200)])
    assert squeeze(states) == "w1103 ?97"


def test_word_taken_back_under_load_does_not_return_when_idle() -> None:
    """Warning, then "cannot say" under load, then idle: unknown, not the old warning."""
    script = listed({"gpu0": WARNING}, {"gpu0": UNKNOWN}, {"gpu0": IDLE})
    states, _ = play(Scripted(script), [at(n) for n in range(5)])
    assert states == "w????"


def test_ok_stands_through_a_moment_that_was_too_short_to_judge() -> None:
    """Ok, then a load too short for a verdict, then idle: the ok stands again."""
    script = listed({"gpu0": OK}, {"gpu0": UNKNOWN}, {"gpu0": IDLE})
    states, _ = play(Scripted(script), [at(n) for n in range(5)])
    assert states == ".?..."


def test_idle_and_lost_is_lost() -> None:
    """An idle verdict does not outlive the reading that says the GPU is idle."""
    samples = [at(0), at(1), *(lost(n) for n in range(2, 50)), at(50)]
    script = listed({"gpu0": OK}, {"gpu0": IDLE})
    states, _ = play(Scripted(script), samples)
    assert squeeze(states) == ".32 ?19"  # the idle reading that returns knows no verdict


# --- subjects and events -------------------------------------------------------------------------


def test_worst_subject_gives_the_state() -> None:
    """One fine GPU does not hide a bad one, and the finding is the bad one's."""
    judge = Judge([Scripted(lambda _: {"gpu0": OK, "gpu1": CRITICAL})], Timeline(machine=GB10))
    (event,) = judge.update(at(0))
    (standing,) = judge.standing(START)
    assert standing.finding.state is State.CRITICAL
    assert standing.finding.subject == "gpu1"
    assert standing.finding.remedy == "do that"
    assert [one.state for one in standing.subjects] == [State.OK, State.CRITICAL]
    assert (event.subject, event.sentence, event.remedy) == ("gpu1", "worse", "do that")


def test_one_unknown_subject_is_not_ok() -> None:
    """Where one GPU cannot be judged the machine cannot be called fine."""
    states, _ = play(Scripted(lambda _: {"gpu0": OK, "gpu1": UNKNOWN}), [at(0)])
    assert states == "?"


def test_first_unknown_to_anything_is_an_event() -> None:
    """Also to ok; and an unknown that stays unknown is none."""
    _, events = play(Scripted(always(OK)), [at(0), at(1)])
    assert changes(events) == [(0.0, "gpu0", "unknown", "ok")]
    _, events = play(Scripted(always(UNKNOWN)), [at(0), at(1)])
    assert events == []


def test_new_subject_at_the_same_level_is_an_event() -> None:
    """A second GPU that joins says so, although the condition's state does not change."""
    script = listed(
        {"gpu0": WARNING, "gpu1": OK}, {"gpu0": WARNING, "gpu1": WARNING}, {"gpu1": WARNING}
    )
    judge = Judge([Scripted(script)], Timeline(machine=GB10))
    events = [event for n in range(5) for event in judge.update(at(n))]
    assert changes(events) == [
        (0.0, "gpu0", "unknown", "warning"),
        (1.0, "gpu1", "ok", "warning"),
    ]
    (standing,) = judge.standing(START + 4)
    assert standing.changes[State.WARNING] == 1
    assert standing.finding.subject == "gpu1"
    assert standing.finding.since_seconds == START  # of the condition
    assert standing.subjects[0].since_seconds == START + 1  # of the subject


def test_two_subjects_that_rise_at_once_are_two_events() -> None:
    """Neither of two GPUs that turn critical at the same moment is left out."""
    both: Said = {"gpu0": CRITICAL, "gpu1": CRITICAL}
    _, events = play(Scripted(listed({"gpu0": OK, "gpu1": OK}, both)), [at(0), at(1), at(2)])
    assert changes(events)[1:] == [
        (1.0, "gpu0", "ok", "critical"),
        (1.0, "gpu1", "ok", "critical"),
    ]


def test_recovery_is_told_of_the_subject_that_was_bad() -> None:
    """Not of one that was fine all along: whoever keeps a list by subject closes the right one."""
    script = listed({"gpu0": OK, "gpu1": CRITICAL}, {"gpu0": OK, "gpu1": OK})
    _, events = play(Scripted(script), [at(0), at(1)])
    assert changes(events) == [
        (0.0, "gpu1", "unknown", "critical"),
        (1.0, "gpu1", "critical", "ok"),
    ]


def test_subject_that_left_takes_its_state_along() -> None:
    """When the bad subject is gone the others give the state."""
    script = listed({"a/1": WARNING, "b/2": OK}, {"b/2": OK})
    states, _ = play(Scripted(script), [at(0), at(1)])
    assert states == "w."


def test_nothing_to_judge_is_unknown_and_says_so() -> None:
    """A reading that is there and empty is neither ok nor a lost one."""
    judge = Judge([Scripted(listed({"gpu0": OK}, {}))], Timeline(machine=GB10))
    judge.update(at(0))
    judge.update(at(1))
    assert sentence(judge) == "Nothing to judge: the gpus reading is there and empty."


def test_state_is_unknown_since_the_first_sample() -> None:
    """Before the first change "since" is the start of the stream, not 1970."""
    judge = Judge([Scripted(always(UNKNOWN))], Timeline(machine=GB10))
    judge.update(at(0))
    judge.update(at(9))
    (standing,) = judge.standing(START + 9)
    assert standing.finding.since_seconds == START
    assert standing.changed_at_seconds is None


def test_events_carry_both_clocks() -> None:
    """Wall time that goes back is in the event as it was, and elapsed time goes on."""
    judge = Judge([Scripted(listed({"gpu0": OK}, {"gpu0": WARNING}))], Timeline(machine=GB10))
    judge.update(at(0))
    (event,) = judge.update(at(-3600))
    assert (event.at_seconds, event.elapsed_seconds) == (START - 3600, 1.0)
    assert event.sentence == "it is bad"


# --- restart, foreign machine, a rule of ours that fails -----------------------------------------


def boots(*ids: str) -> list[Sample]:
    """Return a sample a second, each of the boot named."""
    return [at(n, boot_id=name) for n, name in enumerate(ids)]


def test_restart_of_the_machine_starts_anew() -> None:
    """After a restart the rule remembers nothing: its script begins again."""
    script = listed({"gpu0": UNKNOWN}, {"gpu0": WARNING})
    states, events = play(Scripted(script), boots("a", "a", "a", "b", "b"))
    assert states == "?ww?w"
    assert changes(events)[1] == (3.0, "gpu0", "warning", "unknown")


def test_verdict_under_load_does_not_outlive_the_boot() -> None:
    """Judged under load in the boot before is not judged under load in this one."""
    script = listed({"gpu0": OK}, {"gpu0": IDLE})
    condition = Scripted(script)
    condition.fresh = lambda: Scripted(always(IDLE))  # type: ignore[method-assign] # after the restart it is idle
    states, _ = play(condition, boots("a", "a", "b", "b"))
    assert states == "..??"


def test_memory_that_outlives_a_restart() -> None:
    """A condition about restarts keeps what it knows across one."""
    script = listed({"host": UNKNOWN}, {"host": WARNING})
    states, _ = play(Enduring(script), boots("a", "a", "b"))
    assert states == "?ww"


def test_foreign_machine_is_not_judged() -> None:
    """GB10 rules are unknown on a discrete card, say what the machine has, and others work."""
    conditions_ = [OnGb10(always(CRITICAL)), Scripted(always(CRITICAL))]
    judge = Judge(conditions_, Timeline(machine=Machine(gpu_name="NVIDIA H200")))
    judge.update(at(0))
    only, other = judge.standing(START)
    assert only.finding.state is State.UNKNOWN
    assert only.finding.sentence == (
        "This rule's numbers hold for a GB10; this machine has NVIDIA H200."
    )
    assert other.finding.state is State.CRITICAL
    assert judge.judged == {"scripted"}


def test_partitioned_gpu_is_foreign() -> None:
    """A part of a GPU is not the machine the numbers were taken on."""
    machine = Machine(gpu_name="NVIDIA GB10", partitioned=True)
    states, _ = play(OnGb10(always(CRITICAL)), [at(0)], machine=machine)
    assert states == "?"


def test_nameless_machine_is_judged_once_its_name_is_known() -> None:
    """Until the driver answers nothing is claimed; the rule was fed all along."""
    samples = [at(0), at(1), at(2, machine=GB10)]
    states, _ = play(OnGb10(always(OK)), samples, machine=None)
    assert states == "??."


def test_rule_that_raises_silences_only_itself() -> None:
    """A bug in one rule is told, turns that rule unknown, and ends when it does."""

    def script(number: int) -> Said:
        if number == 2:
            raise ZeroDivisionError
        return {"gpu0": WARNING}

    good = Enduring(always(OK))
    judge = Judge([Scripted(script), good], Timeline(machine=GB10))
    told = []
    for n in range(6):
        judge.update(at(n))
        first, second = judge.standing(START + n)
        assert second.finding.state is State.OK
        told.append((CHARACTERS[first.finding.state], len(judge.errors)))
        if n == 2:
            assert first.finding.sentence.startswith("The rule failed: ZeroDivisionError()")
    # its script began anew, so that nothing half updated is judged from
    assert told == [("w", 0), ("w", 0), ("?", 1), ("w", 0), ("w", 0), ("?", 1)]


def test_sentence_that_cannot_be_formatted_hides_no_event() -> None:
    """A template that names a missing value is our bug; the change is told all the same."""
    unsayable = Judgement(State.WARNING, "{missing}", {"there": 1})
    judge = Judge([Scripted(always(unsayable))], Timeline())
    (event,) = judge.update(at(0))
    assert event.to_state is State.WARNING
    assert [name for name, _ in judge.errors] == ["scripted"]


# --- the whole catalogue -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.name)
def test_row_of_the_catalogue_is_complete(kind: type[Condition[Any]]) -> None:
    """Every condition has settings under its own name, a part with a pace, and its texts."""
    assert kind.name in ConditionSettings.model_fields
    assert kind.part in (*PARTS, "sample")
    assert kind.gotcha in {"G3", "G4", "G5", "G6", "G10"}
    assert kind.summary
    assert kind.sources or kind.needs == "event"
    assert kind.remedies
    assert all(state >= State.INFO for state in kind.remedies)


def test_names_are_unique() -> None:
    """No two conditions share a name."""
    names = [condition.name for condition in conditions(ConditionSettings())]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (119.0, "119 s"), (120.0, "2 min"), (7199.0, "120 min"), (7200.0, "2 h")],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    """Below two minutes in seconds, below two hours in minutes."""
    assert spoken(seconds) == said
