"""Data sections of lessons 7, 10 and 11: time, a shared connection, and credit. All in the simulation's own time.

Each has two functions: `ask_…` is a Spark query and knows nothing of the engine, the other one runs the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from course.data.comparison import rows_of
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Flush, StepTask
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, LONG, StreamRecord
from refimpl.task import IterableReader
from refimpl.trace import Trace

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ask_floating", "ask_flushes", "ask_innocent", "run_bursts", "run_floating", "run_innocent"]

TIMEOUTS_MS = (0, 1, 10, 100, -1)
SEGMENT_BYTES = 1_024
READING_BYTES = 4 + 1 + 8
"""A number on the stream: length, tag, and the number."""

_WATERMARK_BYTES = 4 + 1 + 8
_NEVER_MS = 1 << 50


# -- L07: the buffer timeout ---------------------------------------------------------------------------


def ask_flushes(bursts: DataFrame) -> dict[str, str]:
    """How many buffers leave, and how full, from the times of arrival alone.

    All times in one sorted list, and one fold over it for each timeout. What the fold carries along is
    (since when somebody waits, bytes in the segment, bytes nobody was told about, buffers that left).
    The clock starts with the first reading that nobody was told about. When it has run down, what is there leaves as
    one buffer. A reading that meets the end of a segment lets the full one leave at once; what is left of the reading
    starts the clock anew. The last entry of the list is the watermark that ends event time.
    """
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    times = F.array_sort(F.collect_list("arrival_ms"))
    times = F.concat(times, F.array(F.array_max(times)))  # the watermark comes with the last reading
    one = bursts.agg(times.alias("times"))  # one row, with one list
    folds = [_buffers(F.col("times"), timeout).alias(f"t{timeout}") for timeout in TIMEOUTS_MS]
    counts = rows_of(one.select(F.size("times"), *folds))[0]
    num_bytes = (counts[0] - 1) * READING_BYTES + _WATERMARK_BYTES
    return _in_words({timeout: (n, num_bytes) for timeout, n in zip(TIMEOUTS_MS, counts[1:], strict=True)})


def _buffers(times: Column, timeout_ms: int) -> Column:
    """Fold the times into (when the clock started, bytes in the segment, bytes not told about, buffers)."""
    from pyspark.sql import functions as F  # noqa: N812

    period = F.lit(_NEVER_MS if timeout_ms < 0 else timeout_ms).cast("bigint")
    zero = F.lit(0).cast("bigint")
    start = F.struct(zero.alias("since"), zero.alias("used"), zero.alias("untold"), zero.alias("buffers"))

    def step(state: Column, time: Column) -> Column:
        is_due = (state["untold"] > 0) & (time >= state["since"] + period)  # the timeout passed before this reading
        untold = F.when(is_due, zero).otherwise(state["untold"])
        used = state["used"] + READING_BYTES
        is_cut = used > SEGMENT_BYTES  # this reading needs the next segment, too
        # A reading that ended where its segment does was not cut: the full buffer leaves now, if it is still here.
        leaves = is_cut & ((state["used"] < SEGMENT_BYTES) | (untold > 0))
        return F.struct(
            F.when((untold == 0) | is_cut, time).otherwise(state["since"]).alias("since"),
            F.when(is_cut, used - SEGMENT_BYTES).otherwise(used).alias("used"),
            F.when(is_cut, used - SEGMENT_BYTES).otherwise(untold + READING_BYTES).alias("untold"),
            (state["buffers"] + is_due.cast("bigint") + leaves.cast("bigint")).alias("buffers"),
        )

    return F.aggregate(times, start, step)["buffers"] + 1  # what is left at the end leaves as well


def run_bursts(bursts: DataFrame) -> dict[str, str]:
    """The same from a job whose source emits each reading at its time."""
    times = [time for (time,) in rows_of(bursts.orderBy("arrival_ms", "id").select("arrival_ms"))]
    return _in_words({timeout: _run_at(times, timeout) for timeout in TIMEOUTS_MS})


class _OneByOne:
    """A reader that has a record when it was given one."""

    def __init__(self) -> None:
        self.given: list[StreamRecord] = []
        self.is_over = False

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        given, self.given = self.given, []
        return None if self.is_over else given

    def close(self) -> None: ...


def _run_at(times: Sequence[int], timeout_ms: int) -> tuple[int, int]:
    """Buffers of data that reached the sink, and their bytes."""
    reader = _OneByOne()
    trace = Trace(capacity=8 * len(times) + 1_000)
    config = Config(segment_size_bytes=SEGMENT_BYTES, num_buffers=16, buffer_timeout_ms=timeout_ms)
    environment = StreamEnvironment(config)
    environment.source(lambda *_: reader, "bursts", LONG).rebalance().sink(_ignore)
    with Simulation(environment, check_every=0, step_ms=0.0, trace=trace) as simulation:
        for time_ms in times:
            _flush_until(simulation, time_ms)
            reader.given = [StreamRecord(time_ms)]
            simulation.step(StepTask("bursts-0"))
        _flush_until(simulation, times[-1])
        reader.is_over = True
        simulation.run()
    sizes = [int(str(event.detail["bytes"])) for event in trace if event.kind == "deliver"]
    return len(sizes) - 1, sum(sizes[:-1])  # the last is the event that ends the partition


def _flush_until(simulation: Simulation, time_ms: float) -> None:
    """Let the sink read all there is, and every timeout pass that is due by then; then it is that time."""
    partition = simulation.deployment.partitions[0]
    while True:
        while StepTask("sink-0") in simulation.enabled():
            simulation.step(StepTask("sink-0"))
        deadline = partition.next_deadline(simulation.time_ms)
        if deadline is None or deadline > time_ms:
            break
        simulation.time_ms = max(simulation.time_ms, deadline)
        simulation.step(Flush(partition.name, deadline))
    simulation.time_ms = max(simulation.time_ms, time_ms)


def _in_words(found: dict[int, tuple[int, int]]) -> dict[str, str]:
    return {
        f"{timeout} ms" if timeout >= 0 else "never": f"{buffers} buffers, {num_bytes / buffers:.1f} bytes each"
        for timeout, (buffers, num_bytes) in found.items()
    }


def _ignore(_value: object) -> None: ...


# -- L10: the innocent channel -------------------------------------------------------------------------

SLOWDOWNS = (1, 2, 4, 8)
_PAYLOAD = bytes(64 - 4 - 1 - 4)  # with length, tag and its own length a record fills a buffer of 64 bytes
_ROUNDS_BEFORE, _ROUNDS = 48, 160


def ask_innocent(rows: DataFrame) -> dict[str, float]:
    """Throughput of the channel of odd rows, as a part of what it was, if the one of even rows takes f rounds each.

    Without credits both wait in one line, in the order of the rows: by the time n even rows are through, f * n rounds
    have passed, and as many odd ones as stood between them have left. With credits each has its own line.
    """
    from pyspark.sql import functions as F  # noqa: N812

    is_slow = F.pmod(F.col("id"), F.lit(2)) == 0
    num_slow, num_innocent = rows_of(rows.agg(F.count_if(is_slow), F.count_if(~is_slow)))[0]
    rate = num_innocent / num_slow
    answer = {}
    for slowdown in SLOWDOWNS:
        answer[f"{slowdown} times slower, one line"] = round(min(1.0, rate / slowdown), 3)
        answer[f"{slowdown} times slower, credits"] = 1.0
    return answer


def run_innocent(_rows: DataFrame) -> dict[str, float]:
    """The same from two channels on one simulated connection: buffers that the innocent reader got in 160 rounds."""
    answer = {}
    before = {credit_based: _innocent_reads(1, credit_based=credit_based) for credit_based in (False, True)}
    for slowdown in SLOWDOWNS:
        for credit_based, words in ((False, "one line"), (True, "credits")):
            now = _innocent_reads(slowdown, credit_based=credit_based)
            answer[f"{slowdown} times slower, {words}"] = round(now / before[credit_based], 3)
    return answer


def _innocent_reads(slowdown: int, *, credit_based: bool) -> int:
    """In a round each sink takes one step, the slow one only every `slowdown`-th, and between them all else moves."""
    config = Config(segment_size_bytes=64, num_buffers=64, credit_based=credit_based, source_batch=1)
    environment = StreamEnvironment(config, parallelism=2)
    endless = environment.source(lambda *_: IterableReader(iter(lambda: _PAYLOAD, None)), "source", BYTES)
    endless.slot_sharing_group("producers").sink(_ignore).slot_sharing_group("consumers")
    sinks = [StepTask("sink-0"), StepTask("sink-1")]
    counts = []
    with Simulation(environment, num_task_managers=2, check_every=0) as simulation:
        for number in range(_ROUNDS_BEFORE + _ROUNDS + 1):
            if number in (_ROUNDS_BEFORE, _ROUNDS_BEFORE + _ROUNDS):
                tasks = {task.name: task for task in simulation.snapshot().tasks}
                counts.append(tasks["sink-1"].num_records_in)
            _run_without(simulation, sinks)
            enabled = simulation.enabled()
            for sink in sinks if number % slowdown == 0 else sinks[1:]:
                if sink in enabled:
                    simulation.step(sink)
    return counts[1] - counts[0]


# -- L11: floating buffers -----------------------------------------------------------------------------

NUM_CHANNELS = 4
EXCLUSIVE, FLOATING = 2, 8
_FIXED = EXCLUSIVE + FLOATING // NUM_CHANNELS


def _demands(rows: DataFrame) -> DataFrame:
    """Buffers that wait for each of four channels: the rows of the four busiest users."""
    from pyspark.sql import functions as F  # noqa: N812

    return rows.groupBy("user").agg(F.count("*").alias("n")).orderBy(F.desc("n"), "user").limit(NUM_CHANNELS)


def ask_floating(rows: DataFrame) -> dict[str, int]:
    """Buffers under way when the first k channels send: those of their own, and what they get of those that float.

    Shared, 8 float and go where they are wanted. Fixed, each channel has 2 of them, wanted or not.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    ranked = _demands(rows).withColumn("k", F.row_number().over(Window.orderBy(F.desc("n"), "user")))
    first = Window.orderBy("k").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    own = F.sum(F.least("n", F.lit(EXCLUSIVE))).over(first)
    wanted = F.sum(F.greatest(F.col("n") - EXCLUSIVE, F.lit(0))).over(first)
    fixed = F.sum(F.least("n", F.lit(_FIXED))).over(first)
    answer: dict[str, int] = {}
    for k, shared, fixed_each in rows_of(
        ranked.select("k", own + F.least(wanted, F.lit(FLOATING)), fixed).orderBy("k")
    ):
        answer |= {f"{k} of 4 send, shared": shared, f"{k} of 4 send, fixed": fixed_each}
    return answer


