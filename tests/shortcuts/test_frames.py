"""The head of the commonest frame in one step: the same bytes as field by field, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.exchange import BufferResponse, encode
from refimpl.memory import DataType
from refimpl.shortcuts.frames import ResponseHead

LIMIT = 4_096
NUMBERS = st.integers(-(2**31), 2**31 - 1)
VERSIONS = st.sampled_from(FlinkVersion)


@given(
    VERSIONS,
    st.binary(min_size=16, max_size=16),
    NUMBERS,
    NUMBERS,
    st.binary(max_size=9),
    st.booleans(),
    st.sampled_from(DataType),
)
def test_what_is_packed_is_what_the_frame_begins_with(
    version: FlinkVersion, receiver: bytes, sequence: int, backlog: int, payload: bytes, is_data: bool, kind: DataType
) -> None:
    data_type = DataType.DATA if is_data else kind
    head = ResponseHead(version)
    packed = (receiver, 7, sequence, backlog, data_type, len(payload))
    if data_type.code(version) is None:
        with pytest.raises(LocalUsageError):
            head.pack(*packed)
        return
    whole = encode(BufferResponse(receiver, sequence, backlog, data_type, payload, subpartition=7), version)
    assert head.pack(*packed) + payload == whole
    read = head.unpack_run(memoryview(b"before" + whole + whole + whole[: head.num_bytes]), LIMIT, 6)
    subpartition = 0 if version is FlinkVersion.V1_11 else 7
    ends = [6 + count * len(whole) for count in (1, 2, 3)] if data_type is DataType.DATA and payload else []
    assert read == [(receiver, subpartition, sequence, backlog, end - len(payload), end) for end in ends]


@pytest.mark.parametrize("version", FlinkVersion)
def test_what_is_cut_off_too_long_compressed_or_changed_is_left_to_others(version: FlinkVersion) -> None:
    head = ResponseHead(version)
    whole = encode(BufferResponse(bytes(16), 0, 0, DataType.DATA, b"payload"), version)
    assert len(head.unpack_run(memoryview(whole), len(whole))) == 1
    assert head.unpack_run(memoryview(whole), len(whole) - 1) == []
    assert head.unpack_run(memoryview(whole)[: head.num_bytes - 1], LIMIT) == []
    assert len(head.unpack_run(memoryview(whole + whole[:-1]), LIMIT)) == 2
    assert len(head.unpack_run(memoryview(whole + whole[: head.num_bytes - 1]), LIMIT)) == 1
    compressed = encode(BufferResponse(bytes(16), 0, 0, DataType.DATA, b"payload", is_compressed=True), version)
    assert head.unpack_run(memoryview(compressed + whole), LIMIT) == []
    assert len(head.unpack_run(memoryview(whole + compressed), LIMIT)) == 1
    told = [*range(9), *range(head.num_bytes - 6, head.num_bytes)]  # the header, the kind, compressed, the size
    if version is not FlinkVersion.V1_11:
        told += range(29, 33)  # the number of pieces
    for index in told:
        changed = bytearray(whole)
        changed[index] ^= 0x81
        assert head.unpack_run(memoryview(changed), LIMIT) == [], index
