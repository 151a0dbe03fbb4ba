"""The class over HTTP. It trusts nobody: not the size, the rate, the form nor the truth of what comes.

    POST /api/join      {code, handle, secret}      -> {handle, title, now, orders}; of a hub {hub: token, secret}
    POST /api/events    {now, events}  as a learner -> {new, known, refused, now, orders}
    GET  /api/orders                   as a learner -> {now, orders}
    POST /api/login     {key}                       -> a cookie;  POST /api/logout
    GET  /api/class                    as instructor -> the model of `model.py`
    POST /api/actions   a decision     as instructor
    GET  /api/export/FORMAT            as instructor -> a file
    GET  /              the page, which is empty until the key is shown

A learner sends `Authorization: Bearer SECRET`. There is no request with which a learner could name another one, so
none can read or write what is another's. What a learner's machine says of its learner is believed: it is a
workshop's blackboard and no exam. For grades there are receipts, which `sluice class import` judges again.
"""

from __future__ import annotations

import re
import ssl
from collections import Counter
from collections.abc import Callable
from importlib import resources
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import is_valid_ip
from tornado.web import Application, RequestHandler

from course.classroom.class_file import Added, ClassError, ClassFile, LearnerRow
from course.classroom.export import EXPORTS
from course.classroom.hub import HubUsers
from course.classroom.limits import network_of
from course.classroom.orders import ordered, said
from course.classroom.roll import Pupil
from course.classroom.room import NotKeptError, Room
from course.classroom.sessions import COOKIE
from course.learner.class_events import FORMAT, LATEST, MAX_EVENTS, SECRET, number, plain_json

__all__ = ["MAX_BODY_BYTES", "Server", "make_server"]

MAX_BODY_BYTES = 128 * 1024
MAX_HEADER_BYTES = 8 * 1024
MAX_CONNECTIONS = 600
MAX_OF_ADDRESS = 200
_IDLE_S = 10.0  # also for the head of a request; a courier asks every five seconds
_BODY_S = 15.0
_SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "sluice",
}
_FILES = {
    "": ("page.html", "text/html"), "static/page.js": ("page.js", "text/javascript"),
    "static/page.css": ("page.css", "text/css"), "static/class_view.js": ("class_view.js", "text/javascript"),
    "static/class_view.css": ("class_view.css", "text/css"),
}  # fmt: skip


class _RefusedError(Exception):
    """The request is answered with this status and sentence."""

    def __init__(self, status: int, sentence: str, wait_s: float = 0.0) -> None:
        super().__init__(sentence)
        self.status = status
        self.wait_s = wait_s


class _Handler(RequestHandler):
    """What every answer has in common: safe headers, errors as one sentence, nothing of what was sent repeated."""

    room: Room

    def initialize(self, room: Room) -> None:
        self.room = room

    def set_default_headers(self) -> None:
        for name, value in _SAFE.items():
            self.set_header(name, value)

    def compute_etag(self) -> None:
        return None

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = (kwargs.get("exc_info") or (None, None, None))[1]
        sentence = str(error) if isinstance(error, _RefusedError) else self._reason
        self.finish({"error": sentence})

    def _refuse(self, error: _RefusedError) -> None:
        self.set_status(error.status)
        if error.wait_s:
            self.set_header("Retry-After", str(max(1, round(error.wait_s + 0.5))))
        self.finish({"error": str(error)})

    async def answer(self, make: Callable[[], Any]) -> None:
        """Give what `make` (a coroutine function) returns as JSON, or say why not."""
        try:
            self.finish(await make())
        except _RefusedError as error:
            self._refuse(error)
        except ClassError as error:
            self._refuse(_RefusedError(409, str(error)))
        except NotKeptError as error:
            self._refuse(_RefusedError(503, str(error), 5.0))

    # -- reading ---------------------------------------------------------------------------------------

    def body(self) -> dict[str, Any]:
        if self.request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
            raise _RefusedError(415, "a request to a class is JSON")  # and no form that another site could send
        try:
            found = plain_json(self.request.body)
        except ValueError as error:
            raise _RefusedError(400, "the request is not JSON") from error
        if not isinstance(found, dict):
            raise _RefusedError(400, "the request is not a JSON object")
        return found

    def _bearer(self) -> str:
        kind, _, secret = self.request.headers.get("Authorization", "").partition(" ")
        return secret.strip() if kind.lower() == "bearer" else ""

    def address(self) -> str:
        return self.request.remote_ip or "?"

    def network(self) -> str:
        return network_of(self.address())

    def was_wrong(self, status: int, sentence: str) -> _RefusedError:
        """The answer to a wrong code or key; after too many from one address, that it is to wait."""
        wait_s = self.room.failures.take(self.network(), self.room.clock())
        if wait_s:
            return _RefusedError(429, f"too many wrong tries from your address; wait {wait_s:.0f} s", wait_s)
        return _RefusedError(status, sentence)

    def learner(self) -> Pupil:
        """Who asks, by the secret."""
        found = self.room.pupil(self._bearer())
        if found is None:  # nobody guesses 256 bits, so wrong ones are not counted
            raise _RefusedError(401, "this class does not know you; join it with: sluice join CODE@HOST:PORT")
        wait_s = self.room.requests.take(found.row.id, self.room.clock())
        if wait_s:
            raise _RefusedError(429, "too many requests; wait a little", wait_s)
        return found

    def instructor(self) -> None:
        """Refuse whoever is not the instructor."""
        self.near()
        if self.room.sessions.holds(self.get_cookie(COOKIE)):
            origin = self.request.headers.get("Origin")
            if origin is not None and origin.partition("://")[2] != self.request.host:
                raise _RefusedError(403, "that was asked by another site")
            return
        if key := self._bearer():
            if self.room.is_key(key):
                return
            raise self.was_wrong(401, "that is not the key of this class; `sluice class token` prints it")
        raise _RefusedError(401, "show the key of this class first; `sluice class token` prints it")

    def near(self) -> None:
        """The key is shown on the instructor's machine only: on the way to another one it could be read."""
        is_near = is_valid_ip(self.address()) and (self.address().startswith("127.") or self.address() == "::1")
        if not is_near and not self.room.is_remote_allowed:
            raise _RefusedError(
                403, "the dashboard opens on the machine of the class only; elsewhere with --instructor-anywhere"
            )


