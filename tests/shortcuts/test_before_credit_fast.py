"""The way before credits with shortcuts: any schedule, a jam, and both ends as in the book."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refimpl.shortcuts.frames import FastStagingDecoder
from refimpl.shortcuts.turns import FastMarkedConnection
from tests.support.before_credit_rig import CREDIT, NO_CREDIT, Schedule, World, can_resume, is_reading, jammed

FAST = replace(NO_CREDIT, shortcuts=True)
NUM_ROUNDS = 300


def test_the_fast_ends_are_made() -> None:
    world = World(FAST)
    assert isinstance(world.consumer.connection.decoder, FastStagingDecoder)
    assert isinstance(world.producer.connection, FastMarkedConnection)
    world.close()


@pytest.mark.sampled(one_in=7)
@pytest.mark.parametrize("seed", range(300))
def test_every_record_arrives_once_and_in_order_and_every_segment_comes_home(seed: int) -> None:
    schedule = Schedule(seed, shortcuts=True)
    schedule.run(1_000)
    schedule.finish()
    assert [schedule.arrived(task) for task in range(len(schedule.sent))] == schedule.sent
    schedule.world.close()


@pytest.mark.parametrize("seed", range(60))
def test_a_task_cancelled_at_any_moment_keeps_no_other_from_its_end(seed: int) -> None:
    schedule = Schedule(seed, shortcuts=True)
    schedule.run(int(schedule.random.integers(400)))
    gone = int(schedule.random.integers(len(schedule.world.inputs)))
    schedule.world.inputs[gone].close()
    schedule.world.consumer.gates[gone].release()
    schedule.run(200)
    schedule.finish()
    schedule.world.close()


@pytest.mark.parametrize("config", [FAST, replace(CREDIT, shortcuts=True)], ids=["without credits", "with credits"])
def test_one_slow_task_stops_the_others_or_not_as_in_the_book(config: object) -> None:
    world = World(config)
    assert world.play(NUM_ROUNDS, slow={3}) == ([300, 300, 300, 3] if config.credit_based else [8, 8, 8, 3])
    world.close()


def test_a_pool_destroyed_while_data_waits_fails_its_channel_and_no_other() -> None:
    consumer, buffer = jammed(FAST)
    buffer.recycle()
    assert can_resume(consumer.connection)
    consumer.connection.receive_data(b"")
    assert is_reading(consumer.connection)
    assert (consumer.read(0), consumer.read(1)) == (b"a1", b"b0")
    consumer.close()
