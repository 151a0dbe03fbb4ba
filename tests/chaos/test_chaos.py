"""A sample of `make chaos`; that it finds what is broken on purpose, and makes it small."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from refimpl.drivers import recovery
from refimpl.records import Alignment
from refimpl.task.two_phase_sink import TwoPhaseCommitSink
from tests.chaos.command import main, parser, plan_of, run_all, sweep
from tests.chaos.job import batch_run, flights, weather
from tests.chaos.judge import UNALIGNED, judged, shrunk
from tests.chaos.plan import (
    LAST_MARKS,
    MODES,
    ON_PROCESSES,
    PROCESS_MARKS,
    SIMULATED,
    FaultKind,
    Plan,
    PlannedFault,
    drawn,
    drawn_on_processes,
    parsed,
)

ON_EACH_WAY = (
    "kill-taskmanager/0/0@7:ack,pause-taskmanager/1/100@2:complete,cut/0/0@1:start",
    "kill-leader/0/0@2:complete,pause-leader/0/100@1:told",
)
QUIET = Plan(0, (), 20, is_exact=True, num_task_managers=1, delay_ms=0.0, control_delay_ms=0.0)


@pytest.mark.slow
@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 128, 237])
def test_a_run_under_faults_commits_what_the_batch_run_gives(seed: int) -> None:
    print(drawn(seed))
    verdict = judged(drawn(seed))
    assert verdict.fault is None, verdict.story


@pytest.mark.slow
def test_aligned_barriers_do_what_they_did_where_a_seed_has_unaligned_ones_now() -> None:
    verdict = judged(drawn(237).in_mode("exact"))
    assert verdict.fault is None, verdict.story


@pytest.mark.slow
def test_unaligned_checkpoints_are_complete_where_aligned_ones_take_too_long() -> None:
    """Each eighth seed has a slow sink, and is played in both modes under the same faults."""
    plan = drawn(22)
    assert plan.sink_ms
    verdict = judged(plan, check_every=10)
    assert verdict.fault is None, verdict.story
    assert verdict.how == UNALIGNED


@pytest.mark.slow
def test_it_is_seen_when_barriers_do_not_overtake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "alignment_of", lambda _config: Alignment.ALIGNED)
    verdict = judged(replace(drawn(22), faults=()), check_every=0)
    assert verdict.fault == "unaligned ones are not complete either", verdict.story


@pytest.mark.slow
@pytest.mark.parametrize("faults", ON_EACH_WAY)
def test_on_real_processes_too(faults: str) -> None:
    """Each kind of fault once; twenty seeds in `make chaos`."""
    plan = replace(drawn_on_processes(0), faults=parsed(faults), num_records=30)
    verdict = judged(plan)
    assert verdict.fault is None, verdict.story
    assert verdict.has_struck


@pytest.mark.slow
def test_a_fault_behind_any_control_step_or_call_of_the_store_changes_nothing() -> None:
    """Each twentieth of them; all of them in `make chaos`."""
    counts = run_all("step", sweep(every=20), 1)
    assert counts["as the batch run"] == counts.total() >= 20


@pytest.mark.slow
def test_at_least_once_gives_some_lines_too_much_and_exactly_once_none() -> None:
    crashes = tuple(PlannedFault(FaultKind.CRASH, mark="NotifyComplete", number=number) for number in (3, 9))
    surplus = Counter[bool]()
    for seed in range(6):
        for is_exact in (True, False):
            plan = replace(QUIET, seed=seed, faults=crashes, num_records=40, is_exact=is_exact, num_task_managers=2)
            verdict = judged(replace(plan, delay_ms=0.3), check_every=0)
            assert verdict.fault is None, verdict.story
            surplus[is_exact] += verdict.surplus
    assert surplus[True] == 0 < surplus[False]


def test_the_batch_run_is_what_arithmetic_says(tmp_path: Path) -> None:
    """Of the pairs, which depend on the order the most: each flight with each weather of its key and bucket."""
    lines = batch_run(tmp_path / "flights", 30)
    met = [
        f"met pair {key} {number} {other}"
        for key, number, time_ms in flights(30)
        for other_key, other, other_ms in map(weather, range(30))
        if key == other_key and time_ms // 20 == other_ms // 20
    ]
    assert sorted(met) == [line for line in lines if line.startswith("met pair")]
    in_windows = sum(int(line.split()[-2]) for line in lines if line.startswith("sliding"))
    assert in_windows == 30 * 2
    assert sum(int(line.split()[-2]) for line in lines if line.startswith("session")) == 30


# -- plans -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(50))
def test_what_is_printed_of_a_plan_is_read_again(seed: int) -> None:
    plan = drawn(seed)
    assert parsed(",".join(map(str, plan.faults))) == plan.faults
    assert drawn(seed) == plan
    for changed in (plan, plan.in_mode("unaligned"), replace(plan, sink_ms=2.5)):
        words = str(changed).removeprefix("python -m tests.chaos ").split()
        assert plan_of(parser().parse_args(words)) == changed


def test_the_seeds_draw_every_fault_by_time_and_by_event() -> None:
    plans = [drawn(seed) for seed in range(200)]
    faults = [fault for plan in plans for fault in plan.faults]
    assert Counter(plan.mode for plan in plans) == {"exact": 100, "at-least-once": 50, "unaligned": 50}
    assert sum(plan.sink_ms > 0 for plan in plans) == 25
    for kind in SIMULATED:
        assert {bool(each.mark) for each in faults if each.kind is kind} == {True, False}, kind


def test_the_seeds_for_processes_draw_every_fault_at_every_event() -> None:
    plans = [drawn_on_processes(seed) for seed in range(200)]
    faults = [fault for plan in plans for fault in plan.faults]
    assert {each.kind for each in faults} == set(ON_PROCESSES)
    assert {each.mark for each in faults} == {*PROCESS_MARKS, *LAST_MARKS}
    assert {plan.mode for plan in plans} == set(MODES)
    for plan in plans[:20]:
        words = str(plan).removeprefix("python -m tests.chaos ").split()
        assert plan_of(parser().parse_args(words)) == plan
        changed = replace(plan, faults=plan.faults[:1], num_records=7)
        words = shlex.split(str(changed).removeprefix("python -m tests.chaos "))
        assert plan_of(parser().parse_args(words)) == changed


@pytest.mark.parametrize("text", ["cut", "cut/0/0", "cut/0/0@x", "flood/0/0@ms:1", "cut/-1/0@ms:1"])
def test_what_is_no_fault_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no fault|not a valid"):
        parsed(text)
    with pytest.raises(SystemExit) as exit_info:
        main(["--seed", "1", "--faults", text])
    assert exit_info.value.code == 2


# -- broken on purpose -----------------------------------------------------------------------------


def forget_what_was_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that begins again without what its state says, so what was pending is lost."""
    restore = TwoPhaseCommitSink.restore
    monkeypatch.setattr(TwoPhaseCommitSink, "restore", lambda self, _states=(): restore(self))


