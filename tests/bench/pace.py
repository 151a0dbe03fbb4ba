"""How fast a machine is at what the engine and its peers need in different measure.

A ratio does not depend on how fast a machine is, as long as it is that at everything. Machines of one name are not: one
calls Python's functions three times as fast as another and copies no faster. Then whoever works with Python's functions
loses against whoever copies, and whoever wakes threads loses where that is dear. So a run says these figures too.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

from refimpl.memory import allocate_pages

__all__ = ["pace", "pace_in_words"]

_ROUNDS = 7
_CALLS = 50_000
_WAKES = 500
_COPIES = 2_000
_COPY_BYTES = 32 * 1024


def pace() -> dict[str, float]:
    """What a call of an empty function, waking another thread and copying 32 KiB take: medians, some 0.2 s in all."""
    source, target = allocate_pages(_COPY_BYTES), allocate_pages(_COPY_BYTES)
    return {
        "call_ns": round(1e9 * median_of(call, _CALLS), 1),
        "wake_us": round(1e6 * median_of(wake, _WAKES), 2),
        "copy_us": round(1e6 * median_of(lambda count: copy(source, target, count), _COPIES), 2),
    }


def pace_in_words(found: dict[str, float]) -> str:
    return (
        f"an empty call of Python's takes {found['call_ns']:.0f} ns, waking a thread {found['wake_us']:.0f} us, "
        f"copying 32 KiB {found['copy_us']:.1f} us"
    )


def median_of(work: Callable[[int], None], count: int) -> float:
    """Seconds of one of so many."""
    taken = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        work(count)
        taken.append((time.perf_counter() - start) / count)
    return statistics.median(taken)


def nothing() -> None: ...


def call(count: int) -> None:
    for _ in range(count):
        nothing()


def copy(source: memoryview, target: memoryview, count: int) -> None:
    for _ in range(count):
        target[:] = source


def wake(count: int) -> None:
    """So many times one of two threads wakes the other, which sleeps."""
    here, there = threading.Lock(), threading.Lock()
    here.acquire()
    there.acquire()

    def answer() -> None:
        for _ in range(count // 2):
            there.acquire()
            here.release()

    thread = threading.Thread(target=answer)
    thread.start()
    for _ in range(count // 2):
        there.release()
        here.acquire()
    thread.join()
