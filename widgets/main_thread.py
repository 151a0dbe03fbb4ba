"""Where cells run: what has one thread is moved there, and so never while a cell moves it.

From ipykernel 7 on, messages of a widget come on a thread of their own, also while a cell is at work.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

__all__ = ["on_main_thread"]


def on_main_thread(call: Callable[[], object]) -> None:
    """Have the thread that runs cells do `call`: at once if this is it, else as soon as no cell keeps it.

    Where there is no kernel with a loop of its own, whoever asks does it.
    """
    ipython = sys.modules.get("IPython")  # whoever runs cells has loaded it
    loop = getattr(getattr(ipython and ipython.get_ipython(), "kernel", None), "io_loop", None)
    if loop is None or threading.current_thread() is threading.main_thread():
        call()
    else:
        loop.add_callback(call)
