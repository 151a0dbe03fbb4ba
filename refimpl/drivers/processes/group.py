"""All processes of a run: asked together, seen together, ended together.

Rule of this file: no caller waits without end for a process that runs a job. A process that was stopped leaves a
request unanswered; until it has answered that one it is *unresponsive*. It gets the requests that all get, and is not
waited for; it is not asked how it is, and is shown as it was seen last.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

from refimpl.drivers.processes.child_process import ChildProcess
from refimpl.drivers.processes.messages import Look, Request, Stop, pack
from refimpl.errors import LocalUsageError, RemoteTransportError
from refimpl.job.snapshots import JobSnapshot

__all__ = ["SECONDS_TO_SETTLE", "ProcessGroup"]

SECONDS_TO_SETTLE = 30.0
_SECONDS_TO_ANSWER = 10.0  # a slow machine may have to import what it is given
_SECONDS_TO_STOP = 10.0
_SECONDS_TO_STOP_TASKS = 20.0  # a TaskManager gives its tasks 5 s, its connections and its store as many


class ProcessGroup:
    """The processes of a run; the run adds `children`, by the numbers of their TaskManagers.

    Raises (ask, ask_all, look):
        LocalUsageError: the group is closed.
        RemoteTransportError: a process has ended, or does not answer; it obeys when it can.
    """

    def __init__(self) -> None:
        self.children: list[ChildProcess] = []
        self.is_closed = False
        self._asking = threading.Lock()
        self._seen: dict[int, JobSnapshot] = {}  # last, of each TaskManager, by its number
        self._idle: set[int] = set()  # those that had nothing to run when they were asked

    def ask(self, requests: Mapping[ChildProcess, bytes], most_s: float | None = None) -> list[Any]:
        """Send each process its request; the values of their answers, or the first error.

        The answers are waited for `most_s`, by default some seconds; at a start it cannot be known how long it takes.
        """
        answers = self._ask(requests, most_s)
        unresponsive = [child for child, answer in answers.items() if child.has_missed(answer)]
        if unresponsive:
            raise unresponsive[0].no_answer()
        return [answer.result() for answer in answers.values()]

    def ask_all(self, request: Request, most_s: float | None = None) -> list[Any]:
        """Send every process the same request, as `ask`."""
        return self.ask(dict.fromkeys(self.children, pack(request)), most_s)

    def look(self) -> None:
        """Ask every process that is left how its part of the job is."""
        left = [child for child in self.children if not (child.is_gone or child.is_unresponsive)]
        answers = self._ask(dict.fromkeys(left, pack(Look())))
        there = {child.number: answer for child, answer in answers.items() if not child.has_missed(answer)}
        seen = {number: answer.result() for number, answer in there.items()}
        self._seen.update({number: part for number, part in seen.items() if part is not None})
        self._idle = {number for number, part in seen.items() if part is None}

    def remember(self, parts: Mapping[int, JobSnapshot]) -> None:
        """Keep these snapshots, by number, as `look` does."""
        self._seen.update(parts)

    def seen(self) -> JobSnapshot:
        """The last snapshot of each process, as one job; without those that have had nothing to run.

        Raises:
            LocalUsageError, RemoteTransportError: one has never been seen, since it has ended, or does not answer.
        """
        for child in self.children:
            if child.number not in self._seen and child.number not in self._idle:
                if child.is_unresponsive:
                    raise child.no_answer()
                raise LocalUsageError("the processes of this run have ended; there is nothing to look at")
        children = [child for child in self.children if child.number in self._seen]
        if not children:
            raise LocalUsageError("no process has anything to run; there is nothing to look at")
        whole = JobSnapshot.joined([self._seen[child.number] for child in children])
        parts = [
            dataclasses.replace(
                part, process_id=child.process.pid, is_lost=child.has_died, is_silent=child.is_unresponsive
            )
            for part, child in zip(whole.task_managers, children, strict=True)
        ]
        return dataclasses.replace(whole, task_managers=tuple(parts))

    def stop(self, deployment: int | None = None) -> None:
        """End a deployment, or all, in the processes, which stay; one that does not do it in time is killed."""
        answers = {child: child.ask(pack(Stop(deployment))) for child in self.children if not child.is_lost}
        wait(answers.values(), _SECONDS_TO_STOP_TASKS)
        for child, answer in answers.items():
            if not answer.done() or answer.exception() is not None or not answer.result():
                child.kill("did not let go of its tasks, and was ended")

    def replace_lost(self, spawn: Callable[[int], ChildProcess]) -> None:
        """Put another process in the place of each that has ended.

        Raises:
            LocalUsageError: the group is closed.
            OSError: the system has no more processes.
        """
        for number, child in enumerate(self.children):
            if child.is_lost:
                child.end(time.monotonic())
                with self._asking:
                    if self.is_closed:
                        raise LocalUsageError("this run has ended, and its processes with it")
                    self.children[number] = spawn(number)

    def close(self) -> None:
        """End every process, with a word first, by force if that does not help. Safe to repeat."""
        with self._asking:  # nobody is put in the place of another any more
            self.is_closed = True
        for child in self.children:
            child.close()
        give_up = time.monotonic() + _SECONDS_TO_STOP
        for child in self.children:
            child.end(give_up)

    def root_of(self, error: BaseException) -> BaseException:
        """A process that died takes its neighbours' connections with it: it is the one to be named."""
        deaths = [child.death() for child in self.children if child.has_died]
        if not deaths or not isinstance(error, RemoteTransportError) or str(error) in map(str, deaths):
            return error
        deaths[0].add_note(f"and so: {error}")
        return deaths[0]

    def _ask(
        self, requests: Mapping[ChildProcess, bytes], most_s: float | None = None
    ) -> dict[ChildProcess, Future[Any]]:
        """Send each process its request, all at once, and wait for the answers."""
        with self._asking:  # two requests reach every process in the same order
            if self.is_closed:
                raise LocalUsageError("this run has ended, and its processes with it")
            answers = {child: child.ask(request) for child, request in requests.items()}
        awaited = [answer for child, answer in answers.items() if not child.is_unresponsive]
        wait(awaited, _SECONDS_TO_ANSWER if most_s is None else most_s)
        return answers
