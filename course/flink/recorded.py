"""What a real Flink 1.11.4 once sent to a consumer, sent again: for machines that have no Flink.

It keeps Flink's rules as it did then. A channel is opened by a `PartitionRequest`, data goes out for credit, events for
nothing, and behind a barrier that blocks nothing goes out until a `ResumeConsumption`. A partition that is not there is
answered with the error that Flink writes, and bytes that are no frames with the end of the connection.

`tests/interop/record.py` has recorded `conversation.json`: two channels with records, watermarks and barriers, frame by
frame, the receivers blanked out. A test sees whether Flink still says the same.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from refimpl.config import Config, FlinkVersion
from refimpl.errors import RemoteProtocolError
from refimpl.exchange import (
    AddCredit,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    Message,
    PartitionRequest,
    RequestDecoder,
    ResumeConsumption,
    encode,
    partition_not_found,
)
from refimpl.memory import DataType

__all__ = ["RecordedFlink", "conversation"]

_FILE = Path(__file__).parent / "conversation.json"
_RECEIVER = slice(9, 25)
_KIND_AT = 33
_LOOK_S = 0.1
_KINDS = {kind.code(FlinkVersion.V1_11): kind for kind in DataType}


@cache
def conversation() -> dict[str, Any]:
    """The recording: `options` of both ends, `channels` with the ids of their partition, their frames and their sum."""
    found: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found


@dataclass(slots=True)
class _Channel:
    """What is still to be sent to one receiver, and how much of it may go."""

    frames: deque[bytes]
    credit: int
    is_blocked: bool = False

    def sendable(self) -> bytes | None:
        """The frame that may go out now."""
        if self.is_blocked or not self.frames:
            return None
        kind = _KINDS[self.frames[0][_KIND_AT]]
        if kind.is_buffer and not self.credit:
            return None
        self.credit -= kind.is_buffer
        self.is_blocked = kind.blocks_upstream
        return self.frames.popleft()


class RecordedFlink:
    """The producer's end of one connection after the other, on a thread of its own, between `with` and its end.

    `port` is one of 127.0.0.1; `refused` are the reasons why connections were ended.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(_LOOK_S)
        self.port: int = self._socket.getsockname()[1]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="recorded Flink", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._socket.close()

    def offer(self) -> dict[str, Any]:
        """What a consumer must know, as a `Peer` says it."""
        options = conversation()["options"]
        ids = [f"{each['partition_id']}:{each['producer_id']}" for each in conversation()["channels"]]
        same = {name: options[name] for name in ("elements", "segment_size")}
        return {"port": self.port, "subpartitions": 1, "type": "long", "partitions": ",".join(ids), **same}

    def _serve(self) -> None:
        while not self._is_over.is_set():
            try:
                connected, _ = self._socket.accept()
            except TimeoutError:
                continue
            with connected:
                connected.settimeout(_LOOK_S)
                try:
                    self._speak(connected)
                except RemoteProtocolError as error:
                    self.refused.append(str(error))
                except OSError:
                    continue  # the consumer is gone

    def _speak(self, connected: socket.socket) -> None:
        """Answer one consumer until it closes, or says what nobody understands."""
        decoder, channels = RequestDecoder(Config()), dict[bytes, _Channel]()
        while not self._is_over.is_set():
            try:
                data = connected.recv(4096)
            except TimeoutError:
                continue
            if not data:
                return
            decoder.feed(data)
            while (message := decoder.next_message()) is not None:
                if isinstance(message, CloseRequest):
                    return
                if answer := self._answer(message, channels):
                    connected.sendall(answer)
            for channel in channels.values():
                while (frame := channel.sendable()) is not None:
                    connected.sendall(frame)

    def _answer(self, message: Message, channels: dict[bytes, _Channel]) -> bytes:
        """Do what a message asks for; what is to be sent at once."""
        match message:
            case PartitionRequest():
                frames = _recorded(message)
                if frames is None:
                    return encode(ErrorResponse(partition_not_found(message.partition), message.receiver))
                mine = [each[: _RECEIVER.start] + message.receiver + each[_RECEIVER.stop :] for each in frames]
                channels[message.receiver] = _Channel(deque(mine), message.credit)
            case AddCredit() if message.receiver in channels:
                channels[message.receiver].credit += message.credit
            case ResumeConsumption() if message.receiver in channels:
                channels[message.receiver].is_blocked = False
            case CancelPartitionRequest():
                channels.pop(message.receiver, None)
        return b""


def _recorded(request: PartitionRequest) -> list[bytes] | None:
    """The frames of the partition that is asked for, each with an empty receiver."""
    partition = request.partition
    wanted = (partition.data_set_id + partition.number.to_bytes(4, "big")).hex(), partition.producer.id.hex()
    for channel in conversation()["channels"]:
        if wanted == (channel["partition_id"], channel["producer_id"]) and not request.first:
            return [bytes.fromhex(each) for each in channel["frames"]]
    return None
