"""The goals as data: who takes turns with whom, what is compared, what is asked for.

A contender is known by `family/name`. What cannot be measured here stays in the table and says why.

Rules of this file:
- A comparison has one value for each round. With `other` it is a ratio of two turns of that round, above one if `one`
  does better; with `found` it is that of `one`'s turn instead, or the ratio of both.
- A goal is met by the median. On a machine that is busy with others' work the CPU ratio decides, where there is one.
- `demands` are what `one` must have done besides: a ratio alone would flatter a flusher that does not run.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench import contenders, inputs
from tests.bench.blocking import BLOCKING
from tests.bench.channels import Plan
from tests.bench.channels import entry as channels
from tests.bench.contenders import checksum, expected
from tests.bench.experiments import EXPERIMENTS
from tests.bench.flink_jvm import FLINK
from tests.bench.latency import LATENCY
from tests.bench.measure import Benchmark, Contender, Entry
from tests.bench.peers import PEERS
from tests.bench.recovery import RECOVERY
from tests.bench.sampling import SAMPLING
from tests.bench.stateful import STATEFUL
from tests.bench.windows import WINDOWS

__all__ = ["ENTRIES", "ROWS", "Comparison", "Demand", "Row", "lacking"]

ARROW_BYTES, ENGINE_BYTES = 24, 29


@dataclass(frozen=True, slots=True)
class Demand:
    """What the median of something found must be, at least or at most."""

    found: str
    least: float = 0.0
    most: float = float("inf")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the table.

    `weight` is how much more a record of `one` weighs than one of `other`.
    """

    what: str
    against: str
    one: str
    other: str | None
    goal: float | None = None
    floor: float | None = None
    found: str | None = None
    is_less_better: bool = False
    by_cpu: bool = False
    weight: float = 1.0
    demands: Sequence[Demand] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A goal of the design: its number there, a name, and its comparisons; those of a `group` take turns together.

    Number 0 is no goal, only good to know.
    """

    number: int
    name: str
    group: str
    comparisons: Sequence[Comparison]


def family(benchmarks: Sequence[Benchmark]) -> dict[str, Entry]:
    return {
        f"{benchmark.name}/{contender.name}": Entry(
            f"{benchmark.name}/{contender.name}", contender, benchmark.expected, benchmark.checksum
        )
        for benchmark in benchmarks
        for contender in benchmark.contenders
    }


def peers(named: Mapping[str, Contender]) -> dict[str, Entry]:
    return {f"peers/{name}": Entry(f"peers/{name}", peer, expected, checksum) for name, peer in named.items()}


def remote() -> dict[str, Entry]:
    """The engine between two processes, and parts of it alone."""
    try:
        modules = [importlib.import_module(f"tests.bench.{name}") for name in ("remote", "limits")]
    except ModuleNotFoundError:
        return {}
    return {key: entry for module in modules for key, entry in family(module.BENCHMARKS).items()}


ENTRIES: dict[str, Entry] = {
    **family(contenders.BENCHMARKS),
    **family(inputs.BENCHMARKS),
    **remote(),
    **peers(PEERS),
    **{key: Entry(key, flink, expected, checksum) for key, flink in FLINK.items()},
    **LATENCY,
    **EXPERIMENTS,
    **STATEFUL,
    **WINDOWS,
    **BLOCKING,
    **RECOVERY,
    **SAMPLING,
    **{
        made.key: made
        for made in (
            *(
                channels(f"channels/{n} T={ms}", f"{n} channels, buffer timeout {ms} ms", Plan(n, 0, ms))
                for n in (1, 8, 100, 1_000)
                for ms in (100, 1)
            ),
            *(
                channels(f"channels/{n} many", f"{n} channels, 100 ms, emit_many", Plan(n, emits_many=True))
                for n in (1, 1_000)
            ),
            channels("channels/1000 idle", "one channel beside 1000 idle ones, 100 ms", Plan(1, 1_000)),
        )
    },
}


def lacking(key: str) -> str | None:
    """Why this contender cannot take part here, if it cannot."""
    known = ENTRIES.get(key)
    return f"there is no contender {key!r} yet" if known is None else known.contender.lacking()


def timeout(number: int, group: str, nums: Sequence[int], goal: float, floor: float, *demands: Demand) -> Row:
    return Row(
        number,
        group,
        group,
        [
            Comparison(
                f"T=1 ms, {n} channel{'s' * (n > 1)}",
                "T=100 ms",
                f"channels/{n} T=1",
                f"channels/{n} T=100",
                goal,
                floor,
                demands=demands,
            )
            for n in nums
        ],
    )


def credit(what: str, family: str) -> Comparison:
    return Comparison(f"credits on: {what}", "off", f"{family}/credits", f"{family}/no credits", 0.95, 0.88)


EMIT = "per-record local emit"
BATCH = "batch local, B=4096"
REMOTE = "per-record remote, credits"
REMOTE_BATCH = "batch remote, row format"

ROWS: Sequence[Row] = (
    Row(1, "emit/queue", "record", [
        Comparison(EMIT, "queue.Queue per record", "record/exchange", "record/queue.Queue", 3.5, 2.5)]),
    Row(2, "emit/plain", "record", [
        Comparison(EMIT, "object for each step", "record/exchange", "record/readable", 5, 4)]),
    Row(3, "emit/lists", "record", [
        Comparison(EMIT, "queue of pickled lists", "record/exchange", "record/pickle", 0.85, 0.7)]),
    Row(4, "emit/codec", "record", [
        Comparison(EMIT, "own codec alone (CPU)", "record/exchange", "record/codec", 0.9, 0.8, by_cpu=True)]),
    Row(5, "emit/flink", "record", [
        Comparison(EMIT, "Flink, local keyBy", "record/exchange", "flink/local", 0.5, 0.35),
        Comparison("the same, keyed", "Flink, local keyBy", "record/keyed", "flink/local", 0.5, 0.35)]),
    Row(6, "emit_many/lists", "record", [
        Comparison("local emit_many(list)", "queue of pickled lists", "record/emit_many", "record/pickle",
                   1.0, 0.9)]),
    Row(7, "batch/copy", "batch", [
        Comparison(BATCH, "copied in and out", "batch/exchange", "batch/copy", 0.5, 0.35)]),
    Row(8, "batch/arrow", "batch", [
        Comparison(BATCH, "queue of Arrow IPC bytes", "batch/exchange", "batch/Arrow IPC", 1.0, 0.8)]),
    Row(9, "batch/flink", "batch", [
        Comparison(BATCH, "Flink, local keyBy", "batch/exchange", "flink/local", 15, 8),
        Comparison("batch local, keyed, p=8", "Flink, local keyBy", "batch/keyed", "flink/local", 3, 2)]),
    Row(10, "remote/mp", "remote-record", [
        Comparison(REMOTE, "multiprocessing.Queue", "remote-record/credits", "peers/mp.Queue", 15, 10)]),
    Row(11, "remote/pyzmq", "remote-record", [
        Comparison(REMOTE, "pyzmq per record", "remote-record/credits", "peers/pyzmq", 2.5, 2)]),
    Row(12, "remote/lists", "remote-record", [
        Comparison(REMOTE, "mp.Queue of lists", "remote-record/credits", "peers/mp.Queue of lists", 0.85, 0.7)]),
    Row(13, "remote/local", "remote-record", [
        Comparison(REMOTE, "own local emit", "remote-record/credits", "record/exchange", 0.9, 0.75)]),
    Row(14, "remote-batch/socket", "remote-batch", [
        Comparison(REMOTE_BATCH, "raw socket, same bytes", "remote-batch/credits", "peers/raw socket", 0.5, 0.35)]),
    Row(15, "remote-batch/arrow", "remote-batch", [
        Comparison(REMOTE_BATCH, "Arrow IPC stream, records", "remote-batch/credits", "peers/Arrow IPC stream",
                   0.9, 0.7),
        Comparison(REMOTE_BATCH, "Arrow IPC stream, bytes", "remote-batch/credits", "peers/Arrow IPC stream",
                   1.0, 0.7, weight=ENGINE_BYTES / ARROW_BYTES)]),
    Row(16, "remote-batch/peers", "remote-batch", [
        Comparison(REMOTE_BATCH, "Arrow Flight", "remote-batch/credits", "peers/Arrow Flight", 1.3, 1),
        Comparison(REMOTE_BATCH, "pyzmq numpy", "remote-batch/credits", "peers/pyzmq numpy", 1.2, 1),
        Comparison(REMOTE_BATCH, "mp.Queue numpy", "remote-batch/credits", "peers/mp.Queue numpy", 1.0, 0.8)]),
    Row(17, "remote-columnar/arrow", "remote-batch", [
        Comparison("columnar record, remote", "Arrow IPC stream", "remote-batch/columnar", "peers/Arrow IPC stream",
                   1.0, 0.85)]),
    Row(18, "buffers/socket", "remote-buffer", [
        Comparison("raw buffers, credits", "raw socket", "remote-buffer/credits", "remote-buffer/raw socket",
                   0.85, 0.7)]),
    Row(19, "credits", "credits", [
        credit("raw buffers", "remote-buffer"), credit("batches", "remote-batch"),
        credit("per record", "remote-record")]),
    Row(20, "isolation", "isolation", [
        Comparison("beside a slow reader, credits", "before it was slow", "isolation/credits", None, 0.9, 0.8,
                   found="kept"),
        Comparison("the same without credits", "before it was slow", "isolation/no credits", None, 0.05, 0.05,
                   found="kept", is_less_better=True)]),
    timeout(21, "timeout/8", (1, 8), 0.9, 0.8, Demand("flushes_per_s", least=500)),
    timeout(22, "timeout/100", (100,), 0.75, 0.6, Demand("flushes_per_s", least=500), Demand("p50_ms", most=2)),
    timeout(23, "timeout/1000", (1_000,), 0.6, 0.5, Demand("flushes_per_s", least=250)),
    Row(24, "latency/timeout", "latency", [
        Comparison("latency p50 local, 10 k/s", "T = 1 ms", "latency/local 1 ms", None, 1, 2,
                   found="p50_ms", is_less_better=True),
        Comparison("latency p50 remote, 10 k/s", "T = 1 ms", "latency/remote 1 ms", None, 1, 2,
                   found="p50_ms", is_less_better=True)]),
    Row(25, "latency/socket", "latency", [
        Comparison("latency p50 remote, flushed", "raw TCP per record", "latency/remote 0 ms", "latency/socket", 5, 8,
                   found="p50_ms", is_less_better=True)]),
    Row(26, "channels/active", "channels", [
        Comparison("1000 active channels (CPU)", "1 channel", "channels/1000 T=100", "channels/1 T=100", 0.75, 0.6,
                   by_cpu=True)]),
    Row(27, "channels/idle", "channels", [
        Comparison("1 channel beside 1000 idle", "none idle", "channels/1000 idle", "channels/1 T=100", 0.95, 0.85)]),
    Row(28, "memory", "memory", [
        Comparison("growth less 2 kB a channel", "pools of 1000 channels", "memory/1000", None, 1.1, 1.5,
                   found="grown_per_pools", is_less_better=True)]),
    Row(29, "inputs/two", "inputs", [
        Comparison("two inputs, connected", "one input, united", "inputs/two", "inputs/one", 0.8, 0.7)]),
    Row(30, "state/checkpoints", "state", [
        Comparison("10 MB of state, a checkpoint each s (CPU)", "no checkpoints", "state/checkpoints", "state/none",
                   0.9, 0.8, by_cpu=True)]),
    Row(31, "snapshot/bytes", "snapshot", [
        Comparison("snapshot of 10 MB, in memory", "pickle.dumps of the dict", "snapshot/bytes", "snapshot/pickle",
                   1, 0.7)]),
    Row(32, "snapshot/disk", "snapshot", [
        Comparison("snapshot of 10 MB, on disk", "pickle.dumps and fsync", "snapshot/put", "snapshot/pickle, fsync",
                   1, 0.8),
        Comparison("the same", "raw write and fsync", "snapshot/put", "snapshot/raw, fsync", 0.5, 0.35)]),
    Row(33, "alignment", "alignment", [
        Comparison("barrier to a slow reader, credits", "no credits", "alignment/credits", "alignment/no credits",
                   0.5, 0.8, found="complete_s", is_less_better=True)]),
    Row(34, "windows", "windows", [
        Comparison("sliding windows, per record", "bytewax", "windows/sliding", "peers/bytewax, sliding", 1, 0.7),
        Comparison("tumbling windows, batches", "polars group_by_dynamic", "windows/batches", "peers/polars",
                   0.3, 0.2)]),
    Row(35, "timers", "timers", [
        Comparison("event timers", "heapq alone", "timers/queue", "timers/heapq", 0.5, 0.35)]),
    Row(36, "sink", "sink", [
        Comparison("two-phase file sink", "plain file sink", "sink/two phases", "sink/plain", 0.9, 0.75)]),
    Row(37, "blocking", "blocking", [
        Comparison("blocking shuffle, local disk, batches", "Arrow IPC file", "blocking/files", "peers/Arrow IPC file",
                   0.7, 0.5),
        Comparison("the same, lz4", "Parquet, lz4", "blocking/lz4", "peers/Parquet, lz4", 1, 0.7),
        Comparison("the same", "Arrow IPC file, lz4", "blocking/lz4", "peers/Arrow IPC file, lz4", 0.7, 0.5)]),
    Row(38, "recovery", "recovery", [
        Comparison("kill to going on, one of three killed", "all three, a new run", "recovery/one", "recovery/all",
                   0.7, 1, found="recovery_s", is_less_better=True)]),
    Row(39, "sampling", "sampling", [
        Comparison("a job of two tasks, sampled all the time", "nobody asks", "sampling/on", "sampling/off", 0.99, 0.97,
                   demands=[Demand("samples_per_s", least=10)])]),
    Row(40, "unaligned", "alignment", [
        Comparison("a checkpoint, sinks 10 times slower", "aligned", "alignment/unaligned", "alignment/aligned",
                   0.2, 0.4, found="complete_s", is_less_better=True)]),
    Row(0, "job", "record", [
        Comparison("a job of two tasks, local", "emit alone", "record/job", "record/exchange")]),
    Row(0, "reading/pickle", "record", [
        Comparison("records read, 1 thread", "pickle.loads, 1 thread", "alone/reading", "alone/pickle.loads"),
        Comparison("the same", "queue of pickled lists", "alone/reading", "record/pickle")]),
    Row(0, "snapshot/uneven", "snapshot", [
        Comparison("snapshot of 10 MB, texts of many lengths", "pickle.dumps of that dict", "snapshot/uneven",
                   "snapshot/pickle, uneven")]),
    Row(0, "batch/codec", "batch", [
        Comparison("batch codec alone, 1 thread", "copied in and out", "alone/batch codec", "batch/copy"),
        Comparison("the same", "queue of Arrow IPC bytes", "alone/batch codec", "batch/Arrow IPC"),
        Comparison(BATCH, "batch codec alone (CPU)", "batch/exchange", "alone/batch codec", by_cpu=True)]),
    Row(0, "batch/large", "batch", [
        Comparison("batch local, buffers of 128 KiB", "buffers of 32 KiB", "batch/large", "batch/exchange"),
        Comparison("the same", "copied in and out", "batch/large", "batch/copy"),
        Comparison("the same", "queue of Arrow IPC bytes", "batch/large", "batch/Arrow IPC"),
        Comparison("the same", "Flink, local keyBy", "batch/large", "flink/local")]),
    Row(0, "batch/ready", "batch", [
        Comparison(BATCH, "queue of Arrow IPC bytes, ready", "batch/exchange", "batch/Arrow IPC, ready")]),
    Row(0, "remote-batch/ready", "remote-batch", [
        Comparison(REMOTE_BATCH, "Arrow IPC stream, ready", "remote-batch/credits", "peers/Arrow IPC stream, ready"),
        Comparison(REMOTE_BATCH, "Arrow Flight, ready", "remote-batch/credits", "peers/Arrow Flight, ready"),
        Comparison("columnar record, remote", "Arrow IPC stream, ready", "remote-batch/columnar",
                   "peers/Arrow IPC stream, ready")]),
    Row(0, "remote-batch/large", "remote-batch", [
        Comparison("batch remote, buffers of 128 KiB", "buffers of 32 KiB", "remote-batch/large",
                   "remote-batch/credits"),
        Comparison("the same", "raw socket, same bytes", "remote-batch/large", "peers/raw socket"),
        Comparison("the same", "Arrow IPC stream, records", "remote-batch/large", "peers/Arrow IPC stream"),
        Comparison("the same", "Arrow Flight", "remote-batch/large", "peers/Arrow Flight"),
        Comparison("columnar, buffers of 128 KiB", "Arrow IPC stream", "remote-batch/columnar, large",
                   "peers/Arrow IPC stream")]),
    Row(0, "buffers/gathered", "remote-buffer", [
        Comparison("raw buffers, credits", "raw socket, 16 a call", "remote-buffer/credits",
                   "remote-buffer/raw socket, 16")]),
    Row(0, "buffers/ends", "remote-buffer", [
        Comparison("raw buffers, credits, no socket, 1 thread", "raw socket", "alone-buffer/no socket",
                   "remote-buffer/raw socket")]),
    Row(0, "channels/blocks", "channels", [
        Comparison("1000 active channels, emit_many (CPU)", "1 channel, emit_many", "channels/1000 many",
                   "channels/1 many", by_cpu=True)]),
    Row(0, "emit/bytewax", "record", [
        Comparison(EMIT, "bytewax, keyed state", "record/exchange", "peers/bytewax")]),
    Row(0, "remote/pipe", "remote-record", [
        Comparison(REMOTE, "multiprocessing.Pipe", "remote-record/credits", "peers/mp.Pipe")]),
    Row(0, "remote/flink", "remote-record", [
        Comparison(REMOTE, "Flink, two TaskManagers", "remote-record/credits", "flink/remote")]),
    Row(0, "remote-batch/cores", "remote-batch", [
        Comparison("batch remote, a core each", "as the system likes", "remote-batch/credits, a core each",
                   "remote-batch/credits"),
        Comparison("the same", "raw socket, same bytes", "remote-batch/credits, a core each", "peers/raw socket"),
        Comparison("the same", "Arrow IPC stream, records", "remote-batch/credits, a core each",
                   "peers/Arrow IPC stream"),
        Comparison("the same", "Arrow Flight", "remote-batch/credits, a core each", "peers/Arrow Flight")]),
    Row(0, "buffers/cores", "remote-buffer", [
        Comparison("raw buffers, a core each", "as the system likes", "remote-buffer/credits, a core each",
                   "remote-buffer/credits"),
        Comparison("the same", "raw socket", "remote-buffer/credits, a core each", "remote-buffer/raw socket")]),
    Row(0, "remote-batch/buffers", "remote-batch", [
        Comparison(REMOTE_BATCH, "the same, ten buffers", "remote-batch/credits", "remote-batch/credits 10")]),
    Row(0, "remote-batch/flink", "remote-batch", [
        Comparison(REMOTE_BATCH, "Flink, two TaskManagers", "remote-batch/credits", "flink/remote")]),
)  # fmt: skip
