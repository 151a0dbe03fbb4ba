"""A thread that makes the calls of one job's store, one after the other, so that no other thread waits for them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from refimpl.drivers.store_calls import StoreWork

__all__ = ["StoreThread"]


class StoreThread:
    """Makes calls; `called` hears, on this thread, what came of each: what it has raised, or `None`."""

    def __init__(self, name: str, called: Callable[[StoreWork, BaseException | None], None]) -> None:
        self._called = called
        self._calls: queue.SimpleQueue[StoreWork | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def make(self, call: StoreWork) -> None:
        """Let a call be made behind those before it."""
        self._calls.put(call)

    def end(self) -> None:
        """Make no call after those that wait. Returns at once."""
        self._calls.put(None)

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            error: BaseException | None
            try:
                error = call.call()
            except BaseException as bug:  # noqa: BLE001 - no word of a store's: told to who has asked
                error = bug
            self._called(call, error)
