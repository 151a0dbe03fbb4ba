"""Exceptions in Java's format: byte for byte as Java writes them, read back by us and by Java."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

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

VECTORS = Path(__file__).parents[1] / "conformance" / "vectors" / "netty.json"
KNOWN = [
    "java.io.IOException", "java.net.ProtocolException", "java.lang.RuntimeException",
    ILLEGAL_STATE, ILLEGAL_ARGUMENT, INDEX_OUT_OF_BOUNDS, DECODER_EXCEPTION, PRODUCER_FAILED,
]  # fmt: skip
NOT_FOUND = "org.apache.flink.runtime.io.network.partition.PartitionNotFoundException"


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


PARTITION = ResultPartitionId(
    number(1) + number(2), 0, ProducerId(number(5) + number(6), number(7) + number(8), 1, 2)
)


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


READER = """
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

public class Reader {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            byte[] raw = HexFormat.of().parseHex(lines.nextLine());
            ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(raw));
            Throwable thrown = (Throwable) in.readObject();
            if (in.read() != -1 || thrown.getStackTrace().length != 0) throw new IOException("more than one error");
            for (Throwable each = thrown; each != null; each = each.getCause()) {
                String text = each.getMessage() == null ? "-" : each.getMessage();
                byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
                out.print(each.getClass().getName() + " " + HexFormat.of().formatHex(utf8) + " ");
            }
            out.println();
        }
    }
}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="no javac on the PATH, so no Java program can be started")
def test_java_reads_what_we_write(tmp_path: Path) -> None:
    """A real `ObjectInputStream`; it has only the classes of Java itself."""
    (tmp_path / "Reader.java").write_text(READER, encoding="utf-8")
    texts = [None, "", "No reader", "Grüße \0 \U0001f600", "x" * 70_000]
    classes = [name for name in KNOWN if name.startswith("java.")]
    written = [JavaError(name, text) for name in classes for text in texts]
    written.append(JavaError(ILLEGAL_STATE, "outer", JavaError("java.net.ProtocolException", "inner")))
    lines = "\n".join(write_java_error(error).hex() for error in written)
    done = subprocess.run(
        ["java", "Reader.java"], cwd=tmp_path, input=lines, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [shown(error) for error in written]


def shown(error: JavaError) -> str:
    message = "-" if error.message is None else error.message
    line = f"{error.class_name} {message.encode().hex()} "
    return line + (shown(error.cause) if error.cause else "")


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
