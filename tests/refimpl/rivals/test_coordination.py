"""Nodes, sessions and one-shot watches."""

from __future__ import annotations

import pytest

from refimpl.errors import LocalUsageError
from refimpl.rivals import Change, CoordinationStore, Notice, Session


@pytest.fixture
def store() -> CoordinationStore:
    return CoordinationStore()


@pytest.fixture
def one(store: CoordinationStore) -> Session:
    session = store.connect(1_000, 0)
    store.create(session, "/a")
    return session


def test_a_watch_fires_once(store: CoordinationStore, one: Session) -> None:
    assert store.children(one, "/a", watch=True) == ()
    store.create(one, "/a/x")
    store.create(one, "/a/y")
    assert one.take_notices() == [Notice(Change.CHILDREN, "/a")]
    assert one.take_notices() == []


def test_the_read_that_answers_a_notice_sets_the_next_watch_and_misses_nothing(
    store: CoordinationStore, one: Session
) -> None:
    other = store.connect(1_000, 0)
    store.children(one, "/a", watch=True)
    store.create(other, "/a/x")
    assert one.take_notices() == [Notice(Change.CHILDREN, "/a")]
    store.create(other, "/a/y")  # between the notice and the read that answers it
    assert store.children(one, "/a", watch=True) == ("x", "y")
    assert one.take_notices() == []
    store.delete(other, "/a/x")
    assert one.take_notices() == [Notice(Change.CHILDREN, "/a")]


def test_asking_twice_is_one_watch_and_each_session_has_its_own(store: CoordinationStore, one: Session) -> None:
    other = store.connect(1_000, 0)
    for session in (one, one, other):
        store.get(session, "/a", watch=True)
    store.set(one, "/a", b"new")
    assert one.take_notices() == other.take_notices() == [Notice(Change.DATA, "/a")]


def test_a_notice_waits_until_it_is_asked_for(store: CoordinationStore, one: Session) -> None:
    store.get(one, "/a", watch=True)
    assert store.set(one, "/a", b"new") == 1
    assert store.get(one, "/a") == (b"new", 1)
    assert one.take_notices() == [Notice(Change.DATA, "/a")]


def test_exists_watches_a_node_that_is_not_there(store: CoordinationStore, one: Session) -> None:
    assert not store.exists(one, "/b", watch=True)
    store.create(one, "/b")
    assert one.take_notices() == [Notice(Change.CREATED, "/b")]
    assert store.exists(one, "/b", watch=True)
    store.delete(one, "/b")
    assert one.take_notices() == [Notice(Change.DELETED, "/b")]


def test_a_change_of_data_is_none_of_the_children_and_the_reverse(store: CoordinationStore, one: Session) -> None:
    store.children(one, "/a", watch=True)
    store.set(one, "/a", b"x")
    assert one.take_notices() == []
    store.get(one, "/a", watch=True)
    store.create(one, "/a/x")
    assert one.take_notices() == [Notice(Change.CHILDREN, "/a")]


def test_the_watch_on_children_hears_that_the_node_has_gone(store: CoordinationStore, one: Session) -> None:
    store.children(one, "/a", watch=True)
    store.delete(one, "/a")
    assert one.take_notices() == [Notice(Change.DELETED, "/a")]


def test_an_ephemeral_node_goes_with_its_session(store: CoordinationStore, one: Session) -> None:
    other = store.connect(500, 0)
    store.create(other, "/a/x", ephemeral=True)
    store.create(other, "/a/y")
    store.children(one, "/a", watch=True)
    store.hear(other, 400)
    store.hear(one, 400)
    store.expire(899)
    assert not other.is_over
    store.expire(900)
    assert other.is_over
    assert store.children(one, "/a") == ("y",)
    assert one.take_notices() == [Notice(Change.CHILDREN, "/a")]
    with pytest.raises(LocalUsageError, match="the session is over"):
        store.get(other, "/a")


def test_versions_count_changes_and_guard_them(store: CoordinationStore, one: Session) -> None:
    assert store.get(one, "/a") == (b"", 0)
    assert store.set(one, "/a", b"1", version=0) == 1
    with pytest.raises(LocalUsageError, match="version 1, not 0"):
        store.set(one, "/a", b"2", version=0)
    with pytest.raises(LocalUsageError, match="version 1, not 0"):
        store.delete(one, "/a", version=0)
    store.delete(one, "/a", version=1)
    assert not store.exists(one, "/a")


def test_the_tree_stays_one(store: CoordinationStore, one: Session) -> None:
    with pytest.raises(LocalUsageError, match="there is a node /a already"):
        store.create(one, "/a")
    with pytest.raises(LocalUsageError, match="there is no node /b"):
        store.create(one, "/b/c")
    store.create(one, "/a/x", ephemeral=True)
    with pytest.raises(LocalUsageError, match="ephemeral and can have no children"):
        store.create(one, "/a/x/y")
    with pytest.raises(LocalUsageError, match="has children"):
        store.delete(one, "/a")
    with pytest.raises(LocalUsageError, match="there is no node /c"):
        store.set(one, "/c", b"")
