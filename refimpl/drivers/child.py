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
from multiprocessing.connection import Connection
from pathlib import Path

import cloudpickle

from refimpl.drivers.worker import Answer, Command, Deploy, Ended, Results
from refimpl.errors import LocalUsageError, RemoteTransportError

__all__ = ["Child"]

_START = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from refimpl.drivers.worker import obey
obey(*map(int, sys.argv[2:]))
"""


class Child:
    """The process of TaskManager `number`.

    `deliver` gets its results and `on_change` is called when its tasks or it have ended, both on a
    thread of this object. `answers` holds what it answered, one for each command.
    """

    def __init__(
        self,
        number: int,
        deliver: Callable[[list[tuple[int, int, object]]], None],
        on_change: Callable[[Child], None],
    ) -> None:
        self.number = number
        self.answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self.ended: Ended | None = None
        self.is_gone = False
        self._deliver = deliver
        self._on_change = on_change
        self._telling = threading.Lock()
        self._was_killed = False
        for_child, commands = os.pipe()
        messages, from_child = os.pipe()
        self._commands = Connection(commands, readable=False)
        self._messages = Connection(messages, writable=False)
        path = json.dumps([str(Path(__file__).resolve().parents[2]), *sys.path])
        try:
            # A process group of its own: Ctrl-C in a terminal is for the parent alone.
            self.process = subprocess.Popen(
                [sys.executable, "-c", _START, path, str(for_child), str(from_child)],
                stdin=subprocess.DEVNULL, pass_fds=(for_child, from_child), process_group=0,
            )  # fmt: skip
        finally:
            os.close(for_child)
            os.close(from_child)
        threading.Thread(target=self._listen, name=f"tm-{number}", daemon=True).start()

    @property
    def has_died(self) -> bool:
        """Whether it ended, and neither by itself nor by us."""
        return self.process.poll() not in {None, 0} and not self._was_killed

    def death(self) -> RemoteTransportError:
        """What to say of a process that has ended before its time."""
        status = self.process.wait()
        how = f"ended with status {status}"
        if status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        return RemoteTransportError(f"TaskManager tm-{self.number}, process {self.process.pid}, {how}")

    def tell(self, command: Deploy | Command) -> None:
        """Send a command; a process that is gone answers with its death.

        Raises:
            LocalUsageError: something in the command belongs to this process, such as an open file.
        """
        try:
            data = cloudpickle.dumps(command)
        except Exception as error:
            raise LocalUsageError(f"this cannot be sent to another process: {error}") from error
        with self._telling:
            try:
                self._commands.send_bytes(data)
            except OSError:
                self.answers.put(Answer(error=self.death()))

    def end(self, give_up_s: float) -> None:
        """Wait for the process to end; after `give_up_s` kill it."""
        try:
            self.process.wait(max(0.0, give_up_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._was_killed = True
            self.process.kill()
            self.process.wait()

    def _listen(self) -> None:
        try:
            while True:
                match self._messages.recv():
                    case Answer() as answer:
                        self.answers.put(answer)
                    case Results(values):
                        self._deliver(values)
                    case Ended() as ended:
                        self.ended = ended
                        self._on_change(self)
        except (EOFError, OSError):
            pass
        self.is_gone = True
        self.answers.put(Answer(error=self.death()))
        self._on_change(self)
