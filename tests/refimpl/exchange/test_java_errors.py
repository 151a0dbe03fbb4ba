"""Exceptions in Java's format: byte for byte as Java writes them, read back by us and by Java."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange import (
    DECODER_EXCEPTION,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    INDEX_OUT_OF_BOUNDS,
    PRODUCER_FAILED,
    JavaError,
    ProducerId,
    ResultPartitionId,
    partition_not_found,
    read_java_error,
    throwable_length,
    write_java_error,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors" / "netty.json"
KNOWN = [
    "java.io.IOException", "java.net.ProtocolException", "java.lang.RuntimeException",
    ILLEGAL_STATE, ILLEGAL_ARGUMENT, INDEX_OUT_OF_BOUNDS, DECODER_EXCEPTION, PRODUCER_FAILED,
]  # fmt: skip
NOT_FOUND = "org.apache.flink.runtime.io.network.partition.PartitionNotFoundException"


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


PARTITION = ResultPartitionId(number(1) + number(2), 0, ProducerId(number(5) + number(6), number(7) + number(8), 1, 2))


def recorded(class_name: str, version: FlinkVersion) -> list[bytes]:
    """What Java wrote, from the frames of the real Flink."""
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]
    return [
        bytes.fromhex(case["fields"]["java_serialized_hex"])
        for case in cases
        if version.value in case["flink"] and case.get("fields", {}).get("exception_class") == class_name
    ]


@pytest.mark.parametrize("version", FlinkVersion)
def test_a_missing_partition_is_written_as_flink_writes_it(version: FlinkVersion) -> None:
    assert recorded(NOT_FOUND, version) == [partition_not_found(PARTITION, version)]


@pytest.mark.parametrize("version", FlinkVersion)
def test_a_plain_exception_is_written_as_java_writes_it(version: FlinkVersion) -> None:
    assert recorded(ILLEGAL_STATE, version) == [write_java_error(JavaError(ILLEGAL_STATE, "No reader"))]


@pytest.mark.parametrize("version", FlinkVersion)
def test_a_missing_partition_says_which(version: FlinkVersion) -> None:
    partition = ResultPartitionId(b"\xfe" * 16, -3, ProducerId(b"\x9a" * 16, b"\xbc" * 16, 4, 5))
    error = read_java_error(partition_not_found(partition, version))
    producer = "9a" * 16 if version is FlinkVersion.V1_11 else f"{'9a' * 16}_{'bc' * 16}_4_5"
    assert error == JavaError(NOT_FOUND, f"Partition {'fe' * 16}#-3@{producer} not found.")


messages = st.none() | st.text(max_size=40)
plain = st.builds(JavaError, st.sampled_from(KNOWN), messages)
errors = st.recursive(plain, lambda cause: st.builds(JavaError, st.sampled_from(KNOWN), messages, cause), max_leaves=3)


@example(error=JavaError(ILLEGAL_STATE, "a\0b \U0001f600"), behind=b"\0")
@given(error=errors, behind=st.binary(max_size=9))
def test_what_is_written_is_read_back(error: JavaError, behind: bytes) -> None:
    data = write_java_error(error)
    assert read_java_error(data) == error
    assert throwable_length(memoryview(data + behind)) == len(data)


@pytest.mark.parametrize("length", [0, 1, 0xFFFF, 0x10000, 100_000])
def test_a_message_may_be_of_any_length(length: int) -> None:
    error = JavaError(ILLEGAL_STATE, "é" * (length // 2) + "x" * (length % 2))
    assert read_java_error(write_java_error(error)) == error


def test_half_a_surrogate_pair_does_not_stop_the_writer() -> None:
    assert read_java_error(write_java_error(JavaError(ILLEGAL_STATE, "a\ud800b"))).message == "a\ufffdb"


def test_an_exception_of_unknown_version_is_not_written() -> None:
    with pytest.raises(LocalUsageError, match=r"version of java\.lang\.Error is not known"):
        write_java_error(JavaError("java.lang.Error", "no"))


@given(st.data())
def test_a_damaged_error_is_an_error_or_something_else_but_no_crash(data: st.DataObject) -> None:
    raw = bytearray(write_java_error(JavaError(ILLEGAL_STATE, "boom", JavaError("java.io.IOException"))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        read_java_error(bytes(raw))
    except RemoteProtocolError:
        return


# -- Java itself -----------------------------------------------------------------------------------


def read_by_java(jvm: Any, data: bytes) -> Any:
    """The `Throwable` an `ObjectInputStream` makes of `data`, which knows the classes of Java only."""
    stream = jvm.java.io.ObjectInputStream(jvm.java.io.ByteArrayInputStream(data))
    thrown = stream.readObject()
    assert stream.read() == -1
    return thrown


def written_by_java(jvm: Any, thrown: Any) -> bytes:
    data = jvm.java.io.ByteArrayOutputStream()
    jvm.java.io.ObjectOutputStream(data).writeObject(thrown)
    return bytes(data.toByteArray())


def as_ours(thrown: Any) -> JavaError:
    cause = thrown.getCause()
    return JavaError(thrown.getClass().getName(), thrown.getMessage(), None if cause is None else as_ours(cause))


@pytest.mark.spark
@pytest.mark.parametrize("class_name", [name for name in KNOWN if name.startswith("java.")])
def test_java_reads_what_we_write_and_writes_the_same_bytes(spark: SparkSession, class_name: str) -> None:
    jvm = spark.sparkContext._jvm
    for text in (None, "", "No reader", "Grüße \0 \U0001f600", "x" * 70_000):
        data = write_java_error(JavaError(class_name, text))
        thrown = read_by_java(jvm, data)
        assert as_ours(thrown) == JavaError(class_name, text)
        assert len(thrown.getStackTrace()) == 0
        assert written_by_java(jvm, thrown) == data


@pytest.mark.spark
def test_java_reads_a_cause(spark: SparkSession) -> None:
    error = JavaError(ILLEGAL_STATE, "outer", JavaError("java.net.ProtocolException", "inner"))
    assert as_ours(read_by_java(spark.sparkContext._jvm, write_java_error(error))) == error


@pytest.mark.spark
def test_an_exception_born_in_java_is_read_with_all_it_carries(spark: SparkSession) -> None:
    """Behind its cause come a trace of the stack and a suppressed exception, which our own never have."""
    jvm = spark.sparkContext._jvm
    thrown = jvm.java.lang.IllegalStateException("outer", jvm.java.io.IOException("inner"))
    thrown.addSuppressed(jvm.java.lang.RuntimeException("on the way"))
    assert len(thrown.getStackTrace()) > 0
    data = written_by_java(jvm, thrown)
    assert read_java_error(data) == JavaError(ILLEGAL_STATE, "outer", JavaError("java.io.IOException", "inner"))
    assert throwable_length(memoryview(data + b"behind")) == len(data)


# -- a hostile end ---------------------------------------------------------------------------------

STREAM = b"\xac\xed\x00\x05"
NAMELESS_CLASS = b"\x72\x00\x00" + bytes(8) + b"\x02\x00\x00"
FIRST_HANDLE = 0x7E0000


def reference(number: int) -> bytes:
    return b"\x71" + struct.pack(">i", FIRST_HANDLE + number)


def doubling_arrays(num_levels: int) -> bytes:
    """An enum whose name is an array of two arrays of two arrays: its text would have 2^n parts."""
    arrays = b"\x75\x72\x00\x02[L" + bytes(8) + b"\x02\x00\x00\x78\x70" + struct.pack(">i", num_levels + 2)
    arrays += b"\x75" + reference(0) + struct.pack(">i", 0)
    for level in range(num_levels):
        arrays += b"\x75" + reference(0) + struct.pack(">i", 2) + reference(2 + level) * 2
    return STREAM + arrays + b"\x7e" + reference(0) + reference(2 + num_levels)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (STREAM + NAMELESS_CLASS * 5_000, "nested too deeply"),
        (STREAM + b"\x73" + NAMELESS_CLASS + b"\x78" + reference(0), "no end of ancestors"),
        (doubling_arrays(40), "no name"),
    ],
    ids=["annotations of annotations", "its own ancestor", "two of two of two"],
)
def test_an_error_made_to_do_harm_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(RemoteProtocolError, match=complaint):
        throwable_length(memoryview(data))
