"""A sample of `make chaos`; that it finds what is broken on purpose, and makes it small."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from refimpl.task.two_phase_sink import TwoPhaseCommitSink
from tests.chaos.command import main, run_all, sweep
from tests.chaos.job import batch_run, flights, weather
from tests.chaos.judge import judged, shrunk
from tests.chaos.plan import FaultKind, Plan, PlannedFault, drawn, parsed

QUIET = Plan(0, (), 20, is_exact=True, num_task_managers=1, delay_ms=0.0, control_delay_ms=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 128, 237])
def test_a_run_under_faults_commits_what_the_batch_run_gives(seed: int) -> None:
    print(drawn(seed))
    verdict = judged(drawn(seed))
    assert verdict.fault is None, verdict.story


@pytest.mark.slow
def test_a_fault_behind_any_control_step_changes_nothing() -> None:
    """Each twentieth step; all of them in `make chaos`."""
    counts = run_all(sweep(every=20), 1)
    assert counts["as the batch run"] == counts.total() >= 10


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


def test_the_seeds_draw_every_fault_by_time_and_by_event() -> None:
    faults = [fault for seed in range(200) for fault in drawn(seed).faults]
    for kind in FaultKind:
        assert {bool(each.mark) for each in faults if each.kind is kind} == {True, False}, kind


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
