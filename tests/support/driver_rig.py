"""For tests of drivers: a small job over two TaskManagers, peers made of raw frames, and what must be gone after."""

from __future__ import annotations

import gc
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

import psutil

from refimpl.config import Config
from refimpl.drivers.threads import TaskManagerThreads
from refimpl.drivers.transport import Security
from refimpl.exchange import BufferResponse, Message, PartitionRequest, encode
from refimpl.job import ConnectionId, Deployment, StreamEnvironment
from refimpl.memory import DataType
from refimpl.records import LONG, EndOfPartition, TypeSerializer, event_to_buffer
from refimpl.task import IterableReader
from tests.support.raw_frames import frames_in

TIMEOUT_S = 120.0  # only so that what hangs fails; nothing waits for it


class Tally(list):
    """A sink's results, and a way to wait for some."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()

    def __call__(self, value: object) -> None:
        with self._changed:
            self.append(value)
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self) >= count, TIMEOUT_S), f"{len(self)} of {count} came"


def apart(
    values: Sequence[object],
    sink: Callable[[object], object],
    config: Config,
    width: int = 1,
    value_type: TypeSerializer = LONG,
) -> StreamEnvironment:
    """Sources on TaskManager 0, sinks on TaskManager 1, `width` of each; source i has every `width`-th value."""
    environment = StreamEnvironment(config, width)
    (
        environment.source(lambda i, k: IterableReader(values[i::k]), type=value_type)
        .slot_sharing_group("producers")
        .rebalance()
        .sink(sink)
        .slot_sharing_group("consumers")
    )
    return environment


class _Hidden(dict[Any, Any]):
    """What is there, and found by nobody."""

    def get(self, _key: object, default: object = None) -> Any:
        return default


def hide_partitions(deployment: Deployment) -> None:
    """Let the partitions of a deployment be as if they had not come yet; they go with it all the same."""
    deployment.shuffle._partition_by_id = _Hidden(deployment.shuffle._partition_by_id)


def num_out(*deployments: Deployment) -> int:
    """How many segments are not where they belong."""
    return sum(len(each.pool.segments) - each.pool.num_free for each in deployments)


@contextmanager
def nothing_left() -> Iterator[None]:
    """The block leaves no thread, no open file and no process behind that was not there before.

    If tests before it have used Spark in this process, the JVM may connect at any time, to say what it has forgotten.
    """
    this = psutil.Process()
    gc.collect()  # what tests before this one forgot would otherwise be closed while it runs
    gc.freeze()  # and need not be looked at again: with all packages loaded each collection takes half a second
    threads, files, processes = set(threading.enumerate()), this.num_fds(), set(this.children(recursive=True))
    yield
    left = [thread for thread in threading.enumerate() if thread not in threads]
    of_spark = [thread for thread in left if is_of_spark(thread)]
    assert left == of_spark, f"threads are left: {left}"
    running = [each for each in this.children(recursive=True) if each not in processes]
    assert not running, f"processes are left: {running}"
    num_more = this.num_fds() - files
    assert num_more in {0, len(of_spark)}, f"{num_more} more files are open than before: {this.open_files()}"


def is_of_spark(thread: threading.Thread) -> bool:
    """Whether the thread reads what the JVM says to this process."""
    return str(getattr(getattr(thread, "_target", None), "__module__", "")).startswith("py4j.")


class Side:
    """One of `width` TaskManagers of a job on threads; the others are whatever listens at their addresses.

    Leaving the block closes it: every segment must be at home then.
    """

    def __init__(
        self, environment: StreamEnvironment, number: int, width: int = 2, security: Security | None = None
    ) -> None:
        self.has_ended = threading.Event()
        graph = environment.execution_graph(width)
        self.threads = TaskManagerThreads(graph, None, number, security=security, on_end=self.has_ended.set)
        self.deployment = self.threads.deployment

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.threads.close()
        assert num_out(self.deployment) == 0

    @property
    def address(self) -> tuple[str, int]:
        return self.threads.connections.address

    def start(self, *addresses: tuple[str, int]) -> Self:
        """The addresses are those of TaskManagers 0, 1, …; only those it reads from matter."""
        self.threads.start(addresses)
        return self

    @property
    def stands_still(self) -> bool:
        """Whether every task has ended or waits for something that is not there."""
        wakers = self.threads.turns.wakers
        return all(
            task.is_done or (wakers[task.name].is_waiting and not task.is_runnable) for task in self.deployment.tasks
        )

    def until(self, condition: Callable[[], bool]) -> None:
        """Go on when it is true. Each look waits for the monitor, so whoever works here works."""
        give_up_s = time.monotonic() + TIMEOUT_S
        while True:
            with self.threads.monitor:
                if condition():
                    return
            assert time.monotonic() < give_up_s, "it does not come true"

    def end(self) -> BaseException | None:
        """Wait until its tasks have ended; why they did, if not because all was read."""
        assert self.has_ended.wait(TIMEOUT_S), "neither an end nor an error"
        return self.threads.error


# -- peers -------------------------------------------------------------------------------------------


class Peer:
    """The other end of one connection, as raw as it can be."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        connected.settimeout(TIMEOUT_S)
        self.port = connected.getsockname()[1]
        self._heard = bytearray()
        self._messages: deque[Message] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.socket.close()

    def send(self, *data: bytes) -> None:
        self.socket.sendall(b"".join(data))

    def hear(self) -> Message | None:
        """The next whole message; `None` at the end of the stream, however it ends."""
        while not self._messages:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self._heard += data
            while len(self._heard) >= 4 and len(self._heard) >= (length := int.from_bytes(self._heard[:4], "big")):
                self._messages += frames_in(bytes(self._heard[:length]))
                del self._heard[:length]
        return self._messages.popleft()

    def hear_all(self) -> list[Message]:
        return list(iter(self.hear, None))

    def hear_requests(self, count: int) -> list[PartitionRequest]:
        requests = [self.hear() for _ in range(count)]
        assert all(isinstance(each, PartitionRequest) for each in requests), requests
        return requests


