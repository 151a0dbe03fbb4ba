"""The short way of a record into the open buffer of its channel: one call, one `pack_into`, one store.

A lane stands for `RecordWriter.emit`. Nearly every record passes here, so an attribute that is looked up shows in the
profile. That is why a lane is a function with all it needs in variables of its own.

Rules of this file:
- A lane packs a record of fixed width that fits the open buffer and leaves room in it. Whatever else it is given, a
  record that fills the buffer or a value of another type, it hands on and leaves the buffer as it was.
- It publishes with the store that moves the position, and takes no lock: a builder has a single writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from refimpl.errors import USER_CODE_RAISES
from refimpl.memory.buffer import heap_buffer
from refimpl.memory.builder import BufferBuilder
from refimpl.memory.data_type import DataType
from refimpl.records.elements import StreamRecord
from refimpl.shortcuts.fixed_width import RecordPacker, field_names, generated

__all__ = ["Lanes", "Put", "Refuse"]

Put = Callable[[StreamRecord], bool]
"""Writes a record; whether it was packed in place."""

Otherwise = Callable[[StreamRecord, int], None]
"""Writes a record to a channel in another way."""

Refuse = Callable[[StreamRecord, BaseException], None]
"""Is told of a record that cannot leave, and why; may raise what says more."""

Use = Callable[[BufferBuilder, int], None]
"""Lets a lane go on in another buffer; so many bytes in the one before were not its own."""

Count = Callable[[], int]
"""How many records a lane has packed into its buffer."""

_CLOSED = BufferBuilder(heap_buffer(b"", DataType.DATA))  # nothing fits here

_LANE = """
def lane(lanes, packer, closed, channel, otherwise, flush):
    pack, head, num_bytes = packer.timed.pack, packer.timed.head, packer.timed.num_bytes
    pack_untimed, head_untimed, num_bytes_untimed = packer.untimed.pack, packer.untimed.head, packer.untimed.num_bytes
    num_records, memory, published = packer.num_records, closed.memory, closed.published
    begin = num_untimed = 0  # from where in the buffer records are to be counted, and how many of them have no time

    def put(record):
        nonlocal num_untimed
        value = record.value
        if lanes.is_open{and_is_tuple}:
            start, timestamp = published.value, record.timestamp
            try:
                {fields} = value
                if timestamp is not None:
                    pack(memory, start, head, timestamp, {fields})
                    published.value = start + num_bytes
                else:
                    pack_untimed(memory, start, head_untimed, {fields})
                    num_untimed += 1
                    published.value = start + num_bytes_untimed
            except refusals:
                pass  # there is no room, or the serializer's own complaint says what is wrong
            else:
                if published.watchers:
                    published.tell()
                {and_flush}
                return True
        lanes.num_counted += 1
        otherwise(record, channel)
        return False

    def use(builder, num_others):
        nonlocal memory, published, begin, num_untimed
        memory = builder.memory[: builder.capacity - 1]  # so that packing leaves room
        begin += num_others
        lanes.num_counted += count()  # behind this nothing is called: no record is found counted twice, or not at all
        published, begin, num_untimed = builder.published, builder.published.value, 0

    def count():
        return num_records(published.value - begin, num_untimed)

    return put, use, count
"""
"""A lane for values of some number of fields: `put`, `use` and `count` share the buffer that is open.

