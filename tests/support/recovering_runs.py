"""Runs with a store on the drivers whose clock runs by itself, and stores at whose calls something happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from random import Random
from typing import Any

from refimpl.cluster import FixedDelayRestart
from refimpl.drivers import AsyncRun, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.state import Fault, MemoryStore, SnapshotStore
from refimpl.task import IterableReader, ReaderFactory

__all__ = [
    "DRIVERS",
    "Run",
    "StoreWithEvents",
    "crashing",
    "held_back_once",
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
    """Reads all values but the last, which never comes: the job does not end by itself, however slow the machine is."""

    def __init__(self, values: Sequence[object]) -> None:
        super().__init__(values[:-1])

    def read(self, max_records: int) -> Sequence[StreamRecord]:
        return super().read(max_records) or []


def held_back_once(values: Sequence[object]) -> ReaderFactory:
    """Readers of these values: the first attempt has to be crashed before its last value, those after it read all."""
    kinds = chain([HeldBack], repeat(IterableReader))
    return lambda *_: next(kinds)(values)


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
