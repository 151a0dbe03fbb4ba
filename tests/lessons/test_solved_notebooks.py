"""Every lesson with the reference parts in place runs as it is stored; a file of its own, so that two run at a time."""

from __future__ import annotations

import pytest

from tests.lessons.strict import SOLVED, check_unchanged


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("notebook", SOLVED, ids=lambda path: path.name)
def test_strict_nbval_finds_every_output_unchanged(notebook, tmp_path):
    check_unchanged(notebook, tmp_path)