class Meeting:
    """A place where a `Side` finds its peer."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(TIMEOUT_S)
        self.address = self._listening.getsockname()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._listening.close()

    def accept(self) -> Peer:
        return Peer(self._listening.accept()[0])


def call_on(address: tuple[str, int]) -> Peer:
    return Peer(socket.create_connection(address, TIMEOUT_S))


def requests_of(environment: StreamEnvironment, credit: int) -> list[PartitionRequest]:
    """What TaskManager 1 would ask TaskManager 0 for."""
    side = Deployment(environment.execution_graph(2), 1)
    reads = side.shuffle.remote_reads[ConnectionId(0)]
    found = [
        PartitionRequest(read.partition_id, read.subpartition, read.subpartition, read.channel.receiver, credit)
        for read in reads
    ]
    side.close()
    return found


def data(receiver: bytes, sequence: int, *numbers: int, backlog: int = 0) -> bytes:
    """A frame with records of LONGs, whole ones."""
    payload = b"".join((9).to_bytes(4, "big") + b"\x01" + number.to_bytes(8, "big") for number in numbers)
    return encode(BufferResponse(receiver, sequence, backlog, DataType.DATA, payload))


def last(receiver: bytes, sequence: int) -> bytes:
    """The frame with the end of the partition."""
    event = event_to_buffer(EndOfPartition())
    return encode(BufferResponse(receiver, sequence, 0, event.data_type, bytes(event.data)))


# -- on the way --------------------------------------------------------------------------------------


class Proxy:
    """Passes one connection's bytes on, `max_bytes` at a time; after `num_bytes` of one way it cuts both.

    `num_passed` counts by way: "there" is what the client says, "back" what it hears.
    """

    def __init__(
        self, address: tuple[str, int], way: str = "", num_bytes: int | None = None, max_bytes: int = 1 << 16
    ) -> None:
        self.num_passed = {"there": 0, "back": 0}
        self._target = address
        self._left = {} if num_bytes is None else {way: num_bytes}
        self._max_bytes = max_bytes
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(TIMEOUT_S)
        self.address = self._listening.getsockname()
        self._thread = threading.Thread(target=self._run, name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with suppress(OSError), self._listening.accept()[0] as client, socket.create_connection(self._target) as server:
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            there = threading.Thread(target=self._pass_on, args=("there", client, server), name="proxy there")
            there.start()
            self._pass_on("back", server, client)
            there.join()

    def _pass_on(self, way: str, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(self._max_bytes):
                if way in self._left:
                    data = data[: self._left[way]]
                    self._left[way] -= len(data)
                target.sendall(data)
                self.num_passed[way] += len(data)
                if self._left.get(way) == 0:
                    for each in (source, target):
                        each.shutdown(socket.SHUT_RDWR)
                    return
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def until_inside(thread_name: str, function: str) -> None:
    """Go on when a thread whose name has `thread_name` in it is in a function of that name."""
    give_up_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < give_up_s:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, innermost in sys._current_frames().items():
            frame: FrameType | None = innermost if thread_name in names.get(ident, "") else None
            while frame is not None:
                if frame.f_code.co_name == function:
                    return
                frame = frame.f_back
    raise AssertionError(f"no thread {thread_name} came into {function}: {[*names.values()]}")
