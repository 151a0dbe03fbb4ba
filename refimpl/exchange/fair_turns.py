"""Fair turns at the producer's end of a connection: which reader speaks when the transport can take bytes.

Rules of this file:
- A reader that may speak stands in the line, once. It sends one buffer and goes to the end if it has
  more. A reader that may not costs nothing, however many there are.
- Errors to be answered go before the readers.
- Who speaks is decided when the transport can take bytes. So nothing is queued twice, and a slow
  transport leaves the data where backpressure sees it: in the subpartition.
- A buffer stays lent until its frame is written, as Flink's transport reads the segment itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from refimpl.config import UNBOUNDED, Config
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.exchange.frames import encode
from refimpl.exchange.java_errors import JavaError
from refimpl.exchange.java_writer import PRODUCER_FAILED, write_java_error
from refimpl.exchange.lent_buffers import LentBuffers
from refimpl.exchange.messages import BufferResponse, ErrorResponse
from refimpl.exchange.producer_credit import SubpartitionReader

__all__ = ["PartitionRequestQueue"]

_MAX_ANSWERS = 4096  # so many errors nobody fetches: the consumer sends and does not read


class PartitionRequestQueue:
    """The readers of one connection, those of them that may speak in a line, and what they have said.

    `on_data_to_send` is called when there is something to send after there was nothing.

    Ownership: a reader's subpartition view is closed when the reader is cancelled and when the queue is closed.
    Memory: some thousand errors, and the lent buffers, within credit.

    Flink:   PartitionRequestQueue (runtime.io.network.netty), 1.11.4
    Differs: the driver fetches bytes when it can write; Flink is told that the socket is writable. A
             failed producer is reported at once, not at its reader's next turn. A frame has a copy of its
             buffer; Flink writes the segment.
    """

    def __init__(self, config: Config) -> None:
        self.readers: dict[bytes, SubpartitionReader] = {}
        self.lent = LentBuffers()
        self.answers: deque[ErrorResponse] = deque()
        self.on_data_to_send: Callable[[], None] = lambda: None
        self.is_closed = False
        self._line: deque[SubpartitionReader] = deque()
        self._version = config.flink_version

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.readers)} readers, {len(self._line)} in line)"

    @property
    def num_in_line(self) -> int:
        """Readers that may speak."""
        return len(self._line)

    @property
    def has_data_to_send(self) -> bool:
        """Whether asking for bytes is worth while; there may be none all the same."""
        return bool(self.answers or self._line)

    # -- readers -----------------------------------------------------------------------------------

    def add(self, reader: SubpartitionReader) -> None:
        """Begin to read for a receiver.

        Raises:
            LocalUsageError: its subpartition cannot be read.
        """
        self.readers[reader.receiver] = reader
        try:
            reader.view.open(partial(self._on_data_available, reader.receiver))
        except LocalUsageError:
            del self.readers[reader.receiver]
            raise

    def replace(self, reader: SubpartitionReader) -> None:
        """Let `reader` go on for its receiver, in the place of the one that has read so far."""
        before = self.readers[reader.receiver]
        self.readers[reader.receiver] = reader
        self._line = deque(reader if each is before else each for each in self._line)

    def cancel(self, receiver: bytes) -> None:
        """Read no more for `receiver`; nothing if there is no such reader, as a goodbye may come late."""
        reader = self.readers.pop(receiver, None)
        if reader is not None:
            if reader.is_enqueued:
                self._line.remove(reader)
            reader.view.close()

    def close(self) -> None:
        """Read for nobody any more; what is to be answered is still answered."""
        self.is_closed = True
        self._line.clear()
        for reader in self.readers.values():
            reader.view.close()
        self.readers.clear()

    # -- what is to be said ------------------------------------------------------------------------

    def answer(self, answer: ErrorResponse) -> None:
        """Say that something went wrong.

        Raises:
            RemoteProtocolError: too many errors wait to be sent.
        """
        if len(self.answers) == _MAX_ANSWERS and not self.is_closed:
            raise RemoteProtocolError(f"{_MAX_ANSWERS} errors wait to be read by the consumer")
        self.answers.append(answer)
        self.on_data_to_send()

    def enqueue(self, reader: SubpartitionReader) -> None:
        """Let the reader stand in line if it may speak now."""
        if reader.is_enqueued:
            return
        if reader.is_available:
            self._stand_in_line(reader)
            self.on_data_to_send()
        else:
            reader.note_wait()

    def data_to_send(self, max_bytes: int = UNBOUNDED) -> list[bytes | memoryview]:
        """The next whole frames, in pieces to be written in order; empty if nobody may speak.

        The last frame is the one that reaches `max_bytes`.
        """
        pieces: list[bytes | memoryview] = []
        end = self.lent.num_handed_out + max_bytes
        while self.lent.num_handed_out < end:
            if self.answers:
                pieces.append(encode(self.answers.popleft(), self._version))
                self.lent.hand_out(len(pieces[-1]))
            elif self._line:
                self._let_speak(self._line.popleft(), pieces)
            else:
                break
        return pieces

    def _let_speak(self, reader: SubpartitionReader, pieces: list[bytes | memoryview]) -> None:
        """Add the frame of the reader's next buffer; it goes to the end of the line if it has more."""
        turn = reader.poll()
        if turn is None:
            reader.is_enqueued = False
            self._report_failure(reader)
            return
        (buffer, _, backlog, _, _), has_more = turn
        number, kind = reader.next_number(), buffer.parent.data_type
        response = BufferResponse(
            reader.receiver,
            number,
            backlog,
            kind,
            buffer.data,
            buffer.parent.is_compressed,
            reader.subpartition,
        )
        pieces.append(encode(response, self._version))
        self.lent.lend(len(pieces[-1]), buffer)
        if has_more:
            self._stand_in_line(reader)
        else:
            reader.is_enqueued = False
            reader.note_wait()

    # -- helpers -----------------------------------------------------------------------------------

    def _on_data_available(self, receiver: bytes) -> None:
        reader = self.readers[receiver]
        if reader.view.failure_cause is not None and not reader.is_enqueued:
            self._stand_in_line(reader)
            self.on_data_to_send()
        self.enqueue(reader)

    def _report_failure(self, reader: SubpartitionReader) -> None:
        cause = reader.view.failure_cause
        if cause is not None:
            self.answer(ErrorResponse(write_java_error(JavaError(PRODUCER_FAILED, cause)), reader.receiver))

    def _stand_in_line(self, reader: SubpartitionReader) -> None:
        reader.is_enqueued = True
        self._line.append(reader)
