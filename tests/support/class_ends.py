"""Both ends of a class for tests: one served on a thread of its own, and plain clients that say what they like."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornado.netutil import bind_sockets

from course.classroom.class_file import ClassFile
from course.classroom.hub import HubUsers
from course.classroom.room import Room
from course.classroom.server import make_server
from course.classroom.sessions import instructor_key
from course.learner.pinned import PinnedConnection

T0 = 1_800_000_000.0


class Clock:
    """A clock that stands until somebody moves it."""

    def __init__(self, now: float = T0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def checked(
    exercise: str = "3.1", status: str = "failed", *, time: Any = T0, n: int = 0, **fields: Any
) -> dict[str, Any]:
    """What the progress file says of a check; another `n` is other code."""
    rule = {"rule": "E"} if status == "failed" else {}
    known = {"event": "check", "exercise": exercise, "status": status, "time": time, "code_hash": f"sha256:{n:064x}"}
    return {**known, **rule, "vectors": "1.11.4+0", "seed": 7, "rules_passed": 5, "rules_total": 16, **fields}


def secret(n: int) -> str:
    return f"{n:064x}"


@dataclass
class Answer:
    """What a server answered."""

    status: int
    body: Any
    headers: dict[str, str]


@dataclass
class Served:
    """A class being served."""

    path: Path
    port: int
    room: Room
    key: str
    code: str
    clock: Clock

    def ask(self, method: str, path: str, body: Any = None, secret: str = "", **headers: str) -> Answer:
        """One request; a body that is no bytes is sent as JSON."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if secret:
            sent["Authorization"] = f"Bearer {secret}"
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            raw = answer.read()
        is_json = "json" in answer.headers.get("Content-Type", "")
        return Answer(answer.status, json.loads(raw) if is_json else raw, dict(answer.headers.items()))

    def join(self, handle: str, secret: str) -> Answer:
        return self.ask("POST", "/api/join", {"code": self.code, "handle": handle, "secret": secret})

    def send(self, secret: str, *events: Any, now: float | None = None) -> Answer:
        return self.ask("POST", "/api/events", {"now": self.clock() if now is None else now, "events": events}, secret)

    def model_over(self, certificate: str) -> dict[str, Any]:
        """The model, over TLS."""
        connection = PinnedConnection("127.0.0.1", self.port, certificate, 120)
        with contextlib.closing(connection):
            connection.request("GET", "/api/class", headers={"Authorization": f"Bearer {self.key}"})
            return json.loads(connection.getresponse().read())

    def model(self) -> dict[str, Any]:
        answer = self.ask("GET", "/api/class", None, self.key)
        assert answer.status == 200, answer.body
        return answer.body


@contextlib.contextmanager
def served(
    path: Path,
    *,
    is_remote_allowed: bool = False,
    title: str | None = None,
    tls: ssl.SSLContext | None = None,
    hub: HubUsers | None = None,
    port: int = 0,
) -> Iterator[Served]:
    """Serve the class in this file on loopback until the block ends, encrypted with `tls`; its clock stands.

    `port` 0 is one that is free.
    """
    clock, loop = Clock(), asyncio.new_event_loop()
    with ClassFile(path, create=True, title=title) as file, ClassFile(path) as writing:
        key = instructor_key(file)
        sockets = bind_sockets(port, "127.0.0.1")
        room = Room(file, writing, is_remote_allowed=is_remote_allowed, clock=clock, hub=hub)
        is_up, server = threading.Event(), None

        async def begin() -> None:
            nonlocal server
            server = make_server(room, tls)
            server.add_sockets(sockets)
            is_up.set()

        async def end() -> None:
            server.stop()
            await server.close_all_connections()
            await room.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        loop.create_task(begin())
        thread = threading.Thread(target=loop.run_forever, name="class")
        thread.start()
        assert is_up.wait(120)
        try:
            yield Served(path, sockets[0].getsockname()[1], room, key, room.roll.about["code"], clock)
        finally:
            asyncio.run_coroutine_threadsafe(end(), loop).result(120)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


class Client:
    """One connection that stays open, on the running loop: what two hundred of fit into one process."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: Any, secret: str = "") -> tuple[int, Any]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        raw = json.dumps(body).encode()
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {secret}\r\nContent-Length: {len(raw)}\r\n\r\n".encode()
            + raw
        )
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lengths = (line.split(":")[1] for line in head.splitlines() if line.lower().startswith("content-length"))
        return int(head.split()[1]), json.loads(await reader.readexactly(int(next(lengths))))

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