def run_floating(rows: DataFrame) -> dict[str, int]:
    """Buffers that stand in the gate of a consumer that never reads, when nothing else can move any more."""
    demands = [n for _, n in rows_of(_demands(rows))]
    answer = {}
    for k in range(1, NUM_CHANNELS + 1):
        answer[f"{k} of 4 send, shared"] = _under_way(demands, k, EXCLUSIVE, FLOATING)
        answer[f"{k} of 4 send, fixed"] = _under_way(demands, k, _FIXED, 0)
    return answer


def _under_way(demands: Sequence[int], num_sending: int, exclusive: int, floating: int) -> int:
    """The sources that do not send stand still: a source that ends would send the end of event time."""
    config = Config(
        segment_size_bytes=64,
        num_buffers=200,
        buffers_per_channel=exclusive,
        floating_buffers_per_gate=floating,
        buffer_timeout_ms=-1,
    )
    environment = StreamEnvironment(config)

    def make_reader(subtask: int, _parallelism: int) -> IterableReader:
        return IterableReader([_PAYLOAD] * demands[subtask])

    source = environment.source(make_reader, "source", BYTES, parallelism=NUM_CHANNELS)
    source.slot_sharing_group("producers").rebalance().sink(_ignore).slot_sharing_group("consumers")
    silent = [StepTask(f"source-{channel}") for channel in range(num_sending, NUM_CHANNELS)]
    with Simulation(environment, num_task_managers=NUM_CHANNELS + 1, check_every=0) as simulation:
        _run_without(simulation, [StepTask("sink-0"), *silent])
        (gate,) = [gate for deployment in simulation.deployments for gate in deployment.gates]
        return sum(channel.num_available for channel in gate.snapshot().channels)


