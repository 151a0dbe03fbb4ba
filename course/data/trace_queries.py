"""Questions to a trace, answered by Spark SQL: each takes a trace as a DataFrame and returns a DataFrame.

A trace has the columns that `course.data.trace_files` lists; `load_trace` reads one. In the answers

    channel     partition and subpartition, such as `map-0 → sink[1]`; `producer`, `consumer` are the tasks at its ends
    task        such as `map-0`
    …_us        microseconds; `from_us`, `to_us`, `start_us` count from the first row of the trace
    …_share     part of the time from the first row of the trace to the last, 0 to 1
    p50, p99    exact percentiles, interpolated

    question      a row for each    columns
    residency     channel           buffers, queued_p50_us, queued_p99_us, wire_…, inbox_…, held_…
    stalls        channel           stalls, stall_us, longest_us, stall_share
    progress      task              busy_us, idle_us, backpressured_us, and the same as …_share
    timeline      stretch of time   task, state, from_us, to_us
    throughput    channel, window   start_us, buffers, bytes, mb_per_s
    latency       channel, window   start_us, buffers, p50_us, p99_us, max_us
    in_flight     channel           most_buffers, most_bytes
    gaps          channel           gaps, p50_us, p99_us, max_us
    invariant     broken law        channel, sequence, problem; no row at all if each buffer was sent once and
                                    came once, in order
    bottleneck    culprit           task, busy_share, backpressured_share, held_up (tasks), held_up_us

A buffer is *queued* from when it is opened until it is delivered, on the *wire* until it is received, in the *inbox*
until the task takes it; it is *held* from when it is opened until its segment is back in the producer's pool. A local
channel has neither wire nor inbox: these are null. A *stall* lasts while there is data and too little credit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.data.scratch import spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "QUESTIONS", "Question", "TraceMissingError", "bottleneck", "gaps", "in_flight", "invariant",
    "latency", "load_trace", "progress", "residency", "stalls", "throughput", "timeline",
]  # fmt: skip


class TraceMissingError(ValueError):
    """There is no trace to read; the text says where and why."""


def load_trace(session: SparkSession, path: str | Path) -> DataFrame:
    """Return the trace in a folder, of all its TaskManagers, or in one file.

    Raises:
        TraceMissingError: there is none, or the file is no trace.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from course.data.trace_files import COLUMNS

    place = Path(path).absolute()
    files = sorted(place.glob("trace-*.parquet")) if place.is_dir() else [place]
    if not files or not files[0].exists():
        raise TraceMissingError(f"{path} has no trace; `sluice demo --trace {path}` writes one")
    try:
        trace = session.read.parquet(*map(spark_path, files))
        missing = [name for name in COLUMNS if name not in trace.columns]
    except (PySparkException, Py4JJavaError) as error:
        raise TraceMissingError(f"{path} cannot be read as a trace; is it whole, and Parquet?") from error
    if missing:
        raise TraceMissingError(f"{path} is no trace: it has no column {missing[0]}")
    return trace.select(*COLUMNS)


# -- parts of queries --------------------------------------------------------------------------------

_SPAN = "span AS (SELECT min(time_us) AS start_us, max(time_us) AS end_us FROM {trace})"

_ENDS = """
ends AS (
  SELECT c.subject, c.target, concat(c.subject, '[', c.target, ']') AS channel, o.peer AS producer, c.peer AS consumer,
         c.kind = 'remote channel' AS is_remote
  FROM {trace} c LEFT JOIN {trace} o ON o.kind = 'output' AND o.subject = c.subject
  WHERE c.kind IN ('local channel', 'remote channel')
)"""

