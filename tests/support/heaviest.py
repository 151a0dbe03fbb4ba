"""Which files work longest: `make test` begins with them, so that its processes end at the same time."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["HEAVIEST", "place"]

HEAVIEST: Sequence[str] = (
    "tests/browser/test_lite.py",
    "tests/cluster/test_local_cluster.py",
    "tests/lessons/test_notebooks.py",
    "tests/course/author/test_graders.py",
    "tests/cluster/test_standalone.py",
    "tests/browser/test_every_view.py",
    "tests/browser/test_views.py",
    "tests/course/data/test_session.py",
    "tests/browser/test_tab.py",
    "tests/drivers/test_process_restarts.py",
    "tests/drivers/test_processes.py",
    "tests/course/data/test_sections.py",
    "tests/course/site/test_site.py",
    "tests/browser/test_lab.py",
    "tests/browser/test_site_pages.py",
    "tests/course/site/test_tab.py",
    "tests/course/classroom/test_real_hub.py",
    "tests/lessons/test_solved_notebooks.py",
    "tests/course/test_package.py",
    "tests/course/jobs/test_run.py",
    "tests/browser/test_class.py",
    "tests/interop/test_both_ways.py",
    "tests/course/grading/test_children.py",
    "tests/widgets/test_every_view.py",
    "tests/browser/test_stepper.py",
    "tests/browser/test_module_format.py",
    "tests/bench/test_bench.py",
    "tests/browser/test_control.py",
    "tests/course/learner/test_lab.py",
    "tests/course/data/test_datasets.py",
    "tests/course/cli/test_odd_names.py",
    "tests/bench/test_spark_cluster.py",
    "tests/test_windows.py",
    "tests/shortcuts/test_contract.py",
    "tests/course/data/test_traces.py",
    "tests/chaos/test_chaos.py",
    "tests/course/data/test_dataframe_source.py",
    "tests/test_odd_values.py",
    "tests/course/curriculum/test_pseudo_locale.py",
    "tests/shortcuts/test_writer.py",
    "tests/course/grading/test_right_answers.py",
    "tests/course/grading/test_isolation.py",
    "tests/course/swap/test_swap_pressure.py",
    "tests/course/swap/test_all_parts.py",
    "tests/course/swap/test_swap_live.py",
    "tests/course/author/test_build.py",
    "tests/test_drivers.py",
    "tests/refimpl/rivals/test_race.py",
    "tests/drivers/test_cluster_leaders.py",
    "tests/drivers/test_user_errors.py",
    "tests/course/data/test_partitions.py",
    "tests/course/grading/test_subtle_answers.py",
    "tests/drivers/test_process_scripts.py",
    "tests/browser/test_predictions.py",
    "tests/bench/test_growth.py",
    "tests/course/flink/test_flink.py",
    "tests/test_remote_laws.py",
    "tests/test_differential.py",
    "tests/drivers/test_recovery.py",
    "tests/bench/test_streaming.py",
    "tests/course/jobs/test_run_checkpoints.py",
)
"""About half a minute or more each, the longest first. One that is missing, or in another place, costs time only."""

_PLACES = {name: place for place, name in enumerate(HEAVIEST)}


def place(node_id: str) -> int:
    """Where a test stands: with its file if that is one of the heaviest, else behind them all."""
    return _PLACES.get(node_id.partition("::")[0], len(_PLACES))
