"""One partition of `sluice peer serve`, and the thread that writes its records.

Records go to the subpartitions in turn. Where nothing is to be done between two rounds, longs are written many rounds
at a time: the bytes of a subpartition are the same, and what is of different subpartitions has no order.
"""

from __future__ import annotations

import argparse

from course.peer.host import Exclusion, Host
from course.peer.records import SummedType, TargetSelector, Values, elements_of, rows_written, type_of
from refimpl.config import Config
from refimpl.drivers.makers import makers_of
from refimpl.errors import PoolDestroyedError
from refimpl.job import Parts
from refimpl.memory import NetworkBufferPool
from refimpl.records import MAX_WATERMARK, Alignment, CheckpointBarrier, StreamElement, StreamRecord, Watermark

__all__ = ["Producer"]

_BARRIERS_START_MS = 1_600_000_000_000
_FLUSH_ALWAYS = 0


class Producer:
    """The producer of one partition; `options` are those of the command.

    Raises:
        InsufficientBuffersError, LocalUsageError: the pool cannot promise what the partition needs.
    """

    def __init__(self, number: int, options: argparse.Namespace, pool: NetworkBufferPool, host: Host) -> None:
        self._number = number
        self._options = options
        self._host = host
        self._waiter = host.new_waiter()
        self._exclusion = Exclusion(host)
        num_subpartitions = options.subpartitions
        most = num_subpartitions * options.buffers_per_channel + options.floating
        name = f"serve-{number}"
        config = Config(
            segment_size_bytes=options.segment_size,
            buffer_timeout_ms=options.flush_ms,
            max_buffers_per_channel=options.max_buffers_per_channel,
        )
        makers = makers_of(config)
        own = makers.output_pool(pool, num_subpartitions + 1, most, name, num_subpartitions, config)
        self.partition = makers.partition(name, num_subpartitions, own, config)
        pad = options.string_pad if options.type == "string" else None
        self._values = Values(number, num_subpartitions, pad)
        self._selector = TargetSelector()
        self._summed = SummedType(type_of(options.type), self._selector, num_subpartitions)
        elements = elements_of(options.elements, self._summed)
        self._writer = makers.writer(self.partition, self._selector, elements, Parts(), self._exclusion)
        self._write_encoded = getattr(self._writer, "write_encoded", None)  # a shortcut: not where there are none
        self._is_timed = options.elements == "stream" and options.timestamps == "yes"
        self._rows = rows_written(options.elements, self._is_timed)
        self._watermark_every = options.watermark_every if options.elements == "stream" else 0

    def __repr__(self) -> str:
        return f"Producer({self._number}, {self._writer.num_records} records)"

    def report(self) -> list[dict[str, int]]:
        """What was written, for each subpartition."""
        return [
            {"partition": self._number, "subpartition": index, "records": self._options.records, "crc32": total}
            for index, total in enumerate(self._summed.sums)
        ]

    def run(self) -> None:
        """Write everything; on a thread of its own."""
        try:
            index = 0
            while index < self._options.records and not self._host.stopping.is_set():
                count = self._num_rounds(index)
                for subpartition in range(self._options.subpartitions):
                    self._emit(subpartition, index, count)
                index += count
                self._end_round(index)
            self._finish()
        except PoolDestroyedError:
            if not self._host.stopping.is_set():
                raise
        finally:
            self._writer.close()

    def _num_rounds(self, index: int) -> int:
        """How many rounds may be written at a time from round `index` on."""
        options = self._options
        if (
            self._write_encoded is None
            or options.type != "long"
            or options.delay_us
            or options.flush_ms == _FLUSH_ALWAYS
        ):
            return 1
        count: int = min(options.records - index, max(1, options.segment_size // self._rows.width))
        for every in (self._watermark_every, options.barrier_every):
            if every:
                count = min(count, every - index % every)
        return count

    def _emit(self, subpartition: int, index: int, count: int) -> None:
        """Write records `index` and following of one subpartition."""
        self._selector.target = subpartition
        value = self._values.value(subpartition, index)
        if count == 1:
            self._writer.emit(StreamRecord(value, index if self._is_timed else None))
        else:
            assert isinstance(value, int), f"{value!r} is no long: only these are written many at a time"
            rows, raw = self._rows.encode(value, index, count)
            self._summed.add(raw)
            assert self._write_encoded is not None, "without shortcuts a round is one record"
            self._write_encoded(rows, count, subpartition)
        self._wait_for_buffers()

    def _end_round(self, num_rounds: int) -> None:
        """Do what follows when so many rounds have been written."""
        options = self._options
        if self._watermark_every and num_rounds % self._watermark_every == 0:
            self._broadcast(Watermark(num_rounds - 1))
        if options.barrier_every and num_rounds % options.barrier_every == 0:
            number = num_rounds // options.barrier_every
            is_aligned = options.barrier_mode == "exactly_once"
            alignment = Alignment.ALIGNED if is_aligned else Alignment.AT_LEAST_ONCE
            self._writer.broadcast_event(CheckpointBarrier(number, _BARRIERS_START_MS + number, alignment=alignment))
        if options.delay_us:
            self._host.stopping.wait(options.delay_us / 1_000_000)

    def _finish(self) -> None:
        if self._watermark_every:
            self._broadcast(MAX_WATERMARK)
        if not self._host.stopping.is_set():
            self._writer.finish()

    def _broadcast(self, element: StreamElement) -> None:
        self._writer.broadcast(element)
        self._wait_for_buffers()

    def _wait_for_buffers(self) -> None:
        """Wait until all that was written is in buffers; no longer than until we are to stop."""
        if not self._writer.is_blocked:
            return
        with self._host.monitor:
            while not self._host.stopping.is_set() and not self._writer.resume():
                self._waiter.wait_until(lambda: self._host.stopping.is_set() or self.partition.pool.can_request)
