"""A job in one event loop: a coroutine for each task, two for each connection, and no thread at all.

Nothing runs while something else does, so the loop itself keeps calls apart. A task gives way after
each step; the user's code holds up everybody while it runs, which on threads it does not.

In a notebook, which has a loop already: `await AsyncRun(job).execute()`. Views stay alive meanwhile.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any, Self

from refimpl.drivers.carrier import ConsumerEnd, End, ProducerEnd
from refimpl.errors import LocalUsageError
from refimpl.invariants import check_end
from refimpl.job.deployment import Deployment, JobSnapshot
from refimpl.job.stream import StreamEnvironment
from refimpl.task.task import Task
from refimpl.trace import Trace

__all__ = ["AsyncRun"]

_HOST = "127.0.0.1"
_READ_BYTES = 256 * 1024
_SECONDS_TO_STOP = 5.0


class AsyncRun:
    """Runs a job in an event loop.

    `await run.execute()` where a loop runs, `run.run()` where none does. What several TaskManagers send
    one another goes over loopback. Cancelling the coroutine cancels the job.

    Raises (execute, run):
        SluiceError: the job failed; the first error, after everything has been given back.
    """

    def __init__(
        self, environment: StreamEnvironment, trace: Trace | None = None, num_task_managers: int = 1
    ) -> None:
        self.deployments: list[Deployment] = []
        self._config = environment.config
        self._trace = trace
        self._is_started = False
        self._started_s = 0.0
        self._ended_s: float | None = None
        run_id = secrets.token_bytes(8)
        try:
            for number in range(num_task_managers):
                self.deployments.append(
                    Deployment(environment, trace, None, number, num_task_managers, run_id)
                )
        except BaseException as error:
            self._close_after(error)
            raise
        self.deployment = self.deployments[0]
        self._changes = {id(each): _Changes(each) for each in self.deployments}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for deployment in self.deployments:
            deployment.close()

    # -- the life of a run ---------------------------------------------------------------------------

    def run(self) -> AsyncRun:
        """Run the job to its end, in a loop of its own.

        Raises:
            LocalUsageError: this thread has a loop already; `await` the run there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(self.execute())
            return self
        raise LocalUsageError("an event loop runs here already: await AsyncRun(job).execute()")

    async def execute(self) -> AsyncRun:
        """Run the job to its end, in the loop that runs here."""
        if self._is_started:
            raise LocalUsageError("this run has been started before; make a new one")
        self._is_started = True
        self._started_s = time.monotonic()
        try:
            async with _Connections(self.deployments, self._changes) as connections:
                tasks = [
                    self._run_task(task, self._changes[id(deployment)])
                    for deployment in self.deployments
                    for task in deployment.tasks
                ]
                await _all_or_first_error(tasks, self._run_flusher())
                self._ended_s = time.monotonic()
                await connections.settle()
            check_end(*self.deployments)
        except BaseException as error:
            self._close_after(error)
            raise
        for deployment in self.deployments:
            deployment.close()
        return self

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more."""
        return self._is_started and all(deployment.is_done for deployment in self.deployments)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, or from start to end."""
        return (self._ended_s or time.monotonic()) - self._started_s if self._is_started else 0.0

    def snapshot(self) -> JobSnapshot:
        """The whole job at one moment."""
        return JobSnapshot.joined([each.snapshot(self.elapsed_s * 1000) for each in self.deployments])

    def swap(self, **parts: object) -> None:
        """Put other parts into the running job: `swap(SpanningRecordSerializer=Mine)`."""
        for deployment in self.deployments:
            deployment.swap(**parts)
            self._changes[id(deployment)].tell()

    def swap_function(self, operator_name: str, function: object) -> None:
        """Put another function into an operator of the running job."""
        holders = [each for each in self.deployments if each.holds(operator_name)]
        for deployment in holders or self.deployments:
            deployment.swap_function(operator_name, function)
            self._changes[id(deployment)].tell()

    # -- coroutines ------------------------------------------------------------------------------------

    async def _run_task(self, task: Task, changes: _Changes) -> None:
        while not task.is_done:
            await changes.wait_until(lambda: task.is_runnable)
            if self._trace is not None:
                self._trace.now_ms = self.elapsed_s * 1000
            task.step()
            changes.tell()
            await asyncio.sleep(0)

    async def _run_flusher(self) -> None:
        """Flush every output once per buffer timeout.

        Flink:   RecordWriter.OutputFlusher, 1.11.4
        """
        while self._config.buffer_timeout_ms > 0:
            await asyncio.sleep(self._config.buffer_timeout_ms / 1000)
            for deployment in self.deployments:
                for partition in deployment.partitions:
                    partition.flush_all()
                self._changes[id(deployment)].tell()

    def _close_after(self, error: BaseException) -> None:
        for deployment in self.deployments:
            deployment.close_after(error)


