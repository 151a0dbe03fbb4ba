"""What is on its way between two TaskManagers at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.exchange.messages import AddCredit, BacklogAnnouncement, BufferResponse, Message, PartitionRequest

__all__ = ["FrameSnapshot", "WireSnapshot"]


@dataclass(frozen=True, slots=True)
class FrameSnapshot:
    """One message on its way: `kind` is its class, but data and events are told apart as `Buffer` and `Event`.

    `receiver` is empty where it is about the whole connection. `credit`, `backlog`, `sequence_number` and `num_bytes`
    are -1 where the message has none.
    """

    kind: str
    receiver: bytes
    sequence_number: int = -1
    backlog: int = -1
    credit: int = -1
    num_bytes: int = -1

    @classmethod
    def of(cls, message: Message) -> FrameSnapshot:
        """What a message says, without its bytes."""
        kind, receiver = type(message).__name__, getattr(message, "receiver", None) or b""
        match message:
            case BufferResponse():
                kind = "Buffer" if message.data_type.is_buffer else "Event"
                return cls(kind, receiver, message.sequence_number, message.backlog, -1, len(message.payload))
            case BacklogAnnouncement():
                return cls(kind, receiver, backlog=message.backlog)
            case PartitionRequest() | AddCredit():
                return cls(kind, receiver, credit=message.credit)
        return cls(kind, receiver)


@dataclass(frozen=True, slots=True)
class WireSnapshot:
    """One connection, and in each direction the messages on their way, the oldest first."""

    name: str
    consumer: int
    producer: int
    requests: tuple[FrameSnapshot, ...]
    responses: tuple[FrameSnapshot, ...]