class _File(_Handler):
    def get(self, name: str) -> None:
        file, kind = _FILES[name]
        self.set_header("Content-Type", f"{kind}; charset=utf-8")
        self.finish(resources.files("course.classroom").joinpath("static", file).read_bytes())


class _Hello(_Handler):
    def get(self) -> None:
        self.finish({"format": FORMAT, "now": self.room.clock()})


class _Join(_Handler):
    async def post(self) -> None:
        await self.answer(self._join)

    async def _join(self) -> dict[str, Any]:
        body = self.body()
        code, handle, secret = body.get("code"), body.get("handle"), body.get("secret")
        if self.room.hub is not None:
            handle = await self._hub_user(self.room.hub, body.get("hub"))
        elif not isinstance(code, str) or not self.room.is_code(code):
            raise self.was_wrong(403, "that is not the code of this class; look at it again: it has nine characters")
        if not isinstance(handle, str) or not isinstance(secret, str) or SECRET.fullmatch(secret) is None:
            raise _RefusedError(400, "to join, send a handle and a secret of 64 hexadecimal digits")
        now = self.room.clock()
        if self.room.pupil(secret) is None:
            wait_s = self.room.joins.take(self.network(), now)
            if wait_s:
                raise _RefusedError(429, f"too many join from your address; wait {wait_s:.0f} s", wait_s)

        def job(file: ClassFile) -> LearnerRow:
            # The hub has said who it is, also when the learner's folder is a new one. Looking alike is not enough.
            if self.room.hub is not None and any(row.handle == handle for row in file.learners()):
                file.free(handle)
            return file.join(handle, secret, now)

        row = await self.room.keep(job)
        orders = self.room.orders()
        return {"handle": row.handle, "title": self.room.roll.about["title"], "now": now, "orders": orders}

    async def _hub_user(self, hub: HubUsers, token: object) -> str:
        """Who asks, as the hub says."""
        if not isinstance(token, str):
            raise _RefusedError(403, "this class is a hub's: whoever has a server of that hub is in it")
        try:
            return await hub.name_of(token)
        except ClassError as error:
            raise self.was_wrong(403, str(error)) from error


class _Events(_Handler):
    async def post(self) -> None:
        await self.answer(self._events)

    async def _events(self) -> dict[str, Any]:
        pupil, body, now = self.learner(), self.body(), self.room.clock()
        events, theirs = body.get("events"), number(body.get("now"), LATEST)
        if not isinstance(events, list) or len(events) > MAX_EVENTS:
            raise _RefusedError(413, f"send a list of at most {MAX_EVENTS} events at a time")
        for limiter, key in ((self.room.events, pupil.row.id), (self.room.events_of_address, self.network())):
            if wait_s := limiter.take(key, now, len(events)):
                raise _RefusedError(429, "too many events at once; the rest can come later", wait_s)
        ahead_s = 0.0 if theirs is None else theirs - now

        def job(file: ClassFile) -> Added:
            file.touch({pupil.row.id: now})
            return file.add_events(pupil.row.id, events, now, clock_ahead_s=ahead_s)

        added = await self.room.keep(job)
        counts = {"new": added.num_new, "known": added.num_known, "refused": added.num_refused}
        return {**counts, "now": now, "orders": self.room.orders()}


