"""The process of one TaskManager, as the process that started it sees it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from refimpl.drivers.processes.messages import TICKET_BYTES, Answer, Command, Ended, Results, pack, unpack
from refimpl.errors import LocalUsageError, RemoteTransportError

__all__ = ["Child"]

_START = """\
import json, os, sys
sys.path[:], core = json.loads(sys.argv[1])
if core is not None:
    os.sched_setaffinity(0, {core})  # and so for every thread it starts
from refimpl.drivers.processes.worker import obey
obey(*map(int, sys.argv[2:]))
"""
_SIGNALS = {each.value: each.name for each in signal.Signals}


class Child:
    """The process of TaskManager `number`, on any core or on `core`.

    `deliver` gets its results and `on_change` is called when its tasks or it have ended, both on threads
    of this object: one hears answers and the end of the process, the other one results, so that a slow
    sink keeps no answer waiting. A third one sends commands, so that a process that takes none in keeps
    nobody waiting who asks.
    """

    def __init__(
        self,
        number: int,
        deliver: Callable[[list[tuple[int, int, bytes]]], None],
        on_change: Callable[[Child], None],
        core: int | None = None,
    ) -> None:
        self.number = number
        self.ended: Ended | None = None
        self.is_gone = False
        self._deliver = deliver
        self._on_change = on_change
        self._lock = threading.Lock()
        self._asked: dict[int, Future[Any]] = {}
        self._num_asked = 0
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()  # commands; `None` behind the last one
        self._missed: Future[Any] | None = None  # what it has left unanswered for too long
        self._goodbye: Future[Any] | None = None
        self._has_obeyed = False  # the last command
        self._was_killed = False
        for_child, commands = os.pipe()
        answers, of_child = os.pipe()
        results, from_child = os.pipe()
        self._commands = Connection(commands, readable=False)
        self._answers = Connection(answers, writable=False)
        self._results = Connection(results, writable=False)
        inherited = (for_child, of_child, from_child)
        path = [str(each) for each in (Path(__file__).resolve().parents[3], *sys.path)]
        try:
            # A process group of its own: Ctrl-C in a terminal is for the parent alone.
            self.process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps([path, core]), *map(str, inherited)],
                stdin=subprocess.DEVNULL,
                pass_fds=inherited,
                process_group=0,
            )
        finally:
            for each in inherited:
                os.close(each)
        self._threads = [
            threading.Thread(target=self._send_commands, name=f"tm-{number} (commands)", daemon=True),
            threading.Thread(target=self._hear_answers, name=f"tm-{number} (answers)", daemon=True),
            threading.Thread(target=self._hear_results, name=f"tm-{number} (results)", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def has_died(self) -> bool:
        """Whether it has ended, and neither because we said so nor by our force."""
        return self.is_gone and not self._has_obeyed and not self._was_killed

    @property
    def is_silent(self) -> bool:
        """Whether it still owes an answer that somebody has given up to wait for."""
        return self._missed is not None and not self._missed.done()

    def has_missed(self, answer: Future[Any]) -> bool:
        """Whether `answer` has not come, now that nobody waits for it any longer."""
        if answer.done():
            return False
        self._missed = answer
        return True

    def silence(self) -> RemoteTransportError:
        """What to say of a process that is there and does not answer."""
        return RemoteTransportError(
            f"TaskManager tm-{self.number}, process {self.process.pid}, does not answer; if it was stopped, "
            f"`kill -CONT {self.process.pid}` lets it go on, and what it was told meanwhile it does then"
        )

    def death(self) -> RemoteTransportError:
        """What to say of a process that has ended before its time."""
        status = self.process.wait()
        how = f"ended with status {status}"
        if status < 0:
            how = f"was killed by {_SIGNALS.get(-status, f'signal {-status}')}"
        return RemoteTransportError(f"TaskManager tm-{self.number}, process {self.process.pid}, {how}")

    def ask(self, command: bytes) -> Future[Any]:
        """Send a command that was packed; its answer comes later. A process that is gone answers with its death."""
        answer: Future[Any] = Future()
        with self._lock:
            if self.is_gone:
                answer.set_exception(self.death())
                return answer
            self._num_asked += 1
            self._asked[self._num_asked] = answer
            self._to_send.put(self._num_asked.to_bytes(TICKET_BYTES, "big") + command)
        return answer

    def close(self) -> None:
        """Tell the process to end."""
        if self._goodbye is None:
            self._goodbye = self.ask(pack(Command("close")))

    def end(self, give_up_s: float) -> None:
        """Wait for the process to end; after `give_up_s` kill it. A sink that never returns is left behind."""
        try:
            self.process.wait(max(0.0, give_up_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._was_killed = True
            self.process.kill()
            self.process.wait()
        self._to_send.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(1.0, give_up_s - time.monotonic()))

    # -- the threads ---------------------------------------------------------------------------------

    def _send_commands(self) -> None:
        with suppress(OSError), self._commands:  # it has just gone; whoever hears answers knows
            while (message := self._to_send.get()) is not None:
                self._commands.send_bytes(message)

    def _hear_answers(self) -> None:
        with suppress(EOFError, OSError), self._answers:
            while True:
                message = self._answers.recv_bytes()
                try:
                    answer = unpack(message[TICKET_BYTES:])
                except LocalUsageError as error:
                    answer = Answer(error=error)
                self._answer(int.from_bytes(message[:TICKET_BYTES], "big"), answer)
        death = self.death()
        with self._lock:
            self.is_gone = True
            unanswered, self._asked = self._asked, {}
            self._has_obeyed = self._goodbye is not None and self._goodbye.done()
        for asked in unanswered.values():
            asked.set_exception(death)
        self._on_change(self)

    def _answer(self, ticket: int, answer: Answer | Ended) -> None:
        if ticket == 0:
            self._end(Ended(answer.error))
            return
        with self._lock:
            asked = self._asked.pop(ticket)
        if answer.error is not None:
            asked.set_exception(answer.error)
        elif isinstance(answer, Answer):
            asked.set_result(answer.value)

    def _hear_results(self) -> None:
        with suppress(EOFError, OSError), self._results:
            while True:
                match unpack(self._results.recv_bytes()):
                    case Results(values):
                        self._deliver(values)
                    case Ended() as ended:
                        self._end(ended)

    def _end(self, ended: Ended) -> None:
        self.ended = ended
        self._on_change(self)
