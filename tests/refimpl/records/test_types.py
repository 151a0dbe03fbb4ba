"""Values to bytes and back, and what each type says of bytes that are not its own."""

from __future__ import annotations

import pickle
import re

import cloudpickle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.records import (
    ANY,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT,
    LONG,
    STRING,
    InternalWatermark,
    LatencyMarker,
    RecordAttributes,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    TupleType,
    TypeSerializer,
    Watermark,
    read_varint,
    write_varint,
)

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec=None, categories=None))  # surrogates too: Java strings may hold them alone
VALUES = {
    LONG: LONGS,
    INT: st.integers(-(2**31), 2**31 - 1),
    DOUBLE: st.floats(allow_nan=False),
    BOOLEAN: st.booleans(),
    BYTES: st.binary(),
    STRING: st.none() | TEXT,
    TupleType(STRING, LONG): st.tuples(TEXT, LONGS),
    TupleType(TupleType(LONG, LONG), BYTES): st.tuples(st.tuples(LONGS, LONGS), st.binary()),
    TupleType(): st.just(()),
    ANY: st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | st.binary(),
        lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=8,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", VALUES, ids=repr)
@given(data=st.data(), before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_a_value_comes_back_from_the_middle_of_other_bytes(
    kind: TypeSerializer, data: st.DataObject, before: bytes, after: bytes
) -> None:
    value = data.draw(VALUES[kind])
    target = bytearray(before)
    kind.serialize(value, target)
    back, end = kind.deserialize(memoryview(bytes(target) + after), len(before))
    assert (back, end, type(back)) == (value, len(target), type(value))
    assert kind.copy(value) == value


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 20_000])
def test_a_long_string_of_ascii_is_a_count_and_a_byte_for_each_letter(length: int) -> None:
    target, count = bytearray(), bytearray()
    STRING.serialize("\x7f" * length, target)
    write_varint(length + 1, count)
    assert target == count + b"\x7f" * length


@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind.name != "tuple()"], ids=repr)
@given(data=st.data())
def test_bytes_that_end_early_are_the_producers_mistake(kind: TypeSerializer, data: st.DataObject) -> None:
    target = bytearray()
    kind.serialize(data.draw(VALUES[kind]), target)
    cut = data.draw(st.integers(0, len(target) - 1))
    with pytest.raises(RemoteProtocolError):
        kind.deserialize(memoryview(bytes(target[:cut])), 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(VALUES), ids=repr)
@given(garbage=st.binary(max_size=24))
def test_garbage_is_a_value_or_a_protocol_error(kind: TypeSerializer, garbage: bytes) -> None:
    try:
        _, end = kind.deserialize(memoryview(garbage), 0)
    except RemoteProtocolError:
        return
    assert 0 <= end <= len(garbage)


@pytest.mark.parametrize(
    ("kind", "value", "complaint"),
    [(LONG, 2**63, "is not a long"), (LONG, "1", "is not a long"), (LONG, 1.5, "is not a long"),
     (INT, 2**31, "is not an int"), (DOUBLE, "x", "is not a double"), (BYTES, "x", "is not bytes"),
     (STRING, b"x", "is not a string"), (TupleType(LONG, LONG), (1,), r"is not a tuple\(long, long\)"),
     (TupleType(LONG, LONG), [1, 2], r"is not a tuple\(long, long\)"), (TupleType(LONG), ("x",), "'x' is not a long"),
     (ANY, {1, 2}, "set has no serializer")],
    ids=repr,
)  # fmt: skip
def test_a_value_of_another_type_is_the_callers_mistake(kind: TypeSerializer, value: object, complaint: str) -> None:
    with pytest.raises(LocalUsageError, match=complaint):
        kind.serialize(value, bytearray())


@pytest.mark.parametrize(
    ("kind", "codes"),
    [(LONG, "q"), (TupleType(INT, DOUBLE, BOOLEAN), "id?"), (TupleType(LONG, STRING), None), (STRING, None),
     (TupleType(TupleType(LONG, LONG), LONG), None), (TupleType(), None), (ANY, None)],
    ids=repr,
)  # fmt: skip
def test_a_type_of_fixed_length_says_so(kind: TypeSerializer, codes: str | None) -> None:
    assert kind.struct_format == codes


