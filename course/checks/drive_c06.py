"""Runs one case of lesson 6 against any part of it and writes down what was seen.

The same text runs in the child with the learner's part and in the judge with the reference part;
so it imports the engine and the standard library only. A case is a list of operations:

    ["ask", {…}]      is_chainable of an edge; the fields say what is not as usual:
                      chaining, inputs, outputs, groups, up, down, way, parallelism, tag
    ["build", {…}]    build_chains; `nodes` are ids, `edges` pairs of them, `chained` those that may be chained
    ["new", {…}]      a copying output; `tag` is the name of its side output, if it is one
    ["collect", value, time]   ["side", name, value, time]      what the operator before it emits
    ["change"]        the operator behind it changes what it was given last

An event is [name, fields]: `answer` of is_chainable, `chains` of build_chains, and of an output what the operator
behind it was given since (`given`, `time`), how often the type copied (`copies`), what the sender's value is now
(`kept`), and that of the first record it gave (`first`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
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
from refimpl.records.elements import StreamRecord
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
) -> tuple[StreamGraph, StreamEdge, Config]:
    graph = StreamGraph()
    graph.add_node(_node(1, "source", parallelism[0], up, groups[0]))
    graph.add_node(_node(2, "map", parallelism[1], down, groups[1]))
    edge = StreamEdge(1, 2, _WAYS[way], OutputTag(tag) if tag else None)
    for number in range(3, 2 + inputs):  # the other inputs come first
        graph.add_node(_node(number, f"source {number}", parallelism[1]))
        graph.add_edge(StreamEdge(number, 2, FORWARD))
    graph.add_edge(edge)
    for number in range(10, 9 + outputs):
        graph.add_node(_node(number, f"sink {number}", parallelism[0]))
        graph.add_edge(StreamEdge(1, number, FORWARD))
    return graph, edge, Config(chaining=chaining)


def _node(number: int, name: str, parallelism: int = 1, chaining: str = "ALWAYS", group: str = "default") -> StreamNode:
    return StreamNode(
        number, name, parallelism, lambda: MapOperator(lambda value: value), ANY, ChainingStrategy[chaining], group
    )


def _ask(part: Any, spec: Mapping[str, Any]) -> dict[str, Any]:
    answer = part(*_two_operators(**spec))
    is_plain = answer is None or isinstance(answer, str | bytes) or callable(answer)
    return {"answer": f"?{_kind(answer)}" if is_plain else bool(answer)}


# -- 6.2: chains -----------------------------------------------------------------------------------


def _build(part: Any, spec: Mapping[str, Any]) -> dict[str, Any]:
    graph = StreamGraph()
    for number in spec["nodes"]:
        graph.add_node(_node(number, f"operator {number}"))
    for source, target in spec["edges"]:
        graph.add_edge(StreamEdge(source, target, FORWARD))
    chained = {tuple(edge) for edge in spec["chained"]}
    answer = part(graph, lambda edge: (edge.source, edge.target) in chained)
    return {"chains": _chains(answer, spec["nodes"], spec["edges"])}


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

    def process(self, record: StreamRecord) -> None:
        self.records.append(record)

    def fail(self, _record: object, error: Exception) -> Exception:
        return error


class _Sending:
    """An output, the operator before it and the one behind it."""

    def __init__(self, part: Any, tag: str = "") -> None:
        self.behind, self.type = _Behind(), _Counted()
        self.sent: StreamRecord | None = None
        self.output = part(self.behind, self.type, OutputTag(tag)) if tag else part(self.behind, self.type)

    def do(self, name: str, *given: Any) -> dict[str, Any]:
        before, copies = len(self.behind.records), self.type.num_copies
        answer: Any = None
        if name == "collect":
            self.sent = StreamRecord(_own(given[0]), given[1])
            answer = self.output.collect(self.sent)
        elif name == "side":
            self.sent = StreamRecord(_own(given[1]), given[2])
            answer = self.output.collect_side(OutputTag(given[0]), self.sent)
        elif name == "change" and self.behind.records:
            last = self.behind.records[-1]
            _spoil(last.value)
            last.timestamp = -1
        fresh = self.behind.records[before:]
        is_record = all(isinstance(record, StreamRecord) for record in fresh)
        return {
            "answer": None if answer is None else f"?{_kind(answer)}",
            "given": [repr(record.value) if is_record else f"?{_kind(record)}" for record in fresh],
            "time": [record.timestamp if is_record else None for record in fresh],
            "copies": self.type.num_copies - copies,
            "first": [repr(getattr(record, "value", None)) for record in self.behind.records[:1]],
            "kept": None if self.sent is None else [repr(self.sent.value), self.sent.timestamp],
        }


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


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    sending: _Sending | None = None
    for name, *given in case:
        event: list[Any] = [name]
        events.append(event)
        if name == "ask":
            event.append(_ask(part, given[0]))
        elif name == "build":
            event.append(_build(part, given[0]))
        elif name == "new":
            sending = _Sending(part, **given[0])
            event.append({})
        elif sending is not None:
            event.append(sending.do(name, *given))
