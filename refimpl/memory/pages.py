"""Memory that begins where a page of the machine does.

All large copies of the engine go between such places: from a batch's rows to segments, from segments to where they are
read together. Many processors copy 32 KiB fifteen times as slowly if the target lies a few bytes further in its page
than the source, and memory that begins anywhere lies so by chance, and then for the whole run. See
`tests/bench/RESULTS.md`, "Copies".
"""

from __future__ import annotations

import mmap

__all__ = ["SAFE_SHIFT", "allocate_pages"]

SAFE_SHIFT = 64
"""Bytes: places that differ by a multiple of this are never too near to each other in their pages."""

_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)  # the last, of Linux: there at once


def allocate_pages(num_bytes: int) -> memoryview:
    """`num_bytes` of zeroed memory, at least one; it goes back to the system with its last view.

    Raises:
        MemoryError: the system has less; the message names the size.
    """
    try:
        return memoryview(mmap.mmap(-1, num_bytes, flags=_FLAGS))
    except (OSError, OverflowError) as error:
        raise MemoryError(f"the system does not have {num_bytes / 2**20:,.0f} MiB of memory for buffers") from error
