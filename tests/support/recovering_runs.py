"""Runs with a store on the drivers whose clock runs by itself, and stores at whose calls something happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from refimpl.cluster import FixedDelayRestart
from refimpl.drivers import AsyncRun, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.state import Fault, MemoryStore, SnapshotStore
from refimpl.task.source import IterableReader

__all__ = [
    "DRIVERS",
    "HeldBack",
    "Run",
    "StoreWithEvents",
    "crashing",
    "manifests_in",
    "of_checkpoints",
    "recovering",
    "went_on_from",
]

Run = ThreadedRun | AsyncRun

DRIVERS: Mapping[str, tuple[Callable[..., Run], int]] = {
    "threads-1": (ThreadedRun, 1),
    "threads-2": (ThreadedRun, 2),
    "loop-1": (AsyncRun, 1),
    "loop-2": (AsyncRun, 2),
}
"""By name: the driver, and how many TaskManagers."""


def recovering(driver: str, environment: StreamEnvironment, store: SnapshotStore, **options: Any) -> Run:
    """A run that begins again at once, nine times, unless it is told otherwise."""
    make, num_task_managers = DRIVERS[driver]
    given = {"restart": FixedDelayRestart(9, 0.0), **options}
    return make(environment, num_task_managers=num_task_managers, store=store, **given)


class HeldBack(IterableReader):
    """Reads all values but the last, and that one once `until` is set: so long the job is not at its end.

    Checkpoints go on meanwhile, however slow the machine is.
    """

    def __init__(self, values: Sequence[object], until: threading.Event) -> None:
        super().__init__(values)
        self._num_left = len(values)
        self._until = until

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        may_read = max_records if self._until.is_set() else min(max_records, self._num_left - 1)
        records = super().read(may_read) if may_read else []
        self._num_left -= len(records or ())
        return records


class StoreWithEvents:
    """A store that calls `events[n]` at the nth put of something of a checkpoint, from 1: before it, or after it.

    The call is made on the thread that calls the store, and gets the key.
    """

    def __init__(
        self,
        store: SnapshotStore,
        events: Mapping[int, Callable[[str], object]] | None = None,
        after: Callable[[str], object] = lambda _key: None,
    ) -> None:
        self.num_puts = 0
        self.get, self.size, self.list, self.delete = store.get, store.size, store.list, store.delete
        self.events = dict(events or {})
        self._after = after
        self._put = store.put

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        if "/chk-" in key:
            self.num_puts += 1
            self.events.get(self.num_puts, lambda _key: None)(key)
        self._put(key, parts, replace=replace)
        self._after(key)


def crashing(
    driver: str,
    environment: StreamEnvironment,
    rng: Random,
    num_crashes: int = 4,
    most_puts: int = 40,
    faults: Iterable[Fault] = (),
) -> tuple[Run, StoreWithEvents]:
    """A run that has ended, and was crashed at some puts that `rng` has chosen; the store must be left clean."""
    store = StoreWithEvents(MemoryStore(faults))
    run = recovering(driver, environment, store)
    # The first comes wherever the job is by then: there are as many puts even if the end is the only checkpoint.
    puts = [rng.randint(1, 3), *rng.sample(range(4, most_puts), num_crashes - 1)]
    store.events = dict.fromkeys(puts, lambda _key: run.crash())
    run.run()
    assert of_checkpoints(store) == []
    return run, store


def of_checkpoints(store: SnapshotStore) -> list[str]:
    return [key for key in store.list("") if "/chk-" in key]


def manifests_in(store: SnapshotStore) -> list[str]:
    return [key for key in store.list("") if key.endswith("/_metadata")]


def went_on_from(run: Run) -> int | None:
    """The checkpoint of the last deployment."""
    assert run.recovery is not None
    recovered = run.recovery.checkpoints.recovered
    return None if recovered is None or recovered.manifest is None else recovered.manifest.checkpoint_id
