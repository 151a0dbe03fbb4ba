"""Who is named: the culprit, wherever it stands, and never one that is held back itself."""

from __future__ import annotations

import dataclasses
import random

from refimpl.cluster import Bottleneck, BottleneckKind, Exchange, Load, find_bottleneck, who_holds_back

BUSY, IDLE, HELD, EASY = Load(0.95, 0.05, 0), Load(0.05, 0.95, 0), Load(0.2, 0, 0.8), Load(0.4, 0.6, 0)
Kind = BottleneckKind


def rows(*vertices: list[Load]) -> dict[tuple[int, int], Load]:
    return {(vertex, i): load for vertex, loads in enumerate(vertices) for i, load in enumerate(loads)}


def edges(*pairs: tuple[int, int], loads: dict[tuple[int, int], Load]) -> list[Exchange[tuple[int, int]]]:
    return [Exchange(a, b) for v, w in pairs for a in loads for b in loads if (a[0], b[0]) == (v, w)]


def find(loads: dict[tuple[int, int], Load], *pairs: tuple[int, int]) -> Bottleneck:
    return find_bottleneck(loads, edges(*pairs, loads=loads))


def test_two_victims_in_a_row_and_the_culprit_behind_them() -> None:
    assert find(rows([HELD], [HELD], [BUSY], [EASY]), (0, 1), (1, 2), (2, 3)) == Bottleneck(Kind.SUBTASK, (2, 0))


def test_a_diamond_with_one_slow_side() -> None:
    assert find(rows([HELD], [EASY], [BUSY], [EASY]), (0, 1), (0, 2), (1, 3), (2, 3)) == Bottleneck(
        Kind.SUBTASK, (2, 0)
    )


def test_a_union_with_one_slow_branch() -> None:
    loads = rows([HELD], [BUSY], [BUSY], [EASY], [EASY])
    assert find(loads, (0, 2), (1, 3), (2, 4), (3, 4)) == Bottleneck(Kind.SUBTASK, (2, 0))


def test_a_slow_link_between_who_waits_and_who_is_held_back() -> None:
    assert find(rows([HELD, HELD], [IDLE]), (0, 1)) == Bottleneck(Kind.EXCHANGE, (1, 0), (0, 0))


def test_one_of_several_siblings_that_has_all_to_do() -> None:
    assert find(rows([HELD, HELD], [IDLE, BUSY, EASY]), (0, 1)) == Bottleneck(Kind.SKEW, (1, 1))
    assert find(rows([HELD, HELD], [BUSY, BUSY]), (0, 1)).kind is Kind.SUBTASK


def test_who_waits_for_a_barrier_is_said_to() -> None:
    aligning = Load(0.05, 0.95, 0, is_aligning=True)
    assert find(rows([HELD, EASY], [aligning]), (0, 1)) == Bottleneck(Kind.ALIGNING, (1, 0))
    busy = Load(0.95, 0.05, 0, is_aligning=True)
    assert find(rows([HELD, EASY], [busy]), (0, 1)).kind is Kind.SUBTASK


def test_of_those_that_wait_for_barriers_it_is_the_first_whatever_its_number() -> None:
    aligning = Load(0.05, 0.95, 0, is_aligning=True)
    loads = rows([HELD], [aligning], [EASY], [aligning], [EASY])
    assert find(loads, (0, 1), (0, 3), (4, 3), (3, 2), (2, 1)) == Bottleneck(Kind.ALIGNING, (3, 0))
    held = Load(0, 0, 1, is_aligning=True)
    assert find(rows([HELD], [aligning], [held]), (0, 2), (0, 1), (2, 1)) == Bottleneck(Kind.ALIGNING, (1, 0))


def test_of_two_outputs_it_is_the_one_that_is_full() -> None:
    """A reader beside it is as idle, or busier, and waits for the same producer."""
    for innocent in (IDLE, EASY, BUSY):
        loads = rows([HELD], [innocent], [EASY])
        given = edges((0, 1), (0, 2), loads=loads)
        waiting = {((0, 0), (1, 0)): 1, ((0, 0), (2, 0)): 10}
        assert find_bottleneck(loads, given, waiting) == Bottleneck(Kind.EXCHANGE, (2, 0), (0, 0))
    loads = rows([HELD], [IDLE], [HELD], [BUSY])
    given = edges((0, 1), (0, 2), (2, 3), loads=loads)
    full = {((0, 0), (1, 0)): 1, ((0, 0), (2, 0)): 10, ((2, 0), (3, 0)): 4}
    assert find_bottleneck(loads, given, full) == Bottleneck(Kind.SUBTASK, (3, 0))


def test_how_much_is_queued_says_nothing_of_who_it_is() -> None:
    full, empty = dataclasses.replace(HELD, num_queued=9), dataclasses.replace(BUSY, num_queued=1)
    assert find(rows([HELD], [full], [empty], [EASY]), (0, 1), (1, 2), (2, 3)) == Bottleneck(Kind.SUBTASK, (2, 0))


def test_who_aligns_is_said_only_of_those_that_read_from_somebody_held_back() -> None:
    aligning, held = dataclasses.replace(IDLE, is_aligning=True), dataclasses.replace(HELD, is_aligning=True)
    assert find(rows([HELD], [IDLE], [EASY], [aligning]), (0, 1), (2, 3)) == Bottleneck(Kind.EXCHANGE, (1, 0), (0, 0))
    assert find(rows([HELD], [held], [IDLE]), (0, 1), (1, 2)) == Bottleneck(Kind.EXCHANGE, (2, 0), (1, 0))


def test_the_culprit_alone_is_a_subtask_or_an_exchange_or_nobody() -> None:
    loads = rows([HELD, HELD], [IDLE, BUSY])
    flow = edges((0, 1), loads=loads)
    assert who_holds_back(loads, flow) == (1, 1)
    assert who_holds_back({**loads, (1, 1): EASY}, flow) == Exchange((0, 0), (1, 0))
    assert who_holds_back(rows([BUSY], [BUSY]), [Exchange((0, 0), (1, 0))]) is None


def test_without_back_pressure_it_is_the_source_or_nothing() -> None:
    assert find(rows([BUSY, EASY], [EASY]), (0, 1)) == Bottleneck(Kind.SOURCE, (0, 0))
    assert find(rows([IDLE], [IDLE]), (0, 1)) == Bottleneck(Kind.NOTHING)
    assert find(rows([EASY], [BUSY]), (0, 1)) == Bottleneck(Kind.NOTHING)


def test_a_victim_is_never_the_answer() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        loads = rows(*[[_load(rng) for _ in range(rng.randrange(1, 4))] for _ in range(rng.randrange(2, 6))])
        num = max(vertex for vertex, _ in loads) + 1
        pairs = [(a, b) for a in range(num) for b in range(num) if a < b and rng.random() < 0.6]
        found = find(loads, *pairs)
        if found.place is not None:
            assert not loads[found.place].is_held_back, f"seed {seed}"
        if found.producer is not None:
            assert loads[found.producer].is_held_back, f"seed {seed}"


def _load(rng: random.Random) -> Load:
    parts = [rng.random() for _ in range(3)]
    busy, idle, held = (part / sum(parts) for part in parts)
    return Load(busy, idle, held, is_aligning=rng.random() < 0.2)
