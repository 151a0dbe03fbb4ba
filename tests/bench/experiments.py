"""What is no speed: the memory that channels take, and what a slow reader leaves to its neighbours."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from functools import partial

import psutil

from tests.bench import alignment, isolation
from tests.bench.channels import Channels, Plan
from tests.bench.contenders import Adding, checksum, expected
from tests.bench.measure import Contender, Entry, Row, Turn, timed
from tests.bench.pair import across

__all__ = ["EXPERIMENTS", "memory_of"]

BYTES_PER_CHANNEL = 2_000
MIB = 1 << 20


class Grown(Adding):
    """What comes back from a process that has built channels and used them."""

    def __init__(self, plan: Plan, num_records: int) -> None:
        super().__init__()
        self.plan = plan
        self.num_records = num_records
        self.pool_bytes = self.grown_bytes = 0
        self.wall_s = 0.0


def build_and_use(ready: Callable[[object], None], _shared: object, grown: Grown) -> None:
    ready(None)
    Channels(Plan(1)).move(20_000, Adding().record)  # all code has run, and its memory is there
    gc.collect()
    before = psutil.Process().memory_info().rss
    channels = Channels(grown.plan)
    grown.wall_s, _ = channels.move(grown.num_records, grown.record)
    gc.collect()
    grown.grown_bytes = psutil.Process().memory_info().rss - before
    grown.pool_bytes = channels.pool_bytes


def memory_of(plan: Plan, num_records: int) -> Grown:
    """Build and use such channels in a fresh process, and see how it has grown."""
    grown = Grown(plan, num_records)
    across(build_and_use, lambda _address, _shared: None, grown)
    return grown


def memory(num_channels: int) -> Entry:
    plan = Plan(num_channels)

    def run(num_records: int) -> Turn:
        grown = memory_of(plan, num_records)
        without_channels = grown.grown_bytes - BYTES_PER_CHANNEL * num_channels
        found = {
            "grown_mib": grown.grown_bytes / MIB,
            "pools_mib": grown.pool_bytes / MIB,
            "grown_per_pools": max(0.0, without_channels / grown.pool_bytes),
        }
        return Turn(num_records, grown.wall_s, grown.wall_s, grown.total, found)

    def deliver(num_records: int) -> tuple[int, list[Row]]:
        assert memory_of(plan, num_records).total == checksum(num_records)
        return num_records, expected(num_records)

    meaning = f"{num_channels} channels built and used in a fresh process"
    return Entry(
        f"memory/{num_channels}", Contender("memory", meaning, run, deliver, records_per_s=50_000), expected, checksum
    )


def isolated(key: str, meaning: str, *, credit_based: bool) -> Entry:
    """Four readers on one connection, of which one becomes slow: see `isolation.py`."""

    def run(num_records: int) -> Turn:
        samples: list[isolation.Sample] = []
        seconds = max(2.0, num_records / 100)
        spent = timed(lambda: samples.extend(isolation.run(credit_based=credit_based, seconds=seconds)))
        before = statistics.mean(isolation.rates(samples, slow=False)[1:])
        after = statistics.mean(isolation.rates(samples, slow=True)[1:])
        num_buffers = sum(samples[-1].counts)
        return Turn(num_buffers, *spent, num_buffers, {"kept": after / before, "others_after_per_s": after})

    # Nobody counts the buffers of endless sources; that nothing gets lost is the laws' affair.
    return Entry(key, Contender(key, meaning, run, lambda n: (n, []), records_per_s=100), lambda _: [], int)


def slowly_read(key: str, meaning: str, complete_s: Callable[[], float]) -> Entry:
    """What waits behind data for a slow reader: how long, see `alignment.py`."""

    def run(num_records: int) -> Turn:
        found: list[float] = []
        spent = timed(lambda: found.append(complete_s()))
        return Turn(num_records, *spent, num_records, {"complete_s": found[0]})

    return Entry(key, Contender(key, meaning, run, lambda n: (n, []), records_per_s=100), lambda _: [], int)


def aligned(key: str, meaning: str, *, credit_based: bool) -> Entry:
    """One barrier on its way to a slow reader."""
    return slowly_read(key, meaning, partial(alignment.time_to_complete_s, credit_based=credit_based))


def checkpointed(key: str, meaning: str, *, unaligned: bool) -> Entry:
    """One checkpoint while all buffers are full before slow sinks."""
    return slowly_read(key, meaning, partial(alignment.checkpoint_s, unaligned=unaligned))


EXPERIMENTS = {
    made.key: made
    for made in (
        aligned("alignment/credits", "a barrier to a slow reader, credits", credit_based=True),
        aligned("alignment/no credits", "the same, the way before credits", credit_based=False),
        checkpointed("alignment/unaligned", "a checkpoint before slow sinks, unaligned", unaligned=True),
        checkpointed("alignment/aligned", "the same, aligned", unaligned=False),
        memory(1_000),
        isolated("isolation/credits", "three readers beside one that becomes slow, credits", credit_based=True),
        isolated("isolation/no credits", "the same, the way before credits", credit_based=False),
    )
}
