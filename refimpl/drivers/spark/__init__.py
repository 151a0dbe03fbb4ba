"""A job on a Spark cluster."""

from refimpl.drivers.spark.barrier_task import Order, run_task_manager
from refimpl.drivers.spark.completion import Coordinator, Participant, Vote
from refimpl.drivers.spark.executors import explain_failure, needed_by, ship, wait_for_slots
from refimpl.drivers.spark.results import SparkResults
from refimpl.drivers.spark.rows import COUNTS, ERROR, RESULT, ROW_SCHEMA, TRACE, TaskRows, TraceSender, TraceTable
from refimpl.drivers.spark.run import SparkRun
from refimpl.drivers.spark.stage import BarrierStage, SparkSource

__all__ = [
    "COUNTS",
    "ERROR",
    "RESULT",
    "ROW_SCHEMA",
    "TRACE",
    "BarrierStage",
    "Coordinator",
    "Order",
    "Participant",
    "SparkResults",
    "SparkRun",
    "SparkSource",
    "TaskRows",
    "TraceSender",
    "TraceTable",
    "Vote",
    "explain_failure",
    "needed_by",
    "run_task_manager",
    "ship",
    "wait_for_slots",
]
