"""`sluice join`: be in a class; without an address, say how it stands. And `sluice catchup`, for whoever came late.

Exit status of `join`: 0 in the class, 1 not (no class answers, or it says no), 2 wrong use, 3 nothing can be kept here.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from course.curriculum.manifest import LESSONS
from course.learner import membership
from course.learner.class_events import LATEST, bad_handle, number
from course.learner.courier_process import nudge
from course.learner.membership import Address, AddressError, Membership
from course.learner.pinned import CODE_LETTERS, OtherCertificateError, read_code, shown_by
from course.places import state_folder

__all__ = ["COMMANDS", "JoinCommand"]

IN_CLASS, NOT_IN_CLASS, WRONG_USE, MISSING = 0, 1, 2, 3
_CLOCK_S = 60.0
_TLS_S = 8.0

_JOINED = """✓ you are {handle} in the class {title!r}.
  It gets what your progress file says: exercise, status, rule, hints, a hash of your code, times. Never your code.
  That happens in the background and nothing waits for it: without the class you work on, and it is told later.
  sluice join            how it stands          sluice join --leave    leave the class; what you did stays yours"""


def join_add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice join`."""
    parser.add_argument("address", nargs="?", metavar="CODE@HOST:PORT", help="as the instructor shows it")
    parser.add_argument("--handle", metavar="NAME", help="what the room will see; it need not be your name")
    parser.add_argument(
        "--tls",
        nargs="?",
        const="",
        metavar="CODE",
        help="encrypted, to the class whose certificate has this code; without a code, say which one it shows",
    )
    parser.add_argument("--leave", action="store_true", help="leave the class")


def _join(arguments: argparse.Namespace) -> int:
    if arguments.leave:
        return _leave()
    if arguments.address is None:
        return _status()
    if arguments.handle is None and arguments.tls != "":
        print("choose a handle: --handle NAME; the room will see it, and it need not be your name", file=sys.stderr)
        return WRONG_USE
    try:
        address = Address.read(arguments.address)
    except AddressError as error:
        print(error, file=sys.stderr)
        return WRONG_USE
    certificate = read_code(arguments.tls) if arguments.tls else ""
    if certificate is None:
        print(f"{arguments.tls!r} is no code of a certificate: it has {CODE_LETTERS} characters", file=sys.stderr)
        return WRONG_USE
    if arguments.tls == "":
        return _compare(address)
    if (wrong := bad_handle(arguments.handle)) is not None:
        print(wrong, file=sys.stderr)
        return WRONG_USE
    try:
        return _enter(address, arguments.handle, certificate)
    except OSError as error:
        print(
            f"Nothing can be kept in {state_folder()}: {error.strerror}; name another folder in SLUICE_WORK.",
            file=sys.stderr,
        )
        return MISSING


def _compare(address: Address) -> int:
    """Say which certificate is shown there; nothing is sent before somebody has compared it."""
    try:
        shown = shown_by(address.host, address.port, _TLS_S)
    except OSError as error:
        print(
            f"nothing encrypted answers at {address.host}:{address.port} ({error.strerror or error})", file=sys.stderr
        )
        return NOT_IN_CLASS
    print(f"what answers at {address.host}:{address.port} shows the certificate\n\n    {shown}\n")
    print("Is it the code that the instructor shows? Then join with it; nothing has been sent yet:")
    print(f"  sluice join … --tls {shown}")
    return NOT_IN_CLASS


def _enter(address: Address, handle: str, certificate: str) -> int:
    from course.learner.outbox import ClassGone, ClassRefused, Link, plain_orders

    secret, before = membership.secret_for(address.code), membership.current()
    if before is not None and before.secret != secret:
        print(
            f"you are in the class {before.title!r} as {before.handle}; leave it first: sluice join --leave",
            file=sys.stderr,
        )
        return WRONG_USE
    try:
        asked = {"code": address.code, "handle": handle, "secret": secret}
        answer = Link(address.host, address.port, certificate).ask("POST", "/api/join", asked)
        title, now = answer.get("title"), number(answer.get("now"), LATEST)
        if not isinstance(title, str) or now is None:
            raise ClassGone(f"what answers at {address.host}:{address.port} is no class of Sluice")
    except ClassGone as error:
        print(_why_not(address, certificate, error), file=sys.stderr)
        return NOT_IN_CLASS
    except ClassRefused as error:
        print(error, file=sys.stderr)
        return NOT_IN_CLASS
    title = "".join(letter for letter in title[:80] if letter.isprintable())
    membership.begin(Membership(address.host, address.port, handle, secret, title, certificate), plain_orders(answer))
    print(_JOINED.format(handle=handle, title=title))
    _clock(time.time() - now)
    nudge()
    return IN_CLASS


