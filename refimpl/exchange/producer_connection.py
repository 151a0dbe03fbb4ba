"""The producer's end of one connection: what a consumer asks for, and what it is answered.

Rules of this file:
- A consumer opens a reader with a PartitionRequest, which brings its first credit. A data buffer
  costs one credit, an event none. Without credit a reader speaks only if an event is next.
- Readers that may speak take turns (see `fair_turns`).
- A mistake about one reader is answered and the connection goes on. Bytes that are no frames, or no
  message of a consumer, end the connection: the last frame says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refimpl.config import UNBOUNDED, Config
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange.fair_turns import PartitionRequestQueue
from refimpl.exchange.java_errors import JavaError
from refimpl.exchange.java_writer import (
    DECODER_EXCEPTION,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    INDEX_OUT_OF_BOUNDS,
    partition_not_found,
    write_java_error,
)
from refimpl.exchange.messages import (
    AddCredit,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    Message,
    PartitionRequest,
    ResultPartitionId,
    ResumeConsumption,
    TaskEventRequest,
)
from refimpl.exchange.producer_credit import PartitionProvider, ReaderSnapshot, SubpartitionReader
from refimpl.exchange.request_decoder import RequestDecoder
from refimpl.memory.buffer import BufferSlice
from refimpl.trace import Trace

__all__ = ["ProducerConnection", "ProducerConnectionSnapshot"]

_MOST_MISTAKES = 5000  # each takes time from the job; a consumer of ours or of Flink makes few


@dataclass(frozen=True, slots=True)
class ProducerConnectionSnapshot:
    """One producer's end at one moment: readers by receiver, and buffers not yet written."""

    readers: dict[bytes, ReaderSnapshot]
    num_answers: int
    num_lent: int
    is_closed: bool