# The next moment after a row at which its segment came home, or its buffer was delivered: the last one of a
# window that looks back, with the order turned round, since Spark computes such a window in one go.
_BUFFERS = """
homes AS (
  SELECT *, last(CASE WHEN kind = 'recycle' THEN time_us END, true) OVER (
    PARTITION BY task_manager, subject, segment ORDER BY number DESC ROWS UNBOUNDED PRECEDING) AS home_us
  FROM {trace} WHERE segment >= 0 AND kind IN ('queue', 'deliver', 'recycle')
),
queued AS (
  SELECT *, last(CASE WHEN kind = 'queue' THEN time_us END, true) OVER w AS queue_us,
         last(CASE WHEN kind = 'queue' THEN number END, true) OVER w AS queue_number
  FROM homes WHERE kind IN ('queue', 'deliver')
  WINDOW w AS (PARTITION BY task_manager, subject, target, segment ORDER BY number ROWS UNBOUNDED PRECEDING)
),
arrivals AS (
  SELECT subject, target, sequence, min(CASE WHEN kind = 'receive' THEN time_us END) AS receive_us,
         min(CASE WHEN kind = 'take' THEN time_us END) AS take_us
  FROM {trace} WHERE kind IN ('receive', 'take') GROUP BY subject, target, sequence
),
buffers AS (
  SELECT e.channel, e.producer, e.consumer, e.is_remote, q.sequence, q.bytes, q.number, q.queue_number, q.queue_us,
         q.time_us AS deliver_us, a.receive_us, a.take_us, q.home_us
  FROM queued q JOIN ends e ON e.subject = q.subject AND e.target = q.target
  LEFT JOIN arrivals a ON a.subject = q.subject AND a.target = q.target AND a.sequence = q.sequence
  WHERE q.kind = 'deliver'
)"""

_STRETCHES = """
stretches AS (
  SELECT subject AS task, kind AS state, time_us,
         coalesce(lead(time_us) OVER (PARTITION BY subject ORDER BY task_manager, number), end_us) AS until_us,
         start_us, end_us
  FROM {trace}, span WHERE kind IN ('made', 'idle', 'backpressured', 'done')
),
shares AS (
  SELECT task, sum(CASE WHEN state = 'made' THEN until_us - time_us ELSE 0 END) AS busy_us,
         sum(CASE WHEN state = 'idle' THEN until_us - time_us ELSE 0 END) AS idle_us,
         sum(CASE WHEN state = 'backpressured' THEN until_us - time_us ELSE 0 END) AS backpressured_us,
         greatest(max(end_us - start_us), 1) AS span_us
  FROM stretches GROUP BY task
)"""


def _ask(trace: DataFrame, parts: tuple[str, ...], select: str, **values: Any) -> DataFrame:
    """Run a query over the trace; `values` stand in it by name."""
    query = f"WITH {', '.join(parts)} {select}" if parts else select
    return trace.sparkSession.sql(query, trace=trace, **values)


def _window_us(window_ms: float) -> int:
    if window_ms * 1000 < 1:
        raise ValueError(f"window_ms must be at least 0.001, got {window_ms}")
    return round(window_ms * 1000)


# -- questions ---------------------------------------------------------------------------------------


def residency(trace: DataFrame) -> DataFrame:
    """Where buffers spend their time, for each channel."""
    # A buffer that is delivered in pieces is one buffer: it was in the queue until the last piece.
    return _ask(
        trace,
        (_ENDS, _BUFFERS),
        """
    , whole AS (
      SELECT channel, producer, consumer, queue_us, home_us, max(deliver_us) AS deliver_us,
             max(receive_us) AS receive_us, max(take_us) AS take_us
      FROM buffers WHERE queue_us IS NOT NULL GROUP BY channel, producer, consumer, queue_us, queue_number, home_us
    )
    SELECT channel, producer, consumer, count(*) AS buffers,
           percentile(deliver_us - queue_us, 0.5) AS queued_p50_us,
           percentile(deliver_us - queue_us, 0.99) AS queued_p99_us,
           percentile(receive_us - deliver_us, 0.5) AS wire_p50_us,
           percentile(receive_us - deliver_us, 0.99) AS wire_p99_us,
           percentile(take_us - receive_us, 0.5) AS inbox_p50_us,
           percentile(take_us - receive_us, 0.99) AS inbox_p99_us,
           percentile(home_us - queue_us, 0.5) AS held_p50_us,
           percentile(home_us - queue_us, 0.99) AS held_p99_us
    FROM whole GROUP BY channel, producer, consumer ORDER BY channel""",
    )


def stalls(trace: DataFrame) -> DataFrame:
    """How long each channel had data and no credit to send it."""
    return _ask(
        trace,
        (_SPAN, _ENDS),
        """
    , waits AS (
      SELECT subject, target, kind, time_us, end_us, start_us,
             coalesce(lead(time_us) OVER (PARTITION BY subject, target ORDER BY number), end_us) AS until_us
      FROM {trace}, span WHERE kind IN ('wait', 'grant')
    )
    SELECT channel, producer, consumer, count(*) AS stalls, sum(until_us - time_us) AS stall_us,
           max(until_us - time_us) AS longest_us,
           sum(until_us - time_us) / greatest(max(end_us - start_us), 1) AS stall_share
    FROM waits JOIN ends USING (subject, target) WHERE kind = 'wait'
    GROUP BY channel, producer, consumer ORDER BY stall_us DESC, channel""",
    )


