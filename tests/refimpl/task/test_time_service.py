"""Processing time is passed in; what waits for it is called in order, once."""

from __future__ import annotations

from collections.abc import Hashable

from refimpl.task import ProcessingTimers, ProcessingTimeService


def test_time_is_what_was_passed_in_in_whole_ms_and_never_falls() -> None:
    time = ProcessingTimeService()
    seen = []
    for now_ms in (-7.5, 3.99, 2.0, 4.0):
        time.advance(now_ms)
        seen.append(time.now_ms)
    assert seen == [-8, 3, 3, 4]


def test_calls_come_when_their_time_has_come_earliest_first_then_as_registered() -> None:
    time, called = ProcessingTimeService(), list[str]()
    for moment, name in ((9, "late"), (5, "one"), (5, "two"), (10, "not yet")):
        time.register(moment, lambda at, name=name: called.append(f"{name} {at}"))
    time.advance(4)
    assert (time.is_due, time.next_deadline) == (False, 5)
    time.advance(9)
    assert (time.is_due, called) == (True, [])
    time.fire_due()
    assert called == ["one 5", "two 5", "late 9"]
    assert (time.is_due, time.next_deadline) == (False, 10)


def test_a_cancelled_call_is_no_deadline() -> None:
    time, called = ProcessingTimeService(), list[int]()
    first, _second = time.register(3, called.append), time.register(8, called.append)
    time.cancel(first)
    assert time.next_deadline == 8
    time.advance(8)
    time.fire_due()
    time.cancel(first)
    assert (called, time.next_deadline) == ([8], None)


def test_what_is_registered_in_a_call_is_made_in_the_same_round_if_it_is_due() -> None:
    time, called = ProcessingTimeService(), list[int]()

    def again(at: int) -> None:
        called.append(at)
        time.register(at + 4, again)

    time.register(1, again)
    time.advance(10)
    time.fire_due()
    assert (called, time.next_deadline) == ([1, 5, 9], 13)


def test_nothing_is_called_after_the_end_of_input() -> None:
    time, called = ProcessingTimeService(), list[int]()
    time.register(1, called.append)
    time.close()
    time.advance(5)
    time.fire_due()
    assert (called, time.next_deadline) == ([], None)


class Timers:
    """Timers that note what fired; some register or delete others when they fire."""

    def __init__(self) -> None:
        self.time = ProcessingTimeService()
        self.fired: list[tuple[int, Hashable]] = []
        self.then: dict[Hashable, tuple[str, int, Hashable]] = {}
        self.timers = ProcessingTimers(self.time, self._on_timer)

    def _on_timer(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        self.fired.append((timestamp, key))
        if key in self.then:
            word, moment, other = self.then[key]
            getattr(self.timers, word)(moment, other, namespace)

    def pass_to(self, now_ms: float) -> list[tuple[int, Hashable]]:
        self.time.advance(now_ms)
        self.time.fire_due()
        fired, self.fired = self.fired, []
        return fired


def test_only_the_earliest_timer_is_a_deadline_and_an_earlier_one_takes_its_place() -> None:
    """Flink: InternalTimerServiceImplTest#testOnlySetsOnePhysicalProcessingTimeTimer, #testRegisterEarlierTimer..."""
    each = Timers()
    for moment, key in ((20, "b"), (30, "c"), (10, "a")):
        each.timers.register(moment, key, None)
        assert len(each.time._calls) == 1
    assert each.time.next_deadline == 10
    assert (each.pass_to(10), each.time.next_deadline) == ([(10, "a")], 20)
    assert (each.pass_to(35), each.time.next_deadline) == ([(20, "b"), (30, "c")], None)


def test_a_timer_that_is_registered_while_one_fires_is_armed() -> None:
    """Flink: InternalTimerServiceImplTest#testRegisteringProcessingTimeTimerInOnProcessingTimeDoesNotLeak..."""
    each = Timers()
    each.then = {"a": ("register", 15, "b"), "b": ("register", 12, "c")}
    each.timers.register(10, "a", None)
    assert (each.pass_to(10), each.time.next_deadline, len(each.time._calls)) == ([(10, "a")], 15, 1)
    assert each.pass_to(15) == [(15, "b"), (12, "c")]


def test_a_timer_of_the_same_moment_that_another_deletes_does_not_fire() -> None:
    each = Timers()
    each.then = {"a": ("delete", 10, "b")}
    for key in "abc":
        each.timers.register(10, key, "window")
    assert each.pass_to(10) == [(10, "a"), (10, "c")]


def test_a_timer_that_is_overdue_when_it_is_registered_fires_next() -> None:
    each = Timers()
    each.pass_to(100)
    each.timers.register(40, "a", None)
    assert each.time.is_due
    assert each.pass_to(100) == [(40, "a")]


def test_timers_are_kept_once_by_time_key_and_namespace() -> None:
    each = Timers()
    for key, namespace in (("a", 1), ("a", 1), ("a", 2), ("b", 1)):
        each.timers.register(10, key, namespace)
    each.timers.delete(10, "b", 2)
    assert each.pass_to(10) == [(10, "a"), (10, "a"), (10, "b")]
