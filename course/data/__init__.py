"""The tables of the course, and the Spark that makes, deals out and checks them."""

from course.data.comparison import compare_frames
from course.data.dataframe_source import DataFrameSource
from course.data.datasets import table
from course.data.flights import FlightsUnavailable, load
from course.data.oracle import Comparison, Departures, compare, departures_per_window
from course.data.partitions import Partition, partitions
from course.data.session import SparkUnavailable, cancels, spark
from course.data.statistics import describe
from course.data.store import TableError, cached
from course.data.table_sink import TableSink

__all__ = [
    "Comparison",
    "DataFrameSource",
    "Departures",
    "FlightsUnavailable",
    "Partition",
    "SparkUnavailable",
    "TableError",
    "TableSink",
    "cached",
    "cancels",
    "compare",
    "compare_frames",
    "departures_per_window",
    "describe",
    "load",
    "partitions",
    "spark",
    "table",
]
