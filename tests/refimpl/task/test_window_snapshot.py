"""Windows in the middle of their work, as bytes, and as windows again: in one subtask or in several."""

from __future__ import annotations

import random

import pytest

from refimpl.errors import LocalUsageError
from refimpl.producer.key_groups import key_group_of, key_group_range
from refimpl.records import StreamRecord, Watermark
from refimpl.records.types import INT, LONG
from refimpl.state import PICKLE, MemoryStore, OperatorPlan, OperatorRecord, SubtaskState, assign, read_share
from refimpl.task import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    OperatorContext,
    OutputTag,
    PurgingTrigger,
    SessionWindows,
    SlidingWindows,
    Trigger,
    TumblingWindows,
    WindowAssigner,
    WindowOperator,
)

MAX = 16
KINDS: dict[str, tuple[WindowAssigner, Trigger | None, int]] = {
    "tumbling": (TumblingWindows(10), None, 5),
    "sliding": (SlidingWindows(10, 3), None, 0),
    "session": (SessionWindows(4), None, 6),
    "counting": (SessionWindows(4), CountTrigger(3), 0),
    "continuous": (TumblingWindows(30), PurgingTrigger(ContinuousEventTimeTrigger(4)), 0),
}


class Numbers:
    """The numbers of a window, as a set."""

    accumulator_type = PICKLE

    def create_accumulator(self) -> set[int]:
        return set()

    def add(self, value: tuple[int, int], accumulator: set[int]) -> set[int]:
        return accumulator | {value[1]}

    def get_result(self, accumulator: set[int]) -> object:
        return tuple(sorted(accumulator))

    def merge(self, accumulator: set[int], other: set[int]) -> set[int]:
        return accumulator | other


class Subtask:
    """A window operator of one subtask, and what it sends."""

    def __init__(self, kind: str, index: int = 0, parallelism: int = 1) -> None:
        windows, trigger, lateness = KINDS[kind]
        self.index, self.parallelism = index, parallelism
        self.operator = WindowOperator(lambda value: value[0], windows, Numbers(), trigger, lateness, INT)
        self.sent: list[object] = []
        self.operator.setup(OperatorContext("windows", index, parallelism, MAX), self)

    @property
    def key_groups(self) -> range:
        return key_group_range(self.index, MAX, self.parallelism)

    def take(self, event: StreamRecord | Watermark) -> None:
        if isinstance(event, Watermark):
            self.operator.process_watermark(event)
        elif key_group_of(event.value[0], MAX, INT) in self.key_groups:
            self.operator.process(event)

    def collect(self, record: StreamRecord) -> None:
        self.sent.append((record.value, record.timestamp))

    def collect_side(self, _tag: OutputTag, record: StreamRecord) -> None:
        self.sent.append(("late", record.value, record.timestamp))

    def emit_watermark(self, watermark: Watermark) -> None: ...


def events(seed: int) -> list[StreamRecord | Watermark]:
    draw = random.Random(seed)
    found: list[StreamRecord | Watermark] = []
    for moment in range(60):
        found.append(StreamRecord((draw.randrange(-4, 4), moment), max(0, moment - draw.randrange(12))))
        if draw.random() < 0.3:
            found.append(Watermark(moment - 6))
    return [*found, Watermark(1000)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_the_second_half_is_as_if_nothing_had_happened(kind: str, before: int, after: int, seed: int) -> None:
    print(f"seed {seed}")
    first, second = events(seed)[:40], events(seed)[40:]
    whole = Subtask(kind)
    old = [Subtask(kind, index, before) for index in range(before)]
    for event in first:
        for subtask in [whole, *old]:
            subtask.take(event)
    store, files, states = MemoryStore(), [], {}
    for subtask in old:
        sections = subtask.operator.states.snapshot("w", subtask.key_groups, MAX)
        state = SubtaskState.of(f"chk-1/w-{subtask.index}-0.state", sections)
        store.put(state.file.key, state.parts)
        files.append(state.file)
        states |= dict.fromkeys(state.states.get("w", ()))
    record = OperatorRecord("w", "WindowOperator", MAX, before, tuple(states), tuple(files))
    new = [Subtask(kind, index, after) for index in range(after)]
    for subtask, share in zip(new, assign([record], [OperatorPlan("w", MAX, after)])["w"], strict=True):
        subtask.operator.states.restore(read_share(store, "w", share, trust_pickle=True))
        # The watermark is in no state; it comes again before anything else.
        subtask.take(Watermark(whole.operator.current_watermark))
    whole.sent.clear()
    for event in second:
        for subtask in [whole, *new]:
            subtask.take(event)
    assert sorted(map(repr, (each for subtask in new for each in subtask.sent))) == sorted(map(repr, whole.sent))
    assert whole.sent


def test_accumulators_without_a_type_are_any_and_say_which_ones_cannot_be() -> None:
    numbers = Numbers()
    numbers.accumulator_type = LONG
    operator = WindowOperator(lambda value: value[0], TumblingWindows(10), numbers)
    operator.setup(OperatorContext("windows", 0, 1, MAX), Subtask("tumbling"))
    operator.process(StreamRecord((1, 2), 3))
    with pytest.raises(LocalUsageError, match=r"the state 'window-contents' cannot be written: \{2\} is not a long"):
        operator.states.snapshot("w", range(MAX), MAX)
