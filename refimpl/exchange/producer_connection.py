"""The producer's end of one connection: whoever has data and credit speaks in turn.

Rules of this file:
- A consumer opens a reader with a PartitionRequest, which brings its first credit. A data buffer
  costs one credit, an event none. Without credit a reader speaks only if an event is next.
- A reader that may speak stands in the line, once. It sends one buffer and goes to the end if it has
  more. A reader that may not costs nothing, however many there are.
- Who speaks is decided when the transport can take bytes. So nothing is queued twice, and a slow
  transport leaves the data where backpressure sees it: in the subpartition.
- A mistake about one reader is answered and the connection goes on. Bytes that are no frames, or no
  message of a consumer, end the connection: the last frame says why.

A payload leaves as a view of its segment. The segment is lent until `data_sent`. Without credits (see
`connection_flow`) data costs nothing, and what is lent is limited by water marks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from refimpl.config import UNBOUNDED, Config
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange.connection_flow import WaterMarks, nobody
from refimpl.exchange.frames import encode
from refimpl.exchange.java_errors import JavaError
from refimpl.exchange.java_writer import (
    DECODER_EXCEPTION,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    INDEX_OUT_OF_BOUNDS,
    PRODUCER_FAILED,
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
from refimpl.exchange.producer_reader import PartitionProvider, ProducerConnectionSnapshot, SubpartitionReader
from refimpl.exchange.request_decoder import RequestDecoder
from refimpl.exchange.response_head import ResponseHead
from refimpl.memory.buffer import BufferSlice
from refimpl.trace import Trace

__all__ = ["ProducerConnection"]

_MAX_ANSWERS = 4096  # so many errors nobody fetches: the consumer sends and does not read


class ProducerConnection:
    """What one consumer TaskManager reads from this one, as bytes in and bytes out.

    `on_data_to_send` is called when somebody may speak. `on_task_event` gets the bytes of events against
    the stream's direction and says whether anybody wanted them. What else it raises passes through.

    Ownership: a reader's subpartition view is closed when the consumer cancels it and when the
    connection ends, however it ends. Buffers are lent to the transport from `data_to_send` to
    `data_sent`.
    Memory: an unfinished frame, some thousand errors, and the lent buffers, within credit or marks.

    Flink:   PartitionRequestServerHandler, PartitionRequestQueue (runtime.io.network.netty), 1.11.4
    Differs: the driver fetches bytes when it can write; Flink is told that the socket is writable.
             A receiver's second request is refused; Flink loses the first reader. A failed producer is
             reported at once, not at its reader's next turn. A consumer has a time to speak and a number
             of channels to ask for. No announcements of backlog, new sizes or task events of 2.x are sent.
    """

    def __init__(
        self,
        partitions: PartitionProvider,
        config: Config,
        name: str = "connection",
        on_task_event: Callable[[ResultPartitionId, bytes], bool] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.name = name
        self.on_data_to_send: Callable[[], None] = nobody
        self._partitions = partitions
        self._config = config
        self._version = config.flink_version
        self._head = ResponseHead(config.flink_version)
        self._largest_frame_bytes = self._head.num_bytes + config.segment_size_bytes
        self.marks = WaterMarks.of(config)
        self._on_task_event = on_task_event
        self._trace = trace
        self.decoder = RequestDecoder(config)
        self.readers: dict[bytes, SubpartitionReader] = {}
        self._line: deque[SubpartitionReader] = deque()
        self._answers: deque[ErrorResponse] = deque()
        self._lent: deque[tuple[int, BufferSlice]] = deque()  # each with where its frame ends
        self._give_up_ms: float | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"ProducerConnection({self.name}, {len(self.readers)} readers, {len(self._line)} in line)"

    @property
    def is_closed(self) -> bool:
        """Whether to close the transport, once all is written and `data_to_send` has nothing more."""
        return self._is_closed

    @property
    def has_data_to_send(self) -> bool:
        """Whether asking for bytes is worth while; there may be none all the same."""
        return self.marks.is_writable and bool(self._answers or self._line)

    @property
    def lent_buffers(self) -> tuple[BufferSlice, ...]:
        """What the transport has been given and has not confirmed, for the laws."""
        return tuple(piece for _, piece in self._lent)

    def next_deadline(self, now_ms: float) -> float | None:
        """When a consumer that has said nothing is given up, or `None` once it has spoken."""
        if self._is_closed or self.decoder.has_read_frame:
            return None
        if self._give_up_ms is None:
            self._give_up_ms = now_ms + self._config.first_frame_timeout_ms
        return self._give_up_ms

    def on_timeout(self, now_ms: float) -> None:
        """Give up a consumer that has said nothing for too long."""
        if (deadline_ms := self.next_deadline(now_ms)) is not None and deadline_ms <= now_ms:
            self._close()

    def snapshot(self) -> ProducerConnectionSnapshot:
        readers = {receiver: reader.snapshot() for receiver, reader in self.readers.items()}
        return ProducerConnectionSnapshot(readers, len(self._answers), len(self._lent), self._is_closed)

    # -- bytes in ----------------------------------------------------------------------------------

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Act on what the consumer sent, however the transport cut it; ignored once closed.

        Raises:
            RemoteProtocolError: no consumer sends this. All is released; what is left to do is to
                write `data_to_send`, which tells the consumer, and to close the transport.
        """
        if self._is_closed:
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
                    self._enqueue(reader)
            case ResumeConsumption():
                if (reader := self._reader_of(message.receiver)) is not None:
                    self._resume(reader)
            case CancelPartitionRequest():
                self._cancel(message.receiver)
            case CloseRequest():
                self._close()
                self._answers.clear()
            case TaskEventRequest():
                hook = self._on_task_event
                if hook is None or not hook(message.partition, message.event):
                    self._answer(JavaError(ILLEGAL_ARGUMENT, "Task event receiver not found."), message.receiver)
            case _:  # 2.x: advice about buffer sizes, tiered storage and ends, which nothing here needs
                pass

    def _open_reader(self, request: PartitionRequest) -> None:
        partition, receiver = request.partition, request.receiver
        most = self._config.max_channels_per_connection
        if len(self.readers) >= most:
            raise RemoteProtocolError(f"the consumer asked for more than {most} channels")
        try:
            if receiver in self.readers or request.first != request.last:
                raise LocalUsageError(f"receiver {receiver.hex()} reads one subpartition, once")
            view = self._partitions.find(partition, request.first)
            if view is None:
                self._put(ErrorResponse(partition_not_found(partition, self._version), receiver))
                return
            reader = SubpartitionReader(view, request, self._config.credit_based, self._trace)
            view.open(partial(self._on_data_available, reader))
        except LocalUsageError as error:
            self._answer(JavaError(ILLEGAL_STATE, str(error)))
        except IndexError:
            self._answer(JavaError(INDEX_OUT_OF_BOUNDS, f"Subpartition not found. Index: {request.first}"))
        else:
            self.readers[receiver] = reader

    def _resume(self, reader: SubpartitionReader) -> None:
        try:
            reader.view.resume()  # tells the reader if there is something for it
        except LocalUsageError:
            self._answer(JavaError(ILLEGAL_STATE, "Should be blocked by checkpoint."))

    def _reader_of(self, receiver: bytes) -> SubpartitionReader | None:
        """The reader, or `None` and an error that is fatal to the consumer, as Flink has it."""
        reader = self.readers.get(receiver)
        if reader is None:
            self._answer(JavaError(ILLEGAL_STATE, f"No reader for receiverId = {receiver.hex()} exists."))
        return reader

    def _answer(self, error: JavaError, receiver: bytes | None = None) -> None:
        self._put(ErrorResponse(write_java_error(error), receiver))

    def _put(self, answer: ErrorResponse) -> None:
        if len(self._answers) == _MAX_ANSWERS and not self._is_closed:
            raise RemoteProtocolError(f"{_MAX_ANSWERS} errors wait to be read by the consumer")
        self._answers.append(answer)
        self.on_data_to_send()

    # -- bytes out ---------------------------------------------------------------------------------

    def data_to_send(self, max_bytes: int = UNBOUNDED) -> list[bytes | memoryview]:
        """The next whole frames, in pieces to be written in order; empty if nobody may speak.

        The last frame is the one that reaches `max_bytes` or exceeds the high water mark. The pieces
        stay valid until `data_sent`.
        """
        pieces: list[bytes | memoryview] = []
        marks = self.marks
        end = marks.num_handed_out + max_bytes
        while marks.is_writable and marks.num_handed_out < end:
            if self._answers:
                pieces.append(encode(self._answers.popleft(), self._version))
                marks.hand_out(len(pieces[-1]))
            elif self._line:
                self._let_speak(self._line.popleft(), pieces, end)
            else:
                break
        return pieces

    def data_sent(self, num_bytes: int | None = None) -> None:
        """All that was handed out is written, or its next `num_bytes`: buffers of whole frames go home.

        Raises:
            LocalUsageError: so many bytes have not been handed out.
        """
        self.marks.confirm(self.marks.num_pending if num_bytes is None else num_bytes)
        lent, num_written = self._lent, self.marks.num_written
        while lent and lent[0][0] <= num_written:
            lent.popleft()[1].recycle()

    def connection_lost(self) -> None:
        """The transport is gone and reads no memory any more: everything goes home."""
        self._close()
        self._answers.clear()
        self.data_sent()

    def _let_speak(self, reader: SubpartitionReader, pieces: list[bytes | memoryview], end: int) -> None:
        """Add the frame of the reader's next buffer, and as long as nobody else stands in line of more, up to `end`."""
        marks = self.marks
        if not (self._line or self._answers):
            room = min(end, marks.num_written + marks.high_bytes) - marks.num_handed_out
            for buffer, backlog in reader.poll_run((room - 1) // self._largest_frame_bytes):
                self._lend(reader, buffer, backlog, pieces)
        while (turn := reader.poll()) is not None:
            (buffer, _, backlog, _, _), has_more = turn
            self._lend(reader, buffer, backlog, pieces)
            if not has_more:
                reader.note_wait()
                break
            if self._line or self._answers or marks.num_handed_out >= end or not marks.is_writable:
                self._stand_in_line(reader)
                return
        if turn is None and (cause := reader.view.failure_cause) is not None:
            self._answer(JavaError(PRODUCER_FAILED, cause), reader.receiver)
        reader.is_enqueued = False

    def _lend(self, by: SubpartitionReader, taken: BufferSlice, backlog: int, pieces: list[bytes | memoryview]) -> None:
        head, kind, size = self._head, taken.parent.data_type, taken.end - taken.start
        pieces += head.pack(by.receiver, by.subpartition, by.next_number(), backlog, kind, size), taken.data
        self.marks.hand_out(head.num_bytes + size)
        self._lent.append((self.marks.num_handed_out, taken))

    def _on_data_available(self, reader: SubpartitionReader) -> None:
        if reader.view.failure_cause is not None and not reader.is_enqueued:
            self._stand_in_line(reader)
            self.on_data_to_send()
        self._enqueue(reader)

    def _enqueue(self, reader: SubpartitionReader) -> None:
        if not reader.is_enqueued and reader.is_available:
            self._stand_in_line(reader)
            self.on_data_to_send()
        elif not reader.is_enqueued:
            reader.note_wait()

    def _stand_in_line(self, reader: SubpartitionReader) -> None:
        reader.is_enqueued = True
        self._line.append(reader)

    def _cancel(self, receiver: bytes) -> None:
        if (reader := self.readers.pop(receiver, None)) is None:
            return  # a late goodbye
        if reader.is_enqueued:
            self._line.remove(reader)
        reader.view.close()

    def _close(self) -> None:
        self._is_closed = True
        self.decoder.close()
        self._line.clear()
        for reader in self.readers.values():
            reader.view.close()
        self.readers.clear()
