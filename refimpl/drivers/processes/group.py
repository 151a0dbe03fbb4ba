"""All processes of a run: asked together, seen together, ended together.

Rule of this file: nobody waits without end for a process that runs a job. One that was stopped leaves a
question unanswered; until it has answered that one it is *silent*. It is told what all are told, and not
waited for; it is not asked how it is, and is shown as it was seen last.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from refimpl.drivers.processes.child import Child
from refimpl.drivers.processes.messages import Command, pack
from refimpl.errors import LocalUsageError, RemoteTransportError
from refimpl.job.snapshots import JobSnapshot

__all__ = ["SECONDS_TO_SETTLE", "Crew"]

SECONDS_TO_SETTLE = 30.0
_SECONDS_TO_ANSWER = 10.0  # a slow machine may have to import what it is given
_SECONDS_TO_STOP = 10.0


class Crew:
    """The processes of a run; `children` are added by whoever makes it, by the numbers of their TaskManagers.

    Raises (tell, tell_all, look):
        LocalUsageError: the crew is closed.
        RemoteTransportError: a process has ended, or does not answer; it does what it was told when it can.
    """

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.is_closed = False
        self._asking = threading.Lock()
        self._seen: dict[int, JobSnapshot] = {}  # last, of each TaskManager, by its number

    def tell(self, commands: Mapping[Child, bytes], most_s: float | None = None) -> list[Any]:
        """Give each process its command; what they answer, or the first error.

        They are waited for `most_s`, by default for some seconds; at a start nobody knows how long it takes.
        """
        answers = self._ask(commands, most_s)
        silent = [child for child, answer in answers.items() if child.has_missed(answer)]
        if silent:
            raise silent[0].silence()
        return [answer.result() for answer in answers.values()]

    def tell_all(self, name: str, *arguments: object, most_s: float | None = None) -> list[Any]:
        """Have every process do the same."""
        return self.tell(dict.fromkeys(self.children, pack(Command(name, arguments))), most_s)

    def look(self) -> None:
        """Ask every process that is left how its part of the job is."""
        left = [child for child in self.children if not (child.is_gone or child.is_silent)]
        answers = self._ask(dict.fromkeys(left, pack(Command("snapshot"))))
        there = {child.number: answer for child, answer in answers.items() if not child.has_missed(answer)}
        self._seen.update({number: answer.result() for number, answer in there.items()})

    def remember(self, parts: Sequence[JobSnapshot]) -> None:
        """What a look would have brought, by number."""
        self._seen.update(enumerate(parts))

    def seen(self) -> JobSnapshot:
        """What was seen last of each process, as one job.

        Raises:
            LocalUsageError, RemoteTransportError: one has never been seen, since it has ended, or does not answer.
        """
        for child in self.children:
            if child.number not in self._seen:
                if child.is_silent:
                    raise child.silence()
                raise LocalUsageError("the processes of this run have ended; there is nothing to look at")
        whole = JobSnapshot.joined([self._seen[child.number] for child in self.children])
        parts = [
            dataclasses.replace(part, process_id=child.process.pid, is_lost=child.has_died, is_silent=child.is_silent)
            for part, child in zip(whole.task_managers, self.children, strict=True)
        ]
        return dataclasses.replace(whole, task_managers=tuple(parts))

    def close(self) -> None:
        """End every process, with a word first, by force if that does not help. Safe to repeat."""
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

    def _ask(self, commands: Mapping[Child, bytes], most_s: float | None = None) -> dict[Child, Future[Any]]:
        """Give each process its command, all at once, and wait for what they answer."""
        with self._asking:  # two commands reach every process in the same order
            if self.is_closed:
                raise LocalUsageError("this run has ended, and its processes with it")
            answers = {child: child.ask(command) for child, command in commands.items()}
        awaited = [answer for child, answer in answers.items() if not child.is_silent]
        wait(awaited, _SECONDS_TO_ANSWER if most_s is None else most_s)
        return answers
