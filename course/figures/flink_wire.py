"""The figures of lesson 18: the bytes a Flink consumer wrote, and what becomes of a request that is cut short."""

from __future__ import annotations

from dataclasses import dataclass

from course.flink.recorded import conversation
from course.peer.consuming import Parts
from course.peer.with_flink import consume_from_flink
from refimpl.exchange import WireFormat, to_frame

__all__ = ["CutShort", "FlinkWrote", "cut_short", "flink_wrote"]

_HEADER = ((4, "length"), (4, "magic"), (1, "message id"))
_BODIES = {
    "PartitionRequest": (
        (16, "id of the data set"), (4, "number of the partition"), (16, "id of its producer"),
        (4, "number of the subpartition"), (16, "id of the receiver"), (4, "credit"),
    ),
    "AddCredit": ((4, "credit"), (16, "id of the receiver")),
    "ResumeConsumption": ((16, "id of the receiver"),),
    "BufferResponse": (
        (16, "id of the receiver"), (4, "sequence number"), (4, "backlog"), (1, "kind: 0 data, 1 event, 2 barrier"),
        (1, "compressed: 0 no, 1 yes"), (4, "size of the payload"), (-1, "the payload"),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FlinkWrote:
    """One frame that a Flink wrote, field by field."""

    message: str
    frame: bytes

    def __repr__(self) -> str:
        lines = [f"{self.message}, {len(self.frame)} bytes"]
        position = 0
        for width, meaning in (*_HEADER, *_BODIES[self.message]):
            part = self.frame[position : position + width] if width > 0 else self.frame[position:]
            position += len(part)
            shown = part.hex(" ", -4) if len(part) <= 16 else f"{part[:8].hex(' ', -4)} …"
            lines.append(f"  {shown:<37}{meaning}")
        return "\n".join(lines)


def flink_wrote(message: str) -> FlinkWrote:
    """The first frame of this kind that went over the wire between two Flinks."""
    return FlinkWrote(message, bytes.fromhex(conversation()["said"][message]))


class _WithoutCredit(WireFormat):
    """A request that ends before its last number; its length is right."""

    def request(
        self, data_set_id: bytes, partition: int, producer_id: bytes, subpartition: int, receiver: bytes, credit: int
    ) -> bytes:
        whole = super().request(data_set_id, partition, producer_id, subpartition, receiver, credit)
        return to_frame(2, whole[9:-4])


@dataclass(frozen=True, slots=True)
class CutShort:
    """What became of two channels whose requests lacked their last number."""

    num_channels: int
    num_served: int
    has_ended: bool

    def __repr__(self) -> str:
        ended = "ended by Flink" if self.has_ended else "still open"
        return f"channels that got anything: {self.num_served} of {self.num_channels}; the connection: {ended}"


def cut_short() -> CutShort:
    """Ask a Flink for two partitions, without saying how much room there is."""
    done = consume_from_flink(Parts(wire=_WithoutCredit()))
    served = [each for each in done["channels"] if each["data_buffers"]]
    return CutShort(len(done["channels"]), len(served), bool(done["error"]))
