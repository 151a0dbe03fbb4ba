"""A learner's part in a running job, with ours behind it: one that raises or stalls is taken out, and nothing is lost.

A serializer writes into a builder of its own, as large as the room there is, and what it wrote goes into the real
one when it comes back. So a part that raises in the middle of a copy has written nothing, and ours goes on
from the same byte.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import linecache
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Self

from course.places import IN_A_BROWSER
from refimpl.errors import described
from refimpl.memory import Buffer, BufferBuilder, MemorySegment
from refimpl.records import RecordSerializer, SerializationResult, SpanningRecordSerializer

__all__ = ["Guard", "StalledError"]

_STALL_SECONDS = 2.0
_TICK_SECONDS = 0.1


class StalledError(BaseException):
    """The learner's part did not come back; a BaseException so that `except Exception` does not swallow it."""


class Guard:
    """Watches the calls of one part in one run, on whatever threads they come. Use as a context manager.

    `what_happened` is empty as long as the part is in; after that ours answers every call. What is given to `at_end`
    is undone when the run is over.
    """

    def __init__(self, part: Any, stall_seconds: float = _STALL_SECONDS) -> None:
        self.part = part
        self.what_happened: list[str] = []
        self.num_calls = 0
        self._stall_seconds = stall_seconds
        self._lock = threading.Lock()
        self._running: dict[int, float] = {}
        self.at_end = contextlib.ExitStack()
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="guard", daemon=True)

    def __enter__(self) -> Self:
        if not IN_A_BROWSER:  # there nobody can watch; a part that has passed its check has come back there
            self._watcher.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        if self._watcher.ident is not None:
            self._watcher.join()
        self.at_end.close()

    @property
    def is_out(self) -> bool:
        return bool(self.what_happened)

    def function(self, ours: Callable[..., Any]) -> Callable[..., Any]:
        """The learner's function, with ours for every call from the one on that fails."""

        def guarded(*given: Any) -> Any:
            if not self.is_out:
                with self.call():
                    return self.part(*given)
            return ours(*given)

        return guarded

    def serializer(self, make: Callable[[], Any] | None = None) -> RecordSerializer:
        """One of the learner's serializers, with one of ours behind it; `make` makes one that only uses their part."""
        return _GuardedSerializer(self, make or self.part)

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Around a call of the learner's code: what it raises is noted, and the part is out from then on."""
        thread = threading.get_ident()
        try:
            with self._lock:
                self.num_calls += 1
                self._running[thread] = self._clock(thread)
            try:
                yield
            finally:
                with self._lock:
                    self._running.pop(thread, None)
        except StalledError as error:
            self.take_out(f"it did not come back within {self._stall_seconds:g} seconds", error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a learner's part may raise anything, SystemExit too
            self.take_out(described(error), error)

    def take_out(self, why: str, error: BaseException | None = None) -> None:
        """Note why the part is out, with the learner's line where there is one; only the first reason counts."""
        with self._lock:
            if not self.what_happened:
                self.what_happened = [why, *_own_line(self.part, error)]

    def _watch(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            with self._lock:
                for thread, since in self._running.items():
                    with contextlib.suppress(OSError):  # the thread has ended
                        if self._clock(thread) - since > self._stall_seconds:
                            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                                ctypes.c_ulong(thread), ctypes.py_object(StalledError)
                            )

    @staticmethod
    def _clock(thread: int) -> float:
        """The thread's own processor time, as a busy machine is no fault of the part; elsewhere the wall's."""
        if hasattr(time, "pthread_getcpuclockid") and not IN_A_BROWSER:
            return time.clock_gettime(time.pthread_getcpuclockid(thread))
        return time.monotonic()


def _own_line(part: Any, error: BaseException | None) -> list[str]:
    """The deepest line of the part's own file that the error came through, as a list of one line or none."""
    try:
        files = {inspect.getfile(part if callable(part) and not isinstance(part, type) else _some_method(part))}
    except TypeError:
        return []
    for frame in reversed(traceback.extract_tb(error.__traceback__ if error is not None else None)):
        if frame.filename in files and frame.lineno is not None:
            text = linecache.getline(frame.filename, frame.lineno).strip() or "(the source of this line is gone)"
            return [f"line {frame.lineno} > {text}"]
    return []


def _some_method(part: type) -> Any:
    """A function of the class: of functions `inspect` can say where in a notebook they stand, of classes it cannot."""
    functions = [each for each in vars(part).values() if inspect.isfunction(each)]
    return functions[0] if functions else part


class _Nowhere:
    """Where the segment of a scratch builder goes when it is recycled."""

    def recycle_segment(self, segment: MemorySegment) -> None:
        """Keep nothing."""


def _scratch(room: int) -> BufferBuilder:
    """A builder of its own with exactly so much room."""
    builder = BufferBuilder(Buffer(MemorySegment.allocate(max(1, room)), _Nowhere()).retain())
    if not room:
        builder.append_and_commit(b"\0")
    return builder


class _GuardedSerializer:
    """A serializer as the engine knows it; see the module."""

    def __init__(self, guard: Guard, make: Callable[[], Any]) -> None:
        self._guard = guard
        self._ours = SpanningRecordSerializer()
        self._theirs: Any = None
        self._record = b""
        self._sent = 0
        self._is_theirs = False  # which of the two holds the record at hand
        with guard.call():
            self._theirs = make()

    def serialize_record(self, record: bytes) -> None:
        self._record, self._sent = bytes(record), 0
        self._is_theirs = self._theirs is not None and not self._guard.is_out
        if self._is_theirs:
            with self._guard.call():
                self._theirs.serialize_record(record)
                return
        self._take_over()

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        if self._is_theirs:
            scratch = _scratch(builder.room)
            result = None
            with self._guard.call():
                result = self._theirs.copy_to_buffer_builder(scratch)
            written = bytes(scratch.memory[: scratch.committed_bytes]) if builder.room else b""
            if isinstance(result, SerializationResult) and (written or not self._waits(result, builder)):
                self._sent += builder.append_and_commit(written)
                return result
            if result is not None or not self._guard.is_out:
                why = "PARTIAL without a byte" if isinstance(result, SerializationResult) else f"{result!r}"[:60]
                self._guard.take_out(f"it answered {why} when there was room for {builder.room} bytes")
            self._take_over()
        return self._ours.copy_to_buffer_builder(builder)

    def _waits(self, result: SerializationResult, builder: BufferBuilder) -> bool:
        """Whether an answer without a byte written would make the writer ask for buffers for ever."""
        return builder.room > 0 and not result.is_full_record

    def reset(self) -> None:
        self._sent = 0
        if self._is_theirs:
            with self._guard.call():
                self._theirs.reset()
                return
            self._take_over()
        else:
            self._ours.reset()

    def prune(self) -> None:
        if self._theirs is not None and not self._guard.is_out:
            with self._guard.call():
                self._theirs.prune()
        self._ours.prune()

    def _take_over(self) -> None:
        """Ours goes on with the record at hand, from the byte where theirs stopped."""
        self._is_theirs = False
        self._ours.prune()
        self._ours.serialize_record(self._record)
        if self._sent:
            self._ours.copy_to_buffer_builder(_scratch(self._sent))
