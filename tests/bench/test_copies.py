"""The copies are made where the table says, and each line of the table is one of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.bench.copies import PAGE, SHIFTS, copied, main


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_target_lies_so_much_further_in_its_page(shift: int) -> None:
    source, target = copied(shift, bytes(range(200)))
    here, there = (np.frombuffer(place, np.uint8).ctypes.data for place in (source, target))
    assert ((there - here) % PAGE, here % PAGE) == (shift, 0)
    assert (bytes(source), len(target)) == (bytes(range(200)), 200)


def test_there_is_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rounds", "1"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert "us for 32 KiB, median of 1" in head
    assert [int(line.split()[0]) for line in lines] == list(SHIFTS)
