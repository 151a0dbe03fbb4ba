"""What the process of one role runs, by `node_command`: with a folder and the options of the role in JSON behind it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from refimpl.drivers.cluster.high_availability.cluster_folder import ClusterFolder
from refimpl.drivers.cluster.processes.node import ClusterNode
from refimpl.drivers.cluster.processes.node_options import NodeOptions
from refimpl.errors import SluiceError

__all__ = ["main", "play_role"]

_SECONDS_TO_END = 20.0


def play_role(
    folder: Path,
    options: NodeOptions,
    parent: IO[bytes] | None = None,
    begin: Callable[[Callable[[], None]], None] | None = None,
) -> int:
    """Play a role until SIGTERM, SIGINT, or the end of what `parent` sends; the exit status.

    `begin` is called before it begins, with what ends it.

    Trouble is written to standard error. User code that never returns is left where it is: end the process then.
    """
    try:
        node = ClusterNode(ClusterFolder(folder), options)
    except SluiceError as error:
        print(f"{options.role}: {error}", file=sys.stderr)
        return 2

    def end(_number: int, _frame: FrameType | None) -> None:
        node.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent, node), name="parent", daemon=True).start()
    if begin is not None:
        begin(node.end)
    try:
        node.run()
    except SluiceError as error:
        print(f"{options.role}: {error}", file=sys.stderr)
        return 1
    return 0


def _end_with(parent: IO[bytes], node: ClusterNode) -> None:
    """Whoever has started this process is gone, or wants it to end: that does not take for ever."""
    with suppress(OSError, ValueError):
        while parent.read(1):
            pass
    node.end()
    threading.Event().wait(_SECONDS_TO_END)
    os._exit(1)


def main() -> NoReturn:
    """Play the role that the arguments of this process name; it ends when its standard input does."""
    status = play_role(Path(sys.argv[1]), NodeOptions(**json.loads(sys.argv[2])), sys.stdin.buffer)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # not even user code that never returns keeps this process
