"""Spark for a lesson's data section, which is skipped, and says so, where Spark cannot start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from course.data.session import SparkUnavailable, spark
from course.places import IN_A_BROWSER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_or_none"]


def spark_or_none() -> SparkSession | None:
    """The session; or `None`, after printing why there is none. A skipped section counts as not done."""
    if IN_A_BROWSER:
        print("○ skipped: Spark needs Java and processes, which a browser does not have. JupyterLab has them: make lab")
        return None
    try:
        return spark(quick=True)
    except SparkUnavailable as error:
        print(f"○ skipped: {error}")
        return None