One by one, fields cost a quarter less than as a tuple. A list of them would be packed by accident: it is refused
here, so that an error of type does not depend on the room that is left.
"""


class Lanes:
    """One lane for each channel of a writer: `put[channel]` writes a record there.

    `otherwise` is called with the records a lane does not take, and their channel. While `is_open` is false, or
    without a `packer`, those are all. `num_records` counts what was put, one way or the other; how many
    lie in an open buffer is told by its length, so that no record pays for being counted. Whoever else writes into
    such a buffer closes the lane meanwhile, or opens it again and says how many bytes, and counts in `num_counted`.

    `flush`, if there is one, is called after each record that is packed, with its channel.

    Flink:   none; the JIT compiler does this to the general path there
    Differs: only saves work. The bytes are those of the serializers.
    """

    __slots__ = ("_count_open", "_packs_many", "_use", "is_open", "num_counted", "packer", "put")

    def __init__(
        self,
        packer: RecordPacker | None,
        num_channels: int,
        otherwise: Otherwise,
        flush: Callable[[int], None] | None = None,
    ) -> None:
        self.is_open = True
        self.num_counted = 0
        self.packer = packer
        self._packs_many = packer is not None and flush is None
        lanes = [self._lane(channel, otherwise, flush) for channel in range(num_channels)]
        self.put: list[Put] = [put for put, _, _ in lanes]
        self._use: list[Use] = [use for _, use, _ in lanes]
        self._count_open: list[Count] = [count for _, _, count in lanes]

    @property
    def num_records(self) -> int:
        """How many were put. Any thread may ask: it counts again if a lane turns to another buffer meanwhile."""
        while True:
            num_counted = self.num_counted
            num_records = num_counted + sum([count() for count in self._count_open])
            if self.num_counted == num_counted:
                return num_records

    def close(self, *channels: int) -> None:
        """Let no more go there: the buffer is about to be finished, or written into by somebody else."""
        for channel in channels:
            self._use[channel](_CLOSED, 0)

    def open(self, channel: int, builder: BufferBuilder, num_others: int = 0) -> None:
        """Let the records for `channel` go into this buffer from now on.

        Into the one that was open, somebody else has just written `num_others` bytes.
        """
        self._use[channel](builder, num_others)

    def reopen(self, channels: Iterable[int], builders: Sequence[BufferBuilder | None]) -> None:
        """`open` those of these channels that have a buffer."""
        for channel in channels:
            if (builder := builders[channel]) is not None:
                self._use[channel](builder, 0)

    def put_each(
        self, records: Iterator[StreamRecord], emit: Put, select: Callable[[object], int] | None, refuse: Refuse | None
    ) -> bool:
        """Put records where `select` says, or let `emit` do it; true after one that went the other way.

        Then the writer may be blocked. False if there are no more.
        """
        record, put = None, self.put
        try:
            if select is None:
                for record in records:
                    if not emit(record):
                        return True
            else:
                for record in records:
                    if not put[select(record.value)](record):
                        return True
        except USER_CODE_RAISES as error:
            if refuse is not None and record is not None:
                refuse(record, error)
            raise
        return False

    def put_whole(self, data: bytes | bytearray | memoryview, channel: int, builder: BufferBuilder | None) -> bool:
        """Copy records that are counted and serialised into the open buffer, if they fit there and leave room."""
        if not self.is_open or builder is None:
            return False
        start = builder.published.value
        end = start + len(data)
        if end >= builder.capacity:
            return False
        builder.memory[start:end] = data
        builder.advance(len(data))
        self._use[channel](builder, len(data))
        return True

    def put_many(self, records: Iterator[StreamRecord], builder: BufferBuilder) -> Sequence[StreamRecord]:
        """Pack several at once into a buffer that is open here; return the records that were taken and not packed."""
        if not self._packs_many or not self.is_open:
            return ()
        assert self.packer is not None
        self.close(0)
        num_packed, rest = self.packer.pack_many(records, builder)
        self.open(0, builder)
        self.num_counted += num_packed
        return rest

    def _lane(self, channel: int, otherwise: Otherwise, flush: Callable[[int], None] | None) -> tuple[Put, Use, Count]:
        if self.packer is None:
            return _plain_lane(self, channel, otherwise)
        is_tuple, fields = self.packer.is_tuple, field_names(self.packer.num_fields, "field")
        lane: Callable[..., tuple[Put, Use, Count]] = generated(
            "lane",
            _LANE,
            fields=fields + "," * is_tuple,
            and_is_tuple=" and type(value) is tuple" * is_tuple,
            and_flush="pass" if flush is None else "flush(channel)",
        )
        return lane(self, self.packer, _CLOSED, channel, otherwise, flush)


def _plain_lane(lanes: Lanes, channel: int, otherwise: Otherwise) -> tuple[Put, Use, Count]:
    """Values that differ in length go the long way, all of them."""

    def put(record: StreamRecord) -> bool:
        lanes.num_counted += 1
        otherwise(record, channel)
        return False

    return put, lambda builder, num_others: None, lambda: 0
