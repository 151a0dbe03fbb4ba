"""Process functions in a job: which streams take which, and a copy of the function for each subtask."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import LONG
from refimpl.task import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapStateDescriptor,
    OutputTag,
    ProcessFunction,
)
from tests.support.small_jobs import run

ODD = OutputTag("odd", LONG)
SEEN = MapStateDescriptor("seen")


class Halves(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Any:
        if value % 2:
            ctx.output(ODD, value)
        else:
            yield value // 2


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("is_keyed", [False, True])
def test_a_process_function_has_side_outputs(is_keyed: bool, shortcuts: bool) -> None:
    environment, halves, odd = StreamEnvironment(Config(shortcuts=shortcuts)), [], []
    numbers: Any = environment.from_collection(range(8), type=LONG)
    made = (numbers.key_by(lambda n: n) if is_keyed else numbers).process(Halves(), type=LONG)
    made.sink(halves.append)
    made.side_output(ODD).sink(odd.append, "odd")
    run(environment)
    assert (sorted(halves), sorted(odd)) == ([0, 1, 2, 3], [1, 3, 5, 7])


class Numbered(KeyedProcessFunction):
    """Says of each value the how manieth of its key it is, and by attributes how many values its subtask had."""

    def __init__(self) -> None:
        self.num_here: list[int] = []

    def open(self, context: Any) -> None:
        self.count, self.subtask = context.value_state("count", LONG), context.subtask

    def process_element(self, value: tuple[str, int], ctx: Any) -> Any:
        self.num_here.append(1)
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.current_key, self.count.value(), self.subtask, len(self.num_here)


def test_each_subtask_has_a_function_of_its_own() -> None:
    environment, results = StreamEnvironment(parallelism=3), []
    values = [(f"k{n % 10}", n) for n in range(60)]
    given = Numbered()
    environment.from_collection(values).key_by(0).process(given).sink(results.append).set_parallelism(1)
    ThreadedRun(environment).run()
    assert sorted(each[:2] for each in results) == sorted((f"k{n}", i) for n in range(10) for i in range(1, 7))
    for subtask in range(3):
        here = [num for _, _, where, num in results if where == subtask]
        assert sorted(here) == list(range(1, len(here) + 1))
    assert given.num_here == []


# -- what is refused when the job is written -----------------------------------------------------------


class Plain(ProcessFunction): ...


class Keyed(KeyedProcessFunction): ...


class Co(CoProcessFunction): ...


class KeyedCo(KeyedCoProcessFunction): ...


class Broad(BroadcastProcessFunction): ...


class KeyedBroad(KeyedBroadcastProcessFunction): ...


def streams() -> tuple[Any, Any]:
    environment = StreamEnvironment()
    return environment.from_collection([1], "one"), environment.from_collection([2], "two")


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda a, _: a.process(Keyed()), r"Keyed has state and timers by key, and DataStream\(one\) has no keys"),
        (lambda a, b: a.connect(b).process(KeyedCo()), "KeyedCo has state and timers by key"),
        (lambda a, b: a.connect(b.broadcast(SEEN)).process(KeyedBroad()), "KeyedBroad has state and timers by key"),
        (lambda a, _: a.process(abs), "takes a ProcessFunction, not <built-in function abs>; for a plain function"),
        (lambda a, _: a.key_by(abs).process(Co()), "takes a ProcessFunction, not"),
        (lambda a, b: a.connect(b).process(Plain()), "takes a CoProcessFunction, not"),
        (lambda a, b: a.connect(b.broadcast(SEEN)).process(Co()), "takes a BroadcastProcessFunction, not"),
        (lambda a, _: a.process(Plain), r"takes an object, not the class Plain: Plain\(\)"),
        (lambda a, b: a.broadcast(SEEN).connect(b), r"is on the wrong side: connect the other stream to it"),
        (lambda a, b: a.key_by(abs).connect(b), r"or give the other to all with broadcast\(descriptor\)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_the_job_runs(write: Any, said: str) -> None:
    with pytest.raises(LocalUsageError, match=said):
        write(*streams())


def test_a_function_that_cannot_be_copied_is_refused_by_name() -> None:
    function = Plain()
    function.lock = threading.Lock()  # type: ignore[attr-defined]
    one, _ = streams()
    one.process(function).sink(print)
    with pytest.raises(LocalUsageError, match=r"cannot be copied for each subtask .* make in `open` what it holds"):
        run(one.environment)
