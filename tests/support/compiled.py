"""What tests ask of the source that a compiled engine cannot give, each with its reason; `make test-compiled` skips it.

Everything else that is tested of the engine must hold for both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from course.compiled.choice import VARIABLE

__all__ = ["is_compiled", "is_left_out", "refused", "skip_on_compiled"]

TYPES = "a compiled function refuses an argument of another type itself, with a TypeError, before the engine can"
PATCHED = "nobody can replace a method of a compiled class, or a function that compiled code calls"
SIGNATURE = "a compiled class has no signature that `inspect` could read"

FILES = {
    "shortcuts/test_chain.py": SIGNATURE,
    "shortcuts/test_contract.py": SIGNATURE,
    "shortcuts/test_input.py": SIGNATURE,
    "shortcuts/test_task.py": SIGNATURE,
}
"""Files whose tests need it while they are made."""

TESTS = {
    "refimpl/consumer/test_buffer_manager.py::test_a_released_channel_takes_no_floating_buffer": TYPES,
    "refimpl/producer/test_result_partition.py::test_a_flush_looks_at_no_channel_in_which_nothing_was_written": PATCHED,
    "refimpl/task/test_operators.py::test_an_exception_names_operator_subtask_and_record[WatermarkOperator": TYPES,
    "shortcuts/test_batches.py::test_a_function_that_fails_on_a_batch_names_the_record_as_without_shortcuts"
    "[assign_timestamps": TYPES,
    "shortcuts/test_batches.py::test_times_that_are_no_longs_are_made_one_by_one[float]": TYPES,
    "shortcuts/test_batches.py::test_times_that_are_no_longs_are_made_one_by_one[missing]": TYPES,
    "shortcuts/test_runs.py::test_a_function_in_the_place_of_to_frame_wraps_each_frame": PATCHED,
    "shortcuts/test_runs.py::test_a_run_leaves_credit_for_one_and_two_entries": PATCHED,
    "shortcuts/test_selectors.py::test_more_keys_than_can_be_remembered_still_find_their_channel": PATCHED,
    "shortcuts/test_unaligned_mutants.py::": PATCHED,
    "shortcuts/test_writer.py::test_a_batch_takes_new_memory_only_while_another_waits": PATCHED,
}
"""Tests by the beginning of their id."""


def is_compiled() -> bool:
    """Whether the tests are of the compiled engine."""
    return os.environ[VARIABLE] == "compiled"


@contextmanager
def refused(error: type[Exception], words: str) -> Iterator[None]:
    """As `pytest.raises(error, match=words)`; a compiled function may refuse an argument itself, as in `TYPES`."""
    with pytest.raises((error, TypeError) if is_compiled() else error) as caught:
        yield
    if isinstance(caught.value, error):
        caught.match(words)


_TESTS_FOLDER = Path(__file__).resolve().parents[1]


def is_left_out(path: Path) -> bool:
    """Whether a file cannot even be collected."""
    return path.is_relative_to(_TESTS_FOLDER) and path.relative_to(_TESTS_FOLDER).as_posix() in FILES


def skip_on_compiled(items: list[pytest.Item]) -> None:
    """Skip what cannot hold, with its reason."""
    for item in items:
        for beginning, reason in TESTS.items():
            if item.nodeid.removeprefix("tests/").startswith(beginning):
                item.add_marker(pytest.mark.skip(reason=reason))
