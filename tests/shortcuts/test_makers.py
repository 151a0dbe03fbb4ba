"""Which parts the fast makers make."""

from __future__ import annotations

import pytest

from refimpl.job.makers import Makers
from refimpl.shortcuts.makers import FastMakers

PARTS = {name: part for name, part in vars(Makers).items() if isinstance(part, type)}


@pytest.mark.parametrize("name", PARTS)
def test_each_plain_part_has_one_that_saves_work_in_its_place(name: str) -> None:
    fast = vars(FastMakers)[name]
    assert issubclass(fast, PARTS[name])
    assert fast.__module__.startswith("refimpl.shortcuts.")
