"""A partition: its pool, its subpartitions, its end."""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import ResultPartition, max_buffers, required_buffers
from refimpl.records import EndOfPartition, event_from_bytes


@pytest.mark.parametrize(("channels", "required", "most"), [(1, 2, 10), (4, 5, 16), (100, 101, 208)])
def test_an_output_needs_a_buffer_for_each_channel_and_one_more(channels: int, required: int, most: int) -> None:
    """Behaviour 16, as of 1.10."""
    assert required_buffers(channels) == required
    assert max_buffers(channels, Config()) == most
    least = Config(buffers_per_channel=1, floating_buffers_per_gate=0)
    assert max_buffers(channels, least) == required


def test_a_partition_ends_on_every_channel_and_gives_its_pool_up() -> None:
    home = NetworkBufferPool(4, 16)
    pool = LocalBufferPool(home, 3, num_channels=2)
    partition = ResultPartition("map-0", 2, pool, Config())
    told = []
    for subpartition in partition.subpartitions:
        subpartition.open_view(lambda: told.append(1))
    builder = partition.request_builder(1)
    assert partition.add(builder.create_consumer(), 1)
    builder.append_and_commit(b"abc")
    assert partition.has_unannounced_data
    partition.flush(1)
    assert (told, partition.has_unannounced_data) == ([1], False)
    builder.finish()
    partition.finish()
    assert partition.is_finished
    taken = partition.subpartitions[0].poll()
    assert event_from_bytes(taken.buffer.data) == EndOfPartition()
    partition.release()
    assert home.num_free == 4
    assert pool.is_destroyed
    assert partition.snapshot().name == "map-0"
