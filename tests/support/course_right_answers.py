"""Right answers in many styles, beside the wheat: what people write who think in another way. Each must pass."""

from __future__ import annotations

__all__ = ["RIGHT"]

_HEAD = "from refimpl.records import SerializationResult as R\n"
_END = """
        if self.left():
            return R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        return R.FULL_RECORD_MEMORY_SEGMENT_FULL if builder.is_full else R.FULL_RECORD
"""

RIGHT: dict[tuple[str, str], str] = {
    ("0.1", "conditional"): """
def to_departure(flight):
    late = flight["dep_delay_minutes"]
    return (flight["origin"], late if late > 0 else 0)
""",
    ("0.1", "typed"): """
from __future__ import annotations
from typing import TypedDict

class Flight(TypedDict):
    origin: str
    dep_delay_minutes: int

@L.exercise("0.1")
def to_departure(flight: Flight) -> tuple[str, int]:
    minutes: int = flight["dep_delay_minutes"]
    return flight["origin"], minutes * (minutes > 0)
""",
    ("0.1", "named_tuple"): """
from typing import NamedTuple

class Departure(NamedTuple):
    origin: str
    late: int

def to_departure(flight):
    return Departure(flight["origin"], max(0, flight["dep_delay_minutes"]))
""",
    ("0.1", "helpers"): """
def _late(flight):
    return sorted((0, flight["dep_delay_minutes"]))[-1]

def _origin(flight):
    return flight.get("origin")

@L.exercise("0.1")
def answer(flight):
    return _origin(flight), _late(flight)
""",
    ("0.1", "callable_object"): """
class Mapper:
    def __call__(self, flight):
        return flight["origin"], max(flight["dep_delay_minutes"], 0)

to_departure = Mapper()
""",
    ("0.1", "decorated_object"): """
from course import lesson
L = lesson(0)

class Mapper:
    def map(self, flight):
        return flight["origin"], max(flight["dep_delay_minutes"], 0)

L.exercise("0.1")(Mapper().map)
""",
    ("0.1", "partial"): """
from functools import partial

def floor(least, flight):
    return flight["origin"], max(least, flight["dep_delay_minutes"])

to_departure = partial(floor, 0)
""",
    ("0.1", "numpy"): """
import numpy as np

def to_departure(flight):
    return flight["origin"], int(np.clip(flight["dep_delay_minutes"], 0, None))
""",
    ("0.1", "generator_inside"): """
def to_departure(flight):
    def values():
        yield flight["origin"]
        yield max(0, flight["dep_delay_minutes"])
    return tuple(values())
""",
    ("0.1", "match"): """
def to_departure(flight):
    match flight:
        case {"origin": origin, "dep_delay_minutes": late} if late > 0:
            return origin, late
        case {"origin": origin}:
            return origin, 0
""",
    ("0.1", "dataclass_inside"): """
from dataclasses import astuple, dataclass

@dataclass(frozen=True)
class Departure:
    origin: str
    late: int

    @classmethod
    def of(cls, flight):
        return cls(flight["origin"], max(0, flight["dep_delay_minutes"]))

def to_departure(flight):
    return astuple(Departure.of(flight))
""",
    ("0.1", "cached_and_wrapped"): """
import functools

def traced(function):
    @functools.wraps(function)
    def wrapper(flight):
        return function(dict(flight))
    return wrapper

@L.exercise("0.1")
@traced
def to_departure(flight):
    flight["dep_delay_minutes"] = max(0, flight["dep_delay_minutes"])
    return flight["origin"], flight["dep_delay_minutes"]
""",
    ("0.1", "tries_it_out"): """
def to_departure(flight):
    return flight["origin"], max(0, flight["dep_delay_minutes"])

example = {"origin": "JFK", "dep_delay_minutes": -3}
assert to_departure(example) == ("JFK", 0)
print(to_departure(example))
check("0.1")

if __name__ == "__main__":
    raise SystemExit("not reached in a check")
""",
    ("3.1", "list_of_bytes"): _HEAD
    + """
class Mine:
    todo, done = (), 0
    def __init__(self):
        self.all, self.at = [], 0
    def left(self):
        return len(self.all) - self.at
    def serialize_record(self, record):
        n = len(record)
        self.all = [n >> 24 & 255, n >> 16 & 255, n >> 8 & 255, n & 255, *record]
        self.at = 0
    def copy_to_buffer_builder(self, builder):
        part = bytes(self.all[self.at : self.at + builder.room])
        builder.append(part)
        builder.commit()
        self.at += len(part)"""
    + _END
    + """
    def reset(self):
        self.at = 0
    def prune(self):
        self.all, self.at = [], 0
""",
    ("3.1", "slots_dataclass_below"): _HEAD
    + """
from dataclasses import dataclass

@dataclass(slots=True)
@L.exercise("3.1")
class Mine:
    data: bytes = b""
    at: int = 0
    def left(self):
        return self.at < len(self.data)
    def serialize_record(self, record: bytes) -> None:
        self.data, self.at = len(record).to_bytes(4, "big") + record, 0
    def copy_to_buffer_builder(self, builder) -> R:
        self.at += builder.append_and_commit(self.data, self.at)"""
    + _END
    + """
    def reset(self) -> None:
        self.at = 0
    def prune(self) -> None:
        self.data, self.at = b"", 0
""",
    ("3.1", "slots_dataclass_above"): _HEAD
    + """
import dataclasses

@L.exercise("3.1")
@dataclasses.dataclass(slots=True)
class Mine:
    data: bytes = b""
    at: int = dataclasses.field(default=0)
    def left(self):
        return self.at < len(self.data)
    def serialize_record(self, record):
        self.data, self.at = len(record).to_bytes(4, "big") + record, 0
    def copy_to_buffer_builder(self, builder):
        self.at += builder.append_and_commit(self.data, self.at)"""
    + _END
    + """
    def reset(self):
        self.at = 0
    def prune(self):
        self.data, self.at = b"", 0
""",
    ("3.1", "closures_in_the_object"): _HEAD
    + """
class Mine:
    def __init__(self):
        data, at = b"", 0
        def serialize(record):
            nonlocal data, at
            data, at = len(record).to_bytes(4) + record, 0
        def copy(builder):
            nonlocal at
            at += builder.append_and_commit(data, at)
            full, done = builder.is_full, at >= len(data)
            return R.FULL_RECORD if done and not full else (
                R.FULL_RECORD_MEMORY_SEGMENT_FULL if done else R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL)
        def reset():
            nonlocal at
            at = 0
        def prune():
            nonlocal data, at
            data, at = b"", 0
        self.serialize_record, self.copy_to_buffer_builder = serialize, copy
        self.reset, self.prune = reset, prune
""".replace("class Mine:", '@L.exercise("3.1")\nclass Mine:'),
    ("3.1", "delegates_everything"): _HEAD
    + """
class _Core:
    data = b""
    at = 0
    def left(self):
        return self.at < len(self.data)
    def serialize_record(self, record):
        self.data, self.at = len(record).to_bytes(4, "big") + record, 0
    def copy_to_buffer_builder(self, builder):
        self.at += builder.append_and_commit(self.data, self.at)"""
    + _END
    + """
    def reset(self):
        self.at = 0
    def prune(self):
        self.data, self.at = b"", 0

@L.exercise("3.1")
class Mine:
    def __init__(self):
        self._core = _Core()
    def __getattr__(self, name):
        return getattr(self._core, name)
""",
    ("3.1", "abstract_base_and_mixin"): _HEAD
    + """
from abc import ABC, abstractmethod

class Rewinds:
    at = 0
    def reset(self):
        self.at = 0

class Cuts(ABC):
    @abstractmethod
    def header(self, size): ...
    def left(self):
        return len(self.data) - self.at
    def copy_to_buffer_builder(self, builder):
        n = min(builder.room, self.left())
        builder.append(self.data[self.at : self.at + n])
        builder.commit()
        self.at += n"""
    + _END
    + """

class Mine(Rewinds, Cuts):
    data = b""
    def header(self, size):
        return bytes.fromhex(f"{size:08x}")
    def serialize_record(self, record):
        self.data = self.header(len(record)) + record
        self.reset()
    def prune(self):
        self.data = b""
        self.reset()
""",
    ("3.1", "bytes_io"): _HEAD
    + """
import io

class Mine:
    def __init__(self):
        self.stream = io.BytesIO()
        self.size = 0
    def left(self):
        return self.size - self.stream.tell()
    def serialize_record(self, record):
        self.stream = io.BytesIO(len(record).to_bytes(4, "big") + record)
        self.size = len(record) + 4
    def copy_to_buffer_builder(self, builder):
        builder.append_and_commit(self.stream.read(builder.room))"""
    + _END
    + """
    def reset(self):
        self.stream.seek(0)
    def prune(self):
        self.stream, self.size = io.BytesIO(), 0
""",
    ("3.1", "nothing_before_first_record"): _HEAD
    + """
class Mine:
    record = None
    def left(self):
        return 0 if self.record is None else 4 + len(self.record) - self.sent
    def serialize_record(self, record):
        self.record = record
        self.sent = 0
    def copy_to_buffer_builder(self, builder):
        if self.record is not None:
            header = len(self.record).to_bytes(4, "big")
            while self.left() and builder.room:
                piece = header[self.sent:] if self.sent < 4 else memoryview(self.record)[self.sent - 4:]
                self.sent += builder.append(piece)
            builder.commit()"""
    + _END
    + """
    def reset(self):
        self.sent = 0
    def prune(self):
        self.record = None
""",
    ("3.1", "states_and_match"): _HEAD
    + """
from enum import Enum, auto
from itertools import islice

class State(Enum):
    IDLE = auto()
    SENDING = auto()

class Mine:
    def __init__(self):
        self.state, self.whole, self.rest = State.IDLE, b"", iter(b"")
        self.num_left = 0
    def left(self):
        return self.num_left
    def serialize_record(self, record):
        self.whole = b"%c%c%c%c" % tuple(len(record).to_bytes(4, "big")) + record
        self.reset()
    def copy_to_buffer_builder(self, builder):
        match self.state:
            case State.SENDING:
                n = builder.append(bytes(islice(self.rest, builder.room)))
                builder.commit()
                self.num_left -= n
                if not self.num_left:
                    self.state = State.IDLE"""
    + _END
    + """
    def reset(self):
        self.rest, self.num_left = iter(self.whole), len(self.whole)
        self.state = State.SENDING if self.whole else State.IDLE
    def prune(self):
        self.whole = b""
        self.reset()
""",
    ("3.1", "properties_and_walrus"): _HEAD
    + """
class Mine:
    def __init__(self, data=b"", at=0):
        self._data, self._at = bytearray(data), at
    @property
    def rest(self):
        return memoryview(self._data)[self._at:]
    def left(self):
        return bool(self.rest)
    def serialize_record(self, record):
        self._data = bytearray(4)
        self._data[:4] = len(record).to_bytes(4, byteorder="big", signed=True)
        self._data.extend(record)
        self._at = 0
    def copy_to_buffer_builder(self, builder):
        while (n := builder.append(self.rest[:7])):
            self._at += n
        builder.commit()"""
    + _END
    + """
    def reset(self, at=0):
        self._at = at
    prune = __init__
""",
    ("3.1", "makes_the_class"): _HEAD
    + """
def make():
    class Hidden:
        data, at = b"", 0
        def left(self):
            return self.at < len(self.data)
        def serialize_record(self, record):
            self.data, self.at = len(record).to_bytes(4, "big") + record, 0
        def copy_to_buffer_builder(self, builder):
            self.at += builder.append_and_commit(self.data, self.at)
            return (R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL if self.left() else
                    [R.FULL_RECORD, R.FULL_RECORD_MEMORY_SEGMENT_FULL][builder.is_full])
        def reset(self):
            self.at = 0
        def prune(self):
            self.data, self.at = b"", 0
    return Hidden

Mine = L.exercise("3.1")(make())
""",
    ("3.1", "keeps_what_pruned_until_next"): _HEAD
    + """
class Mine:
    pending = ()
    def left(self):
        return len(self.pending)
    def serialize_record(self, record):
        self.kept = len(record).to_bytes(4, "big"), record
        self.reset()
    def copy_to_buffer_builder(self, builder):
        pending = list(self.pending)
        while pending and builder.room:
            n = builder.append(pending[0])
            pending[:1] = [pending[0][n:]] if n < len(pending[0]) else []
        builder.commit()
        self.pending = [each for each in pending if each]"""
    + _END
    + """
    def reset(self):
        self.pending = [each for each in self.kept if each]
    def prune(self):
        self.pending = self.kept = ()
""",
    ("6.1", "numbers"): """
def is_chainable(graph, edge, config):
    from refimpl.job import ChainingStrategy as S
    a, b = graph.nodes[edge.source], graph.nodes[edge.target]
    score = sum([config.chaining, len(list(graph.in_edges(b.id))) == 1, a.slot_sharing_group == b.slot_sharing_group,
        a.chaining is not S.NEVER and b.chaining is S.ALWAYS, edge.partitioner.name == "forward",
        a.parallelism == b.parallelism])
    return score == 6
""",
    ("6.1", "match"): """
from refimpl.job import ChainingStrategy, FORWARD
@L.exercise("6.1")
def is_chainable(graph, edge, config):
    up, down = graph.nodes[edge.source], graph.nodes[edge.target]
    match (config.chaining, up.chaining, down.chaining):
        case (False, _, _) | (_, ChainingStrategy.NEVER, _) | (_, _, ChainingStrategy.NEVER):
            return False
        case (_, _, ChainingStrategy.HEAD):
            return False
    same = (up.parallelism, up.slot_sharing_group) == (down.parallelism, down.slot_sharing_group)
    return same and edge.partitioner == FORWARD and sum(e.target == down.id for e in graph.edges) == 1
""",
    ("6.1", "generator_all"): """
from refimpl.job import ChainingStrategy, FORWARD
def conditions(graph, edge, config):
    up, down = graph.nodes[edge.source], graph.nodes[edge.target]
    yield config.chaining
    yield len(graph.in_edges(edge.target)) < 2
    yield up.slot_sharing_group == down.slot_sharing_group
    yield up.chaining.name in {"ALWAYS", "HEAD"}
    yield down.chaining.name == "ALWAYS"
    yield edge.partitioner is FORWARD
    yield not up.parallelism - down.parallelism
def is_chainable(graph, edge, config):
    return all(conditions(graph, edge, config))
""",
    ("6.1", "lambda_and_networkx"): """
from refimpl.job import ChainingStrategy as C, FORWARD
is_chainable = lambda graph, edge, config: bool(
    config.chaining and graph.to_networkx().in_degree(edge.target) == 1
    and len({(graph.nodes[n].parallelism, graph.nodes[n].slot_sharing_group) for n in (edge.source, edge.target)}) == 1
    and graph.nodes[edge.source].chaining != C.NEVER and graph.nodes[edge.target].chaining == C.ALWAYS
    and not edge.partitioner != FORWARD)
is_chainable = L.exercise("6.1")(is_chainable)
""",
    ("6.1", "class_of_rules"): """
from dataclasses import dataclass
from typing import Any
from refimpl.job import ChainingStrategy, FORWARD
@dataclass
class Question:
    graph: Any
    edge: Any
    config: Any
    def answer(self):
        up = self.graph.nodes[self.edge.source]; down = self.graph.nodes[self.edge.target]
        if not self.config.chaining: return False
        for other in self.graph.edges:
            if other.target == down.id and other is not self.edge: return False
        return (up.slot_sharing_group == down.slot_sharing_group and up.chaining is not ChainingStrategy.NEVER
                and down.chaining is ChainingStrategy.ALWAYS and self.edge.partitioner == FORWARD
                and up.parallelism == down.parallelism)
@L.exercise("6.1")
def is_chainable(graph, edge, config):
    return Question(graph, edge, config).answer()
""",
    ("6.2", "networkx"): """
import networkx as nx
def build_chains(graph, can_chain):
    folded = nx.Graph()
    order = [n.id for n in graph.in_order()]
    folded.add_nodes_from(order)
    folded.add_edges_from((e.source, e.target) for e in graph.edges if can_chain(e))
    chains = {}
    for part in nx.connected_components(folded):
        members = [n for n in order if n in part]
        chains[members[0]] = members
    return chains
""",
    ("6.2", "tuples"): """
from collections import OrderedDict
def build_chains(graph, can_chain):
    chains = OrderedDict()
    for node in graph.in_order():
        before = next((e.source for e in graph.in_edges(node.id) if can_chain(e)), None)
        if before is None:
            chains[node.id] = (node.id,)
            continue
        (head,) = [h for h, members in chains.items() if before in members]
        chains[head] += (node.id,)
    return chains
""",
    ("6.2", "depth_first_stack"): """
def build_chains(graph, can_chain):
    behind = {}
    for edge in graph.edges:
        if can_chain(edge): behind.setdefault(edge.source, []).append(edge.target)
    joined = {t for targets in behind.values() for t in targets}
    result = {}
    for number in graph.nodes:
        if number in joined: continue
        stack, chain = [number], []
        while stack:
            here = stack.pop()
            chain.append(here)
            stack.extend(reversed(behind.get(here, [])))
        result[number] = chain
    return result
""",
    ("6.2", "groupby"): """
from itertools import groupby
def build_chains(graph, can_chain):
    parent = {e.target: e.source for e in graph.edges if can_chain(e)}
    def head(n): return head(parent[n]) if n in parent else n
    order = {n.id: i for i, n in enumerate(graph.in_order())}
    keyed = sorted(order, key=lambda n: (order[head(n)], order[n]))
    return {h: list(members) for h, members in groupby(keyed, key=head)}
""",
    ("6.2", "class_in_the_cell"): """
class Builder:
    def __init__(self, graph, can_chain):
        self.graph, self.can_chain, self.chains = graph, can_chain, {}
    def visit(self, number, head):
        self.chains.setdefault(head, []).append(number)
        for edge in self.graph.out_edges(number):
            if self.can_chain(edge):
                self.visit(edge.target, head)
    def run(self):
        for node in self.graph.in_order():
            if all(not self.can_chain(edge) for edge in self.graph.in_edges(node.id)):
                self.visit(node.id, node.id)
        return self.chains
@L.exercise("6.2")
def build_chains(graph, can_chain):
    return Builder(graph, can_chain).run()
""",
    ("6.3", "typed"): """
from __future__ import annotations
from refimpl.records import StreamRecord, TypeSerializer
from refimpl.task import ChainingOutput, OutputTag, Receiver
@L.exercise("6.3")
class CopyingOutput(ChainingOutput):
    def __init__(self, operator: Receiver, value_type: TypeSerializer, tag: OutputTag | None = None) -> None:
        super().__init__(operator, tag=tag)
        self.type: TypeSerializer = value_type
    def copied(self, record: StreamRecord) -> StreamRecord:
        return StreamRecord(self.type.copy(record.value), record.timestamp)
    def collect(self, record: StreamRecord) -> None:
        if self.tag is None:
            super().collect(self.copied(record))
    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        if tag == self.tag:
            super().collect_side(tag, self.copied(record))
""",
    ("6.3", "positional_any"): """
from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput

class Mine(ChainingOutput):
    def __init__(self, *given):
        self.copier = given[1].copy
        super().__init__(given[0], given[2] if len(given) > 2 else None)
    def collect(self, record):
        if self.tag: return
        fresh = StreamRecord(self.copier(record.value))
        if record.timestamp is not None: fresh.timestamp = record.timestamp
        self.operator.process(fresh)
    def collect_side(self, tag, record):
        if not self.tag or self.tag.name != tag.name: return
        fresh = StreamRecord(self.copier(record.value))
        if record.timestamp is not None: fresh.timestamp = record.timestamp
        self.operator.process(fresh)
""",
    ("6.3", "shallow_record_copy"): """
import copy
from refimpl.task import ChainingOutput
class Mine(ChainingOutput):
    def __init__(self, operator, value_type, tag=None):
        super().__init__(operator, tag)
        self.value_type = value_type
    def _twin(self, record):
        twin = copy.copy(record)
        twin.value = self.value_type.copy(record.value)
        return twin
    def collect(self, record):
        if self.tag is None: super().collect(self._twin(record))
    def collect_side(self, tag, record):
        if self.tag == tag: super().collect_side(tag, self._twin(record))
""",
    ("6.3", "decorator"): """
from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput

def copying(method):
    def send(self, *given):
        *tag, record = given
        mine = tag[0] if tag else None
        if mine == self.tag:
            method(self, *tag, StreamRecord(self.value_type.copy(record.value), record.timestamp))
    return send
class Mine(ChainingOutput):
    def __init__(self, operator, value_type, tag=None):
        super().__init__(operator, tag)
        self.value_type = value_type
    collect = copying(ChainingOutput.collect)
    collect_side = copying(ChainingOutput.collect_side)
""",
    ("6.3", "mixin"): """
from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput

class Copies:
    value_type = None
    def twin(self, r): return StreamRecord(value=self.value_type.copy(r.value), timestamp=r.timestamp)
class Mine(Copies, ChainingOutput):
    def __init__(self, operator, value_type, tag=None):
        ChainingOutput.__init__(self, operator, tag)
        self.value_type = value_type
    def collect(self, record):
        if self.tag is None: ChainingOutput.collect(self, self.twin(record))
    def collect_side(self, tag, record):
        return ChainingOutput.collect_side(self, tag, self.twin(record)) if tag == self.tag else None
""",
    ("7.1", "decorated_and_typed"): """
from __future__ import annotations
from refimpl.memory import BufferConsumer
from refimpl.producer import BufferAndBacklog, SubpartitionQueue

@L.exercise("7.1")
class Subpartition(SubpartitionQueue):
    def _silent(self) -> bool:
        return self.is_blocked or self.is_flush_requested
    def count_backlog(self) -> int:
        minus: int = int(not (self.is_flush_requested or self.is_finished)) and 1
        return max(0, self.num_data_buffers - minus)
    def add(self, consumer: BufferConsumer) -> bool:
        ok = self.enqueue(consumer)
        if ok and self.num_finished == 1 and not self._silent():
            self.notify()
        return ok
    def flush(self) -> None:
        if self.is_flush_requested or not self.queue:
            return
        if len(self.queue) > 1:
            self.is_flush_requested = True
        elif self.queue[0].is_data_available and not self.is_blocked:
            self.is_flush_requested = True
            self.notify()
    def poll(self) -> BufferAndBacklog | None:
        if self.is_blocked:
            return None
        while len(self.queue):
            head = self.queue[0]
            piece = head.take()
            self.is_flush_requested &= len(self.queue) > 1
            if head.is_finished:
                self.remove_head()
            if piece.size == 0:
                piece.recycle()
                if head.is_finished:
                    continue
                return None
            return self.deliver(piece)
        return None
""",
    ("7.1", "generator"): """
from refimpl.producer import SubpartitionQueue

class Subpartition(SubpartitionQueue):
    def count_backlog(self):
        n = self.num_data_buffers
        return n if self.is_finished or self.is_flush_requested or n == 0 else n - 1
    def add(self, consumer):
        joined = self.enqueue(consumer)
        if joined and not (self.is_flush_requested or self.is_blocked) and self.num_finished == 1:
            self.notify()
        return joined
    def flush(self):
        news = False
        if not self.is_flush_requested:
            if len(self.queue) == 1:
                news = self.queue[0].unread_bytes > 0 and not self.is_blocked
                self.is_flush_requested = news
            else:
                self.is_flush_requested = bool(self.queue)
        if news:
            self.notify()
    def _pieces(self):
        while self.queue:
            head = self.queue[0]
            if len(self.queue) == 1:
                self.is_flush_requested = False
            piece = head.take()
            if head.is_finished:
                self.remove_head()
            yield piece
            if not head.is_finished:
                return
    def poll(self):
        if not self.is_blocked:
            for piece in self._pieces():
                if piece.size:
                    return self.deliver(piece)
                piece.recycle()
""",
    ("7.1", "build_and_close"): """
from refimpl.producer import SubpartitionQueue

class Subpartition(SubpartitionQueue):
    def count_backlog(self):
        entries = [e for e in self.queue if e.is_buffer]
        if entries and not self.is_finished and not self.is_flush_requested:
            entries = entries[:-1]
        return len(entries)
    def add(self, consumer):
        if not self.enqueue(consumer): return False
        if self.is_flush_requested: return True
        if self.is_blocked: return True
        if self.num_finished != 1: return True
        self.notify()
        return True
    def flush(self):
        n = len(self.queue)
        if n == 0: return
        if n > 1:
            self.is_flush_requested = True
            return
        if not self.is_flush_requested and not self.is_blocked and self.queue[0].is_data_available:
            self.is_flush_requested = True
            self.notify()
    def poll(self):
        result = None
        while result is None and self.queue and not self.is_blocked:
            entry = self.queue[0]
            piece = entry.build()
            finished = entry.is_finished
            if len(self.queue) == 1: self.is_flush_requested = False
            if finished:
                self.remove_head()
                entry.close()
            if piece.start < piece.end:
                result = self.deliver(piece)
            else:
                piece.recycle()
                if not finished: break
        return result
""",
    ("7.1", "mixin_and_super"): """
from refimpl.producer import SubpartitionQueue

class Telling:
    def tell_when(self, yes):
        if yes: self.notify()
        return yes
class Subpartition(Telling, SubpartitionQueue):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = []
    def count_backlog(self):
        tail = not (self.is_flush_requested or self.is_finished)
        return max(self.num_data_buffers - tail, 0)
    def add(self, consumer):
        self.log.append(consumer)
        if self.enqueue(consumer) is False:
            return False
        self.tell_when(self.num_finished == 1 and not self.is_blocked and not self.is_flush_requested)
        return True
    def flush(self):
        if self.queue and not self.is_flush_requested:
            only = len(self.queue) == 1
            news = self.queue[0].is_data_available and not self.is_blocked
            self.is_flush_requested = news if only else True
            self.tell_when(only and news)
    def poll(self):
        if self.is_blocked or not self.queue:
            return None
        last = len(self.queue) == 1
        head = self.queue[0]
        piece = head.take()
        if last: self.is_flush_requested = False
        if head.is_finished: self.remove_head()
        if memoryview(piece.data).nbytes: return self.deliver(piece)
        piece.recycle()
        return None if not head.is_finished else self.poll()
""",
    ("7.1", "popleft_by_hand"): """
from refimpl.producer import SubpartitionQueue

class Subpartition(SubpartitionQueue):
    def count_backlog(self):
        complete = self.is_finished or self.is_flush_requested
        return self.num_data_buffers if complete else max(0, self.num_data_buffers - 1)
    def add(self, consumer):
        if self.is_finished or self.is_released:
            consumer.close()
            return False
        self.queue.append(consumer)
        self.num_buffers_total += 1
        self.num_data_buffers += 1 if consumer.is_buffer else 0
        if self.num_finished == 1 and not self.is_flush_requested and not self.is_blocked:
            self.notify()
        return True
    def flush(self):
        if len(self.queue) > 1: self.is_flush_requested = True
        elif len(self.queue) == 0 or self.is_flush_requested or self.is_blocked: return
        elif self.queue[0].is_data_available:
            self.is_flush_requested = True
            self.notify()
    def poll(self):
        while self.queue:
            if self.is_blocked: break
            if len(self.queue) == 1: self.is_flush_requested = False
            piece = self.queue[0].take()
            gone = self.queue[0].is_finished
            if gone:
                entry = self.queue.popleft()
                if entry.is_buffer: self.num_data_buffers -= 1
            if piece.end - piece.start > 0: return self.deliver(piece)
            piece.recycle()
            if not gone: break
""",
    ("7.1", "lambda_rules"): """
from refimpl.producer import SubpartitionQueue

quiet = lambda s: s.is_blocked or s.is_flush_requested
readable = lambda s: s.is_finished or s.is_flush_requested
class Subpartition(SubpartitionQueue):
    count_backlog = lambda self: self.num_data_buffers if readable(self) else max(0, self.num_data_buffers - 1)
    def add(self, consumer):
        if queued := self.enqueue(consumer):
            not quiet(self) and self.num_finished == 1 and self.notify()
        return queued
    def flush(self):
        if quiet(self) and len(self.queue) < 2: return
        if self.is_flush_requested: return
        match list(self.queue):
            case []: pass
            case [one]:
                if one.is_data_available:
                    self.is_flush_requested = True
                    self.notify()
            case _: self.is_flush_requested = True
    def poll(self):
        while self.queue and not self.is_blocked:
            (head, *others) = self.queue
            piece = head.take()
            if not others: self.is_flush_requested = False
            if head.is_finished: self.remove_head()
            if piece.size: return self.deliver(piece)
            piece.recycle()
            if not head.is_finished: return None
""",
    ("7.1", "numpy"): """
from refimpl.producer import SubpartitionQueue

import numpy as np
class Subpartition(SubpartitionQueue):
    def count_backlog(self):
        is_data = np.array([e.is_buffer for e in self.queue], dtype=bool)
        n = int(is_data.sum())
        return n if (self.is_flush_requested or self.is_finished) else max(0, n - 1)
    def add(self, consumer):
        before = self.num_finished
        if not self.enqueue(consumer): return False
        if before == 0 and self.num_finished == 1 and not self.is_flush_requested and not self.is_blocked: self.notify()
        return True
    def flush(self):
        if self.is_flush_requested or not self.queue: return
        unread = np.array([e.unread_bytes for e in self.queue])
        if len(unread) > 1: self.is_flush_requested = True
        elif unread[0] > 0 and not self.is_blocked:
            self.is_flush_requested = True
            self.notify()
    def poll(self):
        if self.is_blocked: return None
        while self.queue:
            if len(self.queue) < 2: self.is_flush_requested = False
            head = self.queue[0]
            piece = head.take()
            if head.is_finished: self.remove_head()
            if np.frombuffer(piece.data, dtype=np.uint8).size: return self.deliver(piece)
            piece.recycle()
            if not head.is_finished: return None
        return None
""",
    ("7.1", "try_finally"): """
from refimpl.producer import SubpartitionQueue

class Subpartition(SubpartitionQueue):
    def count_backlog(self):
        if not self.num_data_buffers: return 0
        if self.is_flush_requested: return self.num_data_buffers
        if self.is_finished: return self.num_data_buffers
        return self.num_data_buffers - 1
    def add(self, consumer):
        try:
            return self.enqueue(consumer)
        finally:
            is_over, is_quiet = self.is_finished or self.is_released, self.is_flush_requested or self.is_blocked
            if not is_over and not is_quiet and self.num_finished == 1:
                self.notify()
    def flush(self):
        if self.is_flush_requested: return
        try:
            head = self.queue[0]
        except IndexError:
            return
        if len(self.queue) == 1 and (self.is_blocked or not head.is_data_available): return
        self.is_flush_requested = True
        if len(self.queue) == 1: self.notify()
    def poll(self):
        while not self.is_blocked:
            try:
                head = self.queue[0]
            except IndexError:
                return None
            piece = head.take()
            if len(self.queue) == 1: self.is_flush_requested = False
            if head.is_finished: self.remove_head()
            if piece.size: return self.deliver(piece)
            piece.recycle()
            if not head.is_finished: return None
        return None
""",
    ("7.1", "uses_what_the_base_knows"): """
from refimpl.producer import SubpartitionQueue

class Subpartition(SubpartitionQueue):
    def count_backlog(self):
        return max(0, self.num_data_buffers - (not self.is_flush_requested and not self.is_finished))
    def add(self, consumer):
        told = self.is_data_available or self.is_blocked
        if not self.enqueue(consumer): return False
        if not told and self.is_data_available: self.notify()
        return True
    def has_news(self):
        return not self.is_flush_requested and not self.is_blocked and self.queue[0].is_data_available
    def flush(self):
        if self.num_queued > 1: self.is_flush_requested = True
        elif self.has_unannounced_data or (self.num_queued == 1 and self.has_news()):
            self.is_flush_requested = True
            self.notify()
    def poll(self):
        while self.queue and not self.is_blocked:
            head = self.queue[0]
            piece = head.take()
            if self.num_queued == 1: self.is_flush_requested = False
            if head.is_finished: self.remove_head()
            if piece.size: return self.deliver(piece)
            piece.recycle()
            if not head.is_finished: break
        return None
""",
    ("7.1", "dataclass_helper"): """
from refimpl.producer import SubpartitionQueue

from dataclasses import dataclass
@dataclass(frozen=True, slots=True)
class State:
    entries: int
    complete: int
    quiet: bool
class Subpartition(SubpartitionQueue):
    @property
    def state(self): return State(len(self.queue), self.num_finished, self.is_blocked or self.is_flush_requested)
    def count_backlog(self):
        return max(0, self.num_data_buffers - int(not (self.is_flush_requested or self.is_finished)))
    def add(self, consumer):
        if not self.enqueue(consumer): return False
        if self.state == State(len(self.queue), 1, False): self.notify()
        return True
    def flush(self):
        state = self.state
        if state.entries > 1: self.is_flush_requested = True
        if state.entries == 1 and not state.quiet and self.queue[0].is_data_available:
            self.is_flush_requested = True
            self.notify()
    def poll(self):
        for _ in range(len(self.queue)):
            if self.is_blocked: return None
            head, state = self.queue[0], self.state
            piece = head.take()
            if state.entries == 1: self.is_flush_requested = False
            if head.is_finished: self.remove_head()
            if piece.size: return self.deliver(piece)
            piece.recycle()
        return None
""",
}

