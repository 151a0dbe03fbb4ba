"""A pump: looks at a running job a few times a second and sends what changed.

Rules of this file:
- Frames leave from one thread only. Sending messages from a thread is safe; sharing a widget's
  traits with one is not.
- The newest moment wins. A frame like the last one is skipped, and time lost is never caught up.
- Whoever asks for something (pause, resume, step) leaves a note; the pump does it at its next turn.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from refimpl.errors import USER_CODE_RAISES, LocalUsageError, SluiceError, described
from refimpl.job import JobSnapshot
from widgets.text import silence_of

__all__ = [
    "MAX_FRAMES_PER_SECOND",
    "Observable",
    "Sampler",
    "check_frames_per_second",
    "error_of",
    "refusal_of",
]

MAX_FRAMES_PER_SECOND = 30.0
_HIDDEN_LOOK_S = 0.5
_COMING_HOME_S = 1.0
_ENDED = "the job has ended: there is nothing left to change"


class Observable(Protocol):
    """A job that runs by itself."""

    @property
    def is_done(self) -> bool: ...

    def snapshot(self) -> JobSnapshot: ...


def error_of(source: object) -> str:
    """Why a run failed, or "" if it did not, or does not say."""
    error = getattr(source, "error", None)
    return "" if error is None else f"{type(error).__name__}: {error}"


def refusal_of(error: BaseException) -> str:
    """Why what was asked for cannot be, in words."""
    return str(error) if isinstance(error, SluiceError) else described(error)


def check_frames_per_second(rate: object) -> None:
    """Refuse what no pump can keep up.

    Raises:
        LocalUsageError: it is no number, or not one above 0 and at most `MAX_FRAMES_PER_SECOND`.
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= MAX_FRAMES_PER_SECOND:
        raise LocalUsageError(f"frames_per_second={rate!r} cannot work: more than 0, at most {MAX_FRAMES_PER_SECOND:g}")


class Sampler:
    """The one thread that carries a job's moments to the browser.

    `send` gets `{"type": "frame", "seq": …, "paused": …, "done": …, "error": …, "frame": …}`; `seq` counts
    from 1, `error` is why the job failed, or "". It stops by itself a second after the job is done, so the
    last frame shows every buffer at home; whoever looks later still gets that one. While nobody watches it
    only looks, twice a second, whether the job has ended. What it cannot show, or not as it is now, it says once,
    `{"type": "refused", "words": why}`, and looks again; when all is well once more, `words` is "".
    `num_sent`, `num_skipped` count frames.
    """

    def __init__(
        self,
        source: Observable,
        pack: Callable[[JobSnapshot], list[Any]],
        send: Callable[[dict[str, Any]], None],
        frames_per_second: float = MAX_FRAMES_PER_SECOND,
    ) -> None:
        check_frames_per_second(frames_per_second)
        self.num_sent = 0
        self.num_skipped = 0
        self._source = source
        self._pack = pack
        self._send = send
        self._period_s = 1 / frames_per_second
        self._notes: deque[Callable[[], object]] = deque()
        self._is_stopped = threading.Event()
        self._is_watched = threading.Event()
        self._last: object = None
        self._said = ""  # why what is shown is not as it should be
        self._is_over = False
        self._ending = threading.Lock()  # held to send the last frame, or to find that there is no pump to send it
        self._thread = threading.Thread(target=self._run, name="sluice-sampler", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start looking; does nothing the second time."""
        if self._thread.ident is None and not self._is_stopped.is_set():
            self._thread.start()

    def watch(self, is_watched: bool) -> None:
        """Say whether anybody sees the frames. Whoever begins to look gets one at once."""
        if not is_watched:
            self._is_watched.clear()
            return
        with self._ending:
            self._last, self._said = None, ""
            self._is_watched.set()
            if self._is_over:
                self._look(is_done=True)

    def submit(self, note: Callable[[], object]) -> None:
        """Have the pump do `note` at its next turn; if that fails, `{"type": "refused", "words": why}` is sent.

        So it is when the job has ended, and nobody is there to do it.
        """
        with self._ending:
            if not self._is_over:
                self._notes.append(note)
                return
        self._send({"type": "refused", "words": _ENDED})

    def stop(self, timeout_s: float = 2.0) -> bool:
        """Stop and wait; true if the thread has ended."""
        self._is_stopped.set()
        self._is_watched.set()  # wakes it if it sleeps unwatched
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._is_stopped.is_set():
            while self._notes:
                self._do(self._notes.popleft())
            is_done = self._source.is_done  # before the snapshot, so that "done" comes with the last state
            if is_done:
                self._end()
                return
            if self._is_watched.is_set():
                self._look(is_done=False)
            if not self._is_watched.is_set():
                self._is_watched.wait(_HIDDEN_LOOK_S)
                due_s = time.monotonic()
                continue
            due_s = max(due_s + self._period_s, time.monotonic())
            self._is_stopped.wait(due_s - time.monotonic())

    def _do(self, note: Callable[[], object]) -> None:
        try:
            note()
        except USER_CODE_RAISES as error:  # the job runs on, and so do the pictures of it
            self._send({"type": "refused", "words": refusal_of(error)})

    def _end(self) -> None:
        """Send the last frame; and another if a buffer that was on its way when the last task ended has come home."""
        end_s = time.monotonic() + _COMING_HOME_S
        while True:
            with self._ending:
                if self._is_watched.is_set():
                    self._look(is_done=True)
                self._is_over = True
                while self._notes:  # left since the last turn
                    self._notes.popleft()
                    self._send({"type": "refused", "words": _ENDED})
            if time.monotonic() >= end_s or self._is_stopped.wait(self._period_s):
                return

    def _look(self, *, is_done: bool) -> None:
        try:
            snapshot = self._source.snapshot()
            frame, trouble = self._pack(snapshot), silence_of(snapshot)
        except USER_CODE_RAISES as error:  # the next look may find it mended, and a pump that is gone never
            self._say(refusal_of(error))
            return
        self._say(trouble)
        is_paused = bool(getattr(self._source, "is_paused", False))
        # The time in a frame passes also when nothing happens.
        facts = (frame[:1] + frame[2:], is_paused, is_done)
        if facts == self._last:
            self.num_skipped += 1
            return
        self._last = facts
        self.num_sent += 1
        failure = error_of(self._source) if is_done else ""
        message = {"seq": self.num_sent, "paused": is_paused, "done": is_done, "error": failure, "frame": frame}
        self._send({"type": "frame", **message})

    def _say(self, words: str) -> None:
        if words != self._said:
            self._said = words
            self._send({"type": "refused", "words": words})
