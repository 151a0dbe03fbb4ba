"""Whether what a run has committed is right, and the smallest plan that still goes wrong.

exactly once     the committed lines, sorted, are those of the batch run
at least once    none is missing, and none counts too little; what is too much is counted
gone back        behind a checkpoint whose results were committed, since the newer one was damaged: at least once
failed           with none sound of the checkpoints that somebody has damaged: nothing twice, nothing made up
a slow sink      aligned checkpoints take too long, and where they do, unaligned ones are complete
"""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from refimpl.errors import RestoreRefusedError
from tests.chaos.job import batch_run
from tests.chaos.plan import FaultKind, Plan
from tests.chaos.processes import ProcessWorld
from tests.chaos.world import Outcome, World

__all__ = ["UNALIGNED", "Verdict", "judged", "shrunk"]

UNALIGNED = "unaligned complete where aligned took too long"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a run: `fault` names what is wrong, `story` tells it; `surplus` are lines that are too much."""

    fault: str | None
    story: str
    surplus: int = 0
    how: str = "as the batch run"
    has_struck: bool = False


@cache
def expected(num_records: int) -> tuple[str, ...]:
    """The lines of the batch run."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(batch_run(Path(folder) / "flights", num_records))


def judged(plan: Plan, check_every: int = 1) -> Verdict:
    """Play a plan and look at what comes of it; no error goes out. One with a slow sink is played in two modes."""
    if not plan.sink_ms:
        return _played(plan, check_every)[0]
    aligned, unaligned = (_played(plan.in_mode(mode), check_every) for mode in ("exact", "unaligned"))
    for mode, (verdict, outcome) in (("aligned", aligned), ("unaligned", unaligned)):
        if verdict.fault is not None or outcome is None or outcome.failure is not None:
            return replace(verdict, story=f"{mode}: {verdict.story}")
    return _compared(aligned[1], unaligned[1])


def _compared(aligned: Outcome | None, unaligned: Outcome | None) -> Verdict:
    """Whether barriers that overtake were worth it, of two runs that were right."""
    assert aligned is not None
    assert unaligned is not None
    story = "; ".join(
        f"{mode}: {outcome.num_completed} complete, {outcome.num_expired} took too long, what struck: "
        f"{', '.join(outcome.struck) or 'nothing'}"
        for mode, outcome in (("aligned", aligned), ("unaligned", unaligned))
    )
    if not aligned.num_expired:
        return Verdict("no aligned checkpoint took too long", story)
    is_better = unaligned.num_completed > aligned.num_completed and unaligned.num_expired <= aligned.num_expired
    return Verdict(None if is_better else "unaligned ones are not complete either", story, how=UNALIGNED)


def _played(plan: Plan, check_every: int) -> tuple[Verdict, Outcome | None]:
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        world = ProcessWorld(plan, at) if plan.is_on_processes else World(plan, at, check_every)
        try:
            outcome = world.run()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault, and is told
            place = traceback.extract_tb(error.__traceback__)[-1]
            name = f"{type(error).__name__} in {Path(place.filename).name}, {place.name}"
            return Verdict(name, "".join(traceback.format_exception(error))), None
    return _verdict(plan, outcome), outcome


def _verdict(plan: Plan, outcome: Outcome) -> Verdict:
    wanted, got = Counter(expected(plan.num_records)), Counter(outcome.lines)
    surplus, missing = (got - wanted).total(), (wanted - got).total()
    story = f"{missing} lines are missing, {surplus} too much; what struck: {'; '.join(outcome.struck) or 'nothing'}"
    is_damaged = any(FaultKind.CORRUPT.value in each for each in outcome.struck)
    if outcome.failure is not None:
        is_right = (
            isinstance(outcome.failure, RestoreRefusedError) and is_damaged and (not surplus or not plan.is_exact)
        )
        return Verdict(None if is_right else f"failed: {type(outcome.failure).__name__}", story, how="refused")
    if not plan.is_exact:
        return Verdict("a line is missing" if _too_little(wanted, got) else None, story, surplus, "at least once")
    if outcome.went_behind_what_was_told and is_damaged:
        return Verdict("a line is missing" if missing else None, story, surplus, "gone back")
    if outcome.went_behind_what_was_told:
        return Verdict("it went behind what was told, and nothing was damaged", story, surplus)
    fault = "not the batch run" if surplus or missing else None
    return Verdict(fault, story, has_struck=bool(outcome.struck))


def _too_little(wanted: Counter[str], got: Counter[str]) -> bool:
    """Whether a pair is missing, or a window, or one counts less than it should."""
    most = dict[str, int]()
    for line in got:
        words, count = _counted(line)
        most[words] = max(count, most.get(words, 0))
    return any(most.get(words, -1) < count for words, count in map(_counted, wanted))


def _counted(line: str) -> tuple[str, int]:
    """What a line is about, and how many records it has counted."""
    words = line.split()
    if words[:2] == ["met", "pair"]:
        return line, 0
    return " ".join(words[:-2]), int(words[-1]) + int(words[-2]) if words[0] == "met" else int(words[-2])


def shrunk(plan: Plan, is_wrong: Callable[[Plan], bool]) -> Plan:
    """A plan that is wrong too, with less in it: first without faults, then without delays, then without records."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(plan):
            if is_wrong(smaller):
                plan, is_smaller = smaller, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    for number in range(len(plan.faults)):
        yield replace(plan, faults=plan.faults[:number] + plan.faults[number + 1 :])
    if plan.delay_ms:
        yield replace(plan, delay_ms=0.0)
    if plan.control_delay_ms:
        yield replace(plan, control_delay_ms=0.0)
    for number, fault in enumerate(plan.faults):
        if fault.amount:
            simpler = replace(fault, amount=fault.amount // 2)
            yield replace(plan, faults=(*plan.faults[:number], simpler, *plan.faults[number + 1 :]))
    if plan.num_task_managers > 1:
        yield replace(plan, num_task_managers=plan.num_task_managers - 1)
    if plan.num_records > 1:
        yield replace(plan, num_records=plan.num_records // 2)
        yield replace(plan, num_records=plan.num_records - 1)