_SEGMENT = "from refimpl.errors import LocalUsageError\nfrom refimpl.memory import ByteOrder, MemorySegment\n\n"
_POOL = "from refimpl.errors import LocalUsageError\nfrom refimpl.memory import LocalBufferPool\n\n"
_TAKE = """
    def take_segment(self):
        if self.idle:
            return self.idle.popleft()
        if self.num_requested < self.size:
            segment = self.global_pool.request_segment()
            if segment is not None:
                self.num_requested += 1
            return segment
        return None
"""
_BACK = """
    def take_back(self, segment):
        if self.is_destroyed or self.num_requested > self.size:
            return self.give_back(segment)
        while self.listeners:
            if self.offer(segment):
                return
        self.idle.append(segment)
"""
_SIZE = """
    def set_num_buffers(self, num_buffers):
        if num_buffers < self.num_required:
            raise LocalUsageError("too few")
        self.size = min(num_buffers, self.num_max)
        while self.idle and self.num_requested > self.size:
            self.give_back(self.idle.pop())
        self.on_room_changed()
"""

RIGHT |= {
    ("1.1", "numpy_inside"): _SEGMENT
    + """
import numpy as np

class S(MemorySegment):
    def window(self, index, length):
        if self.view is None:
            raise LocalUsageError("freed")
        if min(index, length, self.size - index - length) < 0:
            raise IndexError("outside")
        return memoryview(np.frombuffer(self.view, np.uint8)[index : index + length])
""",
    ("1.1", "bytearray_from_the_front"): _SEGMENT
    + """
class S(MemorySegment):
    def window(self, index: int, length: int) -> memoryview:
        try:
            whole = memoryview(self.view)
        except TypeError:
            raise LocalUsageError("freed") from None
        end = index + length
        if index < 0 or end < index or end > whole.nbytes:
            raise IndexError(f"{index}:{end}")
        return whole.cast("B")[index:end]
""",
    ("1.1", "a_generator_of_faults"): _SEGMENT
    + """
@L.exercise("1.1")
class S(MemorySegment):
    def faults(self, index, length):
        if self.is_freed:
            yield LocalUsageError("freed")
        elif index not in range(self.size + 1) or length not in range(self.size - index + 1):
            yield IndexError(index, length)

    def window(self, index, length):
        for fault in self.faults(index, length):
            raise fault
        return self.view[index : index + length]
""",
    ("1.1", "a_dataclass_of_bounds"): _SEGMENT
    + """
from dataclasses import dataclass

@dataclass(frozen=True)
class Range:
    start: int
    length: int

    def within(self, size):
        return 0 <= self.start and 0 <= self.length and self.start + self.length <= size

class S(MemorySegment):
    def window(self, index, length):
        wanted = Range(index, length)
        if self.view is None:
            raise LocalUsageError
        if not wanted.within(self.size):
            raise IndexError
        return self.view[wanted.start :][: wanted.length]
""",
    ("1.2", "one_byte_at_a_time_checked_first"): _SEGMENT
    + """
class S(MemorySegment):
    def put_int(self, index, value, order=ByteOrder.NATIVE):
        window = self.window(index, 4)
        rest = value % 2**32
        for place in range(4) if order is ByteOrder.LITTLE_ENDIAN else range(3, -1, -1):
            rest, window[place] = divmod(rest, 256)

    def get_int(self, index, order=ByteOrder.NATIVE):
        number = 0
        four = self.window(index, 4).tolist()
        for byte in four if order is ByteOrder.BIG_ENDIAN else four[::-1]:
            number = number * 256 + byte
        return number if number < 2**31 else number - 2**32
""",
    ("1.2", "match"): _SEGMENT
    + """
class S(MemorySegment):
    @staticmethod
    def _name(order):
        match order:
            case ByteOrder.BIG_ENDIAN:
                return "big"
            case ByteOrder.LITTLE_ENDIAN:
                return "little"

    def put_int(self, index: int, value: int, order: ByteOrder = ByteOrder.NATIVE) -> None:
        self.put(index, int.to_bytes(value, 4, self._name(order), signed=True))

    def get_int(self, index: int, order: ByteOrder = ByteOrder.NATIVE) -> int:
        return int.from_bytes(self.get(index, 4), byteorder=self._name(order), signed=True)
""",
    ("1.2", "ctypes_like_cast"): _SEGMENT
    + """
import struct, sys

class S(MemorySegment):
    def put_int(self, index, value, order=ByteOrder.NATIVE):
        data = struct.pack("i", value)
        self.window(index, 4)[:] = data if order is ByteOrder.NATIVE else data[::-1]
        return None

    def get_int(self, index, order=ByteOrder.NATIVE):
        data = bytes(self.window(index, 4))
        (value,) = struct.unpack("=i", data if order == ByteOrder.NATIVE else data[::-1])
        return value
""",
    ("1.3", "by_way_of_a_list"): _SEGMENT
    + """
class S(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        kept = list(self.window(index, length))
        target.window(target_index, length)[:] = bytearray(kept)
""",
    ("1.3", "with_swap_bytes"): _SEGMENT
    + """
class S(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        copy = MemorySegment(bytearray(self.get(index, length)))
        place = target.window(target_index, length)
        for number, byte in enumerate(copy.view):
            place[number] = byte
""",
    ("1.3", "target_first"): _SEGMENT
    + """
def joined(pieces):
    return b"".join(pieces)

class S(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        there = target.window(target_index, length)
        here = self.window(index, length)
        there[:] = joined(bytes([byte]) for byte in here)
""",
    ("2.1", "assert_free"): """
from refimpl.errors import LocalUsageError
from refimpl.memory import Buffer

class Counted(Buffer):
    def retain(self) -> "Counted":
        self._count(+1)
        return self

    def recycle(self) -> None:
        if self._count(-1) == 0:
            self.recycler.recycle_segment(self.segment)

    def _count(self, change: int) -> int:
        if self.num_references <= 0:
            raise LocalUsageError("gone")
        self.num_references += change
        return self.num_references
""",
    ("2.1", "super_free_property"): """
from refimpl.memory import Buffer

class Counted(Buffer):
    def retain(self):
        match self.num_references:
            case 0: raise self.recycled_before()
            case n: self.num_references = n + 1
        return self

    def recycle(self):
        left = {0: None}.get(self.num_references, self.num_references - 1)
        if left is None:
            raise self.recycled_before()
        self.num_references = left
        not left and self.recycler.recycle_segment(self.segment)
""",
    ("2.2", "recursive"): """
def share_out(num_free, appetites):
    limits = [min(num_free, each) for each in appetites]
    total = sum(limits)

    def cut(so_far, given, rest):
        if not rest:
            return []
        so_far += rest[0]
        end = min(num_free, total) * so_far // total if total else 0
        return [end - given] + cut(so_far, end, rest[1:])

    return cut(0, 0, limits)
""",
    ("2.2", "numpy_integers"): """
import numpy as np
from itertools import accumulate

def share_out(num_free, appetites):
    limits = [min(num_free, each) for each in appetites]
    total = sum(limits)
    ends = [min(num_free, total) * each // (total or 1) for each in accumulate(limits)]
    return np.diff(np.array([0, *ends]))
""",
    ("2.2", "yields"): """
def share_out(num_free, appetites):
    total = sum(min(num_free, each) for each in appetites)
    to_share = min(num_free, total)
    so_far = given = 0
    for each in appetites:
        so_far += min(num_free, each)
        mark = to_share * so_far // total if total > 0 else 0
        yield mark - given
        given = mark
""",
    ("2.2", "divmod_carry"): """
def share_out(num_free: int, appetites) -> list[int]:
    limits = [num_free if num_free < each else each for each in appetites]
    total = sum(limits)
    if total <= num_free:
        return limits
    shares, carry = [], 0
    for limit in limits:
        share, carry = divmod(num_free * limit + carry, total)
        shares.append(share)
    return shares
""",
    ("2.3", "from_the_other_end"): (
        _POOL + "class Mine(LocalBufferPool):" + _TAKE.replace("popleft", "pop") + _BACK + _SIZE
    ),
    ("2.3", "early_returns"): _POOL
    + "class Mine(LocalBufferPool):"
    + _TAKE
    + """
    def take_back(self, segment):
        has_too_many = self.num_requested > self.size
        if has_too_many or self.is_destroyed:
            self.give_back(segment)
        elif not self.listeners or not self._somebody_takes(segment):
            self.idle.append(segment)

    def _somebody_takes(self, segment):
        while self.listeners:
            if self.offer(segment):
                return True
        return False
"""
    + _SIZE,
    ("2.3", "an_init_of_its_own"): _POOL
    + "class Mine(LocalBufferPool):"
    + """
    def __init__(self, *args, **kwargs):
        self.num_resized = 0
        super().__init__(*args, **kwargs)
        self.num_fetched = 0

    def set_num_buffers(self, num_buffers):
        if not num_buffers >= self.num_required:
            raise LocalUsageError(f"{num_buffers} < {self.num_required}")
        self.num_resized += 1
        self.size = num_buffers if num_buffers <= self.num_max else self.num_max
        for _ in range(len(self.idle)):
            if self.num_requested <= self.size:
                break
            self.give_back(self.idle.popleft())
        self.on_room_changed()
"""
    + _TAKE
    + _BACK,
    ("2.3", "in_words_of_its_own"): _POOL
    + """
class Mine(LocalBufferPool):
    @property
    def may_grow(self) -> bool:
        return self.size - self.num_requested > 0

    @property
    def owes(self) -> int:
        return max(0, self.num_requested - (0 if self.is_destroyed else self.size))

    def take_segment(self):
        found = None
        if len(self.idle) > 0:
            found = self.idle.popleft()
        elif self.may_grow and (found := self.global_pool.request_segment()):
            self.num_requested = self.num_requested + 1
        return found

    def take_back(self, segment):
        if self.owes:
            return self.give_back(segment)
        taken = False
        while self.listeners and not taken:
            taken = self.offer(segment)
        if not taken:
            self.idle.appendleft(segment)

    def set_num_buffers(self, num_buffers: int) -> None:
        if self.num_required > num_buffers:
            raise LocalUsageError("less than was promised")
        self.size = min(self.num_max, num_buffers)
        for segment in [self.idle.popleft() for _ in range(min(self.owes, len(self.idle)))]:
            self.give_back(segment)
        self.on_room_changed()
""",
    ("9.1", "hex_text"): """
to_frame = lambda i, b: bytes.fromhex(f"{len(b) + 9:08x}badc0ffe{i:02x}") + b
""",
    ("9.1", "numpy"): """
import numpy as np

def to_frame(frame_id, body):
    return np.array([9 + len(body), 0xBADC0FFE], dtype=">u4").tobytes() + bytes([frame_id]) + body
""",
    ("9.2", "coroutine"): """
from refimpl.errors import RemoteProtocolError
from refimpl.exchange import HEADER_BYTES, RequestDecoder

class Decoder(RequestDecoder):
    def __init__(self, config):
        super().__init__(config)
        self.frames = []
        self.machine = self.cut()
        self.want = next(self.machine)

    def cut(self):
        while True:
            head = yield 4
            size = int.from_bytes(head, "big", signed=True)
            if not HEADER_BYTES <= size <= self.max_frame_bytes:
                raise RemoteProtocolError(size)
            self.frames.append(head + (yield size - 4))

    def feed(self, data):
        self.gathered += data

    def next_frame(self):
        while not self.frames and len(self.gathered) >= self.want:
            piece = bytes(self.gathered[: self.want])
            del self.gathered[: self.want]
            self.want = self.machine.send(piece)
        return self.frames.pop() if self.frames else None
""",
    ("9.2", "unsigned_is_too_long"): """
from refimpl.errors import RemoteProtocolError
from refimpl.exchange import HEADER_BYTES, RequestDecoder

class Decoder(RequestDecoder):
    data = b""

    def feed(self, data):
        self.data = self.data + bytes(data)

    def next_frame(self):
        if len(self.data) < 4:
            return None
        size = int.from_bytes(self.data[:4], "big")
        if size not in range(HEADER_BYTES, self.max_frame_bytes + 1):
            raise RemoteProtocolError(size)
        if len(self.data) < size:
            return None
        frame, self.data = memoryview(self.data)[:size], self.data[size:]
        return frame
""",
    ("9.3", "numpy_truth"): """
import numpy as np
from refimpl.consumer import SequenceNumbers

class Sequence(SequenceNumbers):
    def is_next(self, number):
        return np.equal(number, self.expected)

    def advance(self):
        number = self.expected
        self.expected = number + 1 if number != 2**31 - 1 else -(2**31)
        return number
""",
    ("10.1", "states"): """
import enum
from refimpl.exchange.before_credit import WaterMarks

class State(enum.Enum):
    GO = 1
    STOP = 2

class Marks(WaterMarks):
    state = State.GO

    def hand_out(self, num_bytes):
        self.num_handed_out += num_bytes
        self.settle()

    def written(self, num_bytes):
        self.num_written += num_bytes
        self.settle()

    def settle(self):
        if self.num_pending > self.high_bytes:
            self.state = State.STOP
        elif self.num_pending < self.low_bytes:
            self.state = State.GO
        self.is_writable = self.state is State.GO
""",
    ("10.2", "looks_first"): """
from refimpl.exchange.before_credit import BufferWait, PoolBuffers

class Waiting(PoolBuffers):
    def request_buffer(self):
        if self.wait is None:
            buffer = self.pool.request_buffer()
            if buffer is None:
                self.wait = BufferWait(self.pool)
                return self.wait
            return buffer
        buffer = self.wait.take()
        if buffer is None and not self.pool.can_request:
            return self.wait
        self.end_wait()
        return buffer if buffer is not None else self.request_buffer()
""",
    ("11.1", "recursive"): """
from refimpl.consumer import BufferManager

class Receiver(BufferManager):
    def on_backlog(self, backlog):
        self.credit.num_required = backlog + self.credit.num_exclusive
        if self.is_waiting or self.num_available >= self.credit.num_required:
            return
        buffer = self.floating_pool.request_buffer()
        if buffer is None:
            self.is_waiting = self.floating_pool.add_listener(self)
            return
        self.floating.append(buffer)
        self.add_credit(1)
        self.on_backlog(backlog)

    def on_recycled(self):
        if self.num_available > self.credit.num_required and self.floating:
            self.floating.popleft().recycle()
            return
        self.add_credit(1)
""",
    ("11.1", "numpy_numbers"): """
import numpy as np
from refimpl.consumer import BufferManager

class Receiver(BufferManager):
    def on_backlog(self, backlog):
        self.credit.num_required = np.add(backlog, self.credit.num_exclusive)
        before = len(self.floating)
        while self.num_available < self.credit.num_required and not self.is_waiting:
            buffer = self.floating_pool.request_buffer()
            if buffer is None:
                self.is_waiting = self.floating_pool.add_listener(self)
            else:
                self.floating.append(buffer)
        self.add_credit(len(self.floating) - before)

    def on_recycled(self):
        if self.floating and np.greater(self.num_available, self.credit.num_required):
            self.floating.pop().recycle()
        else:
            self.add_credit(1)
""",
    ("11.2", "whole_numbers_for_truth"): """
from refimpl.exchange import SubpartitionReader

class Sender(SubpartitionReader):
    def add_credit(self, credit):
        self.credit = sum((self.credit, credit))

    def _look(self):
        return self.view.is_event_available or (self.credit and self.view.is_data_available)

    is_available = property(_look)

    def poll(self):
        taken = self.view.poll()
        return taken and self.paid(taken)

    def paid(self, taken):
        self.credit -= int(taken.buffer.is_buffer)
        return [taken, taken.is_event_next or (self.credit and taken.is_more_available)]
""",
}
