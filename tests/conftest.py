"""Fixtures for all tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The one Spark session of the test run; tests never stop it. Where Spark cannot start, they fail."""
    from course.data.session import spark as start

    return start("tests", quick=True)