class ProducerConnection:
    """What one consumer TaskManager reads from this one, as bytes in and bytes out.

    `on_task_event` gets the bytes of events
    against the stream's direction and says whether anybody wanted them. What else it raises passes through.
    `reader` is the class of readers.

    Ownership: all readers end when the connection ends, however it ends. Buffers are lent to the transport
    from `data_to_send` to `data_sent`.
    Memory: an unfinished frame, and what the queue holds.

    Flink:   PartitionRequestServerHandler (runtime.io.network.netty), 1.11.4
    Differs: a receiver's second request is refused; Flink loses the first reader. A consumer has a time to
             speak, a number of channels to ask for and a number of mistakes to make: errors,
             requests for what is not here, goodbyes of nobody. No announcements of backlog,
             new sizes or task events of 2.x are sent.
    """

    def __init__(
        self,
        partitions: PartitionProvider,
        config: Config,
        name: str = "connection",
        on_task_event: Callable[[ResultPartitionId, bytes], bool] | None = None,
        trace: Trace | None = None,
        queue: PartitionRequestQueue | None = None,
        reader: type[SubpartitionReader] = SubpartitionReader,
    ) -> None:
        self.name = name
        self.queue = queue or PartitionRequestQueue(config)
        self.decoder = RequestDecoder(config)
        self._partitions = partitions
        self._config = config
        self._on_task_event = on_task_event
        self._trace = trace
        self._reader = reader
        self._give_up_ms: float | None = None
        self._num_mistakes = 0

    def __repr__(self) -> str:
        queue = self.queue
        return f"{type(self).__name__}({self.name}, {len(queue.readers)} readers, {queue.num_in_line} in line)"

    @property
    def is_closed(self) -> bool:
        """Whether to close the transport, once all is written and `data_to_send` has nothing more."""
        return self.queue.is_closed

    @property
    def has_data_to_send(self) -> bool:
        """Whether asking for bytes is worth while; there may be none all the same."""
        return self.queue.has_data_to_send

    @property
    def on_data_to_send(self) -> Callable[[], None]:
        """Called when there is something to send after there was nothing."""
        return self.queue.on_data_to_send

    @on_data_to_send.setter
    def on_data_to_send(self, on_data_to_send: Callable[[], None]) -> None:
        self.queue.on_data_to_send = on_data_to_send

    @property
    def readers(self) -> dict[bytes, SubpartitionReader]:
        return self.queue.readers

    @property
    def lent_buffers(self) -> tuple[BufferSlice, ...]:
        """What the transport has been given and has not confirmed, for the laws."""
        return self.queue.lent.buffers

    def next_deadline(self, now_ms: float) -> float | None:
        """When a consumer that has said nothing is given up, or `None` once it has spoken."""
        if self.is_closed or self.decoder.has_read_frame:
            return None
        if self._give_up_ms is None:
            self._give_up_ms = now_ms + self._config.first_frame_timeout_ms
        return self._give_up_ms

    def on_timeout(self, now_ms: float) -> None:
        """Give up a consumer that has said nothing for too long."""
        if (deadline_ms := self.next_deadline(now_ms)) is not None and deadline_ms <= now_ms:
            self._close()

    def snapshot(self) -> ProducerConnectionSnapshot:
        queue = self.queue
        readers = {receiver: reader.snapshot() for receiver, reader in queue.readers.items()}
        return ProducerConnectionSnapshot(readers, len(queue.answers), len(self.lent_buffers), queue.is_closed)

    # -- bytes in ----------------------------------------------------------------------------------

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Act on what the consumer sent, however the transport cut it; ignored once closed.

        Raises:
            RemoteProtocolError: no consumer sends this. All is released; what is left to do is to
                write `data_to_send`, which tells the consumer, and to close the transport.
        """
        if self.is_closed:
            return
        self.decoder.feed(data)
        try:
            while (message := self.decoder.next_message()) is not None:
                self._handle(message)
        except RemoteProtocolError as error:
            self._close()
            cause = self.decoder.failure or JavaError("java.net.ProtocolException", str(error))
            self._answer(JavaError(DECODER_EXCEPTION, str(cause), cause))
            raise

    def _handle(self, message: Message) -> None:
        match message:
            case PartitionRequest():
                self._open_reader(message)
            case AddCredit():
                if (reader := self._reader_of(message.receiver)) is not None:
                    reader.add_credit(message.credit)
                    reader.note_grant()
                    self.queue.enqueue(reader)
            case ResumeConsumption():
                if (reader := self._reader_of(message.receiver)) is not None:
                    self._resume(reader)
            case CancelPartitionRequest():
                if message.receiver not in self.queue.readers:
                    self._note_mistake()
                self.queue.cancel(message.receiver)
            case CloseRequest():
                self._close()
                self.queue.answers.clear()
            case TaskEventRequest():
                hook = self._on_task_event
                if hook is None or not hook(message.partition, message.event):
                    self._answer(JavaError(ILLEGAL_ARGUMENT, "Task event receiver not found."), message.receiver)
            case _:  # 2.x: advice about buffer sizes, tiered storage and ends, which nothing here needs
                pass

    def _open_reader(self, request: PartitionRequest) -> None:
        partition, receiver = request.partition, request.receiver
        most = self._config.max_channels_per_connection
        if len(self.queue.readers) >= most:
            raise RemoteProtocolError(f"the consumer asked for more than {most} channels")
        try:
            if receiver in self.queue.readers or request.first != request.last:
                raise LocalUsageError(f"receiver {receiver.hex()} reads one subpartition, once")
            view = self._partitions.find(partition, request.first)
            if view is None:
                self._note_mistake()
                self.queue.answer(ErrorResponse(partition_not_found(partition, self._config.flink_version), receiver))
                return
            self.queue.add(self._reader(view, request, self._trace))
        except LocalUsageError as error:
            self._answer(JavaError(ILLEGAL_STATE, str(error)))
        except IndexError:
            self._answer(JavaError(INDEX_OUT_OF_BOUNDS, f"Subpartition not found. Index: {request.first}"))

    def _resume(self, reader: SubpartitionReader) -> None:
        try:
            reader.view.resume()  # tells the reader if there is something for it
        except LocalUsageError:
            self._answer(JavaError(ILLEGAL_STATE, "Should be blocked by checkpoint."))

    def _reader_of(self, receiver: bytes) -> SubpartitionReader | None:
        """The reader, or `None` and an error that is fatal to the consumer, as Flink has it."""
        reader = self.queue.readers.get(receiver)
        if reader is None:
            self._answer(JavaError(ILLEGAL_STATE, f"No reader for receiverId = {receiver.hex()} exists."))
        return reader

    def _answer(self, error: JavaError, receiver: bytes | None = None) -> None:
        self._note_mistake()
        self.queue.answer(ErrorResponse(write_java_error(error), receiver))

    def _note_mistake(self) -> None:
        """Count what no consumer does often; the one after the last ends the connection."""
        self._num_mistakes += 1
        if self._num_mistakes > _MOST_MISTAKES and not self.is_closed:
            raise RemoteProtocolError(f"the consumer goes on after {_MOST_MISTAKES} mistakes")

    # -- bytes out ---------------------------------------------------------------------------------

    def data_to_send(self, max_bytes: int = UNBOUNDED) -> list[bytes | memoryview]:
        """The next whole frames, in pieces to be written in order; empty if nobody may speak.

        The last frame is the one that reaches `max_bytes`. The pieces stay valid until `data_sent`.
        """
        return self.queue.data_to_send(max_bytes)

    def data_sent(self, num_bytes: int | None = None) -> None:
        """All that was handed out is written, or its next `num_bytes`: buffers of whole frames go home.

        Raises:
            LocalUsageError: so many bytes have not been handed out.
        """
        lent = self.queue.lent
        lent.confirm(lent.num_pending if num_bytes is None else num_bytes)

    def connection_lost(self) -> None:
        """The transport is gone and reads no memory any more: everything goes home."""
        self._close()
        self.queue.answers.clear()
        self.data_sent()

    def _close(self) -> None:
        self.decoder.close()
        self.queue.close()