def _run_without(simulation: Simulation, halted: Sequence[StepTask]) -> None:
    """Do all that can be done now, but not these steps."""
    while rest := [action for action in simulation.enabled() if action not in halted]:
        simulation.step(rest[0])


# -- L18: a real Flink ---------------------------------------------------------------------------------


def ask_frames(rows: DataFrame) -> dict[str, int]:
    """Fields of each frame, two hex digits to a byte: the kind is byte 33, the size of the payload bytes 35 to 38."""
    from pyspark.sql import functions as F  # noqa: N812

    kind = F.conv(F.substring("frame", 2 * 33 + 1, 2), 16, 10).cast("int")
    size = F.conv(F.substring("frame", 2 * 35 + 1, 8), 16, 10).cast("int")
    fields = rows.select("channel", kind.alias("kind"), size.alias("size")).groupBy("channel")
    found = fields.agg(
        F.count_if(F.col("kind") == 0).alias("buffers"),
        F.sum(F.when(F.col("kind") == 0, F.col("size"))).alias("bytes"),
        F.count_if(F.col("kind") != 0).alias("events"),
    )
    answer: dict[str, int] = {}
    for channel, buffers, num_bytes, events in rows_of(found.orderBy("channel")):
        answer |= {f"channel {channel}, buffers": buffers, f"channel {channel}, bytes": num_bytes}
        answer |= {f"channel {channel}, events": events}
    return answer


def read_frames(_rows: DataFrame) -> dict[str, int]:
    """What two channels of ours get that talk to a Flink."""
    from course.peer.with_flink import talk_to_flink

    answer: dict[str, int] = {}
    for number, channel in enumerate(talk_to_flink().channels):
        answer |= {f"channel {number}, buffers": channel["data_buffers"], f"channel {number}, bytes": channel["bytes"]}
        answer |= {f"channel {number}, events": channel["events"]}
    return answer
