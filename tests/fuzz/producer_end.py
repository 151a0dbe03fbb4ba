"""Our producer's end under test, and everything that somebody around it can do: the task, the transport.

Each method that is a step may be called at any time, in any order; what makes no sense then does nothing. `check` is
the law between two steps, `finish` ends everything and looks for what is left.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from refimpl.config import UNBOUNDED
from refimpl.drivers.makers import makers_of
from refimpl.errors import RemoteProtocolError
from refimpl.exchange import (
    DECODER_EXCEPTION,
    BufferResponse,
    ErrorResponse,
    Message,
    PartitionRequest,
    ProducerId,
    RequestDecoder,
    ResultPartitionId,
    read_java_error,
)
from refimpl.memory import Buffer, BufferBuilder, BufferSlice, LocalBufferPool, NetworkBufferPool
from refimpl.producer import PipelinedSubpartitionView, ResultPartition
from refimpl.records import Alignment, CancelCheckpointMarker, CheckpointBarrier
from tests.fuzz.inputs import NUM_CHANNELS, Setup
from tests.fuzz.oracles import (
    Frame,
    Ledger,
    after,
    check_places,
    check_references,
    frames_in,
    held_bytes,
    numbered,
    pieces_of,
)

__all__ = ["PARTITION", "UNKNOWN", "ProducerEnd"]

PARTITION = ResultPartitionId(b"\x11" * 16, 0, ProducerId(b"\x33" * 16))
UNKNOWN = ResultPartitionId(b"\x99" * 16, 0, ProducerId(b"\x33" * 16))
EVENTS = (
    CheckpointBarrier(1, 0, alignment=Alignment.ALIGNED),
    CheckpointBarrier(2, 0, alignment=Alignment.AT_LEAST_ONCE),
    CancelCheckpointMarker(3),
)

_MAX_ANSWERS = 4_097  # 4096, and the one that says why there are no more
_LONGEST_WITHOUT_EVENT = 128
_LONGEST_ANSWER = 4_096

# What things weigh in Python, generously; how many there are is bounded by the configuration and by refimpl.
_CONNECTION_BYTES = 10_000
_READER_BYTES = 2_000
_ANSWER_BYTES = 2_500
_LENT_BYTES = 1_000


@dataclass(frozen=True, slots=True)
class _Lent:
    """A frame that the transport has and has not written: as it was, and in pieces that must stay as they are."""

    frame: Frame
    pieces: tuple[bytes | memoryview, ...]


class ProducerEnd:
    """Our producer's end: a partition that a task writes, and the transport that takes its bytes.

    `written` is what the task has written, by subpartition; `outgoing` are frames that the transport has written.
    """

    def __init__(self, setup: Setup) -> None:
        self._config = setup.config
        segment_size, version = setup.config.segment_size_bytes, setup.config.flink_version
        self.home = NetworkBufferPool(2 * NUM_CHANNELS, segment_size, version)
        self._pool = LocalBufferPool(self.home, NUM_CHANNELS + 1, 2 * NUM_CHANNELS, "map-0", NUM_CHANNELS)
        self.partition = ResultPartition("map-0", NUM_CHANNELS, self._pool, setup.config)
        makers = makers_of(setup.config, default=False)
        self.connection = makers.producer_connection(self, setup.config, "to tm-2", None)
        self.connection._on_task_event = self._wants_event
        self.written = [bytearray() for _ in range(NUM_CHANNELS)]
        self.outgoing: list[Frame] = []
        self.is_lost = False
        self._builders: dict[int, BufferBuilder] = {}
        self._lent: deque[_Lent] = deque()
        self._num_written = 0  # bytes of the first lent frame that the transport has written
        self._ledger = Ledger(self._exists, price=1 if setup.config.credit_based else 0)
        self._heard = RequestDecoder(setup.config)
        self._now_ms = 0.0
        self._most_at_once = 0
        self._most_pending = 2 * segment_size + _LONGEST_ANSWER

    def find(self, wanted: ResultPartitionId, index: int) -> PipelinedSubpartitionView | None:
        """For the connection: a subpartition that has failed is no more."""
        if wanted != PARTITION or self.partition.subpartitions[index].is_released:
            return None
        return self.partition.create_view(index)

    def _wants_event(self, _partition: ResultPartitionId, event: bytes) -> bool:
        return len(event) % 2 > 0

    def _exists(self, request: PartitionRequest) -> bool:
        return request.first < NUM_CHANNELS and self.find(request.partition, request.first) is not None

    @property
    def unconfirmed(self) -> list[Message]:
        """What the transport has taken and not written."""
        return [lent.frame.message for lent in self._lent]

    # -- the task ----------------------------------------------------------------------------------

    def write(self, index: int, num_bytes: int) -> None:
        """Begin a new buffer; what does not fit into it is not written."""
        self.close(index)
        builder = self.partition.request_builder(index)
        if builder is None:
            return
        if self.partition.add(builder.create_consumer(), index):
            self._builders[index] = builder
            self.append(index, num_bytes)
        else:
            builder.finish()

    def append(self, index: int, num_bytes: int) -> None:
        """Go on in the buffer that is open."""
        if index in self._builders:
            written = self.written[index]
            data = bytes((len(written) + step) % 251 for step in range(num_bytes))
            written += data[: self._builders[index].append_and_commit(data)]

    def close(self, index: int) -> None:
        if index in self._builders:
            self._builders.pop(index).finish()

    def flush(self, index: int) -> None:
        self.partition.flush(index)

    def event(self, number: int) -> None:
        self._close_all()
        self.partition.broadcast_event(EVENTS[number % len(EVENTS)])

    def end(self) -> None:
        if not self.partition.is_finished:
            self._close_all()
            self.partition.finish()

    def fail(self, index: int) -> None:
        self.partition.subpartitions[index].release("disk full")

    def _close_all(self) -> None:
        for index in list(self._builders):
            self.close(index)

    # -- the transport -----------------------------------------------------------------------------

    def receive(self, data: bytes, piece_bytes: int = UNBOUNDED) -> None:
        """The transport gives what has come, `piece_bytes` at a time."""
        for piece in pieces_of(data, piece_bytes):
            self._receive(piece)

    def _receive(self, data: bytes) -> None:
        was_closed = self.connection.is_closed
        self._most_at_once = max(self._most_at_once, len(data))
        self._hear(data)
        try:
            self.connection.receive_data(data)
        except RemoteProtocolError:
            assert self.connection.is_closed, "a connection that failed is not closed"
            assert not was_closed, "a closed connection has read something"
            why = self.connection.queue.answers[-1]
            assert (read_java_error(why.error).class_name, why.receiver) == (DECODER_EXCEPTION, None)
        if self.connection.is_closed:
            self._ledger.close()

    def flood(self, frame: bytes, position: int, count: int) -> None:
        """`frame` again and again, with a number that goes up in four bytes at `position`."""
        for copy in numbered(frame, position, count):
            self._receive(copy)

    def send(self, max_bytes: int) -> None:
        """The transport can take bytes; a driver asks for them only if there may be some."""
        may_have_some = self.connection.has_data_to_send
        pieces = deque(self.connection.data_to_send(max_bytes))
        assert may_have_some or not pieces, f"{self.connection} has data to send, and does not say so"
        for frame in frames_in(b"".join(pieces), self._config.flink_version):
            if isinstance(frame.message, BufferResponse):
                self._ledger.send(frame.message)
            else:
                assert isinstance(frame.message, ErrorResponse), f"a producer says {frame.message}"
            own = [pieces.popleft()]
            while sum(map(len, own)) < len(frame.data):
                own.append(pieces.popleft())
            self._lent.append(_Lent(frame, tuple(own)))

    def sent(self, num_bytes: int = UNBOUNDED) -> None:
        """The transport has written so much of what it took, which must still be the bytes it was given."""
        for lent in self._lent:
            assert b"".join(lent.pieces) == lent.frame.data, f"{lent.frame.message} changed while it was lent"
        num_bytes = min(num_bytes, sum(len(lent.frame.data) for lent in self._lent) - self._num_written)
        self.connection.data_sent(num_bytes)
        self._num_written += num_bytes
        while self._lent and len(self._lent[0].frame.data) <= self._num_written:
            frame = self._lent.popleft().frame
            self._num_written -= len(frame.data)
            self.outgoing.append(frame)

    def wait(self, num_ms: int) -> None:
        """Time passes, and a driver does what is due: a consumer that says nothing is given up."""
        self._now_ms = after(self.connection, self._now_ms, num_ms)
        if self.connection.is_closed:
            self._ledger.close()

    def cut(self) -> None:
        """The transport is gone, and what it had not written."""
        self.connection.connection_lost()
        self._ledger.close()
        self._lent.clear()
        self._num_written = 0
        self.is_lost = True
        assert not self.connection.data_to_send(), "something goes out after the end"

    def _hear(self, data: bytes) -> None:
        try:
            self._heard.feed(data)
            while (message := self._heard.next_message()) is not None:
                self._ledger.hear(message)
        except RemoteProtocolError:
            self._heard.close()

    # -- oracles -----------------------------------------------------------------------------------

    def check(self) -> None:
        connection = self.connection
        shot = connection.snapshot()
        assert repr(connection)
        self._ledger.check({receiver: reader.credit for receiver, reader in shot.readers.items()})
        line = [id(reader) for reader in connection.queue._line]
        assert len(set(line)) == len(line), "a reader stands in line twice"
        for reader in connection.readers.values():
            assert reader.is_enqueued == (id(reader) in line), f"{reader} stands in line, or not"
            assert reader.is_enqueued or not reader.is_available, f"{reader} has been forgotten"
        assert shot.num_answers <= _MAX_ANSWERS, f"{shot.num_answers} answers wait"
        num_pending = sum(len(lent.frame.data) for lent in self._lent) - self._num_written
        assert self._config.credit_based or num_pending <= self._most_pending, f"{num_pending} B are handed out"
        assert not connection.is_closed or not (line or shot.readers), f"{connection} goes on after its end"
        assert not self.is_lost or not (shot.num_answers or shot.num_lent), f"{connection} has lost its transport"
        self._check_segments()

    def _check_segments(self) -> None:
        pool = self._pool
        check_places(
            self.home,
            (segment.id for segment in self.home.free_segments),
            (segment.id for segment in pool.idle_segments),
            pool.lent,
        )
        held: list[Buffer | BufferSlice] = [*self.connection.lent_buffers]
        held += [builder.buffer for builder in self._builders.values()]
        held += [consumer.buffer for part in self.partition.subpartitions for consumer in part.queue]
        check_references(pool.lent.values(), held)

    def check_memory(self) -> None:
        """What the connection holds is an unfinished frame, its answers and what it has lent."""
        shot = self.connection.snapshot()
        found = held_bytes(self.connection, self, self.partition, *self.partition.subpartitions, *self.home.segments)
        most = (
            _CONNECTION_BYTES
            + NUM_CHANNELS * _READER_BYTES
            + self._config.segment_size_bytes
            + _LONGEST_WITHOUT_EVENT
            + 2 * self._most_at_once
            + shot.num_answers * _ANSWER_BYTES
            + shot.num_lent * _LENT_BYTES
        )
        assert found <= most, f"{self.connection} holds {found} B, more than {most}"

    def finish(self) -> None:
        """End the connection, then the task: everything is back home."""
        while self.connection.is_closed and self.connection.has_data_to_send:
            self.send(UNBOUNDED)
            self.sent()
        self.cut()
        self._close_all()
        self.partition.release()
        self.receive(b"\0" * 9)
        self.check()
        assert self.home.num_free == len(self.home.segments), f"{self.home} after the end"
