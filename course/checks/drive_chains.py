"""Runs one case of lesson 6 against any part of it and writes down what was seen.

The same text runs in the child with the learner's part and in the judge with the reference part;
so it imports the engine and the standard library only. A case is a list of operations:

    ["ask", {…}]      is_chainable of an edge; the fields say what is not as usual:
                      chaining, inputs, outputs, groups, up, down, way, parallelism, tag, and
                      sources (of the upstream one), sinks (of the downstream one), parallel (edges between the two),
                      ids, last (the two were added after all others, the downstream one first)
    ["build", {…}]    build_chains; `nodes` are ids as they were added, `edges` pairs of them,
                      `chained` those that may be chained
    ["new", {…}]      a copying output; `tag` is the name of its side output, if it is one
    ["collect", value, time]   ["side", name, value, time]      what the operator before it emits
    ["own_side", value, time]   likewise, with the very tag that the output was made with
    ["change"]        the operator behind it changes what it was given last
    ["watermark", time]   ["idle"]   ["active"]    what else goes through an output: the base class has it
    ["another", {…}]  one more output, with an operator, a type and a tag of its own

An event is [call, fields]: `answer` of is_chainable, `chains` of build_chains, how many operators and edges the graph
has afterwards if it is not as it was (`graph`), whether chains that were given before are others now (`earlier`), and
of an output what the operator behind it was given since (`given`, `time`), how often the type copied (`copies`), what
the sender's value is now and "exchanged" if it is another object (`kept`), that of the first record it gave (`first`),
and what else than records the operator was given (`passed`).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from refimpl.config import Config
from refimpl.job.stream_graph import (
    BROADCAST,
    FORWARD,
    GLOBAL,
    REBALANCE,
    RESCALE,
    SHUFFLE,
    ChainingStrategy,
    Partitioner,
    StreamEdge,
    StreamGraph,
    StreamNode,
)
from refimpl.producer.selector import KeyGroupSelector
from refimpl.records.any_type import ANY
from refimpl.records.elements import StreamRecord, StreamStatus, Watermark
from refimpl.task.operators import MapOperator
from refimpl.task.outputs import ChainingOutput, OutputTag

__all__ = ["WATCHED", "run_case"]

WATCHED = (StreamGraph, StreamNode, StreamEdge, Partitioner, ChainingStrategy, ChainingOutput, StreamRecord)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_HASH = Partitioner("hash", lambda _seed, groups: KeyGroupSelector(lambda value: value, groups))
_WAYS = {each.name: each for each in (FORWARD, REBALANCE, RESCALE, SHUFFLE, GLOBAL, BROADCAST, _HASH)}


# -- 6.1: two operators ----------------------------------------------------------------------------


def _two_operators(
    chaining: bool = True,
    inputs: int = 1,
    outputs: int = 1,
    groups: tuple[str, str] = ("default", "default"),
    up: str = "ALWAYS",
    down: str = "ALWAYS",
    way: str = "forward",
    parallelism: tuple[int, int] = (2, 2),
    tag: str = "",
    sources: int = 0,
    sinks: int = 0,
    parallel: int = 1,
    ids: tuple[int, int] = (1, 2),
    last: bool = False,
) -> tuple[StreamGraph, StreamEdge, Config]:
    graph, (one, other) = StreamGraph(), ids
    two = [_node(one, "source", parallelism[0], up, groups[0]), _node(other, "map", parallelism[1], down, groups[1])]
    rest: list[StreamNode] = []
    edge = StreamEdge(one, other, _WAYS[way], OutputTag(tag) if tag else None)
    for number in range(20, 20 + sources):  # what stands around the two has nothing in common with them
        rest.append(_node(number, f"far source {number}", parallelism[0] + 3, "NEVER", "far"))
        graph.add_edge(StreamEdge(number, one, REBALANCE))
    for number in range(3, 2 + inputs):  # the other inputs come first
        rest.append(_node(number, f"source {number}", parallelism[1]))
        graph.add_edge(StreamEdge(number, other, FORWARD))
    graph.add_edge(edge)
    for number in range(1, parallel):
        graph.add_edge(StreamEdge(one, other, FORWARD, OutputTag(f"side {number}")))
    for number in range(10, 9 + outputs):
        rest.append(_node(number, f"sink {number}", parallelism[0]))
        graph.add_edge(StreamEdge(one, number, FORWARD))
    for number in range(30, 30 + sinks):
        rest.append(_node(number, f"far sink {number}", parallelism[1] + 3, "NEVER", "far"))
        graph.add_edge(StreamEdge(other, number, REBALANCE))
    for node in [*rest, *reversed(two)] if last else [*two, *rest]:
        graph.add_node(node)
    return graph, edge, Config(chaining=chaining)


def _node(number: int, name: str, parallelism: int = 1, chaining: str = "ALWAYS", group: str = "default") -> StreamNode:
    return StreamNode(
        number, name, parallelism, lambda: MapOperator(lambda value: value), ANY, ChainingStrategy[chaining], group
    )


def _ask(part: Any, spec: Mapping[str, Any]) -> dict[str, Any]:
    graph, edge, config = _two_operators(**spec)
    before = _contents(graph)
    answer = part(graph, edge, config)
    if inspect.iscoroutine(answer):
        answer.close()  # or Python complains that nobody waited for it
    is_truth = answer is not None and hasattr(type(answer), "__bool__")
    return {"answer": bool(answer) if is_truth else f"?{_kind(answer)}", "graph": _changed(graph, before)}


def _contents(graph: StreamGraph) -> tuple[list[Any], list[StreamEdge]]:
    return [(number, copy.copy(node)) for number, node in graph.nodes.items()], list(graph.edges)


def _changed(graph: StreamGraph, before: tuple[list[Any], list[StreamEdge]]) -> list[int] | None:
    """How many operators and edges the graph has, if it is not as it was before."""
    return None if _contents(graph) == before else [len(graph.nodes), len(graph.edges)]


# -- 6.2: chains -----------------------------------------------------------------------------------


def _build(part: Any, spec: Mapping[str, Any], built: list[tuple[Callable[[], Any], Any]]) -> dict[str, Any]:
    graph = StreamGraph()
    for number in spec["nodes"]:
        graph.add_node(_node(number, f"operator {number}"))
    for source, target in spec["edges"]:
        graph.add_edge(StreamEdge(source, target, FORWARD))
    chained = {tuple(edge) for edge in spec["chained"]}
    before = _contents(graph)
    answer = part(graph, lambda edge: (edge.source, edge.target) in chained)
    found = partial(_chains, answer, spec["nodes"], spec["edges"])
    built.append((found, found()))
    is_changed = any(again() != was for again, was in built)
    return {"chains": found(), "graph": _changed(graph, before)} | ({"earlier": "changed"} if is_changed else {})


def _chains(answer: Any, nodes: list[int], edges: list[list[int]]) -> Any:
    """Head and members of each chain, in the order of `nodes` where theirs is as good; of anything else the type."""
    if not isinstance(answer, Mapping):
        return f"?{_kind(answer)}"
    found = []
    for head, members in answer.items():
        if not isinstance(head, int) or not isinstance(members, list | tuple):
            return f"?{_kind(answer)} of {_kind(head)} to {_kind(members)}"
        if not all(isinstance(member, int) for member in members):
            return f"?{_kind(answer)} with a list of {_kind(members[0])}"
        place = {member: index for index, member in enumerate(members)}
        in_order = all(place[s] < place[t] for s, t in edges if s in place and t in place)
        in_order = in_order and [head] == list(members[:1])
        known = in_order and set(members) <= set(nodes)
        found.append([head, sorted(members, key=nodes.index) if known else list(members), in_order])
    return sorted(found)


def _kind(value: object) -> str:
    return type(value).__name__[:40]


# -- 6.3: a copying output -------------------------------------------------------------------------


class _Counted:
    """A type that counts its copies; `copy` goes all the way down."""

    def __init__(self) -> None:
        self.num_copies = 0

    def copy(self, value: object) -> object:
        self.num_copies += 1
        return copy.deepcopy(value)


class _Behind:
    """The operator behind the output: keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.passed: list[str] = []

    def process(self, record: StreamRecord) -> None:
        self.records.append(record)

    def process_watermark(self, watermark: Watermark) -> None:
        self.passed.append(f"watermark {watermark.timestamp}")

    def process_status(self, status: StreamStatus) -> None:
        self.passed.append(status.name.lower())

    def fail(self, _record: object, error: Exception) -> Exception:
        return error


