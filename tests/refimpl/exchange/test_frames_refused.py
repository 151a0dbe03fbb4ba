"""What cannot be said in a version, or not with such a number, is refused before it is a byte."""

from __future__ import annotations

import pytest

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.exchange import (
    AckAllUserRecordsProcessed,
    AddCredit,
    BacklogAnnouncement,
    Message,
    NewBufferSize,
    PartitionRequest,
    ProducerId,
    ResultPartitionId,
    SegmentId,
    encode,
)

RECEIVER = b"r" * 16
PARTITION = ResultPartitionId(b"d" * 16, 0, ProducerId(b"p" * 16))


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("make", [AddCredit, BacklogAnnouncement, NewBufferSize])
def test_a_number_of_nothing_is_not_announced(make: type[Message], number: int) -> None:
    with pytest.raises(LocalUsageError, match="above 0"):
        encode(make(number, RECEIVER), FlinkVersion.V2_2)


@pytest.mark.parametrize(
    "message",
    [AckAllUserRecordsProcessed(RECEIVER), BacklogAnnouncement(1, RECEIVER), NewBufferSize(1, RECEIVER),
     SegmentId(0, 1, RECEIVER)],
    ids=lambda message: type(message).__name__,
)  # fmt: skip
def test_what_came_with_2x_is_not_said_to_1_11(message: Message) -> None:
    assert encode(message, FlinkVersion.V2_2)
    with pytest.raises(LocalUsageError, match=type(message).__name__):
        encode(message, FlinkVersion.V1_11)


def test_1_11_asks_for_one_subpartition_at_a_time() -> None:
    request = PartitionRequest(PARTITION, 0, 1, RECEIVER, 2)
    assert encode(request, FlinkVersion.V2_2)
    with pytest.raises(LocalUsageError, match="subpartition"):
        encode(request, FlinkVersion.V1_11)
