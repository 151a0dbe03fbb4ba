"""Two streams connected: what goes where, and what is refused when the job is written."""

from __future__ import annotations

from typing import Any

import pytest

from refimpl.config import Config
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.job import DataStream, JobGraph, StreamEnvironment
from refimpl.records import INT, LONG, STRING, StreamRecord
from refimpl.task import TwoInputOperator
from tests.support.small_jobs import run


def numbers_and_words(environment: StreamEnvironment) -> tuple[DataStream, DataStream]:
    numbers = environment.from_collection(range(4), "numbers", LONG)
    return numbers, environment.from_collection(["a", "bb"], "words", STRING)


@pytest.mark.parametrize("shortcuts", [False, True])
def test_each_stream_has_its_function(shortcuts: bool) -> None:
    environment, results = StreamEnvironment(Config(shortcuts=shortcuts)), []
    numbers, words = numbers_and_words(environment)
    numbers.connect(words).map(lambda n: -n, len).sink(results.append)
    run(environment)
    assert sorted(results) == [-3, -2, -1, 0, 1, 2]


@pytest.mark.parametrize("shortcuts", [False, True])
def test_flat_map_makes_any_number_of_each(shortcuts: bool) -> None:
    environment, results = StreamEnvironment(Config(shortcuts=shortcuts)), []
    numbers, words = numbers_and_words(environment)
    numbers.connect(words).flat_map(lambda n: [n] * n, list).sink(results.append)
    run(environment)
    assert sorted(results, key=str) == [1, 2, 2, 3, 3, 3, "a", "b", "b"]


def test_a_union_is_one_side_and_a_stream_may_be_both() -> None:
    environment, results = StreamEnvironment(), []
    numbers, words = numbers_and_words(environment)
    more = environment.from_collection([10], "more", LONG)
    numbers.union(more).connect(words).map(lambda n: n, lambda _word: "word", "one").sink(results.append)
    numbers.connect(numbers).map(lambda n: n, lambda n: n + 100, "both").sink(results.append, "both sink")
    run(environment)
    assert sorted(map(str, results)) == sorted(map(str, [*range(4), 10, "word", "word", *range(4), *range(100, 104)]))


def test_an_operator_of_two_inputs_heads_its_chain() -> None:
    environment = StreamEnvironment()
    numbers, words = numbers_and_words(environment)
    numbers.connect(words).map(abs, len).map(abs, "behind").sink(print)
    graph = JobGraph(environment.graph, environment.config)
    assert [vertex.name for vertex in graph.vertices.values()] == ["numbers", "words", "co_map → behind → sink"]
    assert "numbers → co_map  not chained: co_map has 2 input edges" in graph.explain()


@pytest.mark.parametrize("of_first", [True, False])
@pytest.mark.parametrize("word", ["map", "flat_map"])
@pytest.mark.parametrize("shortcuts", [False, True])
def test_what_a_function_raises_names_the_operator_and_the_record(shortcuts: bool, word: str, of_first: bool) -> None:
    def fails(_value: object) -> object:
        raise ZeroDivisionError

    environment = StreamEnvironment(Config(shortcuts=shortcuts))
    numbers, words = numbers_and_words(environment)
    functions = (fails, lambda _word: ()) if of_first else (lambda _number: (), fails)
    getattr(numbers.connect(words), word)(*functions, "broken").sink(print)
    with pytest.raises(UserCodeError, match="broken, subtask 0, raised ZeroDivisionError") as raised:
        run(environment)
    assert raised.value.record == (0 if of_first else "a")


class Ends(TwoInputOperator):
    """Tells what it sees, in order."""

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def process_first(self, record: StreamRecord) -> None:
        self.seen.append(record.value)

    def process_second(self, record: StreamRecord) -> None:
        self.seen.append(record.value)

    def end_input(self, side: int) -> None:
        self.seen.append(f"end of {side}")

    def finish(self) -> None:
        self.seen.append("finish")


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_an_operator_is_told_the_end_of_each_input_and_then_of_all(seed: int, shortcuts: bool) -> None:
    environment, seen = StreamEnvironment(Config(shortcuts=shortcuts)), []
    numbers, words = numbers_and_words(environment)
    numbers.connect(words).transform("ends", lambda: Ends(seen))
    run(environment, seed)
    assert seen[-1] == "finish"
    assert seen.index("end of 0") > max(seen.index(number) for number in range(4))
    assert seen.index("end of 1") > max(seen.index("a"), seen.index("bb"))
    assert len(seen) == 9, f"seed {seed}"


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_first_keyed", [True, False])
def test_a_keyed_stream_is_connected_to_a_keyed_stream(is_first_keyed: bool) -> None:
    numbers, words = numbers_and_words(StreamEnvironment())
    keyed: Any = numbers.key_by(lambda n: n)
    one, other = (keyed, words) if is_first_keyed else (words, keyed)
    with pytest.raises(LocalUsageError, match="records that belong together would not meet; use key_by on both"):
        one.connect(other)


def test_equal_keys_must_be_hashed_alike() -> None:
    numbers, words = numbers_and_words(StreamEnvironment())
    with pytest.raises(LocalUsageError, match="type long and of type int are hashed in two ways"):
        numbers.key_by(abs, LONG).connect(words.key_by(len, INT))


@pytest.mark.parametrize("is_keyed", [True, False])
def test_streams_of_two_jobs_are_not_connected(is_keyed: bool) -> None:
    (here, _), (there, _) = numbers_and_words(StreamEnvironment()), numbers_and_words(StreamEnvironment())
    one, other = (here.key_by(abs), there.key_by(abs)) if is_keyed else (here, there)
    with pytest.raises(LocalUsageError, match="belongs to another environment"):
        one.connect(other).map(abs, abs)
