"""What others see of the pools at one moment."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LocalPoolSnapshot", "NetworkPoolSnapshot"]


@dataclass(frozen=True, slots=True)
class NetworkPoolSnapshot:
    """The global pool at one moment; counts are segments. `free_segments` says which lie here."""

    num_total: int
    num_free: int
    num_required: int
    segment_size_bytes: int
    free_segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LocalPoolSnapshot:
    """A local pool at one moment; counts are buffers.

    Of `num_requested` buffers that were fetched, `num_idle` lie here. `size` is what it may fetch now.
    """

    name: str
    num_required: int
    num_max: int
    size: int
    num_requested: int
    num_idle: int
    num_listeners: int
    is_available: bool
    idle_segments: tuple[int, ...]
    lent_segments: tuple[int, ...]

    @property
    def num_in_use(self) -> int:
        return self.num_requested - self.num_idle
