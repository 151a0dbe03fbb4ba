"""The generated tables, as Spark expressions of the row number `id`; see `course.data.chance` for why.

`VERSION` goes up when the rows of any of them change: a stored table of another version is made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from course.data.chance import Cells, pick, whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "DELAYS", "LARGEST_DOCUMENT", "OPERATORS", "VERSION", "bursts", "disorder", "documents", "metrics", "plans",
    "zipf",
]  # fmt: skip

VERSION = 1

LARGEST_DOCUMENT = 1 << 20
DELAYS = ("exponential", "uniform", "pareto")
"""How the delays of late rows in `disorder` are spread."""

OPERATORS = ("source", "parse", "enrich", "window", "sink")
NUM_SUBTASKS = 4
_TYPICAL_DOCUMENT = 64
_NUM_KEYS = 10_000
_ALPHA = 1.1
_BURST = 64
_BURST_EVERY_MS = 500


def documents(ids: DataFrame, seed: int) -> DataFrame:
    """Texts of 1 byte to 1 MiB: half of them below 65 bytes, and half of all bytes in a few large ones."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    cells = Cells(seed, "documents")
    size = whole(F.lit(float(_TYPICAL_DOCUMENT)) / (F.lit(1.0) - cells("size"))) - (_TYPICAL_DOCUMENT - 1)
    size = F.least(F.lit(LARGEST_DOCUMENT), size).cast("int")
    letters = F.lower(F.hex(cells.bits("text")))
    text = F.substring(F.repeat(F.lpad(letters, 16, "0"), (size / 16).cast("int") + 1), F.lit(1), size)
    language = pick(cells("language"), [(0.55, "en"), (0.2, "de"), (0.15, "zh"), (0.07, "es"), (0.03, "fi")])
    return ids.select("id", size.alias("size_bytes"), language.alias("language"), text.alias("text"))


def zipf(ids: DataFrame, seed: int) -> DataFrame:
    """Amounts by user, where user number r is as frequent as 1 / r^1.1: the first has a ninth of all rows."""
    from pyspark.sql import functions as F  # noqa: N812

    cells = Cells(seed, "zipf")
    a = _ALPHA - 1.0
    span = 1.0 - float(_NUM_KEYS + 1) ** -a
    rank = whole(F.pow(F.lit(1.0) - cells("user") * F.lit(span), F.lit(-1.0 / a)), "int")
    rank = F.least(rank, F.lit(_NUM_KEYS))  # rounding may reach the end of the span
    user = F.concat(F.lit("user-"), F.lpad(rank.cast("string"), 5, "0"))
    amount = whole(cells("amount") * 100_00)
    return ids.select("id", (F.col("id") * 2).alias("event_time_ms"), user.alias("user"), amount.alias("amount_cents"))


def bursts(ids: DataFrame, seed: int) -> DataFrame:
    """Readings that come 64 at a time, twice a second; a burst takes nothing to a quarter of a second."""
    from pyspark.sql import functions as F  # noqa: N812

    cells = Cells(seed, "bursts")
    burst, place = F.floor(F.col("id") / _BURST), F.pmod(F.col("id"), F.lit(_BURST))
    start_ms = burst * _BURST_EVERY_MS + whole(cells("start", burst) * 200)
    gap_ms = F.element_at(F.array(*map(F.lit, (0, 1, 2, 4))), whole(cells("gap", burst) * 4, "int") + 1)
    sensor = F.concat(F.lit("sensor-"), whole(cells("sensor") * 8).cast("string"))
    return ids.select(
        "id",
        (start_ms + place * gap_ms).cast("bigint").alias("arrival_ms"),
        sensor.alias("sensor"),
        whole(cells("reading") * 1000, "int").alias("reading"),
    )


