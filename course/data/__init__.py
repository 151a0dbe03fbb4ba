"""The flights of 2013 and the Spark that prepares, deals out and checks them."""

from course.data.flights import FlightsUnavailable, load
from course.data.oracle import Comparison, Departures, compare, departures_per_window
from course.data.partitions import Partition, partitions
from course.data.session import SparkUnavailable, cancels, spark

__all__ = [
    "Comparison",
    "Departures",
    "FlightsUnavailable",
    "Partition",
    "SparkUnavailable",
    "cancels",
    "compare",
    "departures_per_window",
    "load",
    "partitions",
    "spark",
]