def _why_not(address: Address, certificate: str, error: Exception) -> str:
    """Why there is no class behind this address for whoever named this certificate, or none, and what to do."""
    from course.learner.outbox import ClassGone, Link

    where, cause = f"{address.host}:{address.port}", error.__cause__
    if isinstance(cause, OtherCertificateError):
        return (
            f"what answers at {where} shows the certificate {cause.shown}, which is not the one you named. Nothing has "
            "been sent. Read the instructor's screen again; if it says another one than this, tell the instructor"
        )
    if not isinstance(cause, ConnectionRefusedError | socket.gaierror):
        with contextlib.suppress(OSError, ClassGone):
            if certificate:
                Link(address.host, address.port).ask("GET", "/api/hello")  # which tells it nothing
                return (
                    f"what answers at {where} is not encrypted, so nothing has been sent: does the screen have a --tls?"
                )
            shown_by(address.host, address.port, _TLS_S)
            return f"the class at {where} is encrypted: type --tls and its code too, as the instructor shows them"
    return f"{error}. Has the class begun, and is the address right?"


def _leave() -> int:
    member = membership.current()
    try:
        membership.forget()
    except OSError as error:
        print(f"{state_folder()} cannot be written: {error.strerror}", file=sys.stderr)
        return MISSING
    print(f"✓ you left the class {member.title!r}; what it has of you it keeps" if member else "you are in no class")
    return IN_CLASS


def _status() -> int:
    from course.learner.outbox import Outbox

    member = membership.current()
    if member is None:
        print("you are in no class; the instructor shows what to type: sluice join CODE@HOST:PORT --handle NAME")
        return NOT_IN_CLASS
    nudge()
    said = membership.read_said(member)
    waiting = Outbox(state_folder() / "progress.jsonl", member, said, membership.keep_said).num_waiting()
    print(f"you are {member.handle} in the class {member.title!r} at {member.host}:{member.port}")
    if said.reached_at:
        print(f"  last reached {_ago(time.time() - said.reached_at)}; {_events(waiting)} to be sent")
    else:
        print(f"  not reached yet; {_events(waiting)} to be sent")
    if said.error:
        print(f"  ! {said.error}; it is tried again, and you can go on")
    _clock(said.clock_ahead_s)
    for line in membership.news():
        print(f"  {line}")
    return IN_CLASS


def _clock(ahead_s: float) -> None:
    if abs(ahead_s) > _CLOCK_S:
        way = "ahead of" if ahead_s > 0 else "behind"
        print(f"  ! this machine's clock is {abs(ahead_s) / 60:.0f} minutes {way} the class's; times are put right")


def _ago(seconds: float) -> str:
    return f"{max(0, seconds):.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} minutes ago"


def _events(number: int) -> str:
    return "nothing waits" if not number else "1 event waits" if number == 1 else f"{number} events wait"


def catchup_add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice catchup`."""
    said = f"the lesson you want to begin with, one of {', '.join(map(str, LESSONS))}"
    parser.add_argument("lesson", type=int, metavar="N", help=said)


def _catchup(arguments: argparse.Namespace) -> int:
    from course.learner.catchup import catch_up

    if arguments.lesson not in LESSONS:
        print(f"there is no lesson {arguments.lesson}; there are {', '.join(map(str, LESSONS))}", file=sys.stderr)
        return WRONG_USE
    opened = catch_up(arguments.lesson)
    if not opened:
        print(f"✓ nothing to catch up: all before lesson {arguments.lesson} is passed or opened already")
        return IN_CLASS
    print(f"◧ our parts stand in for {', '.join(opened)}; read them in {state_folder() / 'caught-up'}.")
    print("  They count as caught up, not as passed; you can still write your own.")
    return IN_CLASS


@dataclass(frozen=True, slots=True)
class JoinCommand:
    """One subcommand: its arguments, and what runs and gives the exit status."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = {"join": JoinCommand(join_add_arguments, _join), "catchup": JoinCommand(catchup_add_arguments, _catchup)}
