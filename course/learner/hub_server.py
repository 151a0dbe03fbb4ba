"""A user's server of a JupyterHub, with the lessons in it and the user in the class: what the hub starts.

The user's name is the hub's. Where the class does not answer, or is full, the server starts all the same.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from course.learner import membership
from course.learner.lessons import LessonsError, hand_out_all
from course.learner.membership import Membership

__all__ = ["CLASS_VARIABLE", "join_of_the_hub", "main"]

CLASS_VARIABLE = "SLUICE_CLASS"
"""HOST:PORT of the class of this hub."""
_PATIENCE_S, _PAUSE_S = 10.0, 0.25
_USER, _TOKEN = "JUPYTERHUB_USER", "JUPYTERHUB_API_TOKEN"


def join_of_the_hub() -> str:
    """Join the class of this hub as the hub's user; return what came of it, in words.

    Raises:
        OSError: the learner's folder cannot be written.
    """
    from course.learner.courier_process import nudge
    from course.learner.outbox import ClassGone, ClassRefused, Link, plain_orders

    host, _, port = os.environ.get(CLASS_VARIABLE, "").rpartition(":")
    user, token = os.environ.get(_USER, ""), os.environ.get(_TOKEN, "")
    if not host or not port.isdecimal() or not token:
        return f"no class: {CLASS_VARIABLE} names none, or this server is no hub's"
    secret = membership.secret_for(f"hub {host} {port} {user}")
    give_up_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            answer = Link(host, int(port)).ask("POST", "/api/join", {"hub": token, "secret": secret})
            break
        except ClassRefused as error:
            return f"not in the class: {error}"
        except ClassGone as error:  # a hub starts its class and the first servers at the same time
            if time.monotonic() > give_up_s:
                return f"not in the class: {error}"
            time.sleep(_PAUSE_S)
    handle, title = (
        "".join(letter for letter in str(answer.get(name, ""))[:80] if letter.isprintable())
        for name in ("handle", "title")
    )
    membership.begin(Membership(host, int(port), handle, secret, title), plain_orders(answer))
    nudge()
    return f"in the class {title!r} as {handle}"


def main() -> None:
    """Bring the lessons, join, and become the server that the hub wants; arguments are handed on."""
    work = Path.cwd() / "work"
    os.environ["SLUICE_WORK"] = str(work)
    try:
        hand_out_all(work)
        print(f"sluice: {join_of_the_hub()}", file=sys.stderr, flush=True)
    except (LessonsError, OSError) as error:
        print(f"sluice: {error}", file=sys.stderr, flush=True)
    os.execv(sys.executable, [sys.executable, "-m", "jupyterhub.singleuser", *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    main()