def progress(trace: DataFrame) -> DataFrame:
    """How long each task was busy, idle and backpressured."""
    return _ask(
        trace,
        (_SPAN, _STRETCHES),
        """
    SELECT task, busy_us, idle_us, backpressured_us, busy_us / span_us AS busy_share, idle_us / span_us AS idle_share,
           backpressured_us / span_us AS backpressured_share
    FROM shares ORDER BY task""",
    )


def timeline(trace: DataFrame) -> DataFrame:
    """What each task did from when to when; the end, `done`, is no stretch."""
    return _ask(
        trace,
        (_SPAN, _STRETCHES),
        """
    SELECT task, state, time_us - start_us AS from_us, until_us - start_us AS to_us
    FROM stretches WHERE state <> 'done' ORDER BY task, from_us, to_us""",
    )


def throughput(trace: DataFrame, window_ms: float = 100) -> DataFrame:
    """What went through each channel, window by window."""
    return _ask(
        trace,
        (_SPAN, _ENDS, _BUFFERS),
        """
    SELECT channel, producer, consumer, (deliver_us - start_us) div {width} * {width} AS start_us, count(*) AS buffers,
           sum(bytes) AS bytes, sum(bytes) / {width} AS mb_per_s
    FROM buffers, span GROUP BY ALL ORDER BY start_us, channel""",
        width=_window_us(window_ms),
    )


def latency(trace: DataFrame, window_ms: float = 100) -> DataFrame:
    """How long it takes from opening a buffer until the consuming task has it, by the window in which it has."""
    return _ask(
        trace,
        (_SPAN, _ENDS, _BUFFERS),
        """
    , taken AS (SELECT *, CASE WHEN is_remote THEN take_us ELSE deliver_us END AS taken_us FROM buffers)
    SELECT channel, producer, consumer, (taken_us - start_us) div {width} * {width} AS start_us, count(*) AS buffers,
           percentile(taken_us - queue_us, 0.5) AS p50_us, percentile(taken_us - queue_us, 0.99) AS p99_us,
           max(taken_us - queue_us) AS max_us
    FROM taken, span WHERE taken_us IS NOT NULL AND queue_us IS NOT NULL
    GROUP BY ALL ORDER BY start_us, channel""",
        width=_window_us(window_ms),
    )


def in_flight(trace: DataFrame) -> DataFrame:
    """The most buffers that were on their way at a time: sent over a connection and not taken, or in a task's hands."""
    return _ask(
        trace,
        (_ENDS, _BUFFERS),
        """
    , changes AS (
      SELECT channel, producer, consumer, deliver_us AS time_us, 1 AS change, bytes FROM buffers
      UNION ALL
      SELECT channel, producer, consumer, CASE WHEN is_remote THEN take_us ELSE home_us END, -1, -bytes FROM buffers
    ),
    levels AS (
      SELECT channel, producer, consumer, sum(change) OVER w AS level, sum(bytes) OVER w AS level_bytes
      FROM changes WHERE time_us IS NOT NULL
      WINDOW w AS (PARTITION BY channel ORDER BY time_us, change DESC ROWS UNBOUNDED PRECEDING)
    )
    SELECT channel, producer, consumer, max(level) AS most_buffers, max(level_bytes) AS most_bytes
    FROM levels GROUP BY ALL ORDER BY channel""",
    )


def gaps(trace: DataFrame) -> DataFrame:
    """How long each channel was silent between two buffers."""
    return _ask(
        trace,
        (_ENDS, _BUFFERS),
        """
    , silences AS (
      SELECT channel, producer, consumer,
             lead(deliver_us) OVER (PARTITION BY channel ORDER BY number) - deliver_us AS gap_us
      FROM buffers
    )
    SELECT channel, producer, consumer, count(gap_us) AS gaps, percentile(gap_us, 0.5) AS p50_us,
           percentile(gap_us, 0.99) AS p99_us, max(gap_us) AS max_us
    FROM silences WHERE gap_us IS NOT NULL GROUP BY ALL ORDER BY channel""",
    )


