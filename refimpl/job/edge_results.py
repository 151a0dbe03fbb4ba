"""What kind of result every exchange of a job has: decided once, with the reason, and refused if it could not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refimpl.batch_options import ExchangeMode, ExecutionMode, ScheduleMode
from refimpl.config import Config
from refimpl.errors import LocalUsageError
from refimpl.job.distribution_pattern import channels_of
from refimpl.job.exchange_mode import EdgeKind, partition_type_of
from refimpl.job.regions import Exchange, exchanges_in_a_circle
from refimpl.job.scheduling_modes import Boundedness, CombinationRule, ConsumerStart, check_combination, why_not
from refimpl.job.stream_graph import FORWARD, Partitioner, StreamEdge, StreamGraph
from refimpl.producer.partition_type import ResultPartitionType

__all__ = ["CrossingEdge", "EdgeResult", "kind_of_edge", "results_of_edges", "subtask_exchanges"]


@dataclass(frozen=True, slots=True)
class CrossingEdge:
    """An edge between two tasks: the numbers of their vertices, and how many subtasks each has."""

    edge: StreamEdge
    source: int
    target: int
    num_producers: int
    num_consumers: int

    @property
    def partitioner(self) -> Partitioner:
        assert self.edge.partitioner is not None, f"{self.edge} has no partitioner yet"
        return self.edge.partitioner


@dataclass(frozen=True, slots=True)
class EdgeResult:
    """The kind of result of one exchange, and why, in words that follow on the kind."""

    type: ResultPartitionType
    why: str


def kind_of_edge(edge: StreamEdge) -> EdgeKind:
    """What an edge does; one at which the user has said that the job is to break does that first of all."""
    if edge.breaks:
        return EdgeKind.BREAKING
    return EdgeKind.FORWARD if edge.partitioner == FORWARD else EdgeKind.SHUFFLE


def results_of_edges(
    graph: StreamGraph, edges: Sequence[CrossingEdge], config: Config, rule: CombinationRule = why_not
) -> list[EdgeResult]:
    """The result of each of `edges`, in their order; `rule` says what can run.

    Raises:
        LocalUsageError: what the job wants of an edge cannot run; names the edge and all three parts of it. Or it wants
            checkpoints, which a job with a blocking exchange does not have.

    Flink:   StreamingJobGraphGenerator.determineResultPartitionType (streaming.api.graph), 1.11.4
    Differs: where a region would wait for itself the exchange is pipelined after all; Flink 1.11 would stand still.
    """
    results = [_wanted(each, config) for each in edges]
    while waiting := _in_a_circle(edges, results):
        for number in waiting:
            why = "read later its consumer would wait for itself, as it also reads along with what goes in here"
            results[number] = EdgeResult(ResultPartitionType.PIPELINED_BOUNDED, why)
    for each, result in zip(edges, results, strict=True):
        _check(graph, each.edge, result.type, config, rule)
    return results


def subtask_exchanges(edges: Sequence[CrossingEdge], results: Sequence[EdgeResult]) -> list[Exchange[tuple[int, int]]]:
    """Every pair of subtasks that exchange something, once; each by its vertex and its number."""
    found: dict[Exchange[tuple[int, int]], None] = {}
    for each, result in zip(edges, results, strict=True):
        matrix = channels_of(each.num_producers, each.num_consumers, each.partitioner.is_pointwise)
        for producer, consumers in enumerate(matrix):
            for consumer in consumers:
                found[Exchange((each.source, producer), (each.target, consumer), result.type.is_blocking)] = None
    return list(found)


def _wanted(edge: CrossingEdge, config: Config) -> EdgeResult:
    mode, kind = config.execution_mode, kind_of_edge(edge.edge)
    if kind is EdgeKind.BREAKING and isinstance(mode, ExchangeMode):
        return EdgeResult(ResultPartitionType.BLOCKING, "the job breaks here, as it says itself")
    result = partition_type_of(mode, kind, edge.partitioner.is_pointwise)
    return EdgeResult(result, _WHY[mode].get(kind, _WHY[mode][EdgeKind.SHUFFLE]).format(name=edge.partitioner.name))


_WHY: Mapping[ExecutionMode | ExchangeMode, Mapping[EdgeKind, str]] = {
    ExecutionMode.PIPELINED: {
        EdgeKind.SHUFFLE: "in mode PIPELINED a result is read while it is written",
        EdgeKind.BREAKING: "the job breaks here, and mode PIPELINED heeds that",
    },
    ExecutionMode.PIPELINED_FORCED: {EdgeKind.SHUFFLE: "mode PIPELINED_FORCED lets no result wait for its end"},
    ExecutionMode.BATCH: {
        EdgeKind.FORWARD: "in mode BATCH what goes from one subtask to one is read while it is written",
        EdgeKind.SHUFFLE: "in mode BATCH what is dealt out, here by {name}, is read when it is complete",
        EdgeKind.BREAKING: "the job breaks here, and mode BATCH heeds that",
    },
    ExecutionMode.BATCH_FORCED: {EdgeKind.SHUFFLE: "mode BATCH_FORCED lets every result be complete before it is read"},
    ExchangeMode.ALL_BLOCKING: {EdgeKind.SHUFFLE: "ALL_BLOCKING lets every result be complete before it is read"},
    ExchangeMode.FORWARD_PIPELINED: {
        EdgeKind.FORWARD: "FORWARD_PIPELINED: it goes from one subtask to one",
        EdgeKind.SHUFFLE: "FORWARD_PIPELINED: {name} does not go from one subtask to one",
    },
    ExchangeMode.POINTWISE_PIPELINED: {
        EdgeKind.SHUFFLE: "POINTWISE_PIPELINED counts whom a subtask sends to, and here it is {name}",
    },
    ExchangeMode.ALL_PIPELINED: {EdgeKind.SHUFFLE: "a stream is read while it is written"},
}


def _in_a_circle(edges: Sequence[CrossingEdge], results: Sequence[EdgeResult]) -> list[int]:
    """The edges whose blocking results would be waited for without end."""
    if not any(result.type.is_blocking for result in results):
        return []
    widths = {each.source: each.num_producers for each in edges} | {each.target: each.num_consumers for each in edges}
    places = [(vertex, subtask) for vertex, width in widths.items() for subtask in range(width)]
    found: set[int] = set()
    for pair in exchanges_in_a_circle(places, subtask_exchanges(edges, results)):
        found |= {
            number
            for number, (each, result) in enumerate(zip(edges, results, strict=True))
            if result.type.is_blocking and (each.source, each.target) == (pair.producer[0], pair.consumer[0])
        }
    return sorted(found)


def _check(
    graph: StreamGraph, edge: StreamEdge, result: ResultPartitionType, config: Config, rule: CombinationRule
) -> None:
    source, target = graph.nodes[edge.source].name, graph.nodes[edge.target].name
    try:
        check_combination(result, _boundedness(graph, edge.source), _start(result, config.schedule_mode), rule)
    except LocalUsageError as error:
        raise LocalUsageError(f"{source} → {target}: {error}") from error
    if result.is_blocking and (config.checkpoint_interval_ms or config.unaligned):
        option = "checkpoint_interval_ms" if config.checkpoint_interval_ms else "unaligned"
        raise LocalUsageError(
            f"{source} → {target} is blocking, and a barrier does not pass a result that is read when it is complete: "
            f"leave {option} out, or make the exchange pipelined"
        )


def _boundedness(graph: StreamGraph, node: int) -> Boundedness:
    """Whether the stream of a node ends; it does not if one of the sources before it does not."""
    waiting, seen = [node], set[int]()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        if graph.nodes[each].is_unbounded:
            return Boundedness.UNBOUNDED
        waiting += [edge.source for edge in graph.in_edges(each)]
    return Boundedness.BOUNDED


def _start(result: ResultPartitionType, mode: ScheduleMode) -> ConsumerStart:
    """When the consumer of a result is started; without `EAGER` it is the result that decides."""
    if mode is ScheduleMode.EAGER:
        return ConsumerStart.AT_ONCE
    if result.is_blocking:
        return ConsumerStart.AFTER_LAST_OUTPUT
    is_lazy = mode is ScheduleMode.LAZY_FROM_SOURCES
    return ConsumerStart.WITH_FIRST_OUTPUT if is_lazy else ConsumerStart.AT_ONCE
