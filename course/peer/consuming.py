"""`sluice peer consume`: gates, and the one connection they read from."""

from __future__ import annotations

import argparse
import secrets
import time
import traceback
from dataclasses import dataclass

from course.peer.host import Host, Speaker
from course.peer.reading import GateReader
from course.peer.tap import Tap
from refimpl.config import Config
from refimpl.consumer import RemoteInputChannel
from refimpl.drivers.transport import ByteStream, ConsumerEnd, connect
from refimpl.errors import PartitionNotFoundError
from refimpl.exchange import ID_BYTES, WIRE_FORMAT, ConsumerConnection, PartitionReader, WireFormat
from refimpl.memory import LocalBufferPool, NetworkBufferPool

__all__ = ["OURS", "Consuming", "Parts", "consume"]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the channels are made of where somebody else's part can stand."""

    wire: WireFormat = WIRE_FORMAT
    reader: type[PartitionReader] = PartitionReader


OURS = Parts()


def consume(options: argparse.Namespace, tap: Tap, speaker: Speaker) -> int:
    """Read everything, or as much as is asked for; return the exit status: 0, or 1 if something was wrong with it.

    Raises:
        InsufficientBuffersError, LocalUsageError: the pool is too small for the gates.
        TimeLimitError: the time limit has come.
    """
    with Host(tap, speaker, options.max_seconds) as host:
        return Consuming(options, host).run()


class Consuming:
    """The consumers' end: a pool, and a gate for each subpartition, with a channel for each partition."""

    def __init__(
        self, options: argparse.Namespace, host: Host, parts: Parts = OURS, config: Config | None = None
    ) -> None:
        self._options = options
        self._host = host
        self._parts = parts
        self._config = config or Config(segment_size_bytes=options.segment_size)
        subpartitions = options.subpartition_list or range(options.subpartitions)
        per_gate = len(options.partitions) * options.exclusive + options.floating
        self.num_segments = options.pool_segments or len(subpartitions) * per_gate + 8
        self._pool = NetworkBufferPool(self.num_segments, options.segment_size)
        self._connection = ConsumerConnection(self._config, f"peer at {options.host}:{options.port}")
        self._connection.decoder.wire = parts.wire
        self._floating_pools: list[LocalBufferPool] = []
        self._readers = [self._new_reader(subpartition) for subpartition in subpartitions]

    def _new_reader(self, subpartition: int) -> GateReader:
        """Make channels that ask for `subpartition` of each partition, and what reads them."""
        name = f"consume-{subpartition}"
        floating = LocalBufferPool(self._pool, 1, self._options.floating, name)
        self._floating_pools.append(floating)
        channels: list[RemoteInputChannel] = []
        for index, partition in enumerate(self._options.partitions):
            exclusive = self._pool.request_unpooled(self._options.exclusive, name)
            assert exclusive is not None, f"{self._pool}: segments are out before anything has begun"
            channel = RemoteInputChannel(
                index,
                secrets.token_bytes(ID_BYTES),
                f"partition {partition.number}[{subpartition}]",
                exclusive,
                self._pool,
                floating,
                self._config,
            )
            self._connection.request(channel, partition, subpartition)
            if (make := self._parts.reader) is not PartitionReader:
                request = self._connection.readers[channel.receiver].request
                self._connection.replace(make(channel, request, self._config, self._connection.name))
            channels.append(channel)
        return GateReader(subpartition, channels, self._options, self._host)

    def run(self) -> int:
        """Read, and say what came of it; return the exit status."""
        started_s = time.monotonic()
        self._host.carry(ConsumerEnd(self._connection), self._open_stream)
        for reader in self._readers:
            self._host.start(reader.gate.name, reader.run)
        self._host.wait_until(lambda: self._is_hopeless or self._host.is_idle or self._host.error is not None)
        elapsed_ms = int((time.monotonic() - started_s) * 1000)
        if self._is_hopeless:
            self._host.say("done", ok=False, error=self._not_found())
            return 1
        self._give_back()
        error = self._host.error
        is_ok = error is None and all(reader.is_ok for reader in self._readers)
        self._host.say(
            "done",
            ok=is_ok,
            error=None if error is None else "".join(traceback.format_exception(error)),
            elapsed_ms=elapsed_ms,
            channels=[line for reader in self._readers for line in reader.report()],
            partition_not_found=self._connection.retries.num_not_found.total(),
            pool_total=self.num_segments,
            pool_available_after=self._pool.num_free,
            connections_left=self._host.tap.num_open,
            frames=self._host.tap.summary(),
        )
        return 0 if is_ok else 1

    @property
    def _is_hopeless(self) -> bool:
        """Whether partitions were not found once more than `--retriggers` allows."""
        most: int = self._options.retriggers
        return self._connection.retries.num_not_found.total() > most

    def _not_found(self) -> str:
        ((partition, count),) = self._connection.retries.num_not_found.most_common(1)
        name = f"{partition.data_set_id.hex()}#{partition.number}@{partition.producer.id.hex()}"
        return "".join(traceback.format_exception_only(PartitionNotFoundError(name, count)))

    def _open_stream(self) -> ByteStream:
        return connect(self._options.host, self._options.port, None, self._host.seconds_left)

    def _give_back(self) -> None:
        """Stop all threads, tell the producer that nobody reads any more, and return every buffer."""
        self._host.stop()
        self._host.wait_until(lambda: self._host.is_idle)
        with self._host.monitor:
            for reader in self._readers:
                reader.gate.release()
            self._host.wake()
        self._host.settle()
        with self._host.monitor:
            for pool in self._floating_pools:
                pool.destroy()
