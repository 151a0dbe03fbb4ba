"""The connections between TaskManagers that share one event loop: a coroutine reads, another one writes."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Self

from refimpl.drivers.transport.addresses import show_address
from refimpl.drivers.transport.ends import ConsumerEnd, End, ProducerEnd
from refimpl.drivers.transport.pace import Pace
from refimpl.job.deployment import Deployment
from refimpl.job.shuffle_environment import ConnectionId

__all__ = ["Changes", "Connections"]

_HOST = "127.0.0.1"
_READ_BYTES = 256 * 1024
_SECONDS_TO_STOP = 5.0


class Changes:
    """Wakes coroutines that wait for something to be true."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}

    def tell(self) -> None:
        """Something has changed."""
        for future, condition in list(self._waiting.items()):
            if not future.done() and condition():
                future.set_result(None)

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Wait until `condition()` is true, or for `timeout_s`."""
        if condition():
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = condition
        try:
            await asyncio.wait([future], timeout=timeout_s)  # `wait_for` of 3.11 can miss a cancellation
        finally:
            del self._waiting[future]


class Server:
    """Accepts connections at an address of its own, at a pace, as long as it is not closed.

    Not by `asyncio.start_server`: cancelled at the wrong moment, that one leaves its socket open.
    """

    def __init__(self, on_connected: Callable[[socket.socket, str], None], on_error: Callable[[OSError], None]) -> None:
        self._on_connected = on_connected
        self._on_error = on_error
        self._loop = asyncio.get_running_loop()
        self._pace = Pace()
        self._timer: asyncio.TimerHandle | None = None
        self._listening = socket.create_server((_HOST, 0), backlog=128)
        self._listening.setblocking(False)
        self.address: tuple[str, int] = self._listening.getsockname()
        self._loop.add_reader(self._listening, self._accept)

    def close(self) -> None:
        """Accept no more, and turn away whoever waits."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()
        self._pace.close()

    def _accept(self) -> None:
        try:
            connected, address = self._listening.accept()
        except (BlockingIOError, ConnectionError):  # it was gone before its turn came
            return
        except OSError as error:  # the machine has run out of something, and the other end waits
            self._on_error(error)
            return
        connected.setblocking(False)
        self._pace.come(connected, address[0], show_address(*address[:2]))
        self._serve_due()

    def _serve_due(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while (found := self._pace.next()) is not None:
            self._on_connected(*found)
        if (wait_s := self._pace.wait_s()) is not None:
            self._timer = self._loop.call_later(wait_s, self._serve_due)


class Connections:
    """The servers and clients of all TaskManagers, as long as the `async with` block lasts.

    What is kept of a connection is let go of when it ends.
    """

    def __init__(self, deployments: list[Deployment], changes: dict[int, Changes]) -> None:
        self._deployments = deployments
        self._changes = changes
        self._loop = asyncio.get_running_loop()
        self._bug: asyncio.Future[None] = self._loop.create_future()
        self._servers: list[Server] = []
        self._carrying: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        if len(self._deployments) > 1:
            try:
                self._open()
            except BaseException:
                await self.__aexit__()
                raise
        return self

    def _open(self) -> None:
        for deployment in self._deployments:
            self._servers.append(Server(partial(self._accept, deployment), self._fail))
        addresses = [each.address for each in self._servers]
        for deployment in self._deployments:
            for connection_id in deployment.shuffle.remote_reads:
                host, port = addresses[connection_id.task_manager]
                self._add(self._connect(deployment, connection_id, host, port))

    async def __aexit__(self, *_exc: object) -> None:
        for each in self._servers:
            each.close()
        carrying = [*self._carrying]
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)

    async def settle(self) -> None:
        """After the last task everywhere has ended: wait until the connections have too."""
        if self._carrying:
            await asyncio.wait(self._carrying, timeout=_SECONDS_TO_STOP)

    async def watch(self) -> None:
        """Wait for an error that is no transport's, so a bug of ours."""
        await self._bug

    def _fail(self, error: BaseException) -> None:
        if not self._bug.done():
            self._bug.set_exception(error)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Tell `watch` of a bug before its consequences are seen elsewhere."""
        try:
            yield
        except Exception as error:
            if not isinstance(error, OSError):
                self._fail(error)
            raise

    # -- one connection ------------------------------------------------------------------------------

    def _add(self, carry: Coroutine[Any, Any, None], connected: socket.socket | None = None) -> None:
        task = self._loop.create_task(carry)
        self._carrying.add(task)
        task.add_done_callback(partial(self._forget, connected))

    def _forget(self, connected: socket.socket | None, task: asyncio.Task[None]) -> None:
        self._carrying.discard(task)
        if connected is not None:
            connected.close()  # a task that was cancelled before its first step has not
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, OSError):
            self._fail(error)

    def _accept(self, deployment: Deployment, connected: socket.socket, peer: str) -> None:
        self._add(self._serve(deployment, connected, peer), connected)

    async def _serve(self, deployment: Deployment, connected: socket.socket, peer: str) -> None:
        reader, writer = await asyncio.open_connection(sock=connected)
        shuffle = deployment.shuffle
        end = ProducerEnd(shuffle.accept(f"tm-{deployment.task_manager} to {peer}"), shuffle)
        await self._carry(end, reader, writer, self._changes[id(deployment)])

    async def _connect(self, deployment: Deployment, connection_id: ConnectionId, host: str, port: int) -> None:
        name = f"tm-{deployment.task_manager} reads {connection_id} at {host}:{port}"
        end = ConsumerEnd(deployment.shuffle.connect(connection_id, name))
        changes = self._changes[id(deployment)]
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError as error:
            end.lose(str(error))
            changes.tell()
            return
        await self._carry(end, reader, writer, changes)

    async def _carry(
        self, end: End, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, changes: Changes
    ) -> None:
        """Move the bytes of one connection, until both directions have ended."""
        # Drained means written: so it is the system's readiness that lets an end go on.
        writer.transport.set_write_buffer_limits(high=0)
        writing = asyncio.create_task(self._write(end, writer, changes))
        cause = ""
        try:
            with self._noting():
                await self._read(end, reader, changes)
        except OSError as error:
            cause = str(error)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()
            end.lose(cause)
            changes.tell()

    async def _read(self, end: End, reader: asyncio.StreamReader, changes: Changes) -> None:
        """Hand on the bytes that come, until the other end has ended."""
        while data := await reader.read(_READ_BYTES):
            end.receive_data(data)
            changes.tell()
            while not (end.is_reading or end.is_closed):  # without credits
                await changes.wait_until(lambda: end.can_resume_reading or end.is_closed)
                end.resume_reading()
                changes.tell()

    async def _write(self, end: End, writer: asyncio.StreamWriter, changes: Changes) -> None:
        """Write the bytes of an end, until it has written its last message."""
        with self._noting():
            while not await self._write_once(end, writer, changes):
                pass

    async def _write_once(self, end: End, writer: asyncio.StreamWriter, changes: Changes) -> bool:
        """Write some bytes, or wait for some; true after the last message."""
        pieces = end.data_to_send()
        if pieces:
            changes.tell()  # room in a queue
            # Joined: before 3.12.9 and 3.13.2 a drain after `writelines` waits for nothing (gh-127655).
            writer.write(b"".join(pieces))
            await writer.drain()
            end.data_sent()
            changes.tell()
            return False
        if end.is_closed:
            writer.write_eof()
            return True
        now_ms = time.monotonic() * 1000
        deadline_ms = end.next_deadline(now_ms)
        if deadline_ms is not None and deadline_ms <= now_ms:
            end.on_timeout(now_ms)
            return False
        timeout_s = None if deadline_ms is None else (deadline_ms - now_ms) / 1000
        await changes.wait_until(lambda: end.has_data_to_send or end.is_closed, timeout_s)
        return False
