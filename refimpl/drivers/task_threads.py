"""One TaskManager on threads: one for each task, two for each connection, and one monitor for all.

The monitor is held while a task polls and emits, while a writer opens or closes a buffer, and while a
connection takes bytes in or gives some out. The user's code, all serialising and all sending run
outside it. A thread that cannot go on waits on its own condition and is woken when something it could
use has changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from refimpl.drivers.carrier import Carrier
from refimpl.drivers.ends import ConsumerEnd, ProducerEnd
from refimpl.drivers.streams import ByteStream, Incoming, Listener, Security, connect, listen
from refimpl.job.deployment import Deployment, JobSnapshot
from refimpl.job.shuffle_environment import ConnectionId
from refimpl.job.stream import StreamEnvironment
from refimpl.task.task import Task
from refimpl.trace import Trace

__all__ = ["TaskManagerThreads"]

_SECONDS_TO_STOP = 5.0


class TaskManagerThreads:
    """Runs the part of a job that one TaskManager has.

    With several TaskManagers it listens at `address`, on `host`, from the beginning; `start` gets the
    addresses of all. `on_end` is called, on any thread and without the monitor, when the last task has
    ended and when one has failed.

    Raises:
        ConfigError: it cannot listen there.
        InsufficientBuffersError: as `Deployment`.
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        trace: Trace | None = None,
        number: int = 0,
        num_task_managers: int = 1,
        run_id: bytes = bytes(8),
        host: str = "127.0.0.1",
        security: Security | None = None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.monitor = threading.RLock()
        self.deployment = Deployment(
            environment, trace, self.monitor, number, num_task_managers, run_id
        )
        self.error: BaseException | None = None  # the first one, as soon as it has happened
        self.is_paused = False
        self.is_cancelled = False
        self._is_closing = False
        self._number = number
        self._config = environment.config
        self._trace = trace
        self._security = security
        self._on_end = on_end
        self._wakers = {
            task.name: threading.Condition(self.monitor) for task in self.deployment.tasks
        }
        self._waiting: dict[str, Task] = {}
        self._stopped = threading.Condition(self.monitor)
        self._threads: list[threading.Thread] = []
        self._carriers: list[Carrier] = []
        self._num_running = len(self.deployment.tasks)
        self._started_s = 0.0
        self._listener: Listener | None = None
        if num_task_managers > 1:
            try:
                self._listener = listen(host, 0, security)
            except BaseException as error:
                self.deployment.close_after(error)
                raise

    def __repr__(self) -> str:
        return f"TaskManagerThreads(tm-{self._number}, {self._num_running} tasks run)"

    # -- the life of a TaskManager -------------------------------------------------------------------

    @property
    def address(self) -> tuple[str, int]:
        """Where others connect to read what is produced here."""
        assert self._listener is not None, f"{self} is the only one and listens nowhere"
        return self._listener.address

    @property
    def is_listening(self) -> bool:
        """Whether others can connect."""
        return self._listener is not None

    @property
    def is_ended(self) -> bool:
        """Whether no task runs any more."""
        return self._num_running == 0

    def start(self, addresses: Sequence[tuple[str, int]] = ()) -> None:
        """Start all threads and return; `addresses` are those of all TaskManagers, by number."""
        self._started_s = time.monotonic()
        if self._listener is not None:
            self._add_thread(f"tm-{self._number} (accept)", partial(self._accept, self._listener))
        for connection_id in self.deployment.shuffle.remote_reads:
            self._connect(connection_id, *addresses[connection_id.task_manager])
        for task in self.deployment.tasks:
            self._add_thread(task.name, partial(self._run_task, task))
        if self._config.buffer_timeout_ms > 0:
            self._add_thread(f"tm-{self._number} (flush)", self._run_flusher)
        for carrier in self._carriers:
            carrier.start()
        for thread in self._threads:
            thread.start()

    def cancel(self) -> None:
        """Stop the tasks after what they are doing now; the connections stay. Returns at once."""
        with self.monitor:
            self.is_cancelled = True
            self.is_paused = False
            self.wake_all()

    def fail(self, error: BaseException) -> None:
        """End the job with an error, wherever it was found. Not under the monitor."""
        with self.monitor:
            self.error = self.error or error
            self.cancel()
        self._on_end()

    def settle(self) -> None:
        """After the last task everywhere has ended: wait until the connections have too."""
        give_up = time.monotonic() + _SECONDS_TO_STOP
        for carrier in self._carriers:
            carrier.join(max(0.0, give_up - time.monotonic()))

    def close(self, error: BaseException | None = None) -> None:
        """Stop all threads and give everything back; trouble is noted on `error`. Safe to repeat.

        A thread inside user code that does not return is left behind; it cannot be stopped, but it
        can no longer touch the job.
        """
        self.cancel()
        if self._listener is not None:
            self._listener.close()
        with self.monitor:
            self._is_closing = True
            for carrier in self._carriers:
                carrier.stop()
        give_up = time.monotonic() + _SECONDS_TO_STOP
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(max(0.0, give_up - time.monotonic()))
        for carrier in self._carriers:
            carrier.join(max(0.0, give_up - time.monotonic()))
        with self.monitor:
            if error is None:
                self.deployment.close()
            else:
                self.deployment.close_after(error)

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def elapsed_ms(self) -> float:
        return (time.monotonic() - self._started_s) * 1000 if self._threads else 0.0

    def snapshot(self) -> JobSnapshot:
        """This part of the job at one moment."""
        with self.monitor:
            return self.deployment.snapshot(self.elapsed_ms)

    def pause(self) -> None:
        """Let every task stand still after the step it is in."""
        with self.monitor:
            self.is_paused = True

    def resume(self) -> None:
        """Let the tasks go on."""
        with self.monitor:
            self.is_paused = False
            self.wake_all()

    def swap(self, **parts: object) -> None:
        """Put other parts into the running tasks."""
        with self.monitor:
            self.deployment.swap(**parts)
            self.wake()

    def swap_function(self, operator_name: str, function: object) -> None:
        """Put another function into an operator of the running tasks."""
        with self.monitor:
            self.deployment.swap_function(operator_name, function)
            self.wake()

    def wake(self) -> None:
        """Wake the threads that could move now. Under the monitor."""
        for name, task in self._waiting.items():
            if task.is_runnable:
                self._wakers[name].notify()
        for carrier in self._carriers:
            carrier.wake()

    def wake_all(self) -> None:
        """Wake every task. Under the monitor."""
        for waker in self._wakers.values():
            waker.notify_all()
        self._stopped.notify_all()

    # -- tasks -----------------------------------------------------------------------------------------

    def _add_thread(self, name: str, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._guard, args=(run,), name=name, daemon=True)
        self._threads.append(thread)

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - handed to whoever joins; ends the other threads
            self.fail(error)

    def _run_task(self, task: Task) -> None:
        self._guard(partial(self._work, task))
        with self.monitor:
            self._num_running -= 1
            if self._num_running == 0:
                self.wake_all()
        if self.is_ended:
            self._on_end()

    def _work(self, task: Task) -> None:
        while not task.is_done:
            with self.monitor:
                if not self._wait_for_turn(task):
                    return
                has_work = task.poll()
                self.wake()
            if has_work:
                task.process()
                with self.monitor:
                    if self.is_cancelled:
                        return
                    task.emit()
                    self.wake()

    def _wait_for_turn(self, task: Task) -> bool:
        """Wait until a step of `task` would do something; false if the job was cancelled."""
        while not self.is_cancelled and (self.is_paused or not task.is_runnable):
            self._waiting[task.name] = task
            self._wakers[task.name].wait()
            self._waiting.pop(task.name, None)
        if self._trace is not None:
            self._trace.now_ms = self.elapsed_ms
        return not self.is_cancelled

    def _run_flusher(self) -> None:
        """Flush every output once per buffer timeout.

        Flink:   RecordWriter.OutputFlusher, 1.11.4
        """
        with self.monitor:
            while self._num_running and not self.is_cancelled:
                self._stopped.wait(self._config.buffer_timeout_ms / 1000)
                for partition in self.deployment.partitions:
                    partition.flush_all()
                self.wake()

    # -- connections -----------------------------------------------------------------------------------

    def _connect(self, connection_id: ConnectionId, host: str, port: int) -> None:
        """Read from another TaskManager."""
        name = f"tm-{self._number} reads {connection_id} at {host}:{port}"
        connection = self.deployment.shuffle.connect(connection_id, name)
        open_stream = partial(self._reach, host, port)
        self._carriers.append(Carrier(self, ConsumerEnd(connection), open_stream))

    def _reach(self, host: str, port: int) -> ByteStream:
        """Connect, again and again if need be, with a wait that doubles.

        Flink:   PartitionRequestClientFactory.connectWithRetries (runtime.io.network.netty), 1.11.4
        Differs: waits in between.
        """
        wait_ms = self._config.request_backoff_initial_ms
        for _ in range(self._config.connect_retries):
            try:
                return self._connect_once(host, port)
            except OSError:
                with self.monitor:
                    if self._stopped.wait_for(lambda: self.is_cancelled, wait_ms / 1000):
                        raise
                wait_ms = min(2 * wait_ms, self._config.request_backoff_max_ms)
        return self._connect_once(host, port)

    def _connect_once(self, host: str, port: int) -> ByteStream:
        return connect(host, port, self._security, self._config.connect_timeout_ms / 1000)

    def _accept(self, listener: Listener) -> None:
        """Let others read what is produced here."""
        while (incoming := listener.accept()) is not None:
            with self.monitor:
                if self._is_closing:  # it came in while the others were being stopped
                    incoming.close()
                    return
                shuffle = self.deployment.shuffle
                end = ProducerEnd(shuffle.accept(f"tm-{self._number} to {incoming.peer}"), shuffle)
                carrier = Carrier(self, end, partial(self._shake_hands, incoming), incoming.close)
                self._carriers = [each for each in self._carriers if not each.is_finished]
                self._carriers.append(carrier)
                carrier.start()

    def _shake_hands(self, incoming: Incoming) -> ByteStream:
        return incoming.open(self._config.connect_timeout_ms / 1000)
