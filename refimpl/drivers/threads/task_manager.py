"""One TaskManager on threads: one for each task, two for each connection, and one monitor for all.

The monitor is held while a task polls and emits, while a writer opens or closes a buffer, and while a
connection takes bytes in or gives some out; not by the user's code, nor to serialise, nor while anybody
waits for a transport. A thread that cannot go on waits at its bell, which is rung by what it waits for:

    a task without input      its gate, when a first channel has something
    a task without buffers    the pools of its outputs, when a buffer has come home
    a connection's writer     the connection, when somebody may speak

Nobody looks through those who wait. So a step costs the same however many of them stand still meanwhile.
A task without work may rest first, on a TaskManager by itself, see `Lull`; or read for busy connections, see
`Lookout`. A source does step after step without the monitor, as long as it has room and nothing is due.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from refimpl.drivers.threads.connection_io import Carrier
from refimpl.drivers.threads.flusher import Flusher, ShortTurns, send_barriers
from refimpl.drivers.threads.leader_followers import Lookout
from refimpl.drivers.threads.wakeup import Bell, Lull, let_pass
from refimpl.drivers.transport.ends import ConsumerEnd, ProducerEnd
from refimpl.drivers.transport.streams import Listener, Security, listen, reach
from refimpl.job.deployment import Deployment
from refimpl.job.shuffle_environment import ConnectionId
from refimpl.job.snapshots import JobSnapshot
from refimpl.job.stream import StreamEnvironment
from refimpl.task.task import Task
from refimpl.trace import Trace

__all__ = ["BUFFERS_PER_STEP", "TaskManagerThreads"]

BUFFERS_PER_STEP = 16  # the monitor and credit once for all of them; 68 at once were slower
_SECONDS_TO_STOP = 5.0


class TaskManagerThreads:
    """Runs the part of a job that one TaskManager has.

    With several it listens at `address`, on `host`, from the beginning; `start` gets the addresses of all.
    `on_end` is called, on any thread, without the monitor, at the end of the last task and at a failure.

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
        if trace is not None:
            trace.use_clock(time.monotonic_ns, time.time_ns() - time.monotonic_ns())
        spread = (number, num_task_managers, run_id)
        self.deployment = Deployment(environment, trace, self.monitor, *spread, BUFFERS_PER_STEP)
        self.error: BaseException | None = None  # the first one, as soon as it has happened
        self.is_paused = self.is_cancelled = self._is_closing = False
        self._number, self._config = number, environment.config
        self._security, self._on_end = security, on_end
        self._bells = {task.name: Bell(self.monitor) for task in self.deployment.tasks}
        self.lookout = Lookout(self.monitor, self._bells, self._config.buffer_timeout_ms != 0)
        for gate in self.deployment.gates:
            gate.on_ready = self._bells[gate.name].ring
        self._lull = Lull(self.monitor, self._bells) if num_task_managers == 1 else None
        self._stopped = threading.Condition(self.monitor)
        self._turns = ShortTurns(self._config.buffer_timeout_ms)
        after = self._turns.note_flush if self._lull is not None else lambda late_ms: self.lookout.speak()
        self.flusher = Flusher(self.deployment.partitions, self._config.buffer_timeout_ms, self._stopped, after)
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
        assert self._listener is not None, f"{self} listens nowhere"
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
        if self._lull is None:
            self._turns.start()
        self._started_s = time.monotonic()
        if self._listener is not None:
            self._add_thread(f"tm-{self._number} (accept)", partial(self._accept, self._listener))
            self._add_thread(f"tm-{self._number} (patrol)", self.lookout.patrol)
        for connection_id in self.deployment.shuffle.remote_reads:
            self._connect(connection_id, *addresses[connection_id.task_manager])
        for task in self.deployment.tasks:
            self._add_thread(task.name, partial(self._run_task, task))
        flush = partial(self.flusher.run, lambda: self.is_ended or self.is_cancelled)
        self._add_thread(f"tm-{self._number} (flush)", flush)
        send = partial(send_barriers, self.deployment.checkpoints, self._stopped, self.wake_all)
        self._add_thread(f"tm-{self._number} (barriers)", partial(send, lambda: self.is_cancelled))
        for start in [each.start for each in self._carriers] + [each.start for each in self._threads]:
            start()

    def cancel(self) -> None:
        """Stop the tasks after what they are doing now; the connections stay. Returns at once."""
        with self.monitor:
            self.is_cancelled, self.is_paused = True, False
            self.lookout.close()
            self.wake_all()

    def fail(self, error: BaseException) -> None:
        """End the job with an error, wherever it was found. Not under the monitor."""
        with self.monitor:
            self.error = self.error or error
            self.cancel()
        self._on_end()

    def settle(self) -> None:
        """After the last task everywhere has ended, or after a cut: wait until the connections have too."""
        give_up = time.monotonic() + _SECONDS_TO_STOP
        for carrier in self._carriers:
            carrier.join(max(0.0, give_up - time.monotonic()))

    def close(self, error: BaseException | None = None) -> None:
        """Stop all threads and give everything back; trouble is noted on `error`. Safe to repeat.

        A thread inside user code that does not return is left behind; it can no longer touch the job.
        """
        self._turns.stop()
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
        self.settle()
        self._turns.stop()  # again: the last flush may have wanted them short
        with self.monitor:
            if error is None:
                self.deployment.close()
            else:
                self.deployment.close_after(error)

    # -- from outside ----------------------------------------------------------------------------------

    def snapshot(self) -> JobSnapshot:
        """This part of the job at one moment."""
        with self.monitor:
            return self.deployment.snapshot((time.monotonic() - self._started_s) * 1000 if self._threads else 0.0)

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
            self.wake_all()

    def swap_function(self, operator_name: str, function: object) -> None:
        """Put another function into an operator of the running tasks."""
        with self.monitor:
            self.deployment.swap_function(operator_name, function)
            self.wake_all()

    def slow(self, name: str, rest_ms: float) -> int:
        """Let a task, or an operator's tasks, rest so long after each buffer; returns how many are here."""
        with self.monitor:
            self.wake_all()  # whoever rests looks again, when the monitor is left
            return self.deployment.slow(name, rest_ms)

    def set_buffer_timeout(self, timeout_ms: int) -> None:
        """Flush after another time from now on."""
        with self.monitor:
            self.deployment.set_buffer_timeout(timeout_ms)
            self.flusher.set_timeout(timeout_ms)
        self._turns.change(timeout_ms)

    def wake_all(self) -> None:
        """Let every task look whether it can go on. Under the monitor."""
        for bell in self._bells.values():
            bell.ring()
        self._stopped.notify_all()

    # -- tasks -----------------------------------------------------------------------------------------

    def _add_thread(self, name: str, run: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=self._guard, args=(run,), name=name, daemon=True))

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - handed to whoever joins; ends the other threads
            self.fail(error)

    def _run_task(self, task: Task) -> None:
        self._guard(partial(self._work, task))
        with self.monitor:
            self._num_running -= 1
            if self.is_ended:
                self.lookout.close()
                self.wake_all()
        if self.is_ended:
            self._on_end()

    def _work(self, task: Task) -> None:
        """Step by step to the end; the monitor is taken once from the end of one to the beginning of the next."""
        has_work = False
        while True:
            with self.monitor:
                if self.is_cancelled:
                    return
                has_flushed = self.flusher.flush_if_due()
                self.lookout.call_if_due()
                if has_work:
                    with self.lookout.speakers:  # each says what it has got to say by that, once
                        task.emit()
                    if task.rest_ms:
                        let_pass(self._stopped, lambda: 0.0 if self.is_cancelled else task.rest_ms)
                if has_flushed and task.writers and self._lull is not None:
                    self._lull.step_aside(task.name, self.flusher.begin_anew)
                if task.is_done or not self._wait_for_turn(task):
                    return
                has_work = task.poll()
            if has_work:
                task.process()
                while not (self._is_any_wanted or task.rest_ms) and task.go_on():
                    task.process()

    @property
    def _is_any_wanted(self) -> bool:
        """Whether a task is to come under the monitor after the step it is in."""
        return self.is_cancelled or self.is_paused or self.flusher.is_due or self.lookout.is_due

    def _wait_for_turn(self, task: Task) -> bool:
        """Wait until a step of `task` would do something; false if the job was cancelled."""
        bell = self._bells[task.name]
        if self._lull is not None and not task.is_runnable:
            self._lull.end()
            if task.moves_much:
                self._lull.rest()
        while not self.is_cancelled and (self.is_paused or not task.is_runnable):
            for writer in task.writers:
                if not writer.is_available:
                    writer.partition.pool.call_when_available(bell.ring)
            task.note_rest()
            self.lookout.wait(bell)
        self.lookout.pass_on()
        return not self.is_cancelled

    # -- connections -----------------------------------------------------------------------------------

    def _connect(self, connection_id: ConnectionId, host: str, port: int) -> None:
        """Read from another TaskManager."""
        name = f"tm-{self._number} reads {connection_id} at {host}:{port}"
        connection = self.deployment.shuffle.connect(connection_id, name)
        reach_it = partial(reach, host, port, self._security, self._config, self._is_cancelled_within)
        self._carriers.append(Carrier(self, ConsumerEnd(connection), reach_it))

    def _is_cancelled_within(self, wait_ms: float) -> bool:
        with self.monitor:
            return self._stopped.wait_for(lambda: self.is_cancelled, wait_ms / 1000)

    def _accept(self, listener: Listener) -> None:
        """Let others read what is produced here."""
        while (incoming := listener.accept()) is not None:
            with self.monitor:
                if self._is_closing:  # it came in while the others were being stopped
                    incoming.close()
                    return
                shuffle = self.deployment.shuffle
                end = ProducerEnd(shuffle.accept(f"tm-{self._number} to {incoming.peer}"), shuffle)
                open_stream = partial(incoming.open, self._config.connect_timeout_ms / 1000)
                carrier = Carrier(self, end, open_stream, incoming.close)
                self._carriers = [each for each in self._carriers if not each.is_finished]
                self._carriers.append(carrier)
                carrier.start()