def disorder(
    ids: DataFrame, seed: int, delays: str = "exponential", late_share: float = 0.1, mean_ms: int = 2_000
) -> DataFrame:
    """Events 20 ms apart, some of which arrive late; `id` counts events, `arrival_ms` is their order.

    Delays of late ones have the mean `mean_ms`: `exponential`, `uniform` up to twice that, or `pareto`, where one in
    a thousand is a hundred times late.

    Raises:
        ValueError: no such way to spread delays, or a share that is none.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if delays not in DELAYS:
        raise ValueError(f"delays are {', '.join(DELAYS)}, not {delays!r}")
    if not 0 <= late_share <= 1:
        raise ValueError(f"the share of late rows is from 0 to 1, not {late_share}")
    cells = Cells(seed, "disorder")
    rest = F.lit(1.0) - cells("delay")  # above 0 to 1
    if delays == "exponential":
        delay = -F.log(rest) * mean_ms
    elif delays == "uniform":
        delay = rest * 2 * mean_ms
    else:
        delay = (F.pow(rest, F.lit(-2 / 3)) - 1.0) * (mean_ms / 2)
    event_time = F.col("id") * 20
    late = F.when(cells("is_late") < late_share, whole(delay)).otherwise(F.lit(0).cast("bigint"))
    key = F.concat(F.lit("key-"), whole(cells("key") * 50).cast("string"))
    return ids.select(
        "id",
        event_time.alias("event_time_ms"),
        (event_time + late).alias("arrival_ms"),
        key.alias("key"),
        whole(cells("value") * 1000, "int").alias("value"),
    )


def metrics(ids: DataFrame, seed: int) -> DataFrame:
    """A sample a second of each of 20 subtasks; each minute another operator, or none, is the bottleneck."""
    from pyspark.sql import functions as F  # noqa: N812

    cells = Cells(seed, "metrics")
    num_series = len(OPERATORS) * NUM_SUBTASKS
    second, series = F.floor(F.col("id") / num_series), F.pmod(F.col("id"), F.lit(num_series))
    operator = F.floor(series / NUM_SUBTASKS)
    minute = F.floor(second / 60)
    # Number 0, the source, stands for "none": a source that is the bottleneck holds nobody up.
    bottleneck = whole(cells("bottleneck", minute) * len(OPERATORS))
    noise, other = cells("busy"), cells("backpressured")
    backpressured = F.when(operator < bottleneck, 700 + whole(other * 300)).otherwise(whole(other * 20))
    busy = (
        F.when((operator == bottleneck) & (bottleneck > 0), 940 + whole(noise * 40))
        .when(operator < bottleneck, whole(noise * (1000 - backpressured)))
        .otherwise(200 + whole(noise * 400))
    )
    named = F.element_at(F.array(*map(F.lit, OPERATORS)), operator.cast("int") + 1)
    truth = F.element_at(F.array(F.lit("none"), *map(F.lit, OPERATORS[1:])), bottleneck.cast("int") + 1)
    return ids.select(
        "id",
        (second * 1000).alias("time_ms"),
        named.alias("operator"),
        F.pmod(series, F.lit(NUM_SUBTASKS)).cast("int").alias("subtask"),
        busy.cast("int").alias("busy_permille"),
        backpressured.cast("int").alias("backpressured_permille"),
        (1000 - busy - backpressured).cast("int").alias("idle_permille"),
        truth.alias("bottleneck"),
    )


def plans(ids: DataFrame, seed: int) -> DataFrame:
    """Jobs of two operators with an exchange between them, and the buffers each TaskManager has."""
    from pyspark.sql import functions as F  # noqa: N812

    cells = Cells(seed, "plans")
    producers, consumers = whole(cells("producers") * 12, "int") + 1, whole(cells("consumers") * 24, "int") + 1
    most = F.least(F.greatest(producers, consumers), F.lit(4))
    sizes = F.array(*map(F.lit, (16, 32, 64, 128, 256)))
    return ids.select(
        "id",
        producers.alias("producers"),
        consumers.alias("consumers"),
        (whole(cells("task_managers") * most, "int") + 1).alias("task_managers"),
        F.element_at(sizes, whole(cells("buffers") * 5, "int") + 1).alias("buffers"),
    )
