"""A store through which processes agree on little things: nodes of a tree, sessions, one-shot watches.

Rules of this file:
- A watch fires once. The read that answers its notice can set the next one, so no change falls between two reads.
- Notices wait in the session and are asked for: nobody hears of a change before the answer of the call it follows.
- A session that was not heard of for its timeout is over, and its ephemeral nodes are gone.

Source:  the guarantees of ZooKeeper 3.4 (programmer's guide: sessions, watches); Storm keeps its flags there
Differs: one server, no quorum, no sequential nodes, no access lists; a watch is set by one call of each kind
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from refimpl.errors import LocalUsageError

__all__ = ["Change", "CoordinationStore", "Notice", "Session"]


class Change(Enum):
    """What a notice tells of a node."""

    CREATED = "created"
    DELETED = "deleted"
    DATA = "data changed"
    CHILDREN = "children changed"


@dataclass(frozen=True, slots=True)
class Notice:
    """What a watch has seen, once: not what is there now."""

    change: Change
    path: str


@dataclass(slots=True)
class _Node:
    data: bytes
    owner: Session | None
    version: int = 0


@dataclass(eq=False, slots=True)
class Session:
    """One client's connection: `timeout_ms` after it was last heard of it is over."""

    timeout_ms: float
    heard_ms: float
    is_over: bool = False
    notices: list[Notice] = field(default_factory=list[Notice])

    def take_notices(self) -> list[Notice]:
        """What watches have seen since the last call, in order."""
        taken, self.notices = self.notices, []
        return taken


class CoordinationStore:
    """The tree; a path is `/a/b`, and its parent must be there. Each node has a version that counts its data's changes.

    Raises (all calls with a session):
        LocalUsageError: the session is over; there is no such node, or there is one; it has children, or its parent is
            ephemeral; the version is another.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {"": _Node(b"", None)}
        self._data_watches: dict[str, list[Session]] = {}
        self._child_watches: dict[str, list[Session]] = {}
        self._sessions: list[Session] = []

    # -- sessions ----------------------------------------------------------------------------------------

    def connect(self, timeout_ms: float, now_ms: float) -> Session:
        """Begin a session."""
        session = Session(timeout_ms, now_ms)
        self._sessions.append(session)
        return session

    def hear(self, session: Session, now_ms: float) -> None:
        """Note that a client is alive; each client says so more often than its timeout."""
        self._check(session)
        session.heard_ms = now_ms

    def expire(self, now_ms: float) -> None:
        """End the sessions that were not heard of for their timeouts."""
        for session in [each for each in self._sessions if now_ms - each.heard_ms >= each.timeout_ms]:
            self.close(session)

    def close(self, session: Session) -> None:
        """End a session: its ephemeral nodes go, the watches of others fire, its own are forgotten."""
        self._check(session)
        session.is_over = True
        self._sessions.remove(session)
        for path in [path for path, node in self._nodes.items() if node.owner is session]:
            self._remove(path)

    # -- nodes -------------------------------------------------------------------------------------------

    def create(self, session: Session, path: str, data: bytes = b"", ephemeral: bool = False) -> None:
        """Make a node; an `ephemeral` one lives as long as its session, and has no children."""
        self._check(session)
        if path in self._nodes:
            raise LocalUsageError(f"there is a node {path} already")
        parent = self._node(_parent(path))
        if parent.owner is not None:
            raise LocalUsageError(f"{_parent(path)} is ephemeral and can have no children")
        self._nodes[path] = _Node(data, session if ephemeral else None)
        self._fire(self._data_watches, path, Change.CREATED)
        self._fire(self._child_watches, _parent(path), Change.CHILDREN)

    def delete(self, session: Session, path: str, version: int | None = None) -> None:
        """Take a node away, if it has this version."""
        self._check(session)
        self._check_version(path, version)
        if next(self._children(path), None) is not None:
            raise LocalUsageError(f"{path} has children")
        self._remove(path)

    def set(self, session: Session, path: str, data: bytes, version: int | None = None) -> int:
        """Change a node's data, if it has this version; the answer is the next one."""
        self._check(session)
        node = self._check_version(path, version)
        node.data, node.version = data, node.version + 1
        self._fire(self._data_watches, path, Change.DATA)
        return node.version

    # -- reads, which may leave a watch ------------------------------------------------------------------

    def get(self, session: Session, path: str, watch: bool = False) -> tuple[bytes, int]:
        """A node's data and version; a watch fires when it changes or goes."""
        self._check(session)
        node = self._node(path)
        if watch:
            self._watch(self._data_watches, path, session)
        return node.data, node.version

    def exists(self, session: Session, path: str, watch: bool = False) -> bool:
        """Whether there is such a node; a watch fires when it comes, changes or goes."""
        self._check(session)
        if watch:
            self._watch(self._data_watches, path, session)
        return path in self._nodes

    def children(self, session: Session, path: str, watch: bool = False) -> tuple[str, ...]:
        """The names of a node's children; a watch fires when one comes or goes, or the node itself goes."""
        self._check(session)
        self._node(path)
        if watch:
            self._watch(self._child_watches, path, session)
        return tuple(sorted(name.rpartition("/")[2] for name in self._children(path)))

    # -- helpers -----------------------------------------------------------------------------------------

    def _check(self, session: Session) -> None:
        if session.is_over:
            raise LocalUsageError("the session is over; connect again")

    def _node(self, path: str) -> _Node:
        if path not in self._nodes:
            raise LocalUsageError(f"there is no node {path or '/'}")
        return self._nodes[path]

    def _check_version(self, path: str, version: int | None) -> _Node:
        node = self._node(path)
        if version is not None and version != node.version:
            raise LocalUsageError(f"{path} has version {node.version}, not {version}")
        return node

    def _children(self, path: str) -> Iterator[str]:
        return (name for name in self._nodes if name and _parent(name) == path)

    def _remove(self, path: str) -> None:
        del self._nodes[path]
        self._fire(self._data_watches, path, Change.DELETED)
        self._fire(self._child_watches, path, Change.DELETED)
        self._fire(self._child_watches, _parent(path), Change.CHILDREN)

    def _watch(self, watches: dict[str, list[Session]], path: str, session: Session) -> None:
        waiting = watches.setdefault(path, [])
        if session not in waiting:
            waiting.append(session)

    def _fire(self, watches: dict[str, list[Session]], path: str, change: Change) -> None:
        for session in watches.pop(path, []):
            if not session.is_over:
                session.notices.append(Notice(change, path))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
