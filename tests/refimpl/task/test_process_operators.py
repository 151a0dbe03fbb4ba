"""Process functions: each value with its key and time, timers in timers, side outputs, and what is refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from refimpl.errors import UserCodeError
from refimpl.records import MAX_WATERMARK, STRING, LatencyMarker, StreamRecord, StreamStatus, Watermark
from refimpl.state import KeyGroupedBytes, RestoredStates, SectionKind
from refimpl.task import (
    BroadcastProcessFunction,
    BroadcastProcessOperator,
    CoProcessFunction,
    CoProcessOperator,
    KeyedBroadcastProcessFunction,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessFunction,
    KeyedCoProcessOperator,
    KeyedProcessFunction,
    KeyedProcessOperator,
    MapStateDescriptor,
    OperatorContext,
    OutputTag,
    ProcessContext,
    ProcessFunction,
    ProcessOperator,
    TimeDomain,
    TwoInputOperator,
)

ODD = OutputTag("odd")
RULES = MapStateDescriptor("rules")


def first(value: tuple[Any, ...]) -> Any:
    return value[0]


class Bench:
    """An operator, open, and all it sends: records, watermarks, and side outputs with their tags."""

    def __init__(self, operator: Any, restored: RestoredStates | None = None) -> None:
        self.operator = operator
        self.sent: list[Any] = []
        operator.setup(OperatorContext("made", 1, 2, 128), self)
        if restored is not None:
            operator.states.restore(restored)
        operator.open()

    def told(self, side: int, value: object, timestamp: int | None = None) -> list[Any]:
        """What a value of an input brings out; of an operator with one input, `side` is 0."""
        self.sent.clear()
        record = StreamRecord(value, timestamp)
        if isinstance(self.operator, TwoInputOperator):
            self.operator.process_from(side, record)
        else:
            self.operator.process(record)
        return list(self.sent)

    def advance(self, timestamp: int) -> list[Any]:
        """What a watermark brings out."""
        self.sent.clear()
        self.operator.process_watermark(Watermark(timestamp))
        return list(self.sent)

    def collect(self, record: StreamRecord) -> None:
        self.sent.append((record.value, record.timestamp))

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        self.sent.append((tag.name, record.value, record.timestamp))

    def emit_watermark(self, watermark: Watermark) -> None:
        self.sent.append(watermark)

    def emit_status(self, status: StreamStatus) -> None: ...

    def emit_latency_marker(self, marker: LatencyMarker) -> None: ...


# -- one input ---------------------------------------------------------------------------------------


class Halves(ProcessFunction):
    """Even numbers halved; odd ones to the side, as they are."""

    def process_element(self, value: int, ctx: ProcessContext) -> list[object] | None:
        if value % 2:
            ctx.output(ODD, value)
            return None
        return [value // 2, ctx.timestamp]


def test_results_and_side_outputs_have_the_time_of_the_value() -> None:
    bench = Bench(ProcessOperator(Halves()))
    assert bench.told(0, 8, 5) == [(4, 5), (5, 5)]
    assert bench.told(0, 7, 6) == [("odd", 7, 6)]
    assert bench.told(0, 6) == [(3, None), (None, None)]


class Sums(KeyedProcessFunction):
    """Adds up by key; tells the sum ten ms after the first value of a key, and begins anew."""

    def open(self, context: Any) -> None:
        self.total = context.reducing_state("total", lambda a, b: a + b)
        self.name = context.name, context.subtask, context.parallelism

    def process_element(self, value: tuple[str, int], ctx: ProcessContext) -> None:
        assert ctx.timestamp is not None
        if self.total.get() is None:
            ctx.timers.register_event_time_timer(ctx.timestamp + 10)
        self.total.add(value[1])

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> Iterator[object]:
        assert ctx.time_domain is TimeDomain.EVENT_TIME
        yield ctx.current_key, self.total.get(), timestamp, ctx.timers.current_watermark
        ctx.output(ODD, "side")
        self.total.clear()


def test_a_timer_has_its_key_and_its_state_and_fires_before_the_watermark_goes_on() -> None:
    bench = Bench(KeyedProcessOperator(Sums(), first))
    for value, timestamp in ((("a", 1), 1), (("b", 10), 2), (("a", 2), 3)):
        assert bench.told(0, value, timestamp) == []
    assert bench.advance(10) == [Watermark(10)]
    assert bench.advance(30) == [
        (("a", 3, 11, 30), 11), ("odd", "side", 11), (("b", 10, 12, 30), 12), ("odd", "side", 12), Watermark(30),
    ]  # fmt: skip
    assert bench.advance(99) == [Watermark(99)]
    assert bench.operator.user_function.name == ("made", 1, 2)


def test_keys_are_equal_if_they_are_in_java() -> None:
    bench = Bench(KeyedProcessOperator(Sums(), first))
    for key in (1, 1.0, True):
        bench.told(0, (key, 1), 1)
    fired = [each for each in times(bench.advance(50)) if isinstance(each, tuple)]
    assert [(type(key), count) for key, count, *_ in fired] == [(int, 1), (float, 1), (bool, 1)]


class Chain(KeyedProcessFunction):
    """Sets timers in timers: each of three sets the next one, `step` later; notes them all."""

    def __init__(self, step: int) -> None:
        self.step = step

    def process_element(self, value: tuple[str, int], ctx: ProcessContext) -> None:
        ctx.timers.register_event_time_timer(value[1])
        ctx.timers.register_event_time_timer(value[1])  # equal ones are one

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> Iterator[object]:
        yield ctx.current_key, timestamp
        if timestamp < 30:
            ctx.timers.register_event_time_timer(timestamp + self.step)


def times(sent: list[Any]) -> list[Any]:
    return [each if isinstance(each, Watermark) else each[0] for each in sent]


def test_a_timer_set_in_a_timer_fires_in_the_same_advance_if_it_is_due() -> None:
    """Flink: `InternalTimerServiceImplTest#testTimerChaining`."""
    bench = Bench(KeyedProcessOperator(Chain(10), first))
    bench.told(0, ("a", 5), 0)
    assert times(bench.advance(26)) == [("a", 5), ("a", 15), ("a", 25), Watermark(26)]
    assert times(bench.advance(50)) == [("a", 35), Watermark(50)]


def test_a_timer_for_the_past_fires_with_the_next_advance_and_not_before() -> None:
    bench = Bench(KeyedProcessOperator(Chain(100), first))
    bench.advance(20)
    assert bench.told(0, ("a", 5), 25) == []
    assert times(bench.advance(21)) == [("a", 5), Watermark(21)]


class Alarms(KeyedProcessFunction):
    """`set` sets a timer at 10, anything else deletes it."""

    def process_element(self, value: tuple[str, str], ctx: ProcessContext) -> None:
        timers = ctx.timers
        (timers.register_event_time_timer if value[1] == "set" else timers.delete_event_time_timer)(10)

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> list[object]:
        return [ctx.current_key]


def test_a_deleted_timer_does_not_fire_and_only_that_of_its_key_is_deleted() -> None:
    bench = Bench(KeyedProcessOperator(Alarms(), first))
    for value in (
        ("a", "set"),
        ("b", "set"),
        ("b", "delete"),
        ("c", "delete"),
        ("d", "set"),
        ("d", "delete"),
        ("d", "set"),
    ):
        bench.told(0, value, 1)
    assert times(bench.advance(MAX_WATERMARK.timestamp)) == ["a", "d", MAX_WATERMARK]


class Clocked(KeyedProcessFunction):
    """Sets timers of processing time: ten ms from now, or deletes what there is at 15."""

    def process_element(self, value: tuple[str, str], ctx: ProcessContext) -> list[object]:
        timers = ctx.timers
        if value[1] == "set":
            timers.register_processing_time_timer(timers.current_processing_time + 10)
        else:
            timers.delete_processing_time_timer(15)
        return [timers.current_processing_time]

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> Iterator[object]:
        yield ctx.current_key, timestamp, ctx.time_domain
        ctx.output(ODD, "side")
        if timestamp < 30:
            ctx.timers.register_processing_time_timer(timestamp + 10)


def test_a_timer_of_processing_time_fires_when_it_is_told_what_time_it_is() -> None:
    """Its results have no event time; a side output has the timer's, as in Flink's KeyedProcessOperator."""
    bench = Bench(KeyedProcessOperator(Clocked(), first))
    time = bench.operator.context.time
    time.advance(5)
    for value in (("a", "set"), ("b", "set"), ("b", "delete")):
        assert bench.told(0, value, 1) == [(5, 1)]
    bench.sent.clear()
    assert bench.advance(99) == [Watermark(99)]
    bench.sent.clear()
    for now_ms, fired in ((14, []), (15, [15]), (36, [25, 35])):
        time.advance(now_ms)
        bench.sent.clear()
        time.fire_due()
        domain = TimeDomain.PROCESSING_TIME
        assert bench.sent == [each for at in fired for each in ((("a", at, domain), None), ("odd", "side", at))]
    assert time.next_deadline is None


def test_a_checkpoint_brings_back_state_and_timers_of_both_kinds() -> None:
    """Of each key: written by one operator, and read by another before it is opened."""

    class Both(Sums):
        def process_element(self, value: tuple[str, int], ctx: ProcessContext) -> None:
            super().process_element(value, ctx)
            ctx.timers.register_processing_time_timer(70)

        def on_timer(self, timestamp: int, ctx: ProcessContext) -> Iterator[object]:
            yield ctx.current_key, timestamp, self.total.get()

    one, other = (KeyedProcessOperator(Both(), first, STRING) for _ in range(2))
    bench = Bench(one)
    bench.told(0, ("a", 1), 1)
    bench.told(0, ("b", 2), 2)
    bench.told(0, ("a", 5), 3)
    key_groups = range(128)
    sections = one.states.snapshot("op", key_groups, 128)
    keyed, timers = defaultdict[str, list[KeyGroupedBytes]](list), defaultdict[str, list[KeyGroupedBytes]](list)
    for section in sections:
        pieces = KeyGroupedBytes.from_bytes(section.raw, "file")
        (keyed if section.kind is SectionKind.KEYED else timers)[section.name].append(pieces)
    again = Bench(other, RestoredStates(keyed, timers, {}, trust_pickle=True))
    assert again.advance(50) == [(("a", 11, 6), 11), (("b", 12, 2), 12), Watermark(50)]
    again.sent.clear()
    other.context.time.advance(70)
    other.context.time.fire_due()
    assert sorted(again.sent) == [(("a", 70, 6), None), (("b", 70, 2), None)]  # by key group, not as registered


# -- two inputs --------------------------------------------------------------------------------------


class Sides(CoProcessFunction):
    def process_element1(self, value: object, _ctx: ProcessContext) -> list[object]:
        return ["first", value]

    def process_element2(self, value: object, ctx: ProcessContext) -> None:
        ctx.output(ODD, value)


def test_each_input_has_its_method() -> None:
    bench = Bench(CoProcessOperator(Sides()))
    assert bench.told(0, 1, 3) == [("first", 3), (1, 3)]
    assert bench.told(1, 2, 4) == [("odd", 2, 4)]


class Orders(KeyedCoProcessFunction):
    """An order (first input) and its payment (second) are one result; an order that nobody pays goes to the side."""

    def open(self, context: Any) -> None:
        self.order = context.value_state("order")

    def process_element1(self, value: tuple[str, int], ctx: ProcessContext) -> None:
        self.order.update(value[1])
        ctx.timers.register_event_time_timer((ctx.timestamp or 0) + 10)

    def process_element2(self, value: tuple[int, str], _ctx: ProcessContext) -> Iterator[object]:
        if (order := self.order.value()) is not None:
            yield value[1], order, value[0]
            self.order.clear()

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> None:
        if self.order.value() is not None:
            ctx.output(ODD, (ctx.current_key, timestamp))


def test_state_and_timers_of_a_key_are_the_same_for_both_inputs() -> None:
    bench = Bench(KeyedCoProcessOperator(Orders(), (first, lambda value: value[1])))
    bench.told(0, ("a", 1), 0)
    bench.told(0, ("b", 2), 0)
    assert bench.told(1, (70, "b"), 5) == [(("b", 2, 70), 5)]
    assert bench.advance(10) == [("odd", ("a", 10), 10), Watermark(10)]


# -- broadcast ---------------------------------------------------------------------------------------


class Rules(BroadcastProcessFunction):
    def process_element(self, value: str, ctx: ProcessContext) -> list[object]:
        return [ctx.broadcast_state(RULES).get(value)]

    def process_broadcast_element(self, value: tuple[str, Any], ctx: ProcessContext) -> None:
        state = ctx.broadcast_state(RULES)
        state.put(*value) if value[1] is not None else state.remove(value[0])


def test_what_is_broadcast_is_seen_by_the_other_side() -> None:
    bench = Bench(BroadcastProcessOperator(Rules(), [RULES]))
    assert bench.told(0, "a") == [(None, None)]
    bench.told(1, ("a", 7))
    assert bench.told(0, "a", 3) == [(7, 3)]
    bench.told(1, ("a", None))
    assert bench.told(0, "a") == [(None, None)]


class Writes(BroadcastProcessFunction):
    """Keeps the state it is given, and writes to it from the wrong side."""

    kept: Any = None

    def process_element(self, value: str, ctx: ProcessContext) -> None:
        (self.kept or ctx.broadcast_state(RULES)).put(value, 1)

    def process_broadcast_element(self, _value: object, ctx: ProcessContext) -> None:
        self.kept = ctx.broadcast_state(RULES)
        self.kept.put("x", 1)


@pytest.mark.parametrize("is_kept", [False, True])
def test_to_write_broadcast_state_from_the_other_side_fails_at_once(is_kept: bool) -> None:
    bench = Bench(BroadcastProcessOperator(Writes(), [RULES]))
    if is_kept:
        bench.told(1, "kept")
    with pytest.raises(
        UserCodeError, match=r"made, subtask 1, .* put\('v', …\) on broadcast state 'rules' from the side"
    ):
        bench.told(0, "v")


class Limits(KeyedBroadcastProcessFunction):
    """Counts by key; a broadcast number lowers all counts, and tells them."""

    def open(self, context: Any) -> None:
        self.count = context.value_state("count")

    def process_element(self, value: tuple[str], ctx: ProcessContext) -> None:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timers.register_event_time_timer(10)

    def process_broadcast_element(self, value: Any, ctx: ProcessContext) -> list[object]:
        if value == "read":
            self.count.value()
        if value == "timer":
            ctx.timers.register_event_time_timer(1)
        if value == "key":
            return [ctx.current_key]
        found: list[object] = []

        def lower(key: str, count: Any) -> None:
            found.append((key, count.value()))
            count.update(count.value() - value)

        ctx.for_each_key(self.count, lower)
        return found

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> list[object]:
        return [(ctx.current_key, self.count.value())]


def test_a_broadcast_value_reaches_the_state_of_each_key() -> None:
    """Flink: `CoBroadcastWithKeyedOperatorTest#testFunctionWithBroadcastState`."""
    bench = Bench(KeyedBroadcastProcessOperator(Limits(), [RULES], first))
    for key in "aab":
        bench.told(0, (key,))
    assert times(bench.told(1, 1)) == [("a", 2), ("b", 1)]
    assert times(bench.advance(10)) == [("a", 1), ("b", 0), Watermark(10)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [("read", "where there is no key"), ("timer", "a timer is of a key"), ("key", "where there is no key")],
)
def test_a_broadcast_value_has_no_key(asked: str, said: str) -> None:
    bench = Bench(KeyedBroadcastProcessOperator(Limits(), [RULES], first))
    bench.told(0, ("a",))
    with pytest.raises(UserCodeError, match=said):
        bench.told(1, asked)


# -- what is refused ---------------------------------------------------------------------------------


class Asks(ProcessFunction):
    """Asks the context for what it is told."""

    def process_element(self, value: Any, ctx: ProcessContext) -> Any:
        return value(ctx)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda ctx: ctx.timers.register_event_time_timer(1), "made cannot set timers: its stream has no keys"),
        (lambda ctx: ctx.current_key, "made knows no keys: use key_by before it"),
        (lambda ctx: ctx.broadcast_state(RULES), "made has no broadcast state"),
        (lambda _ctx: 7, "answers an iterable of results or None, not 7"),
        (lambda ctx: ctx.for_each_key(None, print), "for_each_key is for process_broadcast_element"),
        (lambda ctx: (1 // 0 for _ in "x"), "ZeroDivisionError"),
    ],
)  # fmt: skip
def test_what_there_is_not_is_refused_with_the_operators_name(asked: Any, said: str) -> None:
    with pytest.raises(UserCodeError, match=said) as raised:
        Bench(ProcessOperator(Asks())).told(0, asked)
    assert (raised.value.operator, raised.value.subtask, raised.value.record) == ("made", 1, asked)


class WantsState(ProcessFunction):
    def open(self, context: Any) -> None:
        context.value_state("x")


def test_without_keys_there_is_no_state() -> None:
    with pytest.raises(Exception, match="made has no state by key: its stream has no keys; use key_by before it"):
        Bench(ProcessOperator(WantsState()))


def test_a_broken_timer_names_its_key_and_time() -> None:
    class Broken(Alarms):
        def on_timer(self, timestamp: int, ctx: ProcessContext) -> list[object]:
            raise ZeroDivisionError

    bench = Bench(KeyedProcessOperator(Broken(), first))
    bench.told(0, ("a", "set"), 1)
    with pytest.raises(UserCodeError) as raised:
        bench.advance(10)
    assert raised.value.record == ("a", 10)


def test_a_map_that_was_not_named_is_refused() -> None:
    class Other(Rules):
        def process_element(self, value: str, ctx: ProcessContext) -> Any:
            return ctx.broadcast_state(MapStateDescriptor("other"))

    with pytest.raises(UserCodeError, match="no broadcast state 'other' here, only 'rules'"):
        Bench(BroadcastProcessOperator(Other(), [RULES])).told(0, "a")
