"""The checkpoints of the attempts in a TaskManager's process: states go to the store, words to the parent.

Two threads, so that no task waits for either: one takes what the tasks have to say, one puts their states, one after
the other. A state is said to be saved when its put has returned, and never before.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import partial

from refimpl.drivers.processes.messages import Ended, Saved, TaskSaid, TellTask, Verdict
from refimpl.drivers.task_gateways import LocalTask, StateToPut
from refimpl.drivers.threads.task_manager import TaskManagerThreads
from refimpl.errors import LocalUsageError, NoSuchKeyError, SluiceError
from refimpl.state.layout import JobStore, claim_key
from refimpl.task.checkpoint_reports import Snapshotted, Unwanted

__all__ = ["AttemptCheckpoints", "check_shared"]


class AttemptCheckpoints:
    """The checkpoints of the tasks of `threads`, one generation of attempts; `say` sends to the parent, in order.

    After `stop` no state is put any more; the files that were put, and that no task has spoken of, are named as
    unwanted: nobody else knows of them.

    Flink:   TaskExecutor, RpcCheckpointResponder, AsyncCheckpointRunnable (runtime.taskexecutor,
             streaming.runtime.tasks), 1.11.4
    Differs: the states of one TaskManager are put one after the other.
    """

    def __init__(
        self, threads: TaskManagerThreads, saved: Saved, generation: int, say: Callable[[TaskSaid | Ended], None]
    ) -> None:
        self._task_manager = threads
        self._store = JobStore(saved.store, saved.point.job)
        self._generation = generation
        self._say = say
        self._news = threading.Event()
        self._is_stopped = False
        tasks = threads.deployment.tasks
        self._tasks = {task.name: LocalTask(task, partial(threads.wake, task), self._news.set) for task in tasks}
        self._to_put: queue.SimpleQueue[tuple[str, StateToPut] | None] = queue.SimpleQueue()
        self._untold: dict[str, str] = {}  # by key, the task of a file that was put, and that it has not spoken of
        self._telling = threading.Lock()
        self._threads = [
            threading.Thread(target=self._guard, args=(work,), name=name, daemon=True)
            for name, work in (("checkpoints", self._listen), ("store", self._put_states))
        ]

    def start(self) -> None:
        """Begin to listen, before the tasks begin."""
        for thread in self._threads:
            thread.start()

    def note_news(self) -> None:
        """A task has something to say, or has ended. It does not wait."""
        self._news.set()

    def tell(self, tell: TellTask) -> None:
        """Pass a word to a task; of other attempts, or to one that is not here, it is dropped."""
        task = self._tasks.get(tell.task)
        if task is None or tell.generation != self._generation or self._is_stopped:
            return
        if not isinstance(tell.what, Verdict):
            task.send_barrier(tell.what)
        elif tell.what.is_complete:
            task.notify_complete(tell.what.checkpoint_id)
        else:
            task.notify_aborted(tell.what.checkpoint_id)

    def stop(self, within_s: float) -> bool:
        """After the tasks: name what nobody wants; whether nothing is being put any more."""
        self._is_stopped = True
        self._news.set()
        self._to_put.put(None)
        give_up_s = time.monotonic() + within_s
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, give_up_s - time.monotonic()))
        self._disown()
        return not any(thread.is_alive() for thread in self._threads)

    # -- the threads ---------------------------------------------------------------------------------

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - a store that is none; ends the tasks and is raised by who joins
            self._task_manager.fail(error)

    def _listen(self) -> None:
        """Take what the tasks have to say, until they have ended or are stopped."""
        running = dict(self._tasks)
        while running and not self._is_stopped:
            self._news.wait()
            self._news.clear()
            for name, task in list(running.items()):
                is_done = task.is_done  # asked first: what a task says comes before its end
                for said in task.take():
                    if isinstance(said, StateToPut):
                        self._to_put.put((name, said))
                    else:
                        self._pass_on(TaskSaid(self._generation, name, said))
                if is_done:
                    del running[name]
                    self._pass_on(TaskSaid(self._generation, name, None))
        if not self._is_stopped:
            self._say(Ended(self._generation, None))

    def _pass_on(self, said: TaskSaid) -> None:
        with self._telling:
            if isinstance(said.report, Snapshotted) and said.report.file is not None:
                self._untold.pop(said.report.file.key, None)
            elif isinstance(said.report, Unwanted):
                self._untold.pop(said.report.key, None)
            self._say(said)

    def _put_states(self) -> None:
        while (item := self._to_put.get()) is not None:
            name, said = item
            if self._is_stopped:
                continue
            key, trouble = said.state.file.key, None
            try:
                self._store.put(key, said.state.parts)
            except SluiceError as error:
                trouble = str(error)
            with self._telling:
                self._untold[key] = name  # also after trouble: nobody knows whether it is there
            if self._is_stopped:
                self._disown()
            else:
                self._tasks[name].written(said.checkpoint_id, trouble)

    def _disown(self) -> None:
        with self._telling:
            untold, self._untold = self._untold, {}
        for key, name in untold.items():
            self._say(TaskSaid(self._generation, name, Unwanted(key)))


def check_shared(saved: Saved) -> None:
    """Refuse a store that this process does not share with its parent, which has put its claim there.

    Raises:
        LocalUsageError: the claim is not there.
        StoreError: the store did not answer.
    """
    key = claim_key(saved.point.attempt >> 16)
    try:
        JobStore(saved.store, saved.point.job).size(key)
    except NoSuchKeyError:
        kind = type(saved.store).__name__
        raise LocalUsageError(
            f"{kind} is no store for processes: what one has put, {key}, another does not see; "
            f"take a FileStore, or an ObjectStore that all can reach"
        ) from None
