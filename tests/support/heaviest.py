"""Which files work longest: `make test` begins with them, so that its two processes end at the same time."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["HEAVIEST", "place"]

HEAVIEST: Sequence[str] = (
    "tests/course/author/test_graders.py",
    "tests/lessons/test_notebooks.py",
    "tests/cluster/test_local_cluster.py",
    "tests/cluster/test_standalone.py",
    "tests/browser/test_views.py",
    "tests/browser/test_every_view.py",
    "tests/browser/test_module_format.py",
    "tests/browser/test_class.py",
    "tests/browser/test_lab.py",
    "tests/course/grading/test_right_answers.py",
    "tests/lessons/test_solved_notebooks.py",
    "tests/course/data/test_session.py",
    "tests/course/data/test_datasets.py",
    "tests/course/data/test_sections.py",
    "tests/course/data/test_traces.py",
    "tests/course/data/test_dataframe_source.py",
    "tests/course/grading/test_grading.py",
    "tests/test_pages.py",
    "tests/bench/test_spark_cluster.py",
    "tests/course/cli/test_odd_names.py",
    "tests/course/grading/test_children.py",
    "tests/drivers/test_processes.py",
    "tests/test_odd_values.py",
    "tests/test_differential.py",
    "tests/test_drivers.py",
    "tests/test_remote_laws.py",
    "tests/course/grading/test_channel_graders.py",
    "tests/course/grading/test_boundary.py",
    "tests/interop/test_both_ways.py",
    "tests/course/grading/test_subtle_answers.py",
    "tests/course/grading/test_isolation.py",
)
"""About half a minute or more each, the longest first. One that is missing, or in another place, costs time only."""

_PLACES = {name: place for place, name in enumerate(HEAVIEST)}


def place(node_id: str) -> int:
    """Where a test stands: with its file if that is one of the heaviest, else behind them all."""
    return _PLACES.get(node_id.partition("::")[0], len(_PLACES))
