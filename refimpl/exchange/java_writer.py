"""Exceptions written as Java writes them, so that a real consumer can read why it was turned down.

A Java object stream names each class once, with its version, its fields and its parent, and gives
classes, strings and objects numbers in the order in which they first appear; what appears again is
its number. A Throwable that was never given a cause is its own cause. Stack traces stay empty: there
is no Java stack to tell about.

The versions (serialVersionUID) are those of the real classes: another one would be refused.

Source:  Java Object Serialization Specification, version 6.0, chapter 6 (stream protocol)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.exchange.java_errors import JavaError
from refimpl.exchange.messages import ProducerId, ResultPartitionId

__all__ = [
    "DECODER_EXCEPTION",
    "ILLEGAL_ARGUMENT",
    "ILLEGAL_STATE",
    "INDEX_OUT_OF_BOUNDS",
    "PRODUCER_FAILED",
    "partition_not_found",
    "write_java_error",
]

DECODER_EXCEPTION = "org.apache.flink.shaded.netty4.io.netty.handler.codec.DecoderException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
ILLEGAL_STATE = "java.lang.IllegalStateException"
INDEX_OUT_OF_BOUNDS = "java.lang.IndexOutOfBoundsException"
PRODUCER_FAILED = "org.apache.flink.runtime.io.network.partition.ProducerFailedException"

_STREAM_MAGIC = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASSDESC, _OBJECT, _STRING, _ARRAY = b"p", b"q", b"r", b"s", b"t", b"u"
_END_BLOCK, _LONG_STRING = b"x", b"|"
_FIRST_HANDLE = 0x7E0000
_IS_SERIALIZABLE, _HAS_WRITE_METHOD = 0x02, 0x01
_MAX_SHORT_TEXT = 0xFFFF


@dataclass(frozen=True, slots=True)
class _Class:
    """A class as the stream describes it; `fields` are (name, type), as the JVM writes a type."""

    name: str
    version: int
    parent: _Class | None = None
    fields: tuple[tuple[str, str], ...] = ()
    flags: int = _IS_SERIALIZABLE


@dataclass(frozen=True, eq=False, slots=True)
class _Instance:
    """An object: for each class that has fields, the oldest ancestor first, their values.

    A value is the bytes of a primitive, a string, another object, `None`, or `_ITSELF`. An array
    has a class and no members.
    """

    kind: _Class
    values: tuple[tuple[object, ...], ...] = ()
    is_array: bool = False


_ITSELF = object()


# -- the classes -----------------------------------------------------------------------------------

_THROWABLE = _Class(
    "java.lang.Throwable",
    -3042686055658047285,
    None,
    (
        ("cause", "Ljava/lang/Throwable;"),
        ("detailMessage", "Ljava/lang/String;"),
        ("stackTrace", "[Ljava/lang/StackTraceElement;"),
        ("suppressedExceptions", "Ljava/util/List;"),
    ),
    _IS_SERIALIZABLE | _HAS_WRITE_METHOD,
)
_EXCEPTION = _Class("java.lang.Exception", -3387516993124229948, _THROWABLE)
_RUNTIME = _Class("java.lang.RuntimeException", -7034897190745766939, _EXCEPTION)
_IO = _Class("java.io.IOException", 7818375828146090155, _EXCEPTION)
_CODEC = _Class(
    "org.apache.flink.shaded.netty4.io.netty.handler.codec.CodecException",
    -1464830400709348473,
    _RUNTIME,
)
_CANCEL_TASK = _Class("org.apache.flink.runtime.execution.CancelTaskException", 1, _RUNTIME)
_KNOWN = {
    kind.name: kind
    for kind in (
        _IO,
        _RUNTIME,
        _Class("java.net.ProtocolException", -6098449442062388080, _IO),
        _Class(ILLEGAL_STATE, -1848914673093119416, _RUNTIME),
        _Class(ILLEGAL_ARGUMENT, -5365630128856068164, _RUNTIME),
        _Class(INDEX_OUT_OF_BOUNDS, 234122996006267687, _RUNTIME),
        _Class(DECODER_EXCEPTION, 6926716840699621852, _CODEC),
        _Class(PRODUCER_FAILED, -1555492656299526395, _CANCEL_TASK),
    )
}
_NO_STACK = _Class("[Ljava.lang.StackTraceElement;", 163864874655228473)
_EMPTY_LIST = _Class("java.util.Collections$EmptyList", 8842843931221139166)

_PARTITIONS = "org.apache.flink.runtime.io.network.partition."
_JOB_GRAPH = "org.apache.flink.runtime.jobgraph."
_EXECUTION = "org.apache.flink.runtime.executiongraph."
_STRATEGY = "org.apache.flink.runtime.scheduler.strategy."


def _type(name: str) -> str:
    return f"L{name.replace('.', '/')};"


_ABSTRACT_ID = _Class("org.apache.flink.util.AbstractID", 1, None, (("lowerPart", "J"), ("upperPart", "J")))
_DATA_SET_ID = _Class(_JOB_GRAPH + "IntermediateDataSetID", 1, _ABSTRACT_ID)
_PARTITION_NUMBER_ID = _Class(
    _JOB_GRAPH + "IntermediateResultPartitionID",
    1,
    None,
    (("partitionNum", "I"), ("intermediateDataSetID", _type(_DATA_SET_ID.name))),
)
_ATTEMPT_1 = _Class(_EXECUTION + "ExecutionAttemptID", -1169683445778281344, _ABSTRACT_ID)
_GRAPH_ID = _Class(_EXECUTION + "ExecutionGraphID", 1, _ABSTRACT_ID)
_JOB_VERTEX_ID = _Class(_JOB_GRAPH + "JobVertexID", 1, _ABSTRACT_ID)
_VERTEX_ID = _Class(
    _STRATEGY + "ExecutionVertexID",
    1,
    None,
    (("subtaskIndex", "I"), ("jobVertexId", _type(_JOB_VERTEX_ID.name))),
)
_ATTEMPT_2 = _Class(
    _ATTEMPT_1.name,
    1,
    None,
    (
        ("attemptNumber", "I"),
        ("executionGraphId", _type(_GRAPH_ID.name)),
        ("executionVertexId", _type(_VERTEX_ID.name)),
    ),
)
_RESULT_PARTITION_ID = _Class(
    _PARTITIONS + "ResultPartitionID",
    -902516386203787826,
    None,
    (
        ("partitionId", _type(_PARTITION_NUMBER_ID.name)),
        ("producerId", _type(_ATTEMPT_1.name)),
    ),
)
_PARTITION_EXCEPTION = _Class(
    _PARTITIONS + "PartitionException",
    0,
    _IO,
    (("partitionId", _type(_RESULT_PARTITION_ID.name)),),
)
_PARTITION_NOT_FOUND = _Class(_PARTITIONS + "PartitionNotFoundException", 0, _PARTITION_EXCEPTION)


# -- exceptions ------------------------------------------------------------------------------------


def write_java_error(error: JavaError) -> bytes:
    """`error` as an ObjectOutputStream writes it: its class, its message and its causes.

    Raises:
        LocalUsageError: a class whose version is not known here.
    """
    return _STREAM_MAGIC + _Writer().written(_throwable(error))


def partition_not_found(partition: ResultPartitionId, version: FlinkVersion = FlinkVersion.V1_11) -> bytes:
    """A PartitionNotFoundException about `partition`, serialized; the consumer may ask again later.

    Flink:   PartitionNotFoundException (runtime.io.network.partition), 1.11.4 and 2.2.1
    """
    producer = partition.producer
    text = f"{partition.data_set_id.hex()}#{partition.number}@{producer.id.hex()}"
    if version is FlinkVersion.V1_11:
        attempt = _id(_ATTEMPT_1, producer.id)
    else:
        text += f"_{producer.vertex_id.hex()}_{producer.subtask}_{producer.attempt}"
        attempt = _attempt_2(producer)
    number_id = _Instance(
        _PARTITION_NUMBER_ID,
        ((_int(partition.number), _id(_DATA_SET_ID, partition.data_set_id)),),
    )
    thrown = _Instance(
        _PARTITION_NOT_FOUND,
        (
            _throwable_values(None, f"Partition {text} not found."),
            (_Instance(_RESULT_PARTITION_ID, ((number_id, attempt),)),),
        ),
    )
    return _STREAM_MAGIC + _Writer().written(thrown)


def _throwable(error: JavaError) -> _Instance:
    kind = _KNOWN.get(error.class_name)
    if kind is None:
        raise LocalUsageError(f"the version of {error.class_name} is not known; use {sorted(_KNOWN)}")
    cause = _ITSELF if error.cause is None else _throwable(error.cause)
    return _Instance(kind, (_throwable_values(cause, error.message),))


def _throwable_values(cause: object, message: str | None) -> tuple[object, ...]:
    return (cause, message, _Instance(_NO_STACK, is_array=True), _Instance(_EMPTY_LIST))


def _attempt_2(producer: ProducerId) -> _Instance:
    vertex = _Instance(_VERTEX_ID, ((_int(producer.subtask), _id(_JOB_VERTEX_ID, producer.vertex_id)),))
    values = (_int(producer.attempt), _id(_GRAPH_ID, producer.id), vertex)
    return _Instance(_ATTEMPT_2, (values,))


def _id(kind: _Class, raw: bytes) -> _Instance:
    return _Instance(kind, ((raw[:8], raw[8:]),))  # the lower long stands first, as on the wire


def _int(number: int) -> bytes:
    return struct.pack(">i", number)


# -- the stream ------------------------------------------------------------------------------------


class _Writer:
    """Writes one object; remembers the number of each class, type name and object."""

    def __init__(self) -> None:
        self._handles: dict[object, int] = {}

    def written(self, value: object) -> bytes:
        """`value` as the stream has it, or its number if it is there already."""
        if value is None:
            return _NULL
        if isinstance(value, str):
            self._remember(object())  # each message is a string of its own
            return _text(value)
        assert isinstance(value, _Instance), f"{value!r} is nothing a stream can hold"
        head = (_ARRAY if value.is_array else _OBJECT) + self._described(value.kind)
        self._remember(value)
        return head + (_int(0) if value.is_array else self._fields(value))

    def _fields(self, thing: _Instance) -> bytes:
        out = b""
        values = iter(thing.values)
        for kind in _lineage(thing.kind):
            for value in next(values) if kind.fields else ():
                if value is _ITSELF:
                    out += self._number(thing)
                else:
                    out += value if isinstance(value, bytes) else self.written(value)
            if kind.flags & _HAS_WRITE_METHOD:
                out += _END_BLOCK
        return out

    def _described(self, kind: _Class | None) -> bytes:
        if kind is None:
            return _NULL
        if kind in self._handles:
            return self._number(kind)
        self._remember(kind)
        out = _CLASSDESC + _short_text(kind.name) + struct.pack(">qBH", kind.version, kind.flags, len(kind.fields))
        for name, type_name in kind.fields:
            out += type_name[:1].encode() + _short_text(name)
            if type_name[0] in "[L":
                out += self._type_name(type_name)
        return out + _END_BLOCK + self._described(kind.parent)

    def _type_name(self, name: str) -> bytes:
        if name in self._handles:
            return self._number(name)
        self._remember(name)
        return _text(name)

    def _remember(self, thing: object) -> None:
        self._handles[thing] = _FIRST_HANDLE + len(self._handles)

    def _number(self, thing: object) -> bytes:
        return _REFERENCE + _int(self._handles[thing])


def _lineage(kind: _Class) -> list[_Class]:
    return [*(_lineage(kind.parent) if kind.parent is not None else ()), kind]


def _text(text: str) -> bytes:
    raw = _modified_utf8(text)
    if len(raw) > _MAX_SHORT_TEXT:
        return _LONG_STRING + struct.pack(">q", len(raw)) + raw
    return _STRING + struct.pack(">H", len(raw)) + raw


def _short_text(text: str) -> bytes:
    raw = _modified_utf8(text)
    return struct.pack(">H", len(raw)) + raw


def _modified_utf8(text: str) -> bytes:
    """As Java's `writeUTF`: each half of a surrogate pair by itself, and no zero byte."""
    raw = text.encode("utf-16-be", "surrogatepass")
    units = "".join(map(chr, struct.unpack(f">{len(raw) // 2}H", raw)))
    return units.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