class _Sending:
    """An output, the operator before it and the one behind it."""

    def __init__(self, part: Any, tag: str = "") -> None:
        self.part, self.behind, self.type = part, _Behind(), _Counted()
        self.sent: StreamRecord | None = None
        self.value: Any = None
        self.tag = OutputTag(tag) if tag else None
        self.output = part(self.behind, self.type, self.tag) if tag else part(self.behind, self.type)
        self.others: list[_Sending] = []

    def do(self, name: str, *given: Any) -> dict[str, Any]:
        before, copies = len(self.behind.records), self.type.num_copies
        passed = len(self.behind.passed)
        answer = self._do(name, *given)
        fresh = self.behind.records[before:]
        is_record = all(isinstance(record, StreamRecord) for record in fresh)
        return {
            "answer": None if answer is None else f"?{_kind(answer)}",
            "given": [repr(record.value) if is_record else f"?{_kind(record)}" for record in fresh],
            "time": [record.timestamp if is_record else None for record in fresh],
            "copies": self.type.num_copies - copies,
            "first": [repr(getattr(record, "value", None)) for record in self.behind.records[:1]],
            "kept": None if self.sent is None else [repr(self.sent.value), self.sent.timestamp, *self._exchanged()],
            "passed": self.behind.passed[passed:],
        }

    def _exchanged(self) -> list[str]:
        """Whether the sender's record holds another value than before; where its record was handed on, that is told."""
        record = self.sent
        is_told = any(each is record for each in self.behind.records[-1:])
        return [] if record is None or record.value is self.value or is_told else ["exchanged"]

    def _do(self, name: str, *given: Any) -> Any:
        match name:
            case "collect":
                return self.output.collect(self._record(*given))
            case "side":
                return self.output.collect_side(OutputTag(given[0]), self._record(*given[1:]))
            case "own_side":
                return self.output.collect_side(self.tag, self._record(*given))
            case "change" if self.behind.records:
                last = self.behind.records[-1]
                _spoil(last.value)
                last.timestamp = -1
            case "watermark":
                self.output.emit_watermark(Watermark(given[0]))
            case "idle" | "active":
                self.output.emit_status(StreamStatus[name.upper()])
            case "another":
                self.others.append(_Sending(self.part, **given[0]))
        return None

    def _record(self, value: Any, time: int | None) -> StreamRecord:
        self.value = _own(value)
        self.sent = StreamRecord(self.value, time)
        return self.sent


def _own(value: Any) -> Any:
    return copy.deepcopy(value)


def _spoil(value: Any) -> None:
    """Change a value as deep as it goes."""
    if isinstance(value, dict):
        for each in value.values():
            _spoil(each)
        value["changed"] = True
    elif isinstance(value, list):
        for each in value:
            _spoil(each)
        value.append("changed")


_CALLED = {
    "ask": "is_chainable", "build": "build_chains", "new": "__init__", "another": "__init__", "side": "collect_side",
    "own_side": "collect_side", "watermark": "emit_watermark", "idle": "emit_status", "active": "emit_status",
}  # fmt: skip
"""What of the part an operation calls; of those that are missing, what bears their name."""


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    sending: _Sending | None = None
    built: list[tuple[Callable[[], Any], Any]] = []  # answers, and what they were when they were given
    for name, *given in case:
        event: list[Any] = [_CALLED.get(name, name)]
        events.append(event)
        if name == "ask":
            event.append(_ask(part, given[0]))
        elif name == "build":
            event.append(_build(part, given[0], built))
        elif name == "new":
            sending = _Sending(part, **given[0])
            event.append({})
        elif sending is not None:
            event.append(sending.do(name, *given))
