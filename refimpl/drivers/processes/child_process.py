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
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from refimpl.drivers.processes.messages import TICKET_BYTES, Answer, Close, Outgoing, pack, unpack
from refimpl.drivers.processes.sent_error import SentError
from refimpl.errors import LocalUsageError, RemoteTransportError

__all__ = ["ChildProcess"]

_START = """\
import json, os, sys
sys.path[:], core = json.loads(sys.argv[1])
if core is not None:
    os.sched_setaffinity(0, {core})  # and so for every thread it starts
from refimpl.drivers.processes.workers import obey
obey(*map(int, sys.argv[2:]))
"""
_SIGNALS = {each.value: each.name for each in signal.Signals}


class ChildProcess:
    """The process of TaskManager `number`, on any core or on `core`.

    `hear` gets what its tasks have to say, and `on_gone` is called when it has ended, both on threads of this object:
    one hears answers, errors and the end of the process, the other one all else, so that a slow sink keeps no answer
    waiting. A third one sends requests, so that a process that takes none in keeps no caller waiting.
    """

    def __init__(
        self,
        number: int,
        hear: Callable[[ChildProcess, Outgoing], None],
        on_gone: Callable[[ChildProcess], None],
        core: int | None = None,
    ) -> None:
        self.number = number
        self.is_gone = False
        self.has_answered = False  # ever: it has come up
        self._hear = hear
        self._on_gone = on_gone
        self._requests = _Requests()
        self._closing: Future[Any] | None = None  # the answer to the last request
        self._has_obeyed = False  # that request
        self._why_killed = ""
        self._is_ending = False
        self.process, requests, answers, results = _spawn(core)
        self._threads = [
            threading.Thread(target=work, args=(pipe,), name=f"tm-{number} ({what})", daemon=True)
            for work, pipe, what in (
                (self._send_requests, requests, "requests"),
                (self._hear_answers, answers, "answers"),
                (self._hear_results, results, "results"),
            )
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # the system refuses a thread
            self.end(time.monotonic())
            raise

    @property
    def has_died(self) -> bool:
        """Whether it has ended before its time, and not because the whole run has."""
        return self.is_gone and not self._has_obeyed and not self._is_ending

    @property
    def is_lost(self) -> bool:
        """Whether it runs no more, or is being killed."""
        return self.is_gone or bool(self._why_killed)

    @property
    def is_unresponsive(self) -> bool:
        """Whether it still owes an answer that a caller has given up to wait for."""
        return self._requests.missed is not None and not self._requests.missed.done()

    def has_missed(self, answer: Future[Any]) -> bool:
        """Whether `answer` has not come, now that its caller waits no longer."""
        if answer.done():
            return False
        self._requests.missed = answer
        return True

    def no_answer(self) -> RemoteTransportError:
        """The error of a process that is there and does not answer."""
        return RemoteTransportError(
            f"TaskManager tm-{self.number}, process {self.process.pid}, does not answer; if it was stopped, "
            f"`kill -CONT {self.process.pid}` lets it go on, and what it was told meanwhile it does then"
        )

    def death(self) -> RemoteTransportError:
        """The error of a process that has ended before its time."""
        status = self.process.wait()
        how = self._why_killed or f"ended with status {status}"
        if status < 0 and not self._why_killed:
            how = f"was killed by {_SIGNALS.get(-status, f'signal {-status}')}"
        return RemoteTransportError(f"TaskManager tm-{self.number}, process {self.process.pid}, {how}")

    def ask(self, request: bytes) -> Future[Any]:
        """Send a request that was packed; its answer comes later. A process that is gone answers with its death."""
        answer = self._requests.add(request)
        if answer is None:
            answer = Future()
            answer.set_exception(self.death())
        return answer

    def kill(self, why: str) -> None:
        """End the process by force, also one that was stopped; `why` is for its `death`."""
        self._why_killed = why
        self.process.kill()

    def close(self) -> None:
        """Tell the process to end."""
        if self._closing is None:
            self._closing = self.ask(pack(Close()))

    def end(self, give_up_s: float) -> None:
        """Wait for the process to end; after `give_up_s` kill it. A sink that never returns is left behind."""
        try:
            self.process.wait(max(0.0, give_up_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._is_ending = True
            self.kill("did not end, and was ended")
            self.process.wait()
        self._requests.end()
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(max(1.0, give_up_s - time.monotonic()))

    # -- the threads ---------------------------------------------------------------------------------

    def _send_requests(self, pipe: Connection) -> None:
        with suppress(OSError), pipe:  # it has just gone; the thread that hears answers sees it
            for message in self._requests:
                pipe.send_bytes(message)

    def _hear_answers(self, pipe: Connection) -> None:
        with suppress(EOFError, OSError), pipe:
            while True:
                message = pipe.recv_bytes()
                try:
                    answer = unpack(message[TICKET_BYTES:])
                except LocalUsageError as error:
                    answer = Answer(error=SentError.of(error))
                ticket = int.from_bytes(message[:TICKET_BYTES], "big")
                if ticket == 0:
                    self._hear(self, answer)
                else:
                    self.has_answered = True
                    self._requests.answer(ticket, answer)
        death = self.death()
        self._has_obeyed = self._closing is not None and self._closing.done()
        self.is_gone = True
        unanswered = self._requests.close()
        for asked in unanswered:
            asked.set_exception(death)
        self._on_gone(self)

    def _hear_results(self, pipe: Connection) -> None:
        with suppress(EOFError, OSError), pipe:
            while True:
                self._hear(self, unpack(pipe.recv_bytes()))


class _Requests:
    """The requests to a process, each with a number, until it is answered. Any thread may add one.

    `missed` is an answer that a caller has given up to wait for.
    """

    def __init__(self) -> None:
        self.missed: Future[Any] | None = None
        self._lock = threading.Lock()
        self._asked: dict[int, Future[Any]] = {}
        self._num_asked = 0
        self._is_closed = False
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()  # `None` behind the last one

    def __iter__(self) -> Iterator[bytes]:
        """The requests as they are to be sent, until `end`."""
        while (message := self._to_send.get()) is not None:
            yield message

    def add(self, request: bytes) -> Future[Any] | None:
        """Send a request; `None` after `close`."""
        with self._lock:
            if self._is_closed:
                return None
            answer: Future[Any] = Future()
            self._num_asked += 1
            self._asked[self._num_asked] = answer
            self._to_send.put(self._num_asked.to_bytes(TICKET_BYTES, "big") + request)
        return answer

    def answer(self, ticket: int, answer: Answer) -> None:
        """The process has answered the request with this number."""
        with self._lock:
            asked = self._asked.pop(ticket)
        if answer.error is not None:
            asked.set_exception(answer.error.error())
        else:
            asked.set_result(answer.value)

    def close(self) -> list[Future[Any]]:
        """No request is answered any more; return those without an answer."""
        with self._lock:
            self._is_closed = True
            unanswered, self._asked = self._asked, {}
        return [*unanswered.values()]

    def end(self) -> None:
        """Send no more."""
        self._to_send.put(None)


def _spawn(core: int | None) -> tuple[subprocess.Popen[bytes], Connection, Connection, Connection]:
    """Start a process that obeys requests, on any core or on `core`; our ends of the pipes for its messages."""
    for_child, requests = os.pipe()
    answers, of_child = os.pipe()
    results, from_child = os.pipe()
    sends = Connection(requests, readable=False)
    hears = Connection(answers, writable=False), Connection(results, writable=False)
    inherited = (for_child, of_child, from_child)
    path = [str(each) for each in (Path(__file__).resolve().parents[3], *sys.path)]
    try:
        # A process group of its own: Ctrl-C in a terminal is for the parent alone.
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps([path, core]), *map(str, inherited)],
            stdin=subprocess.DEVNULL,
            pass_fds=inherited,
            process_group=0,
        )
    except BaseException:
        for pipe in (sends, *hears):
            pipe.close()
        raise
    finally:
        for each in inherited:
            os.close(each)
    return process, sends, *hears
