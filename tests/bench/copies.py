"""How long it takes to copy a buffer, by how much further in its page it lies than where it comes from.

    python -m tests.bench.copies

Nothing of this is the engine's: it is what one copy costs on this machine, and why the engine's memory begins with
pages (`refimpl/memory/pages.py`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from tests.bench.contenders import SEGMENT_BYTES

__all__ = ["copied", "seconds_of"]

PAGE = 4_096
SHIFTS = (0, 1, 8, 15, 16, 17, 32, 64, 2_048, PAGE - 1)
COPIES = 2_000


def copied(shift: int, content: bytes) -> tuple[memoryview, memoryview]:
    """Where `content` lies, and a place `shift` bytes further in a page, not written yet."""
    places = []
    for start in (0, shift):
        memory = bytearray(len(content) + 2 * PAGE)
        address = np.frombuffer(memory, np.uint8).ctypes.data
        first = -address % PAGE + start
        places.append(memoryview(memory)[first : first + len(content)])
    source, target = places
    source[:] = content
    return source, target


def seconds_of(shift: int, num_copies: int = COPIES) -> float:
    """Seconds that one copy of 32 KiB takes."""
    source, target = copied(shift, bytes(SEGMENT_BYTES))
    start = time.perf_counter()
    for _ in range(num_copies):
        target[:] = source
    return (time.perf_counter() - start) / num_copies


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.copies", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="turns of each (7)")
    rounds = max(1, parser.parse_args(arguments).rounds)
    turns = [[seconds_of(shift) for shift in SHIFTS] for _ in range(rounds)]
    print(f"bytes further  us for {SEGMENT_BYTES // 1024} KiB, median of {rounds} [least .. most]")
    for shift, taken in zip(SHIFTS, np.array(turns).T * 1e6, strict=True):
        print(f"{shift:13}  {np.median(taken):.2f} [{taken.min():.2f} .. {taken.max():.2f}]")


if __name__ == "__main__":
    main()
