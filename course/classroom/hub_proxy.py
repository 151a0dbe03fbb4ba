"""The proxy of a JupyterHub in Python, for a whole class: `python -m course.classroom.hub_proxy`, which a hub starts.

What the package `configurable-http-proxy` of PyPI leaves at tornado's defaults is set: by those it would forward ten
requests at a time, and give up a server that takes longer than 20 seconds to start.
"""

from __future__ import annotations

import sys

from tornado.httpclient import AsyncHTTPClient

__all__ = ["main"]

_MOST_AT_ONCE = 1000
_TIMEOUT_MS = 600_000


def main() -> None:
    """Run the proxy with the arguments of this process."""
    from configurable_http_proxy.cli import main as run

    AsyncHTTPClient.configure(None, max_clients=_MOST_AT_ONCE)
    run([f"--proxy-timeout={_TIMEOUT_MS}", *sys.argv[1:]])


if __name__ == "__main__":
    main()
