"""A batch on its way to several channels: which record goes where, and the records of each together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refimpl.producer.selector import ChannelSelector
from refimpl.records.batch import WireRows
from refimpl.records.elements import Column, RecordBatch

__all__ = ["by_channel", "channels_of_batch"]


def channels_of_batch(selector: ChannelSelector, batch: RecordBatch) -> Column | int:
    """What `selector` answers for a batch; one that knows single values only is asked for each."""
    select_channels = getattr(selector, "select_channels", None)
    if select_channels is None:
        return np.fromiter(map(selector.select_channel, batch.values()), np.int64, len(batch))
    channels: Column | int = select_channels(batch)
    return channels


def by_channel(rows: WireRows, channels: Column | int, num_channels: int) -> Iterator[tuple[int, WireRows]]:
    """The rows of each channel that gets some, in the order they had.

    A stable sort of small numbers is a radix sort: it costs the same for any number of channels. The
    rows are then moved once.
    """
    if isinstance(channels, int):
        yield channels, rows
        return
    if num_channels == 1:
        yield 0, rows
        return
    narrow = channels.astype(np.min_scalar_type(num_channels - 1))
    sorted_rows = rows.take(np.argsort(narrow, kind="stable"))
    start = 0
    for channel, count in enumerate(np.bincount(narrow, minlength=num_channels).tolist()):
        if count:
            yield channel, sorted_rows[start : start + count]
        start += count
