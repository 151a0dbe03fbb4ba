"""The words a job is written in: what each adds to the graph, and the answer it gives when the job runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.job import DataStream, StreamEnvironment
from refimpl.records import LONG, STRING, StreamRecord, TupleType
from refimpl.task import LATE, IterableReader, Operator, OutputTag, TumblingWindows
from tests.support.small_jobs import Count, Where, run


def subtasks_of(route: Callable[[DataStream], DataStream], values: int = 30, seed: int = 0) -> dict[int, list[int]]:
    """Which values reach which of three subtasks, from one source of two subtasks."""
    environment = StreamEnvironment(Config(seed=seed))
    source = environment.source(lambda i, n: IterableReader(range(i, values, n)), type=LONG, parallelism=2)
    found: dict[int, list[int]] = defaultdict(list)
    where = route(source).transform("where", Where).set_parallelism(3)
    where.sink(lambda pair: found[pair[0]].append(pair[1])).set_parallelism(1)
    run(environment, seed)
    return {subtask: sorted(found[subtask]) for subtask in range(3)}


# -- operators -------------------------------------------------------------------------------------


def test_every_word_adds_its_operator() -> None:
    results: list[object] = []
    environment = StreamEnvironment()
    stream = environment.from_collection(range(6)).map(lambda n: n + 1).filter(lambda n: n % 2)
    stream.flat_map(lambda n: [n] * n).sink(results.append)
    assert repr(stream) == "DataStream(filter)"
    run(environment)
    assert results == [1, 3, 3, 3, 5, 5, 5, 5, 5]


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_a_source_gives_each_subtask_its_own_reader(parallelism: int) -> None:
    made, results = [], []
    environment = StreamEnvironment(parallelism=parallelism)

    def make_reader(subtask: int, count: int) -> IterableReader:
        made.append((subtask, count))
        return IterableReader([subtask])

    environment.source(make_reader).sink(results.append)
    run(environment)
    assert made == [(subtask, parallelism) for subtask in range(parallelism)]
    assert sorted(results) == list(range(parallelism))


def test_a_collection_is_read_by_one_subtask_and_kept_as_it_was() -> None:
    values, results = [1, 2, 3], []
    environment = StreamEnvironment(parallelism=4)
    source = environment.from_collection(values)
    source.sink(results.append).set_parallelism(1)
    values.clear()
    assert source.node.parallelism == 1
    run(environment)
    assert results == [1, 2, 3]


def test_each_subtask_has_an_operator_of_its_own() -> None:
    made: list[Operator] = []

    def make() -> Operator:
        made.append(Operator())
        return made[-1]

    environment = StreamEnvironment(parallelism=3)
    environment.from_collection([1]).transform("mine", make)
    run(environment)
    assert len(set(map(id, made))) == len(made) == 3


def test_windows_count_by_key_and_late_records_go_aside() -> None:
    results, late = [], []
    environment = StreamEnvironment(parallelism=2)
    values = [("a", 1), ("b", 5), ("a", 9), ("a", 25), ("a", 3), ("b", 26)]
    timed = environment.from_collection(values).assign_timestamps(lambda value: value[1], 0, every=1)
    counted = timed.set_parallelism(1).key_by(lambda value: value[0]).window(TumblingWindows(10)).aggregate(Count())
    counted.sink(results.append)
    counted.side_output(LATE).sink(late.append, "late")
    run(environment)
    assert sorted(results) == [("a", 0, 10, 2), ("a", 20, 30, 1), ("b", 0, 10, 1), ("b", 20, 30, 1)]
    assert late == [("a", 3)]


# -- which way records leave -----------------------------------------------------------------------


def test_rebalance_reaches_all_subtasks_evenly() -> None:
    found = subtasks_of(DataStream.rebalance)
    assert sorted(value for values in found.values() for value in values) == list(range(30))
    assert [len(values) for values in found.values()] == [10, 10, 10]


def test_rescale_reaches_only_the_nearby_subtasks() -> None:
    found = subtasks_of(DataStream.rescale)
    evens, odds = list(range(0, 30, 2)), list(range(1, 30, 2))
    assert sorted(found[0] + found[1]) == evens
    assert found[2] == odds


def test_broadcast_reaches_all_subtasks_with_everything() -> None:
    assert list(subtasks_of(DataStream.broadcast).values()) == [list(range(30))] * 3


def test_to_first_reaches_one_subtask_with_everything() -> None:
    assert subtasks_of(DataStream.to_first) == {0: list(range(30)), 1: [], 2: []}


def test_shuffle_reaches_every_subtask_and_another_seed_reaches_them_otherwise() -> None:
    one, other = subtasks_of(DataStream.shuffle, seed=3), subtasks_of(DataStream.shuffle, seed=6)
    for found in (one, other):
        assert sorted(value for values in found.values() for value in values) == list(range(30))
        assert all(found.values())
        assert [len(values) for values in found.values()] != [10, 10, 10]  # drawn, not in turn
    assert one != other


def test_all_records_of_a_key_meet_in_one_subtask_whichever_subtask_sent_them() -> None:
    environment = StreamEnvironment()
    source = environment.source(lambda i, n: IterableReader([(f"key-{k}", i) for k in range(40)]), parallelism=3)
    found: dict[str, set[int]] = defaultdict(set)
    senders: dict[str, set[int]] = defaultdict(set)

    def note(pair: tuple[int, tuple[str, int]]) -> None:
        found[pair[1][0]].add(pair[0])
        senders[pair[1][0]].add(pair[1][1])

    where = source.key_by(lambda value: value[0]).transform("where", Where).set_parallelism(4)
    where.sink(note).set_parallelism(1)
    run(environment)
    assert set(map(len, found.values())) == {1}
    assert set(map(len, senders.values())) == {3}
    assert len({subtask for subtasks in found.values() for subtask in subtasks}) > 1


def test_union_brings_the_records_of_all() -> None:
    results: list[object] = []
    environment = StreamEnvironment()
    one, two, three = (environment.from_collection([number], f"source-{number}") for number in range(3))
    one.union(two).union(three).map(lambda n: n * 10).sink(results.append)
    run(environment)
    assert sorted(results) == [0, 10, 20]


def test_side_outputs_and_the_main_stream_are_read_apart() -> None:
    odd = OutputTag("odd")

    class Siding(Operator):
        def process(self, record: StreamRecord) -> None:
            if record.value % 2:
                self.output.collect_side(odd, record)
            else:
                self.output.collect(record)

    main, side = [], []
    environment = StreamEnvironment()
    stream = environment.from_collection(range(5)).transform("siding", Siding)
    stream.sink(main.append)
    stream.side_output(OutputTag("odd")).rebalance().sink(side.append, "side")
    stream.side_output(OutputTag("nobody")).sink(print, "never")
    run(environment)
    assert (main, side) == ([0, 2, 4], [1, 3])


def test_a_split_sends_values_to_the_branches_it_names() -> None:
    small, large, any_size, all_of_it = [], [], [], []
    environment = StreamEnvironment()
    source = environment.from_collection(range(6))
    branches = source.split(lambda n: ["small"] if n < 2 else ["large"] if n > 3 else [])
    branches.select("small").sink(small.append, "small")
    branches.select("large").rebalance().sink(large.append, "large")
    branches.select("small", "large").sink(any_size.append, "any")
    source.sink(all_of_it.append, "all")
    run(environment)
    assert (small, large, any_size, all_of_it) == ([0, 1], [4, 5], [0, 1, 4, 5], [0, 1, 2, 3, 4, 5])


def test_a_selection_without_a_name_is_refused() -> None:
    stream = StreamEnvironment().from_collection([1])
    with pytest.raises(LocalUsageError, match="needs the name of at least one branch"):
        stream.split(lambda n: []).select()


# -- types, settings, mistakes ---------------------------------------------------------------------


def test_a_declared_type_is_checked_where_values_cross_the_network() -> None:
    environment = StreamEnvironment()
    environment.from_collection(["seven"], type=LONG).rebalance().sink(print)
    with pytest.raises(UserCodeError, match="subtask 0, raised LocalUsageError: 'seven' is not a long") as caught:
        run(environment)
    assert caught.value.record == "seven"


def test_filter_and_timestamps_keep_the_type_and_map_has_its_own() -> None:
    kind = TupleType(STRING, LONG)
    stream = StreamEnvironment().from_collection([("a", 1)], type=kind)
    timed = stream.filter(bool).assign_timestamps(lambda value: value[1], 0)
    assert timed.node.value_type is kind
    assert timed.map(lambda value: value[1], type=LONG).node.value_type is LONG


@pytest.mark.parametrize("parallelism", [0, -1])
def test_a_parallelism_below_one_is_refused(parallelism: int) -> None:
    with pytest.raises(LocalUsageError, match=f"a parallelism of {parallelism} is no parallelism"):
        StreamEnvironment(parallelism=parallelism)
    stream = StreamEnvironment().from_collection([1])
    with pytest.raises(LocalUsageError, match="use 1 or more"):
        stream.set_parallelism(parallelism)


def test_more_subtasks_than_key_groups_are_refused_before_anything_runs() -> None:
    environment = StreamEnvironment(Config(max_parallelism=2))
    environment.from_collection([1]).key_by(abs).sink(print).set_parallelism(3)
    with pytest.raises(LocalUsageError, match="3 subtasks cannot share 2 key groups"):
        Simulation(environment)


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("chaining", [False, True])
def test_a_changed_value_shows_in_another_branch_only_in_a_chain_that_reuses_objects(
    reuse: bool, chaining: bool
) -> None:
    results: list[object] = []
    environment = StreamEnvironment(Config(object_reuse=reuse, chaining=chaining))
    source = environment.from_collection([["as it was"]])
    source.map(lambda value: value.append("changed"), "changing")
    source.sink(results.append)
    run(environment)
    assert results == [["as it was", "changed"] if reuse and chaining else ["as it was"]]


def test_an_exception_names_the_operator_in_the_middle_of_a_chain_and_its_subtask() -> None:
    environment = StreamEnvironment(parallelism=3)
    source = environment.source(lambda i, n: IterableReader([i] if i == 2 else []))
    source.map(str, "text").map(lambda text: text.nonsense, "nonsense").sink(print)
    with pytest.raises(UserCodeError, match=r"nonsense, subtask 2, raised AttributeError.*while processing '2'"):
        run(environment)


@pytest.mark.parametrize("config", [4, "random", print])
def test_what_is_no_config_is_refused_by_its_kind(config: object) -> None:
    with pytest.raises(LocalUsageError, match=f"takes a Config and a parallelism, got {type(config).__name__}"):
        StreamEnvironment(config)  # type: ignore[arg-type]
