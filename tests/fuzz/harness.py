"""Plays inputs, says what went wrong, and makes an input that fails short.

inputs                          what an input is, as a value and as a file
words, grammar, java_objects    what the other end may say
sessions                        makes inputs: what is said, and what our side does meanwhile
producer_end, consumer_end      our two ends, what can be done to them, and what must be true of each
oracles                         how that is found out: segments, memory, credit, time
world                           the ends of one input, and what must be true of both together
control_wire                    inputs for the wire between the processes of a cluster
"""

from __future__ import annotations

import signal
import traceback
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.fuzz.inputs import Input, Step
from tests.fuzz.world import play

__all__ = ["Fault", "fault_in", "played", "shrink"]

_WORLD_BYTES = 400_000  # what a world takes that is handed nothing, and more than twice what most inputs need
_ANSWER_BYTES = 2_500  # an error that waits to be fetched
_PYTHON_FACTOR = 60  # a byte of a serialized error may become so many while it is read
MAX_SECONDS = 60  # of the processor; the slowest take less than one
_T = TypeVar("_T", bytes, tuple[Step, ...])


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong: `name` is the same for the same fault of another input, `story` is for a person."""

    name: str
    story: str


def fault_in(given: Input, is_weighed: bool = False) -> Fault | None:
    """Play `given`; what went wrong, if anything did."""
    found = played(given, is_weighed)
    return found if isinstance(found, Fault) else None


def played(given: Input, is_weighed: bool = False) -> Fault | str:
    """Play `given`; if it is to be weighed, no moment of it may take more memory than its bytes explain.

    Returns its verdict, the same whichever engine plays it, unless something went wrong.
    """
    signal.signal(signal.SIGVTALRM, _take_too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    try:
        return _play_weighed(given) if is_weighed else play(given)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault, and is told
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        return Fault(name, "".join(traceback.format_exception(error)))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _take_too_long(_signal: int, _frame: object) -> None:
    raise TimeoutError(f"an input takes more than {MAX_SECONDS} s of the processor")


def _play_weighed(given: Input) -> str:
    tracemalloc.start()
    try:
        verdict = play(given)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    num_answers = sum(int(step[-1]) for step in given.steps if step[1] == "flood")
    # An event's buffer is there as soon as its length is known.
    most = _WORLD_BYTES + _PYTHON_FACTOR * given.num_bytes + given.setup.config.max_event_bytes
    most += num_answers * _ANSWER_BYTES
    assert peak_bytes <= most, f"it took up to {peak_bytes} B, more than {most}"
    return verdict


def shrink(given: Input, has_fault: Callable[[Input], bool]) -> Input:
    """A shorter input that has the fault too: without the steps, and the bytes, that make no difference."""
    shorter = replace(given, steps=_shorter(given.steps, lambda steps: has_fault(replace(given, steps=steps))))
    for number, step in enumerate(shorter.steps):
        for place, part in enumerate(step):
            if isinstance(part, bytes):
                with_part = partial(_with_part, shorter, number, place)
                shorter = with_part(_shorter(part, _after(with_part, has_fault)))
    return shorter


def _with_part(given: Input, number: int, place: int, part: bytes) -> Input:
    """`given` with another argument at `place` of a step."""
    step = given.steps[number]
    changed = (*step[:place], part, *step[place + 1 :])
    return replace(given, steps=(*given.steps[:number], changed, *given.steps[number + 1 :]))


def _after(change: Callable[[bytes], Input], has_fault: Callable[[Input], bool]) -> Callable[[bytes], bool]:
    return lambda data: has_fault(change(data))


def _shorter(whole: _T, is_enough: Callable[[_T], bool]) -> _T:
    """Leave out half of it, if it can be left out, then quarters, down to single members."""
    size = (len(whole) + 1) // 2
    while size:
        start = 0
        while start < len(whole):
            rest = whole[:start] + whole[start + size :]
            if is_enough(rest):
                whole = rest
            else:
                start += size
        size //= 2
    return whole
