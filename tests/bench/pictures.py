"""Where a benchmark saves its figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from widgets.paper import FORMATS

__all__ = ["picture_file"]


def picture_file(name: str) -> Path:
    """A file that a figure can be saved to, for argparse: refused before anything is measured, not after."""
    path = Path(name)
    if path.suffix not in FORMATS:
        raise argparse.ArgumentTypeError(f"{name}: a figure is saved as {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{name}: there is no folder {path.parent}")
    return path
