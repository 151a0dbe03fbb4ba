"""The bytes of the four messages that a channel lives by, as Flink 1.11 has them.

    consumer                                                    producer
        PartitionRequest    send me this, I have so much room       >
        AddCredit           I have room for so many more            >
        ResumeConsumption   go on after the barrier                 >
    <   BufferResponse      here is a buffer or an event

All numbers are big-endian. An id has 16 bytes, which are passed on as they are.
"""

from __future__ import annotations

import struct

from refimpl.exchange.framing import to_frame

__all__ = ["WIRE_FORMAT", "WireFormat"]

_INT = struct.Struct(">i")
_RESPONSE = struct.Struct(">16siiBBi")
_PARTITION_REQUEST = 2
_ADD_CREDIT = 6
_RESUME_CONSUMPTION = 7


class WireFormat:
    """What one end writes and the other reads, so that either may be a JVM.

    Flink:   NettyMessage.PartitionRequest, AddCredit, ResumeConsumption, BufferResponse
             (runtime.io.network.netty), 1.11.4
    """

    RESPONSE_BYTES = _RESPONSE.size
    """How much of a BufferResponse stands between the frame's header and the payload."""

    def request(
        self, data_set_id: bytes, partition: int, producer_id: bytes, subpartition: int, receiver: bytes, credit: int
    ) -> bytes:
        """The frame that opens a channel; its message id is 2.

        The body: id of the data set, number of the partition (int), id of its producer, number of the
        subpartition (int), id of the receiver, credit (int). An int has 4 bytes, the highest first.
        """
        partition_id = data_set_id + _INT.pack(partition) + producer_id
        return to_frame(_PARTITION_REQUEST, partition_id + _INT.pack(subpartition) + receiver + _INT.pack(credit))

    def add_credit(self, credit: int, receiver: bytes) -> bytes:
        """The frame that says that there is room for `credit` more; its message id is 6.

        The body: credit (int), id of the receiver.
        """
        return to_frame(_ADD_CREDIT, _INT.pack(credit) + receiver)

    def resume(self, receiver: bytes) -> bytes:
        """The frame that lets a producer go on that stopped at a barrier; its message id is 7.

        The body: id of the receiver.
        """
        return to_frame(_RESUME_CONSUMPTION, receiver)

    def read_response(self, header: bytes) -> tuple[bytes, int, int, int, int, int]:
        """What the 30 bytes before a payload say, in their order.

        The id of the receiver, its sequence number (int), the backlog (int), the kind of buffer (1 byte), whether it
        is compressed (1 byte), the size of the payload (int). An int may be below 0.
        """
        receiver, number, backlog, kind, compressed, size = _RESPONSE.unpack(header)
        return receiver, number, backlog, kind, compressed, size


WIRE_FORMAT = WireFormat()
"""The one that all use who are not given another."""
