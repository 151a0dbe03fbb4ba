"""State at the cut is state at the start, also for the next run: with other subtasks, of another leader, or at the end.

Each mutant loses, doubles or moves state only where a run with as many subtasks does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.laws import StateLaw
from refimpl.records import StreamRecord
from refimpl.records.types import LONG
from refimpl.state import KeyGroupedBytes, MemoryStore, assignment
from refimpl.state.assignment import ElementRange
from refimpl.state.keyed_state import KeyedStateBackend
from refimpl.state.manifest import CheckpointKind, OperatorRecord
from refimpl.state.sections import SectionKind
from refimpl.state.subtask_state import OperatorStates
from refimpl.task import BroadcastProcessFunction, ProcessContext
from refimpl.task.operators import Operator, OperatorContext, Output
from tests.test_exactly_once import RULES, Buckets, environment, numbers, simulation

Patch = pytest.MonkeyPatch
Dealt = list[list[ElementRange]]

NUM_RECORDS = 120


class Lists(Operator):
    """Keeps each value in a list that is dealt out, and the greatest in one that all get."""

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.states = OperatorStates(KeyedStateBackend(), {})
        self.values = self.states.by_no_key.list_state("values", LONG)
        self.greatest = self.states.by_no_key.union_list_state("greatest", LONG)

    def process(self, record: StreamRecord) -> None:
        self.values.add(record.value[1])
        self.greatest.update([max(record.value[1], *self.greatest.get(), 0)])
        self.output.collect(record)


class Ruled(BroadcastProcessFunction):
    """Keeps some rules, and what was last said of each."""

    def process_element(self, value: Any, ctx: ProcessContext) -> Iterable[Any]:
        return [value]

    def process_broadcast_element(self, value: Any, ctx: ProcessContext) -> Iterable[Any]:
        ctx.broadcast_state(RULES).put(value % 7, value)
        return []


def ignored(_value: Any) -> None:
    """Where a result goes that no test looks at: only the law does."""


def job(parallelism: int) -> StreamEnvironment:
    """State of every kind: by key and timers, for all subtasks, dealt out, for each."""
    made = environment()
    values = made.from_collection(numbers(NUM_RECORDS, 9), name="numbers").set_parallelism(1)
    timed = values.assign_timestamps(lambda value: value[1], 3, every=4).set_parallelism(1)
    listed = timed.rebalance().transform("lists", Lists).set_parallelism(parallelism)
    by_key = listed.key_by(lambda value: value[0])
    by_key.process(Buckets(), name="buckets").set_parallelism(parallelism).sink(ignored, "counted")
    rules = made.from_collection(range(NUM_RECORDS), name="rules").set_parallelism(1).broadcast(RULES)
    listed.connect(rules).process(Ruled(), name="ruled").set_parallelism(parallelism).sink(ignored, "told")
    return made


def saved(parallelism: int, store: MemoryStore, name: str, savepoint: str | None = None) -> None:
    """Run the job from a savepoint, or from the beginning, make another on the way, and stop there."""
    with simulation(job(parallelism), store, savepoint=savepoint, num_task_managers=2) as run:
        run.run(150)
        assert run.recovery is not None
        run.recovery.savepoint(name, run.time_ms)
        while f"job/sp-{name}/_metadata" not in store.files:
            assert run.step() is not None, "the job has ended without the savepoint"


def restored(parallelism: int, store: MemoryStore, savepoint: str | None = None) -> Simulation:
    """The job again: what it begins with is compared when it is made."""
    run = simulation(job(parallelism), store, savepoint=savepoint, num_task_managers=2)
    assert run.recovery is not None
    assert run.recovery.checkpoints.recovered is not None
    assert run.recovery.checkpoints.recovered.manifest is not None
    return run


def kinds_in(run: Simulation) -> set[str]:
    assert run.recovery is not None
    assert run.recovery.checkpoints.recovered is not None
    assert run.recovery.checkpoints.recovered.manifest is not None
    operators = run.recovery.checkpoints.recovered.manifest.operators
    return {state.kind for operator in operators for state in operator.states}


@pytest.mark.parametrize("parallelisms", [(2, 3, 2), (3, 1, 4), (2, 2, 2)], ids=str)
def test_it_holds_from_run_to_run(parallelisms: tuple[int, ...]) -> None:
    first, second, third = parallelisms
    store = MemoryStore()
    saved(first, store, "one")
    saved(second, store, "two", "one")
    run = restored(third, store, "two")
    assert kinds_in(run) == {"keyed", "timers", "split", "union", "broadcast", "source_position"}
    run.run()


def test_it_holds_for_the_next_leader_and_for_the_end_of_the_input(monkeypatch: Patch) -> None:
    """The second run goes on from what tasks had at their end: nobody has told them that it counts."""
    checked: list[CheckpointKind] = []
    check_all = StateLaw._check_all

    def looked(self: StateLaw, manifest: Any, tasks: Any) -> None:
        checked.append(manifest.kind)
        check_all(self, manifest, tasks)

    monkeypatch.setattr(StateLaw, "_check_all", looked)
    store = MemoryStore()
    with simulation(job(2), store) as run:
        while not any(b'"final"' in raw for key, raw in store.files.items() if key.endswith("/_metadata")):
            assert run.step() is not None, "the job has ended without a FINAL checkpoint"
    restored(2, store).run()
    assert checked == [CheckpointKind.FINAL]


# -- broken on purpose -----------------------------------------------------------------------------


def a_key_group_is_lost_where_two_ranges_meet(patch: Patch) -> None:
    within = KeyGroupedBytes.within

    def mutant(self: KeyGroupedBytes, key_groups: range) -> KeyGroupedBytes:
        kept = within(self, key_groups)
        if kept.groups == self.groups:
            return kept
        return replace(kept, groups=tuple(b"" for _ in kept.groups))

    patch.setattr(KeyGroupedBytes, "within", mutant)


def dealt(change: Callable[[Dealt], object], patch: Patch) -> None:
    plain = assignment._dealt

    def mutant(operator: OperatorRecord, parallelism: int) -> Dealt:
        shares = plain(operator, parallelism)
        change(shares)
        return shares

    patch.setattr(assignment, "_dealt", mutant)


def of_kind(kind: SectionKind, share: list[ElementRange]) -> list[ElementRange]:
    return [each for each in share if each.kind is kind]


def an_element_is_lost(patch: Patch) -> None:
    def change(shares: Dealt) -> None:
        for share in shares:
            for first in of_kind(SectionKind.SPLIT, share)[:1]:
                share[share.index(first)] = replace(first, elements=first.elements[1:])

    dealt(change, patch)


def an_element_is_given_twice(patch: Patch) -> None:
    dealt(lambda shares: shares[0].extend(of_kind(SectionKind.SPLIT, shares[-1])), patch)


def a_union_is_dealt_out(patch: Patch) -> None:
    def change(shares: Dealt) -> None:
        for index, share in enumerate(shares):
            for each in of_kind(SectionKind.UNION, share)[index % 2 :: 2]:
                share.remove(each)

    dealt(change, patch)


def who_is_new_has_no_rules(patch: Patch) -> None:
    def change(shares: Dealt) -> None:
        for each in of_kind(SectionKind.BROADCAST, shares[-1]):
            shares[-1].remove(each)

    dealt(change, patch)


MUTANTS: dict[Callable[[Patch], None], str] = {
    a_key_group_is_lost_where_two_ranges_meet: "keyed state",
    an_element_is_lost: "split state 'values'",
    an_element_is_given_twice: "split state 'values'",
    a_union_is_dealt_out: "union state 'greatest'",
    who_is_new_has_no_rules: "broadcast state 'rules'",
}


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_a_mutant_breaks_it_at_another_parallelism_only(mutate: Callable[[Patch], None], monkeypatch: Patch) -> None:
    store = MemoryStore()
    saved(2, store, "one")
    mutate(monkeypatch)
    restored(2, store, "one")
    with pytest.raises(AssertionError, match=MUTANTS[mutate]):
        restored(3, store, "one")
    monkeypatch.setattr(StateLaw, "_check", ignored_all)
    restored(3, store, "one")


def ignored_all(*_given: Any) -> None:
    """The law is taken away."""


def test_nothing_is_said_of_cuts_that_were_not_seen() -> None:
    store = MemoryStore()
    saved(2, store, "one")
    copy = MemoryStore()
    copy.files.update(store.files)
    restored(3, copy, "one").run()


def test_a_store_that_has_no_hash_is_a_store_too() -> None:
    class Unhashable(MemoryStore):
        __hash__ = None  # type: ignore[assignment]

    store = Unhashable()
    saved(2, store, "one")
    restored(3, store, "one")