@given(st.integers(0, 2**35 - 1))
def test_variable_length_numbers_come_back(number: int) -> None:
    target = bytearray()
    write_varint(number, target)
    assert read_varint(memoryview(bytes(target)), 0) == (number, len(target))


def test_a_copy_shares_nothing_that_can_change() -> None:
    value = {"a": [1, [2]]}
    copied = ANY.copy(value)
    value["a"][1].append(3)
    assert copied == {"a": [1, [2]]}
    assert isinstance(BYTES.copy(bytearray(b"x")), bytes)


ELEMENTS = [
    StreamRecord(5), StreamRecord(5, 7), StreamRecord(-5, -7), Watermark(-1), Watermark(2**63 - 1),
    LatencyMarker(1, -2, 3, 4), StreamStatus.ACTIVE, StreamStatus.IDLE,
]  # fmt: skip


@pytest.mark.parametrize("element", ELEMENTS, ids=repr)
@pytest.mark.parametrize("version", FlinkVersion)
def test_an_element_comes_back(element: object, version: FlinkVersion) -> None:
    """Flink: `StreamElementSerializerTest#testSerialization` (P103)."""
    serializer = StreamElementSerializer(LONG, version)
    data = serializer.serialize(element)
    assert serializer.deserialize(data) == element
    for bad in (data[:-1], data + b"\0"):
        with pytest.raises(RemoteProtocolError):
            serializer.deserialize(bad)


@pytest.mark.parametrize("element", [RecordAttributes(is_backlog=True), InternalWatermark(1, 2)], ids=repr)
def test_elements_of_2_do_not_exist_in_1_11(element: object) -> None:
    data = StreamElementSerializer(LONG, FlinkVersion.V2_2).serialize(element)
    with pytest.raises(LocalUsageError, match="has no element"):
        StreamElementSerializer(LONG).serialize(element)
    with pytest.raises(RemoteProtocolError, match=r"no element tag of Flink 1\.11\.4"):
        StreamElementSerializer(LONG).deserialize(data)


@pytest.mark.parametrize("data", [b"", b"\x09", b"\x04\0\0\0\x05"])
def test_bytes_that_are_no_element_are_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        StreamElementSerializer(LONG).deserialize(data)


@pytest.mark.parametrize("value", ["no", 5, None])
def test_a_boolean_is_a_boolean(value: object) -> None:
    with pytest.raises(LocalUsageError, match="is not a boolean"):
        BOOLEAN.serialize(value, bytearray())


def test_a_tuple_that_holds_a_tuple_has_no_flat_layout() -> None:
    nested = TupleType(TupleType(LONG), LONG)
    assert nested.struct_format is None
    target = bytearray()
    nested.serialize(((7,), 8), target)
    assert nested.deserialize(memoryview(target), 0) == (((7,), 8), 16)


def test_copying_a_tuple_of_another_length_is_the_callers_mistake() -> None:
    with pytest.raises(LocalUsageError, match="is not a tuple"):
        TupleType(LONG, LONG).copy((1, 2, 3))


@pytest.mark.parametrize("kind", [LONG, INT, DOUBLE, BOOLEAN, BYTES, STRING], ids=str)
@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_a_type_is_the_same_object_in_every_process(kind: TypeSerializer, dumps) -> None:
    """Batches and hashes ask for some types by what they are, so another STRING would be no string."""
    assert pickle.loads(dumps(TupleType(kind))).fields[0] is kind


ODD = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.binary().map(bytearray), st.none(),
    st.integers(-(2**31), 2**31 - 1).map(np.int64), st.floats(width=32).map(np.float32), st.text().map(np.str_),
)  # fmt: skip


@given(st.sampled_from([LONG, INT, DOUBLE, BOOLEAN, BYTES, STRING, TupleType(LONG, STRING)]), ODD, ODD)
def test_a_copy_is_what_the_bytes_would_bring(kind: TypeSerializer, value: object, other: object) -> None:
    """So a value is the same behind a chained edge and behind the network, or refused by both."""
    given_value = (value, other) if isinstance(kind, TupleType) else value
    target = bytearray()
    try:
        kind.serialize(given_value, target)
    except LocalUsageError as error:
        with pytest.raises(LocalUsageError, match=re.escape(str(error))):
            kind.copy(given_value)
        return
    read, copied = kind.deserialize(memoryview(target), 0)[0], kind.copy(given_value)
    assert (repr(copied), type(copied)) == (repr(read), type(read))
