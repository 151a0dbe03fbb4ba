"""Whatever the user's code raises names the operator, the subtask and the record; nothing of it is lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.errors import InsufficientBuffersError, LocalUsageError, UserCodeError
from refimpl.job import DataStream, StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.task import IterableReader, Operator, SourceReader


class Raising(Operator):
    def __init__(self, where: str = "process") -> None:
        self.where = where

    def open(self) -> None:
        self.maybe("open")

    def process(self, record: StreamRecord) -> None:
        self.maybe("process")

    def finish(self) -> None:
        self.maybe("finish")

    def maybe(self, where: str) -> None:
        if where == self.where:
            raise ValueError("mine")


class BadIter:
    def __iter__(self) -> object:
        raise ValueError("iter")


WAYS: dict[str, tuple[Callable[[DataStream], object], str]] = {
    "key function": (lambda s: s.key_by(lambda v: v[7]).sink(print), "source"),
    "unhashable key": (lambda s: s.key_by(lambda _: [1]).sink(print), "source"),
    "split": (lambda s: s.split(lambda v: v[7]).select("a").sink(print), "source"),
    "split gives None": (lambda s: s.split(lambda _: None).select("a").sink(print), "source"),
    "array for a truth": (lambda s: s.filter(lambda _: np.array([1, 2]) > 0).sink(print), "filter"),
    "operator": (lambda s: s.transform("mine", Raising).sink(print), "mine"),
    "iterator": (lambda s: s.flat_map(lambda _: BadIter()).sink(print), "flat_map"),
}


@pytest.mark.parametrize("chaining", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_an_exception_names_operator_subtask_and_record(way: str, chaining: bool) -> None:
    environment = StreamEnvironment(Config(chaining=chaining))
    write, operator = WAYS[way]
    write(environment.from_collection([(1,)]))
    with pytest.raises(UserCodeError) as caught, Simulation(environment) as simulation:
        simulation.run()
    error = caught.value
    assert (error.operator, error.subtask, error.record) == (operator, 0, (1,))
    assert error.__cause__ is not None


@pytest.mark.parametrize("where", ["open", "finish"])
def test_an_exception_outside_a_record_names_the_operator(where: str) -> None:
    environment = StreamEnvironment()
    environment.from_collection([1]).transform("mine", lambda: Raising(where)).sink(print)
    with pytest.raises(UserCodeError, match="mine, subtask 0, raised ValueError: mine") as caught:
        ThreadedRun(environment).run()
    assert caught.value.record is None


def test_a_broken_law_of_the_engine_is_not_the_users_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: object, _record: object) -> None:
        raise AssertionError("a law")

    environment = StreamEnvironment()
    environment.from_collection([1]).map(abs).sink(print)
    monkeypatch.setattr("refimpl.task.operators.MapOperator.process", broken)
    with pytest.raises(AssertionError, match="a law"), Simulation(environment) as simulation:
        simulation.run()


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("repr")


def test_a_record_that_cannot_be_shown_still_gets_its_error() -> None:
    error = UserCodeError("map", 0, Unshowable(), ValueError("x"))
    assert "map, subtask 0, raised ValueError: x while processing a Unshowable whose repr raised" in str(error)


@pytest.mark.parametrize(
    "error", [UserCodeError("m", 1, (2,), ValueError("x")), InsufficientBuffersError("m-0", 3, 2, 4, 64)]
)
def test_an_error_survives_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


# -- readers ---------------------------------------------------------------------------------------


class Reader(IterableReader):
    """Notes that it was closed; can refuse to be."""

    def __init__(self, subtask: int, closed: list[int], fails: bool = False) -> None:
        super().__init__(range(1000))
        self.subtask, self.closed, self.fails = subtask, closed, fails

    def close(self) -> None:
        if self.fails:
            raise OSError("stuck")
        self.closed.append(self.subtask)


def test_a_reader_of_bare_values_is_refused() -> None:
    class Bare:
        def read(self, _max_records: int) -> list[int]:
            return [1, 2, 3]

        def close(self) -> None: ...

    environment = StreamEnvironment()
    environment.source(lambda _i, _n: Bare(), "bare").sink(print)
    with pytest.raises(UserCodeError, match="bare, subtask 0, raised TypeError: read returned a int, not"):
        ThreadedRun(environment).run()


def test_readers_made_before_one_failed_are_closed() -> None:
    closed: list[int] = []

    def make(subtask: int, _of: int) -> SourceReader:
        if subtask == 2:
            raise FileNotFoundError("no such share")
        return Reader(subtask, closed)

    environment = StreamEnvironment(parallelism=3)
    environment.source(make, "flights").sink(print)
    with pytest.raises(UserCodeError, match="flights, subtask 2, raised FileNotFoundError"):
        Simulation(environment)
    assert sorted(closed) == [0, 1]


def test_a_reader_is_closed_once() -> None:
    closed: list[int] = []
    environment = StreamEnvironment()
    environment.source(lambda i, _n: Reader(i, closed)).sink(lambda _: None)
    with Simulation(environment) as simulation:
        simulation.run()
    assert closed == [0]


def test_a_reader_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    closed: list[int] = []
    environment = StreamEnvironment(Config(num_buffers=40), parallelism=3)
    environment.source(lambda i, _n: Reader(i, closed, fails=i == 0), "flights").rebalance().sink(lambda _: None)
    simulation = Simulation(environment)
    simulation.run(max_steps=5)
    with pytest.raises(UserCodeError, match="flights, subtask 0, raised OSError: stuck"):
        simulation.deployment.close()
    assert sorted(closed) == [1, 2]
    assert simulation.deployment.pool.num_free == 40


# -- what a caller may not ask -----------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [0, -1, 1.5, "2", True])
def test_a_parallelism_that_is_no_number_is_refused(parallelism: object) -> None:
    environment = StreamEnvironment()
    with pytest.raises(LocalUsageError, match="is no parallelism"):
        environment.from_collection([1]).set_parallelism(parallelism)
    with pytest.raises(LocalUsageError, match="is no parallelism"):
        environment.source(lambda _i, _n: IterableReader([]), "other", parallelism=parallelism)


def test_a_run_that_was_not_started_has_no_end_to_wait_for() -> None:
    environment = StreamEnvironment()
    environment.from_collection([1]).sink(print)
    with pytest.raises(LocalUsageError, match="has not been started"):
        ThreadedRun(environment).join()


class Unlucky(Reader):
    """Fails to read, and then to be closed."""

    def read(self, _max_records: int) -> list[StreamRecord]:
        raise ValueError("no runway")


@pytest.mark.parametrize("driver", [ThreadedRun, Simulation])
def test_trouble_in_closing_does_not_hide_the_error_that_came_first(driver: type[ThreadedRun | Simulation]) -> None:
    environment = StreamEnvironment()
    environment.source(lambda i, _n: Unlucky(i, [], fails=True), "flights").sink(print)
    with pytest.raises(UserCodeError, match="raised ValueError: no runway") as caught:
        driver(environment).run()
    assert "raised OSError: stuck" in caught.value.__notes__[0]
