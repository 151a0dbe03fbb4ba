"""Every exchange of a job is pipelined or blocking, decided once; what cannot run is refused by all three names."""

from __future__ import annotations

import re

import pytest

from refimpl.batch_options import InputConstraint, ScheduleMode
from refimpl.config import Config
from refimpl.errors import ConfigError, LocalUsageError
from refimpl.job import (
    Boundedness,
    DataStream,
    ExchangeMode,
    ExecutionGraph,
    ExecutionMode,
    JobGraph,
    StreamEnvironment,
)
from refimpl.task.source import IterableReader


def job(mode: ExecutionMode | ExchangeMode, **options: object) -> StreamEnvironment:
    """A source of 2 → forward, not chained → rescale to 4 → by key to 4 → broken off → sink of 1."""
    environment = StreamEnvironment(Config(execution_mode=mode, **options), 2)
    source = environment.source(lambda *_: IterableReader([1]))
    near = source.map(abs, "near").start_new_chain().rescale().map(abs, "some").set_parallelism(4)
    far = near.shuffle().map(abs, "far").set_parallelism(4)
    far.break_pipeline().sink(print, "last").set_parallelism(1)
    return environment


@pytest.mark.parametrize(
    ("mode", "blocking"),
    [
        (ExchangeMode.ALL_PIPELINED, "0001"),
        (ExchangeMode.POINTWISE_PIPELINED, "0011"),
        (ExchangeMode.FORWARD_PIPELINED, "0111"),
        (ExchangeMode.ALL_BLOCKING, "1111"),
        (ExecutionMode.PIPELINED, "0001"),
        (ExecutionMode.PIPELINED_FORCED, "0000"),
        (ExecutionMode.BATCH, "0111"),
        (ExecutionMode.BATCH_FORCED, "1111"),
    ],
)
def test_the_mode_decides_each_exchange_once_and_the_job_breaks_where_it_says(
    mode: ExecutionMode | ExchangeMode, blocking: str
) -> None:
    graph = JobGraph(job(mode).graph, Config(execution_mode=mode))
    assert "".join(str(int(edge.is_blocking)) for edge in graph.edges) == blocking


def test_explain_says_for_every_exchange_what_it_is_and_why_and_how_many_slots_the_job_takes() -> None:
    told = job(ExecutionMode.BATCH).explain().partition("exchanges:\n")[2].splitlines()
    assert told == [
        "  source → near  pipelined: in mode BATCH what goes from one subtask to one is read while it is written",
        "  near → some  blocking: in mode BATCH what is dealt out, here by rescale, is read when it is complete",
        "  some → far  blocking: in mode BATCH what is dealt out, here by shuffle, is read when it is complete",
        "  far → last  blocking: the job breaks here, and mode BATCH heeds that",
        "slots: 1 (11 regions, each in 1 at most; 4 to run all at once)",
    ]


def test_a_stream_takes_the_slots_of_all_its_tasks_and_explain_says_so() -> None:
    told = job(ExecutionMode.PIPELINED_FORCED).explain()
    assert told.endswith("slots: 4")
    assert "far → last  pipelined: mode PIPELINED_FORCED lets no result wait" in told


def test_an_edge_at_which_the_job_breaks_is_in_no_chain_unless_the_mode_heeds_no_breaks() -> None:
    def chained(mode: ExecutionMode) -> str:
        environment = StreamEnvironment(Config(execution_mode=mode))
        environment.from_collection([1]).break_pipeline().map(abs).sink(print)
        return environment.explain().splitlines()[4 if mode is ExecutionMode.BATCH else 3]

    assert chained(ExecutionMode.BATCH) == "  source → map  not chained: the job breaks here"
    assert chained(ExecutionMode.PIPELINED_FORCED) == "  source → map  chained"


# -- what a circle of regions would wait for ---------------------------------------------------------


def self_join(mode: ExecutionMode, before: int = 2) -> JobGraph:
    """A task that reads one producer along its line, and dealt out as well: it would wait for its own region."""
    environment = StreamEnvironment(Config(execution_mode=mode), before)
    source = environment.source(lambda *_: IterableReader([1]))
    along: DataStream = source.map(abs, "along").start_new_chain()
    dealt = source.shuffle().map(abs, "dealt")
    along.connect(dealt).map(abs, abs, "both").sink(print)
    return JobGraph(environment.graph, environment.config)


def test_an_exchange_for_which_a_region_would_wait_for_itself_is_pipelined_after_all() -> None:
    graph = self_join(ExecutionMode.BATCH)
    told = {edge.edge.target: edge for edge in graph.edges}
    assert not any(edge.is_blocking for edge in graph.edges), told
    assert "source → dealt  pipelined: read later its consumer would wait for itself" in graph.explain()


def test_without_the_line_both_sides_are_read_when_they_are_complete() -> None:
    assert all(edge.is_blocking for edge in self_join(ExecutionMode.BATCH_FORCED).edges)


# -- what cannot be --------------------------------------------------------------------------------------


def test_a_blocking_result_of_a_stream_without_an_end_is_refused_with_all_three_names_and_the_edge() -> None:
    environment = StreamEnvironment(Config(execution_mode=ExecutionMode.BATCH), 2)
    endless = environment.source(lambda *_: IterableReader([1]), "ticks", boundedness=Boundedness.UNBOUNDED)
    endless.map(abs).rebalance().sink(print)
    with pytest.raises(LocalUsageError) as refused:
        environment.execution_graph()
    for name in ("map → sink", "BLOCKING", "unbounded", "after the last output"):
        assert name in str(refused.value)


def test_a_blocking_result_whose_consumer_starts_at_once_is_refused_with_all_three_names() -> None:
    with pytest.raises(LocalUsageError, match=r"near → some: a BLOCKING result .* bounded, .* starts at once, cannot"):
        job(ExecutionMode.BATCH, schedule_mode=ScheduleMode.EAGER).execution_graph()
    assert isinstance(job(ExecutionMode.PIPELINED_FORCED, schedule_mode=ScheduleMode.EAGER).explain(), str)


@pytest.mark.parametrize(("option", "value"), [("checkpoint_interval_ms", 100), ("unaligned", True)])
def test_checkpoints_with_a_blocking_exchange_are_refused_by_edge_and_option(option: str, value: object) -> None:
    with pytest.raises(LocalUsageError, match=f"near → some is blocking, .* leave {option} out"):
        job(ExecutionMode.BATCH, **{option: value}).execution_graph()
    assert isinstance(job(ExecutionMode.PIPELINED_FORCED, **{option: value}).execution_graph(), ExecutionGraph)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("execution_mode", "batch"),
        ("execution_mode", ScheduleMode.EAGER),
        ("schedule_mode", "eager"),
        ("input_constraint", None),
        ("bounded_data", "file"),
        ("compression", "lz4"),
        ("compression", InputConstraint.ANY),
    ],
)
def test_a_word_that_is_none_of_an_option_is_refused_by_name(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{option}={value!r}")):
        Config(**{option: value})
