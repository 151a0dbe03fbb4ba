"""Rosters as Canvas and Moodle export them, or a list of one's own: who is behind a handle, never guessed."""

from __future__ import annotations

import pytest

from course.classroom.roster import RosterError, people_of, read_roster

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Homework (12)
    Points Possible,,,,,10
"Lovelace, Ada",101,u1,al100,Tuesday,9
"Kovács, József",102,u2,jk7@uni.example,Tuesday,8
"Turing, Alan",103,,,Monday,
"Student, Test",999,,abc,Tuesday,0
"""
MOODLE = (
    "First name,Last name,ID number,Email address\nAda,Lovelace,7,al100@uni.example\nJózsef,Kovács,8,jk7@uni.example\n"
)
OWN = 'handle,id,name\nada,al100,"Lovelace, Ada"\n'


def behind(text: str, *handles: str) -> dict[str, str]:
    found = people_of(handles, read_roster(text.encode()))
    return {handle: person.id for handle, person in found.items()}


@pytest.mark.parametrize(
    "handle", ["al100", "AL100", "ada-lovelace", "Lovelace.Ada", "LovelaceAda", "ａda_lovelace"]
)  # fmt: skip
def test_a_student_is_found_by_login_or_name_in_any_order(handle: str) -> None:
    assert behind(CANVAS, handle) == {handle: "al100"}
    assert behind(MOODLE, handle) == {handle: "al100@uni.example"}


@pytest.mark.parametrize("handle", ["jozsef-kovacs", "József-Kovács", "kova\u0301cs.jo\u0301zsef", "jk7", "JK7"])
def test_accents_are_the_same_composed_or_not_and_may_be_left_out(handle: str) -> None:
    assert behind(CANVAS, handle) == {handle: "jk7@uni.example"}
    assert behind(MOODLE, handle) == {handle: "jk7@uni.example"}


def test_rows_that_are_no_students_are_left_out_and_others_are_nobody() -> None:
    assert behind(CANVAS, "alan-turing", "test-student", "abc", "eve") == {"alan-turing": "103"}
    assert behind(OWN, "ADA", "bob") == {"ADA": "al100"}


def test_two_who_could_be_meant_are_named_and_not_guessed() -> None:
    rows = 'Student,ID,SIS Login ID\n"Lee, Kim",1,a\n"Kim, Lee",2,b\n'
    with pytest.raises(RosterError, match=r"kim-lee could mean Lee, Kim \(a\) and Kim, Lee \(b\)"):
        behind(rows, "kim-lee")
    assert behind(rows, "a") == {"a": "a"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_spreadsheet_may_have_written_it(encoding: str, delimiter: str) -> None:
    rows = [["Student", "ID", "SIS Login ID"], ["József Kovács", "1", "jk"], ["Ada\nLovelace", "2", "al"]]
    text = "\r\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    found = people_of(["kovacs-jozsef", "al"], read_roster(text.encode(encoding)))
    assert {handle: person.id for handle, person in found.items()} == {"kovacs-jozsef": "jk", "al": "al"}


def test_columns_of_canvas_go_back_as_they_came() -> None:
    (person,) = people_of(["al100"], read_roster(CANVAS.encode())).values()
    assert dict(person.columns) == {
        "Student": "Lovelace, Ada", "ID": "101", "SIS User ID": "u1", "SIS Login ID": "al100", "Section": "Tuesday",
    }  # fmt: skip


@pytest.mark.parametrize("raw", [b"", b"who\nada\n", b"\xff\xff\xff", b'a,"b\n', b"First name\nAda\n", b"\xff\xfea"])
def test_what_is_no_roster_is_said(raw: bytes) -> None:
    with pytest.raises(RosterError):
        read_roster(raw)
