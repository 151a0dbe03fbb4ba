"""Peers in other processes deliver what they are given, and no process stays behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psutil
import pytest

from tests.bench import remote
from tests.bench.contenders import Adding, checksum, expected
from tests.bench.measure import Contender
from tests.bench.pair import ConsumerError, across, cores, kept_on, lacking_cores
from tests.bench.peers import PEERS

EVERY = [pytest.param(peer, id=name.replace(" ", "-")) for name, peer in PEERS.items()]


def here(peer: Contender) -> Contender:
    if reason := peer.lacking():
        pytest.skip(reason)
    return peer


@pytest.mark.slow
@pytest.mark.parametrize("peer", EVERY)
@pytest.mark.parametrize("num_records", [1, 4_097])
def test_a_peer_delivers_every_record(peer: Contender, num_records: int) -> None:
    num_moved, arrived = here(peer).deliver(num_records)
    assert num_moved >= num_records
    if not peer.is_ordered:
        arrived.sort()
    wanted = expected(num_moved)
    assert arrived == (wanted if peer.is_ordered else sorted(wanted))


@pytest.mark.slow
@pytest.mark.parametrize("peer", EVERY)
def test_a_turn_of_a_peer_is_checked_by_the_sum_of_what_arrived(peer: Contender) -> None:
    turn = here(peer).run(2_000)
    assert turn.checksum == checksum(turn.num_records)
    assert turn.wall_s > 0
    assert turn.cpu_s > 0


def fail(_ready: Callable[[object], None], _shared: object, _operator: Any) -> None:
    raise OSError("no room")


def vanish(ready: Callable[[object], None], _shared: object, _operator: Any) -> None:
    ready(None)
    os._exit(7)


def burn(ready: Callable[[object], None], _shared: object, operator: Any) -> None:
    ready(None)
    for number in range(300_000):
        operator.row((0, 0, number))


def nothing(_address: object, _shared: object) -> None: ...


@pytest.mark.slow
@pytest.mark.parametrize(("consume", "said"), [(fail, "OSError: no room"), (vanish, "ended with status 7")])
def test_a_consumer_that_fails_is_an_error_that_says_how(consume: Any, said: str) -> None:
    with pytest.raises(ConsumerError, match=said):
        across(consume, nothing, Adding())


@pytest.mark.slow
def test_the_work_of_the_other_process_is_counted_and_its_operator_comes_back() -> None:
    operator = Adding()
    wall_s, cpu_s = across(burn, nothing, operator)
    assert operator.total == sum(range(300_000))
    assert 0 < cpu_s <= 2 * wall_s


@pytest.mark.slow
def test_a_producer_that_fails_leaves_no_process_behind() -> None:
    def produce(_address: object, _shared: object) -> None:
        raise ValueError("mine")

    across(burn, nothing, Adding())  # starts the server that starts the others
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with pytest.raises(ValueError, match="mine"):
        across(burn, produce, Adding())
    after = {child.pid for child in psutil.Process().children(recursive=True) if child.status() != "zombie"}
    assert after <= before


def say_cores(ready: Callable[[object], None], _shared: object, operator: Any) -> None:
    ready(None)
    operator.cores = cores()


@pytest.mark.slow
@pytest.mark.skipif(lacking_cores() is not None, reason=str(lacking_cores()))
@pytest.mark.parametrize("is_asked", [False, True])
def test_who_is_kept_on_a_core_keeps_nobody_else_there(is_asked: bool) -> None:
    here, *_, there = every = cores()
    operator: Any = Adding()
    with suppress(ZeroDivisionError), kept_on(here):
        assert cores() == [here]
        across(say_cores, nothing, operator, core=there if is_asked else None)
        assert operator.cores == ([there] if is_asked else every)
        raise ZeroDivisionError
    assert cores() == every


@pytest.mark.slow
@pytest.mark.skipif(lacking_cores() is not None, reason=str(lacking_cores()))
def test_a_core_each_is_one_for_here_and_what_it_starts_and_another_for_there() -> None:
    moved: list[int | None] = []

    def move(num_records: int, operator: Any, core: int | None) -> remote.Spent:
        moved.extend([*cores(), core])
        with ThreadPoolExecutor(1) as pool:
            moved.extend(pool.submit(cores).result())
        return num_records, 1.0, 1.0

    here, *_, there = cores()
    assert remote.kept_apart(move, 5, Adding()) == (5, 1.0, 1.0)
    assert moved == [here, there, here]
