"""The file keeps what it said it keeps, for those it is kept for."""

from __future__ import annotations

import sqlite3
import stat

import pytest

from course.classroom import class_file
from course.classroom.class_file import ClassError, ClassFile
from course.classroom.roll import Roll
from course.classroom.sessions import instructor_key, is_key
from tests.support.class_ends import T0, checked, secret


@pytest.fixture
def file(tmp_path):
    with ClassFile(tmp_path / "class.sqlite", create=True) as opened:
        yield opened


def join(file, handle, n):
    with file.transaction():
        return file.join(handle, secret(n), T0)


def test_a_commit_is_on_the_disk_before_it_is_acknowledged(file):
    """A test cannot pull the plug; these two settings are what SQLite asks for to survive that."""
    assert file._row("PRAGMA journal_mode") == ("wal",)
    assert file._row("PRAGMA synchronous") == (2,)


def test_it_is_for_its_owner_and_holds_no_secret(file):
    join(file, "ada", 1)
    key = instructor_key(file)
    for path in (file.path, file.path.with_name("class.sqlite.key")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    held = b"".join(each.read_bytes() for each in file.path.parent.glob("class.sqlite*") if each.suffix != ".key")
    assert secret(1).encode() not in held
    assert key.encode() not in held
    assert key.replace("-", "").encode() not in held


def test_joining_again_with_the_same_secret_is_the_same_learner(file):
    assert join(file, "ada", 1).id == join(file, "Ada", 1).id
    assert [row.handle for row in file.learners()] == ["ada"]


@pytest.mark.parametrize("handle", ["ada", "ADA", "ａｄａ"])
def test_a_taken_handle_stays_with_who_has_it(file, handle):
    join(file, "ada", 1)
    with pytest.raises(ClassError, match=r"is taken in this class; choose another\. .*sluice class free"):
        join(file, handle, 2)
    assert [row.secret for row in file.learners()] == [class_file.hash_of(secret(1))]


def test_one_learner_has_one_handle(file):
    join(file, "ada", 1)
    with pytest.raises(ClassError, match="you are in this class already, as ada"):
        join(file, "bob", 1)


def test_a_freed_handle_goes_on_with_what_was_done_under_it(file):
    ada = join(file, "ada", 1)
    with file.transaction():
        file.add_events(ada.id, [checked()], T0)
        assert file.free("ADA")
        assert not file.free("bob")
    assert join(file, "ada", 2).id == ada.id
    assert len(Roll(file).pupils[ada.id].events) == 1


def test_a_learner_who_is_taken_out_is_gone_from_every_roll(file):
    ada, bob = join(file, "ada", 1), join(file, "bob", 2)
    with ClassFile(file.path) as other:
        roll = Roll(other)
        with file.transaction():
            file.add_events(ada.id, [checked()], T0)
            file.add_events(bob.id, [checked()], T0)
            assert file.remove("ada")
            assert not file.remove("ada")
        assert roll.refresh()
        assert [pupil.row.handle for pupil in roll.pupils.values()] == ["bob"]
        assert not roll.refresh()


def test_the_same_event_is_kept_once_and_what_is_none_is_refused(file):
    ada, bob = join(file, "ada", 1), join(file, "bob", 2)
    with file.transaction():
        first = file.add_events(ada.id, [checked(n=1), checked(n=2), "junk", checked(n=1)], T0)
        again = file.add_events(ada.id, [checked(n=2), checked(n=3)], T0)
        other = file.add_events(bob.id, [checked(n=1)], T0)
    assert (first.num_new, first.num_known, first.num_refused) == (2, 1, 1)
    assert (again.num_new, again.num_known) == (1, 1)
    assert other.num_new == 1


def test_a_wrong_clock_is_put_right_and_nothing_lies_in_the_future(file):
    ada = join(file, "ada", 1)
    with file.transaction():
        file.add_events(ada.id, [checked(time=T0 + 3500, n=1)], T0, clock_ahead_s=3600)
        file.add_events(ada.id, [checked(time=T0 + 50, n=2)], T0)
        file.add_events(ada.id, [checked(time=None, n=3)], T0)
    assert [event.at for event in file.events_after(0)] == [T0 - 100, T0, T0]


def test_one_learner_cannot_fill_the_disk(file, monkeypatch):
    monkeypatch.setattr(class_file, "MAX_EVENTS_OF_ONE", 3)
    ada = join(file, "ada", 1)
    with pytest.raises(ClassError, match="a class keeps 3 events"), file.transaction():
        file.add_events(ada.id, [checked(n=n) for n in range(4)], T0)
    assert file.events_after(0) == []


def test_a_class_can_be_full(file, monkeypatch):
    monkeypatch.setattr(class_file, "MAX_LEARNERS", 1)
    join(file, "ada", 1)
    with pytest.raises(ClassError, match="the class is full: it has 1 learners"):
        join(file, "bob", 2)
    assert join(file, "ada", 1)


def test_files_that_are_no_class_are_left_alone(tmp_path):
    text, database = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_text("hello\n" * 100)
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    for path in (text, database):
        before = path.read_bytes()
        with pytest.raises(ClassError, match="--db"):
            ClassFile(path, create=True)
        assert path.read_bytes() == before
    with pytest.raises(ClassError, match="`sluice class serve` starts one"):
        ClassFile(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(ClassError, match=r"cannot be written: .*--db"):
        ClassFile(tmp_path / "file" / "below.sqlite", create=True)


def test_the_key_is_kept_and_a_lost_one_is_replaced(file, capsys):
    key = instructor_key(file)
    assert instructor_key(file) == key
    assert capsys.readouterr().err == ""
    assert is_key(key.lower().replace("-", " "), file.about()["key"])
    file.path.with_name("class.sqlite.key").write_text("{")
    other = instructor_key(file)
    assert "there is a new one, which `sluice class token` prints" in capsys.readouterr().err
    assert other != key
    assert is_key(other, file.about()["key"])
    assert not is_key(key, file.about()["key"])
    assert not is_key("", "")
