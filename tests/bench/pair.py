"""Two processes: this one produces, another one consumes, and what both have worked is known.

Rules of this file:
- The consumer says when it is ready; only then does the clock start, so that no start of a process is timed.
- CPU seconds are those of both, each counted by itself from that moment to its end.
- Whatever happens to one process, the other one ends.
- Both run where the system puts their threads, unless somebody asks for a core for each.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection, forkserver
from typing import Any

__all__ = ["CONTEXT", "ConsumerError", "across", "cores", "kept_on", "lacking_cores"]

# A child of a process that has threads and a JVM beside it must not inherit half of them: children come from a server
# that has loaded the modules and done nothing else.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.bench.peers", "tests.bench.remote"])

SECONDS_TO_END = 60.0


class ConsumerError(Exception):
    """The process at the other end failed; the text says how."""


def across(
    consume: Callable[[Callable[[object], None], Any, Any], None],
    produce: Callable[[Any, Any], Callable[[], None] | None],
    operator: Any,
    shared: Any = None,
    core: int | None = None,
) -> tuple[float, float]:
    """Let `consume(ready, shared, operator)` run in another process and `produce(address, shared)` in this one.

    `consume` calls `ready(address)` when it can be reached, and returns when all has arrived; `operator` is then here
    what it is there. The other process keeps to `core`, if one is named. `produce` may return what remains to be closed
    when nobody counts any more. Return the wall seconds from `ready` until all has arrived, and the CPU seconds of both
    processes.

    Raises:
        ConsumerError: the other process failed or ended.
    """
    here, there = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_consumer, args=(there, consume, shared, operator, core), daemon=True)
    process.start()
    there.close()
    try:
        address = _hear(here, process)
        cpu, wall = time.process_time(), time.perf_counter()
        close = produce(address, shared)
        cpu_there = _hear(here, process)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        operator.__dict__.update(_hear(here, process))
        if close is not None:
            close()
        here.send(None)
        process.join(SECONDS_TO_END)
        return wall, cpu + cpu_there
    finally:
        here.close()
        process.kill()
        process.join()
        process.close()


def _hear(here: connection.Connection, process: Any) -> Any:
    """What the other process says next."""
    try:
        is_well, said = here.recv()
    except EOFError:
        process.join(SECONDS_TO_END)
        raise ConsumerError(f"the consumer's process ended with status {process.exitcode}") from None
    if not is_well:
        raise ConsumerError(said)
    return said


def _consumer(there: connection.Connection, consume: Any, shared: Any, operator: Any, core: int | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asked; we end with it
    if core is not None:
        os.sched_setaffinity(0, {core})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    cpu_s = 0.0

    def ready(address: object) -> None:
        nonlocal cpu_s
        there.send((True, address))
        cpu_s = time.process_time()

    try:
        consume(ready, shared, operator)
        there.send((True, time.process_time() - cpu_s))
        there.send((True, operator.__dict__))
        there.recv()
    except BaseException as error:  # noqa: BLE001 - told to the one who asked
        there.send((False, f"{type(error).__name__}: {error}"))
    os._exit(0)  # servers of libraries may still have threads


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def cores() -> list[int]:
    """The cores this thread may choose from; none where the system does not let it choose."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def lacking_cores() -> str | None:
    """Why two processes cannot have a core each here, if they cannot."""
    return None if len(cores()) > 1 else "there are no two cores to choose from"


@contextmanager
def kept_on(core: int) -> Iterator[None]:
    """This thread and those it starts keep to one core; processes that are started meanwhile do not."""
    forkserver.ensure_running()  # they are its children, and have what it had when it was started
    before = cores()
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
