"""The one who writes: a thread that commits whatever has gathered while it committed last.

Waiting for the disk is what an acknowledgement costs. With two hundred learners it is paid once for all who wait.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from course.classroom.class_file import ClassFile

__all__ = ["Scribe"]

_Result = TypeVar("_Result")
_MOST_AT_ONCE = 500
_Job = tuple[Callable[[ClassFile], Any], "Future[Any]"]


class Scribe:
    """Runs jobs on a class file in transactions; a job's future is done when what it did is on the disk.

    A job that raises has changed nothing, and the others of its transaction are not touched. If the disk
    refuses, all of them get the `sqlite3.Error`.
    """

    def __init__(self, file: ClassFile) -> None:
        self._file = file
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="class-scribe", daemon=True)
        self._thread.start()
        self.num_commits = 0

    def submit(self, job: Callable[[ClassFile], _Result]) -> Future[_Result]:
        """Have `job` run with the file, inside a transaction, on the scribe's thread."""
        future: Future[_Result] = Future()
        self._jobs.put((job, future))
        return future

    def close(self) -> None:
        """Finish what was submitted, and end."""
        self._jobs.put(None)
        self._thread.join()

    def _write(self) -> None:
        ends = False
        while not ends:
            gathered = [self._jobs.get()]
            while len(gathered) < _MOST_AT_ONCE and not self._jobs.empty():
                gathered.append(self._jobs.get())
            ends = None in gathered
            if jobs := [job for job in gathered if job is not None]:
                self._commit(jobs)

    def _commit(self, jobs: list[_Job]) -> None:
        answers: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            with self._file.transaction():
                answers += [(future, *self._run(job)) for job, future in jobs]
        except sqlite3.Error as error:
            answers = [(future, None, error) for _, future in jobs]
        self.num_commits += 1
        for future, result, wrong in answers:
            if wrong is None:
                future.set_result(result)
            else:
                future.set_exception(wrong)

    def _run(self, job: Callable[[ClassFile], Any]) -> tuple[Any, Exception | None]:
        with self._file.savepoint() as undo:
            try:
                return job(self._file), None
            except sqlite3.Error:
                raise
            except Exception as error:  # noqa: BLE001 - it belongs to whoever submitted the job
                undo()
                return None, error
