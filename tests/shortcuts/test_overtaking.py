"""A barrier overtakes in a fast subpartition as it does in that of the book."""

from __future__ import annotations

import pytest

from refimpl.producer import SubpartitionQueue
from refimpl.shortcuts.partition import FastPipelinedSubpartition
from tests.refimpl.producer.test_overtaking import *  # noqa: F403 - the same tests


@pytest.fixture
def rules() -> type[SubpartitionQueue]:
    """The kind of subpartition that is overtaken in."""
    return FastPipelinedSubpartition
