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
)  # fmt: skip
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
)  # fmt: skip
from refimpl.exchange.producer_reader import PartitionProvider, ProducerConnectionSnapshot, SubpartitionReader
from refimpl.exchange.request_decoder import RequestDecoder
from refimpl.exchange.response_head import ResponseHead
from refimpl.memory.buffer import BufferSlice
from refimpl.producer.subpartition_views import BufferAndBacklog
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
        self._marks = WaterMarks.of(config)
        self._on_task_event = on_task_event
        self._trace = trace
        self._decoder = RequestDecoder(config)
        self._readers: dict[bytes, SubpartitionReader] = {}
        self._line: deque[SubpartitionReader] = deque()
        self._answers: deque[ErrorResponse] = deque()
        self._lent: deque[tuple[int, BufferSlice]] = deque()  # each with where its frame ends
        self._give_up_ms: float | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"ProducerConnection({self.name}, {len(self._readers)} readers, {len(self._line)} in line)"

    @property
    def is_closed(self) -> bool:
        """Whether to close the transport, once all is written and `data_to_send` has nothing more."""
        return self._is_closed

    @property
    def has_data_to_send(self) -> bool:
        """Whether asking for bytes is worth while; there may be none all the same."""
        return self._marks.is_writable and bool(self._answers or self._line)

    @property
    def lent_buffers(self) -> tuple[BufferSlice, ...]:
        """What the transport has been given and has not confirmed, for the laws."""
        return tuple(piece for _, piece in self._lent)

    def next_deadline(self, now_ms: float) -> float | None:
        """When a consumer that has said nothing is given up, or `None` once it has spoken."""
        if self._is_closed or self._decoder.has_read_frame:
            return None
        if self._give_up_ms is None:
            self._give_up_ms = now_ms + self._config.first_frame_timeout_ms
        return self._give_up_ms

    def on_timeout(self, now_ms: float) -> None:
        """Give up a consumer that has said nothing for too long."""
        deadline_ms = self.next_deadline(now_ms)
        if deadline_ms is not None and deadline_ms <= now_ms:
            self._close()

    def snapshot(self) -> ProducerConnectionSnapshot:
        readers = {receiver: reader.snapshot() for receiver, reader in self._readers.items()}
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
        self._decoder.feed(data)
        try:
            while (message := self._decoder.next_message()) is not None:
                self._handle(message)
        except RemoteProtocolError as error:
            self._close()
            cause = self._decoder.failure or JavaError("java.net.ProtocolException", str(error))
            self._answer(JavaError(DECODER_EXCEPTION, str(cause), cause))
            raise

    def _handle(self, message: Message) -> None:
        match message:
            case PartitionRequest():
                self._open_reader(message)
            case AddCredit():
                if (reader := self._reader_of(message.receiver)) is not None:
                    reader.credit += message.credit
                    self._note("add credit", reader)
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
                    error = JavaError(ILLEGAL_ARGUMENT, "Task event receiver not found.")
                    self._answer(error, message.receiver)
            case _:  # 2.x: advice about buffer sizes, tiered storage and ends, which nothing here needs
                pass

    def _open_reader(self, request: PartitionRequest) -> None:
        partition, receiver = request.partition, request.receiver
        most = self._config.max_channels_per_connection
        if len(self._readers) >= most:
            raise RemoteProtocolError(f"the consumer asked for more than {most} channels")
        try:
            if receiver in self._readers or request.first != request.last:
                raise LocalUsageError(f"receiver {receiver.hex()} reads one subpartition, once")
            view = self._partitions.find(partition, request.first)
            if view is None:
                self._put(ErrorResponse(partition_not_found(partition, self._version), receiver))
                return
            reader = SubpartitionReader(view, request, self._config.credit_based)
            view.open_view(partial(self._on_data_available, reader))
        except LocalUsageError as error:
            self._answer(JavaError(ILLEGAL_STATE, str(error)))
        except IndexError:
            text = f"Subpartition not found. Index: {request.first}"
            self._answer(JavaError(INDEX_OUT_OF_BOUNDS, text))
        else:
            self._readers[receiver] = reader
            self._note("open reader", reader)

    def _resume(self, reader: SubpartitionReader) -> None:
        try:
            reader.view.resume()  # tells the reader if there is something for it
        except LocalUsageError:
            self._answer(JavaError(ILLEGAL_STATE, "Should be blocked by checkpoint."))

    def _reader_of(self, receiver: bytes) -> SubpartitionReader | None:
        """The reader, or `None` and an error that is fatal to the consumer, as Flink has it."""
        reader = self._readers.get(receiver)
        if reader is None:
            text = f"No reader for receiverId = {receiver.hex()} exists."
            self._answer(JavaError(ILLEGAL_STATE, text))
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
        end = self._marks.num_handed_out + max_bytes
        while self._marks.is_writable and self._marks.num_handed_out < end and (frame := self._next_frame()):
            pieces += frame
            self._marks.hand_out(sum(map(len, frame)))
        return pieces

    def data_sent(self, num_bytes: int | None = None) -> None:
        """All that was handed out is written, or its next `num_bytes`: buffers of whole frames go home.

        Raises:
            LocalUsageError: so many bytes have not been handed out.
        """
        self._marks.confirm(self._marks.num_pending if num_bytes is None else num_bytes)
        while self._lent and self._lent[0][0] <= self._marks.num_written:
            _, piece = self._lent.popleft()
            piece.recycle()

    def connection_lost(self) -> None:
        """The transport is gone and reads no memory any more: everything goes home."""
        self._close()
        self._answers.clear()
        self.data_sent()

    def _next_frame(self) -> tuple[bytes | memoryview, ...]:
        if self._answers:
            return (encode(self._answers.popleft(), self._version),)
        while self._line:
            reader = self._line.popleft()
            reader.is_enqueued = False
            turn = reader.poll()
            if turn is not None:
                taken, has_more = turn
                if has_more:
                    self._stand_in_line(reader)
                return self._send(reader, taken)
            if (cause := reader.view.failure_cause) is not None:
                self._answer(JavaError(PRODUCER_FAILED, cause), reader.receiver)
                return self._next_frame()
        return ()

    def _send(self, reader: SubpartitionReader, taken: BufferAndBacklog) -> tuple[bytes, memoryview]:
        head, payload = reader.response(taken, self._head)
        self._lent.append((self._marks.num_handed_out + len(head) + len(payload), taken.buffer))
        if self._trace is not None:
            self._note("send", reader, segment=taken.buffer.segment.id, bytes=taken.buffer.size)
        return head, payload

    def _on_data_available(self, reader: SubpartitionReader) -> None:
        if reader.view.failure_cause is not None and not reader.is_enqueued:
            self._stand_in_line(reader)
        self._enqueue(reader)

    def _note(self, kind: str, reader: SubpartitionReader, **detail: int) -> None:
        if self._trace is not None:
            who = {"receiver": reader.receiver.hex(), "sequence": reader.sequence_number, "credit": reader.credit}
            self._trace.add(kind, self.name, **who, **detail)

    def _enqueue(self, reader: SubpartitionReader) -> None:
        if not reader.is_enqueued and reader.is_available:
            self._stand_in_line(reader)

    def _stand_in_line(self, reader: SubpartitionReader) -> None:
        reader.is_enqueued = True
        self._line.append(reader)
        self.on_data_to_send()

    def _cancel(self, receiver: bytes) -> None:
        reader = self._readers.pop(receiver, None)
        if reader is None:
            return  # a late goodbye
        if reader.is_enqueued:
            self._line.remove(reader)
        reader.view.close_view()

    def _close(self) -> None:
        self._is_closed = True
        self._decoder.close()
        self._line.clear()
        for reader in self._readers.values():
            reader.view.close_view()
        self._readers.clear()