class _Changes:
    """Wakes the coroutines of one TaskManager that wait for something to be true."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self._waiting: dict[asyncio.Future[None], Any] = {}

    def tell(self) -> None:
        """Something has changed."""
        for future, condition in list(self._waiting.items()):
            if not future.done() and condition():
                future.set_result(None)

    async def wait_until(self, condition: Any, timeout_s: float | None = None) -> None:
        """Wait until `condition()` is true, or for `timeout_s`."""
        if condition():
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = condition
        try:
            await asyncio.wait_for(future, timeout_s)
        except TimeoutError:
            pass
        finally:
            del self._waiting[future]


class _Connections:
    """The servers and clients of all TaskManagers, as long as the `async with` block lasts."""

    def __init__(self, deployments: list[Deployment], changes: dict[int, _Changes]) -> None:
        self._deployments = deployments
        self._changes = changes
        self._servers: list[asyncio.Server] = []
        self._carrying: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        if len(self._deployments) == 1:
            return self
        for deployment in self._deployments:
            accept = partial(self._accept, deployment)
            self._servers.append(await asyncio.start_server(accept, _HOST, 0))
        addresses = [server.sockets[0].getsockname() for server in self._servers]
        for deployment in self._deployments:
            for number in deployment.shuffle.remote_reads:
                self._add(self._connect(deployment, number, *addresses[number]))
        return self

    async def __aexit__(self, *_exc: object) -> None:
        for server in self._servers:
            server.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def settle(self) -> None:
        """After the last task everywhere has ended: wait until the connections have too."""
        if self._carrying:
            await asyncio.wait(self._carrying, timeout=_SECONDS_TO_STOP)

    def _add(self, carry: Coroutine[Any, Any, None]) -> None:
        self._carrying.add(asyncio.create_task(carry))

    async def _accept(
        self, deployment: Deployment, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        shuffle = deployment.shuffle
        name = f"tm-{deployment.task_manager} to {writer.get_extra_info('peername')}"
        end = ProducerEnd(shuffle.accept(name), shuffle)
        self._add(self._carry(end, reader, writer, self._changes[id(deployment)]))

    async def _connect(self, deployment: Deployment, number: int, host: str, port: int) -> None:
        name = f"tm-{deployment.task_manager} reads tm-{number} at {host}:{port}"
        end = ConsumerEnd(deployment.shuffle.connect_to(number, name))
        changes = self._changes[id(deployment)]
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError as error:
            end.lose(str(error))
            changes.tell()
            return
        await self._carry(end, reader, writer, changes)

    async def _carry(
        self, end: End, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, changes: _Changes
    ) -> None:
        """Move the bytes of one connection, until both directions have ended."""
        # Drained means written: only then does lent memory go home.
        writer.transport.set_write_buffer_limits(high=0)
        writing = asyncio.create_task(_write(end, writer, changes))
        cause = ""
        try:
            while data := await reader.read(_READ_BYTES):
                end.receive_data(data)
                changes.tell()
                while not (end.is_reading or end.is_closed):  # without credits
                    await changes.wait_until(lambda: end.can_resume_reading or end.is_closed)
                    end.resume_reading()
                    changes.tell()
        except OSError as error:
            cause = str(error)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            writer.transport.abort()
            end.lose(cause)
            changes.tell()


async def _write(end: End, writer: asyncio.StreamWriter, changes: _Changes) -> None:
    """Write what an end has to say, until it has said its last word."""
    while True:
        pieces = end.data_to_send()
        if pieces:
            changes.tell()  # room in a queue
            writer.writelines(pieces)
            await writer.drain()
            end.data_sent()
            changes.tell()
        elif end.is_closed:
            writer.write_eof()
            return
        else:
            now_ms = time.monotonic() * 1000
            deadline_ms = end.next_deadline(now_ms)
            if deadline_ms is not None and deadline_ms <= now_ms:
                end.on_timeout(now_ms)
                continue
            timeout_s = None if deadline_ms is None else (deadline_ms - now_ms) / 1000
            await changes.wait_until(lambda: end.has_data_to_send or end.is_closed, timeout_s)


async def _all_or_first_error(
    tasks: list[Coroutine[Any, Any, None]], beside: Coroutine[Any, Any, None]
) -> None:
    """Wait for all, with `beside` going on meanwhile; the first error cancels what is left."""
    running = [asyncio.create_task(each) for each in tasks]
    extra = asyncio.create_task(beside)
    try:
        await asyncio.gather(*running)
    finally:
        for each in (*running, extra):
            each.cancel()
        await asyncio.gather(*running, extra, return_exceptions=True)
