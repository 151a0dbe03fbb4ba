"""What the checks of 6.1 and 6.2 share: how a graph is told that is not as it was."""

from __future__ import annotations

from typing import Any

from course.curriculum.messages import phrase

__all__ = ["tell_graph"]


def tell_graph(value: Any) -> str:
    """What became of the graph of the one who asks, if it is not as it was."""
    return "" if value is None else phrase("graph_changed", "6.1", nodes=value[0], edges=value[1])
