"""`sluice class serve`: opens the file, takes the port, says how to join, and serves until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

from tornado.netutil import bind_sockets

from course.classroom.certificate import class_certificate
from course.classroom.class_file import ClassError, ClassFile
from course.classroom.hub import API_VARIABLE, HubUsers
from course.classroom.room import NotKeptError, Room
from course.classroom.server import MAX_CONNECTIONS, make_server
from course.classroom.sessions import instructor_key

__all__ = ["addresses", "joined", "serve"]

_SEEN_EVERY_S = 15.0
_OPEN = """! Everybody who can reach this address can try the code, and what travels is not encrypted: handles,
  statuses, rule ids, hashes of code, times; never source. Use a network you trust, and no real names as handles."""
_ENCRYPTED = """  What travels is encrypted. A browser warns of the dashboard's certificate: nobody else has signed it.
! Everybody who can reach this address can try the code: no real names as handles."""
_CLOSED = "  Only this machine reaches it; `--host 0.0.0.0` opens it to your network."


def serve(
    path: Path,
    host: str,
    port: int,
    *,
    title: str | None,
    lessons: frozenset[int],
    is_remote_allowed: bool,
    tls: bool,
    hub: bool,
) -> int:
    """Serve the class in this file until Ctrl-C; return the exit status.

    Raises:
        ClassError: the file or the port cannot be had; the text says why and what to do.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(ClassFile(path, create=True, title=title))
        stack.enter_context(_alone(path))
        writing = stack.enter_context(ClassFile(path))
        sockets = _bound(host, port)
        for each in sockets:
            stack.callback(each.close)
        users = HubUsers(os.environ.get(API_VARIABLE, "")) if hub else None
        context, certificate = class_certificate(path) if tls else (None, "")
        instructor_key(file)
        file.lengthen_code()
        port = sockets[0].getsockname()[1]
        reached = addresses(host, sockets[0].getsockname()[0])
        with file.transaction():
            file.set_about("address", joined(reached[0], port))
            file.set_about("certificate", certificate)
        return asyncio.run(
            _run(
                Room(file, writing, lessons, is_remote_allowed=is_remote_allowed, hub=users),
                sockets,
                reached,
                port,
                context,
            )
        )


async def _run(
    room: Room, sockets: list[socket.socket], reached: list[str], port: int, tls: ssl.SSLContext | None
) -> int:
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(number: int) -> None:
        if not ended.done():
            ended.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    _make_room()
    server = make_server(room, tls)
    server.add_sockets(sockets)
    _greet(room, reached, port)
    noting = asyncio.create_task(_note(room))
    reason = await ended
    noting.cancel()
    server.stop()
    await server.close_all_connections()
    await room.close()
    print(f"\nThe class has ended; everything is in {room.path}. `sluice class serve` goes on with it.", flush=True)
    return 0 if reason == signal.SIGINT else 128 + reason


async def _note(room: Room) -> None:
    said = ""
    while True:
        await asyncio.sleep(_SEEN_EVERY_S)
        with contextlib.suppress(NotKeptError):
            await room.note_seen()
        if room.trouble != said and room.trouble:
            print(f"✗ {room.trouble}", file=sys.stderr, flush=True)
        said = room.trouble


def _greet(room: Room, reached: list[str], port: int) -> None:
    room.roll.refresh()
    about = room.roll.about
    tls = f" --tls {about['certificate']}" if about["certificate"] else ""
    num = len(room.roll.pupils)
    print(f"Class {about['title']}, {num} learner{'' if num == 1 else 's'} so far. Code {about['code']}\n")
    for number, address in enumerate([] if room.hub else reached):
        what = "learners type" if number == 0 else "or"
        print(f"  {what:<15}sluice join {about['code']}@{joined(address, port)} --handle NAME{tls}")
    if room.hub:
        print(f"  {'learners':<15}whoever has a server of the hub, under the hub's names")
    if about["certificate"]:
        print(f"  {'certificate':<15}{about['certificate']}: who sees another one leaves")
    scheme = "https" if tls else "http"
    near = joined(reached[0] if _is_own(reached[0]) else "127.0.0.1", port)
    print(f"  {'dashboard':<15}{scheme}://{near}/")
    print(f"  {'its key':<15}`sluice class token` prints it, in a terminal that nobody else sees")
    print(f"  {'file':<15}{room.path}\n")
    print(_CLOSED if _is_own(reached[0]) else _ENCRYPTED if tls else _OPEN)
    print("  Ctrl-C ends it; nothing is lost.", flush=True)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the file's lock as its one server; it goes when the process goes, however that ends."""
    import fcntl

    with path.with_name(f"{path.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ClassError(f"the class in {path} is being served already; another one needs another --db") from error
        yield


def _bound(host: str, port: int) -> list[socket.socket]:
    try:
        return bind_sockets(port, host)
    except socket.gaierror as error:
        raise ClassError(f"{host} is no address of this machine: {error.strerror}") from error
    except OSError as error:
        where = joined(host, port)
        if error.errno == errno.EADDRINUSE:
            raise ClassError(f"{where} is in use, perhaps by another class; choose another port with --port") from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise ClassError(f"{host} is no address of this machine; 0.0.0.0 stands for all it has") from error
        raise ClassError(f"{where} cannot be had: {error.strerror}; choose another port with --port") from error


def joined(host: str, port: int) -> str:
    """HOST:PORT as one types it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def addresses(host: str, bound: str) -> list[str]:
    """The addresses under which learners find a server that listens on `host`, likeliest first."""
    if not ipaddress.ip_address(bound).is_unspecified:
        return [host]
    import psutil

    named = (address for each in psutil.net_if_addrs().values() for address in each)
    found = [each.address for each in named if each.family == socket.AF_INET and not _is_own(each.address)]
    return sorted(found, key=lambda address: (ipaddress.ip_address(address).is_link_local, address)) or ["127.0.0.1"]


def _is_own(host: str) -> bool:
    """Whether this address means "this machine" to everybody."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _make_room() -> None:
    """Let this process have as many connections as it accepts, where the system gives it fewer."""
    wanted = MAX_CONNECTIONS + 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