def invariant(trace: DataFrame, clock_error_us: int = 1000) -> DataFrame:
    """Where the trace breaks the law that each buffer is sent once and comes once, in order; empty if nowhere.

    Between TaskManagers a buffer may seem to come up to `clock_error_us` before it was sent.
    """
    return _ask(
        trace,
        (_ENDS,),
        """
    , moves AS (
      SELECT e.channel, e.is_remote, t.kind, t.sequence, t.number, t.time_us,
             lag(t.sequence, 1, -1) OVER (PARTITION BY t.subject, t.target, t.kind ORDER BY t.number) AS before
      FROM {trace} t JOIN ends e USING (subject, target) WHERE t.kind IN ('deliver', 'receive', 'take')
    ),
    buffers AS (
      SELECT channel, sequence, is_remote, count_if(kind = 'deliver') AS sent, count_if(kind = 'receive') AS received,
             count_if(kind = 'take') AS taken, min(CASE WHEN kind = 'deliver' THEN time_us END) AS sent_us,
             min(CASE WHEN kind = 'receive' THEN time_us END) AS received_us
      FROM moves GROUP BY ALL
    ),
    problems AS (
      SELECT channel, sequence, concat(kind, ' follows that of ', before) AS problem FROM moves
      WHERE sequence <> before + 1
      UNION ALL SELECT channel, sequence, concat('sent ', sent, ' times') FROM buffers WHERE sent <> 1
      UNION ALL SELECT channel, sequence, concat('received ', received, ' times') FROM buffers
      WHERE is_remote AND received <> 1
      UNION ALL SELECT channel, sequence, concat('taken ', taken, ' times') FROM buffers WHERE is_remote AND taken <> 1
      UNION ALL SELECT channel, sequence, concat('received ', sent_us - received_us, ' us before it was sent')
      FROM buffers WHERE received_us < sent_us - {clock_error_us}
      UNION ALL SELECT subject, -1, concat(bytes, ' rows of the trace were lost') FROM {trace} WHERE kind = 'lost'
    )
    SELECT * FROM problems ORDER BY channel, sequence, problem""",
        clock_error_us=clock_error_us,
    )


def bottleneck(trace: DataFrame, threshold: float = 0.1) -> DataFrame:
    """Who causes backpressure: tasks that hold others up and are held up by nobody.

    A task is backpressured if it was so for `threshold` of the time. Each of its consumers that is not backpressured
    itself is to blame; the busiest first.
    """
    return _ask(
        trace,
        (_SPAN, _ENDS, _STRETCHES),
        """
    , states AS (
      SELECT task, busy_us / span_us AS busy_share, backpressured_us, backpressured_us / span_us AS backpressured_share
      FROM shares
    ),
    edges AS (SELECT DISTINCT producer, consumer FROM ends)
    SELECT c.task, c.busy_share, c.backpressured_share, array_join(sort_array(collect_list(p.task)), ', ') AS held_up,
           sum(p.backpressured_us) AS held_up_us
    FROM edges JOIN states p ON p.task = edges.producer JOIN states c ON c.task = edges.consumer
    WHERE p.backpressured_share >= {threshold} AND c.backpressured_share < {threshold}
    GROUP BY c.task, c.busy_share, c.backpressured_share
    ORDER BY c.busy_share DESC, c.task""",
        threshold=threshold,
    )


@dataclass(frozen=True, slots=True)
class Question:
    """A question with a name: what it asks, how it is answered, and what an empty answer means."""

    meaning: str
    ask: Callable[[DataFrame], DataFrame]
    nothing: str = "nothing of the kind happened"


QUESTIONS = {
    "progress": Question("how long each task was busy, idle and backpressured", progress),
    "bottleneck": Question("who causes backpressure", bottleneck, "no task was held up"),
    "residency": Question("where buffers spend their time", residency),
    "stalls": Question("how long channels had data and no credit", stalls, "no channel waited for credit"),
    "throughput": Question("what went through, by 100 ms", throughput),
    "latency": Question("from opening a buffer until its consumer has it, by 100 ms", latency),
    "in_flight": Question("the most buffers that were on their way at a time", in_flight),
    "gaps": Question("how long channels were silent between two buffers", gaps),
    "timeline": Question("what each task did from when to when", timeline),
    "invariant": Question(
        "is each buffer sent once and received once, in order", invariant, "it holds: each buffer once, in order"
    ),
}
"""What `sluice trace` can ask, in the order in which one looks."""