@pytest.mark.slow
def test_a_planted_bug_is_found_and_made_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = replace(
        QUIET,
        faults=parsed("delay-message/0/9@2:Trigger,kill-leader/0/0@1:_metadata,put-slow/0/7@ms:3"),
        num_task_managers=2,
        delay_ms=0.3,
        control_delay_ms=3.0,
    )
    assert judged(plan, check_every=0).fault is None
    forget_what_was_pending(monkeypatch)
    fault = judged(plan, check_every=0).fault
    assert fault == "not the batch run"
    small = shrunk(plan, lambda other: judged(other, check_every=0).fault == fault)
    assert [each.kind for each in small.faults] == [FaultKind.KILL_LEADER]
    assert (small.delay_ms, small.num_task_managers) == (0.0, 1)
    assert small.num_records < 20
    words = str(small).removeprefix("python -m tests.chaos ")
    assert main([*(word.strip("'") for word in words.split()), "--check-every", "0"]) == 1
    assert fault in capsys.readouterr().out
    monkeypatch.undo()
    assert judged(small, check_every=0).fault is None


def test_shrinking_takes_what_makes_no_difference() -> None:
    plan = replace(drawn(0), faults=tuple(PlannedFault(kind, 0, 8) for kind in FaultKind), num_records=50)
    random = Random(3)
    needed = set(random.sample(list(FaultKind), 2))
    print(needed)

    def is_wrong(other: Plan) -> bool:
        return needed <= {each.kind for each in other.faults} and other.num_records >= 7

    small = shrunk(plan, is_wrong)
    assert {each.kind for each in small.faults} == needed
    assert [each.amount for each in small.faults] == [0, 0]
    assert (small.num_records, small.delay_ms, small.control_delay_ms, small.num_task_managers) == (7, 0.0, 0.0, 1)
