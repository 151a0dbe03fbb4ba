"""Leaders by lease: epochs grow, a silent one is followed, and never do two lead at once, however they are paused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from refimpl.cluster.fencing import FencingToken
from refimpl.drivers.cluster.high_availability.election import Granted, LeaderElection, Revoked
from refimpl.drivers.cluster.high_availability.leases import Lease, LeaseFolder
from refimpl.errors import CorruptFileError, StoreError
from refimpl.state.store import Fault, FaultKind, MemoryStore

TIMEOUT_S = 3.0
NUM_SEEDS = 50


class World:
    """Candidates for one leadership, each with a clock that began at some time of its own."""

    def __init__(self, number: int, store: MemoryStore | None = None) -> None:
        self.now_s = 0.0
        self.store = store or MemoryStore()
        self.leases = LeaseFolder(self.store)
        self.candidates = [
            LeaderElection(self.leases, "rm", f"rm@h:{each + 1}", 3_000, self.clock(1000.0 * each))
            for each in range(number)
        ]

    def clock(self, began_s: float) -> Callable[[], float]:
        return lambda: began_s + self.now_s


def epochs(events: Iterable[Granted | Revoked]) -> list[tuple[str, int]]:
    return [(type(each).__name__, each.token.epoch) for each in events]


def test_the_first_who_asks_leads_and_the_others_wait() -> None:
    world = World(2)
    one, other = world.candidates
    assert epochs(one.step()) == [("Granted", 1)]
    assert epochs(other.step()) == []
    assert one.leads
    assert not other.leads


def test_who_renews_in_time_leads_on() -> None:
    world = World(2)
    one, other = world.candidates
    one.step()
    for _ in range(100):
        assert epochs(other.step()) == []
        world.now_s += TIMEOUT_S / 3
        assert epochs(one.step()) == []
        assert one.leads


def test_who_is_silent_is_followed_after_its_time_and_not_before() -> None:
    world = World(2)
    one, other = world.candidates
    one.step()
    other.step()
    world.now_s += TIMEOUT_S - 0.001
    assert other.step() == []
    world.now_s += 0.001
    assert epochs(other.step()) == [("Granted", 2)]


def test_who_was_paused_finds_that_it_leads_no_longer_before_it_acts() -> None:
    world = World(2)
    one, _other = world.candidates
    one.step()
    world.now_s += TIMEOUT_S
    assert not one.leads  # though nobody has claimed
    assert epochs(one.step()) == [("Revoked", 1)]
    assert epochs(one.step()) == []  # its own lease has to be silent for as long as another's
    world.now_s += TIMEOUT_S
    assert epochs(one.step()) == [("Granted", 2)]


def test_who_gives_up_is_followed_at_once() -> None:
    world = World(2)
    one, other = world.candidates
    (granted,) = one.step()
    other.step()
    assert one.release() == [Revoked(granted.token)]
    assert one.release() == []
    assert epochs(other.step()) == [("Granted", 2)]


def test_a_renewal_that_fails_is_tried_again_until_the_time_is_over() -> None:
    faults = [Fault(FaultKind.FAIL, within="leases", number=2), Fault(FaultKind.FAIL, within="leases", number=3)]
    world = World(1, MemoryStore(faults))
    (one,) = world.candidates
    one.step()
    for _ in range(2):
        world.now_s = one.next_deadline
        assert one.step() == []
        assert one.leads
    world.now_s = one.next_deadline
    assert world.now_s < TIMEOUT_S
    assert one.step() == []
    world.now_s = TIMEOUT_S
    assert one.leads


class Slow(MemoryStore):
    """A store with something that happens after the next call of a kind, before its caller hears of it."""

    def __init__(self) -> None:
        super().__init__()
        self.after: dict[str, Callable[[], object]] = {}

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        data = super().get(key, start, length)
        self.after.pop("get", lambda: None)()
        return data

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        super().put(key, parts, replace=replace)
        self.after.pop("put", lambda: None)()


@pytest.fixture
def slow() -> World:
    return World(2, Slow())


def after(world: World, call: str, what: Callable[[], object]) -> None:
    assert isinstance(world.store, Slow)
    world.store.after[call] = what


def pass_by(world: World, seconds: float) -> None:
    world.now_s += seconds


def test_a_renewal_that_came_too_late_does_not_count(slow: World) -> None:
    one, _other = slow.candidates
    one.step()
    slow.now_s = 1.0
    after(slow, "put", lambda: pass_by(slow, 2.0))
    assert epochs(one.step()) == [("Revoked", 1)]


@pytest.mark.parametrize("is_claim", [True, False])
def test_a_lease_lasts_from_before_it_was_written(slow: World, is_claim: bool) -> None:
    one, _other = slow.candidates
    if not is_claim:
        one.step()
        slow.now_s = 1.0
    after(slow, "put", lambda: pass_by(slow, 1.5))
    one.step()
    assert one.leads
    slow.now_s += TIMEOUT_S - 1.5
    assert not one.leads


def test_who_looked_before_a_renewal_does_not_claim_after_it(slow: World) -> None:
    one, other = slow.candidates
    one.step()
    other.step()

    def pause() -> None:
        slow.now_s = 2.0
        one.step()
        slow.now_s = 3.0

    slow.now_s = 1.9
    after(slow, "get", pause)
    assert other.step() == []
    assert one.leads


def test_who_looks_for_long_has_not_seen_a_lease_for_as_long(slow: World) -> None:
    one, other = slow.candidates
    one.step()

    slow.now_s = 0.5
    after(slow, "get", lambda: pass_by(slow, 2.5))
    assert other.step() == []
    slow.now_s = 0.5 + TIMEOUT_S
    assert other.step() == []
    slow.now_s = 3.0 + TIMEOUT_S
    assert epochs(other.step()) == [("Granted", 2)]


def test_a_lease_that_was_changed_is_named_and_nobody_claims_until_its_leader_heals_it() -> None:
    world = World(2)
    one, other = world.candidates
    one.step()
    other.step()
    (key,) = world.store.files
    world.store.files[key] = world.store.files[key].replace(b'"beat":0', b'"beat":9')
    for _ in range(10):
        with pytest.raises(CorruptFileError, match=f"{key}: its content does not have its hash"):
            other.step()
        world.now_s += TIMEOUT_S / 60
    world.now_s = one.next_deadline
    assert epochs(one.step()) == []
    assert one.leads
    assert other.step() == []


def test_a_changed_lease_of_nobody_waits_for_somebody_to_say_so() -> None:
    world = World(1)
    (one,) = world.candidates
    one.step()
    (key,) = world.store.files
    world.store.files[key] = b""
    world.now_s += 100 * TIMEOUT_S
    assert epochs(one.step()) == [("Revoked", 1)]
    with pytest.raises(CorruptFileError):
        one.step()
    assert [*world.store.files] == [key]  # nothing is deleted
    world.leases.overrule("rm")
    assert epochs(one.step()) == [("Granted", 3)]


def test_a_file_of_another_leadership_is_no_lease() -> None:
    store = MemoryStore()
    leases = LeaseFolder(store)
    leases.claim(Lease("rm", FencingToken(1), "rm@h:1", 1_000))
    (key,) = store.files
    store.files[key[:-1] + "2"] = store.files[key]
    with pytest.raises(CorruptFileError, match="it is of epoch 1 of rm"):
        leases.newest("rm")


def test_names_are_kept_apart_and_only_two_leaderships_of_each_are_kept() -> None:
    store = MemoryStore()
    leases = LeaseFolder(store)
    for name in ("rm", "rm/..", "..", "job/1", "Ü b"):
        for epoch in range(1, 6):
            assert leases.claim(Lease(name, FencingToken(epoch), f"{name}@h:{epoch}", 1_000))
        assert (newest := leases.newest(name)) is not None
        assert newest.address == f"{name}@h:5"
    assert len(store.files) == 10
    assert leases.names() == sorted(["rm", "rm/..", "..", "job/1", "Ü b"])
    assert not leases.claim(Lease("rm", FencingToken(5), "rm@h:6", 1_000))
    assert not leases.claim(Lease("rm", FencingToken(2), "rm@h:6", 1_000))  # which was deleted
    leases.forget("rm")
    assert leases.newest("rm") is None


class Interleaved:
    """Three candidates of one seed, and the store between them: in its every call time may pass, and others may act."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.now_s = 0.0
        self.granted: list[int] = []
        self._inner = MemoryStore()
        leases = LeaseFolder(self)
        self.candidates = [LeaderElection(leases, "rm", f"rm@h:{each}", 3_000, self._clock(each)) for each in (1, 2, 3)]
        self._idle = set(self.candidates)

    def act(self, candidate: LeaderElection) -> None:
        """One step of one candidate, with all that falls into it."""
        self._idle.discard(candidate)
        with suppress(StoreError):
            self.granted += [each.token.epoch for each in candidate.step() if isinstance(each, Granted)]
        self._idle.add(candidate)
        self.check()

    def check(self) -> None:
        assert sum(each.leads for each in self.candidates) <= 1, f"two lead, seed {self.seed}"

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        self._between()
        self._may_fail(key, "the disk fails")
        self._inner.put(key, parts, replace=replace)
        self._between()
        self._may_fail(key, "the answer is lost")

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        self._between()
        data = self._inner.get(key, start, length)
        self._between()
        return data

    def size(self, key: str) -> int:
        return self._inner.size(key)

    def list(self, prefix: str) -> Sequence[str]:
        self._between()
        keys = self._inner.list(prefix)
        self._between()
        return keys

    def delete(self, keys: Iterable[str]) -> None:
        self._between()
        self._inner.delete(keys)

    def _between(self) -> None:
        if self.rng.random() < 0.3:
            self.now_s += self.rng.choice([0.1, 0.5, 1.0, 2.9, 3.0, 3.1])
            self.check()
        if self._idle and self.rng.random() < 0.4:
            self.act(self.rng.choice(sorted(self._idle, key=self.candidates.index)))

    def _may_fail(self, key: str, why: str) -> None:
        if self.rng.random() < 0.03:
            raise StoreError(key, why)

    def _clock(self, number: int) -> Callable[[], float]:
        return lambda: number * 77.0 + self.now_s


def test_never_two_lead_however_their_steps_fall_into_each_other(is_whole: bool) -> None:
    num_granted, num_seeds = 0, 20 * NUM_SEEDS if is_whole else NUM_SEEDS
    for seed in range(num_seeds):
        world = Interleaved(seed)
        for _ in range(60):
            world.act(world.rng.choice(world.candidates))
            world.now_s += world.rng.choice([0.0, 0.3, 1.0, 3.0])
        assert world.granted == sorted(set(world.granted)), f"epochs do not grow, seed {seed}: {world.granted}"
        num_granted += len(world.granted)
    assert num_granted > 4 * num_seeds


def test_who_leads_no_longer_publishes_nothing() -> None:
    world = World(2)
    one, other = world.candidates
    (granted,) = one.step()
    other.step()
    world.now_s += TIMEOUT_S
    other.step()
    assert not one.publish(granted.token)
    assert not other.publish(granted.token)
    late = world.leases.newest("rm")
    assert late is not None
    world.leases.renew(replace(late, token=granted.token, address="rm@h:1", is_published=True))
    newest = world.leases.newest("rm")
    assert newest is not None
    assert newest.address == "rm@h:2"