class _Orders(_Handler):
    async def get(self) -> None:
        await self.answer(self._orders)

    async def _orders(self) -> dict[str, Any]:
        self.learner()
        return {"now": self.room.clock(), "orders": self.room.orders()}


class _Login(_Handler):
    async def post(self) -> None:
        await self.answer(self._login)

    async def _login(self) -> dict[str, Any]:
        key = self.body().get("key")
        self.near()
        if not isinstance(key, str) or not self.room.is_key(key):
            raise self.was_wrong(401, "that is not the key of this class; `sluice class token` prints it")
        self.set_cookie(
            COOKIE,
            await self.room.sessions.begin(),
            httponly=True,
            samesite="Strict",
            path="/",
            secure=self.request.protocol == "https",
        )
        return {}


class _Logout(_Handler):
    async def post(self) -> None:
        await self.room.sessions.end(self.get_cookie(COOKIE))
        self.clear_cookie(COOKIE)
        self.finish({})


class _Session(_Handler):
    def get(self) -> None:
        """Whether this browser has shown the key: the page asks before it asks for what would be refused."""
        self.finish({"open": self.room.sessions.holds(self.get_cookie(COOKIE))})


class _Class(_Handler):
    async def get(self) -> None:
        await self.answer(self._class)

    async def _class(self) -> str:
        self.instructor()
        self.set_header("Content-Type", "application/json; charset=utf-8")
        return self.room.model()


class _Actions(_Handler):
    async def post(self) -> None:
        await self.answer(self._act)

    async def _act(self) -> dict[str, Any]:
        self.instructor()
        order, now = ordered(self.body()), self.room.clock()
        await self.room.keep(lambda file: file.add_action(order, now))
        return {"said": said(order)}


class _Export(_Handler):
    async def get(self, name: str) -> None:
        await self.answer(lambda: self._export(name))

    async def _export(self, name: str) -> str:
        self.instructor()
        if name not in EXPORTS:
            raise _RefusedError(404, f"there is no such format; there are {', '.join(EXPORTS)}")
        self.room.roll.refresh()
        ending = "json" if name == "json" else "csv"
        self.set_header("Content-Type", f"{'application/json' if ending == 'json' else 'text/csv'}; charset=utf-8")
        self.set_header("Content-Disposition", f'attachment; filename="class-{name}.{ending}"')
        return EXPORTS[name](self.room.roll, {})


class _Nothing(_Handler):
    def prepare(self) -> None:
        self._refuse(_RefusedError(404, "there is nothing here"))


class Server(HTTPServer):
    """An HTTP server with bounds of connections, in all and of each address; one too many is closed at once."""

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        super().initialize(*args, **kwargs)
        self.open_of: Counter[str] = Counter()

    @property
    def num_open(self) -> int:
        return self.open_of.total()

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        place = network_of(str(address[0]))
        if self.num_open >= MAX_CONNECTIONS or self.open_of[place] >= MAX_OF_ADDRESS:
            stream.close()
            return
        self.open_of[place] += 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: Any) -> None:
        place = network_of(str(server_conn.context.address[0]))
        self.open_of[place] -= 1
        if not self.open_of[place]:
            del self.open_of[place]
        super().on_close(server_conn)


def make_server(room: Room, tls: ssl.SSLContext | None = None) -> Server:
    """The server of this class, encrypted with `tls`; whoever calls gives it sockets."""
    files = "|".join(re.escape(name) for name in _FILES)
    routes = {
        f"/({files})": _File, "/api/hello": _Hello, "/api/join": _Join, "/api/events": _Events, "/api/orders": _Orders,
        "/api/login": _Login, "/api/logout": _Logout, "/api/session": _Session, "/api/class": _Class,
        "/api/actions": _Actions, "/api/export/([a-z]{1,10})": _Export,
    }  # fmt: skip
    application = Application(
        [(path, handler, {"room": room}) for path, handler in routes.items()],
        default_handler_class=_Nothing,
        default_handler_args={"room": room},
        log_function=lambda handler: None,  # what the terminal shows may be on the projector
    )
    return Server(
        application,
        max_body_size=MAX_BODY_BYTES,
        max_header_size=MAX_HEADER_BYTES,
        max_buffer_size=2 * MAX_BODY_BYTES,
        idle_connection_timeout=_IDLE_S,
        body_timeout=_BODY_S,
        ssl_options=tls,
    )
