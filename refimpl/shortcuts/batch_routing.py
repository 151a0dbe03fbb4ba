"""A batch on its way to the channels: which record goes where, those of each together, cut into buffers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refimpl.memory.builder import BufferConsumer
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.selector import ChannelSelector
from refimpl.records.elements import Column, RecordBatch
from refimpl.shortcuts.columns import WireRows
from refimpl.shortcuts.encoded_batch import EncodedBatch

__all__ = ["by_channel", "channels_of_batch", "full_buffers"]


def channels_of_batch(selector: ChannelSelector, batch: RecordBatch) -> Column | int:
    """What `selector` answers for a batch; one that knows single values only is asked for each."""
    select_channels = getattr(selector, "select_channels", None)
    if select_channels is None:
        return np.fromiter(map(selector.select_channel, batch.values()), np.int64, len(batch))
    channels: Column | int = select_channels(batch)
    return channels


def by_channel(rows: WireRows, channels: Column | int, num_channels: int) -> Iterator[tuple[int, memoryview]]:
    """Each channel that gets some of the rows, and their bytes in the order they had.

    A stable sort of small numbers is a radix sort: it costs the same for any number of channels. The
    rows are then moved once.
    """
    if isinstance(channels, int) or num_channels == 1:
        if len(rows):
            yield channels if isinstance(channels, int) else 0, rows.view(np.uint8).data
        return
    narrow = channels.astype(np.min_scalar_type(num_channels - 1))
    order = np.argsort(narrow, kind="stable")
    data = rows.take(order).view(np.uint8).data
    ends = narrow.take(order).searchsorted(np.arange(num_channels, dtype=narrow.dtype), "right") * rows.itemsize
    start = 0
    for channel, end in enumerate(ends.tolist()):
        if end > start:
            yield channel, data[start:end]
            start = end


def full_buffers(batch: EncodedBatch, partition: ResultPartition, channel: int) -> list[BufferConsumer]:
    """The buffers that the rest of a batch fills, as many as there are; but not the last, which stays open."""
    most = batch.num_whole(partition.config.segment_size_bytes)
    return batch.fill(partition.request_buffers(channel, most)) if most else []
