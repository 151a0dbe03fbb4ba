"""`sluice peer serve`: partitions, and whoever connects to read them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from course.peer.host import Exclusion, Host, Speaker
from course.peer.producing import Producer
from course.peer.tap import Tap
from refimpl.config import Config, FlinkVersion
from refimpl.drivers.transport import ProducerEnd, listen
from refimpl.exchange import ProducerConnection, ProducerId, ResultPartitionId
from refimpl.memory import NetworkBufferPool
from refimpl.producer import PipelinedSubpartitionView

__all__ = ["Serving", "ids_of", "partition_id", "serve"]

ADDRESS = "127.0.0.1"
_PATIENCE_S = 0.5  # how long nobody need be connected before it is a loss, while records are made
_PATIENCE_AT_THE_END_S = 1.0
_HANDSHAKE_S = 10.0


def partition_id(seed: int, number: int) -> ResultPartitionId:
    """Partition `number` of a run with this `--id-seed`."""
    data_set = _id(0x1111111111110000 + seed, 0x2222222222220000 + seed)
    return ResultPartitionId(data_set, number, ProducerId(_id(0x3333333333330000 + seed, 0x4444444444440000 + number)))


def ids_of(partition: ResultPartitionId) -> dict[str, str]:
    """The ids of a partition as a consumer is told them, in the order of the wire."""
    number = partition.number.to_bytes(4, "big")
    return {"partition_id": (partition.data_set_id + number).hex(), "producer_id": partition.producer.id.hex()}


def _id(lower: int, upper: int) -> bytes:
    return b"".join((half % 2**64).to_bytes(8, "big") for half in (lower, upper))


def serve(options: argparse.Namespace, tap: Tap, speaker: Speaker) -> int:
    """Produce, and wait until all is consumed; return the exit status: 0, or 4 if the consumers went away before.

    Raises:
        SluiceError: the engine refuses, or has failed; says why.
        TimeLimitError: the time limit has come.
    """
    with Host(tap, speaker, options.max_seconds) as host:
        return Serving(options, host).run()


class Serving:
    """The producers' end: a pool, partitions, and connections for those who ask.

    Raises:
        ConfigError: the port cannot be had.
        InsufficientBuffersError, LocalUsageError: the pool is too small for the partitions.
    """

    def __init__(self, options: argparse.Namespace, host: Host) -> None:
        self._options = options
        self._host = host
        self._config = Config(segment_size_bytes=options.segment_size)
        per_partition = options.subpartitions * (options.buffers_per_channel + 1) + options.floating + 1
        self.num_segments = options.pool_segments or options.partitions * per_partition
        self._pool = NetworkBufferPool(self.num_segments, options.segment_size)
        self._producers = {
            partition_id(options.id_seed, number): Producer(number, options, self._pool, host)
            for number in range(options.partitions)
        }
        self._listener = listen(ADDRESS, options.port, None)

    def run(self) -> int:
        """Serve until all is consumed or nobody is there to do it; return the exit status."""
        try:
            self._say_listening()
            self._start()
            producers = self._producers.values()
            is_in_time = self._wait(lambda: self._host.is_idle, _PATIENCE_S)
            if not is_in_time:
                self._give_up()
            self._host.say("produced", aborted=not is_in_time)
            is_in_time = is_in_time and self._wait(
                lambda: all(each.partition.is_consumed for each in producers), _PATIENCE_AT_THE_END_S
            )
        finally:
            self._listener.close()
        self._host.settle()
        with self._host.monitor:
            for producer in producers:
                producer.partition.release()
        self._host.say(
            "done",
            aborted=not is_in_time,
            channels=[line for each in producers for line in each.report()],
            pool_total=self.num_segments,
            pool_available_after=self._pool.num_free,
            frames=self._host.tap.summary(),
        )
        return 0 if is_in_time else 4

    def _say_listening(self) -> None:
        options = self._options
        self._host.say(
            "listening",
            flink=FlinkVersion.V1_11.value,
            host=ADDRESS,
            port=self._listener.address[1],
            partitions=[ids_of(partition) for partition in self._producers],
            subpartitions=options.subpartitions,
            records_per_subpartition=options.records,
            type=options.type,
            elements=options.elements,
            segment_size=options.segment_size,
            pool_segments=self.num_segments,
        )

    def _start(self) -> None:
        self._host.start("accept", self._accept, is_work=False)
        for producer in self._producers.values():
            self._host.start(producer.partition.name, producer.run)
        if self._options.flush_ms > 0:
            self._host.start("flush", self._flush, is_work=False)

    def _wait(self, is_over: Callable[[], bool], patience_s: float) -> bool:
        """Wait until it is over; false if nobody was there for so long. Raises what ended any thread."""
        is_in_time = self._host.wait_until(lambda: self._host.error is not None or is_over(), patience_s)
        if self._host.error is not None:
            raise self._host.error
        return is_in_time

    def _give_up(self) -> None:
        """Nobody is left to consume: a task would be cancelled now."""
        with self._host.monitor:
            self._host.stop()
            for producer in self._producers.values():
                producer.partition.release("all consumers went away")
        self._host.wait_until(lambda: self._host.is_idle)

    def _accept(self) -> None:
        while (incoming := self._listener.accept()) is not None:
            connection = ProducerConnection(self, self._config, f"peer to {incoming.peer}")
            end = ProducerEnd(connection, self)  # type: ignore[arg-type]  # it only asks to `forget` its connection
            self._host.carry(end, partial(incoming.open, _HANDSHAKE_S))

    def _flush(self) -> None:
        """Make visible what was written, once per period.

        Flink:   RecordWriter.OutputFlusher, 1.11.4
        """
        exclusion = Exclusion(self._host)
        while not self._host.stopping.wait(self._options.flush_ms / 1000):
            with exclusion:
                for producer in self._producers.values():
                    producer.partition.flush_all()

    # -- for connections -----------------------------------------------------------------------------------------------

    def find(self, partition: ResultPartitionId, subpartition: int) -> PipelinedSubpartitionView | None:
        """What may be read here: what is there, and was not consumed.

        Raises:
            IndexError: the partition has no such subpartition.
        """
        producer = self._producers.get(partition)
        if producer is None or producer.partition.is_consumed:
            return None
        if not 0 <= subpartition < self._options.subpartitions:
            raise IndexError(subpartition)
        return producer.partition.create_view(subpartition)

    def forget(self, connection: ProducerConnection) -> None:
        """The transport of `connection` is gone: its readers leave and its buffers come home."""
        connection.connection_lost()
