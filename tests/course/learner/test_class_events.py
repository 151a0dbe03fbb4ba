"""What may travel to a class, and under which name."""

from __future__ import annotations

import pytest

from course.learner.class_events import bad_handle, clean, event_id, folded, plain_json
from tests.support.class_ends import T0, checked


def test_only_what_a_class_shows_leaves_the_machine():
    cleaned = clean(checked(source="secret = 1", by="me", printed="hello"))
    assert cleaned == clean(checked())
    assert set(cleaned) == {
        "event",
        "time",
        "exercise",
        "status",
        "rule",
        "code_hash",
        "vectors",
        "seed",
        "rules_passed",
        "rules_total",
    }


@pytest.mark.parametrize(
    "event",
    [
        None, [], "check", {}, {"event": []}, {"event": "quiz", "exercise": "3.1"}, {"event": "check"},
        {"event": "hint", "exercise": "3.1<script>"}, {"event": "hint", "exercise": 3.1},
        {"event": "check", "exercise": "3.1", "status": "won"}, {"event": "check", "exercise": "3.1", "status": []},
    ],
)  # fmt: skip
def test_what_is_no_event_is_none(event):
    assert clean(event) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rule", "<b>"), ("rule", ["E"]), ("rung", 6), ("rung", True), ("code_hash", "=1+1"), ("vectors", "@x"),
        ("vectors", "a\nb"), ("seed", 1 << 64), ("seed", 1.5), ("rules_total", -1), ("rules_passed", 10**400),
    ],
)  # fmt: skip
def test_a_field_that_is_not_what_it_should_be_is_left_out(name, value):
    cleaned = clean(checked() | {name: value})
    assert cleaned is not None
    assert name not in cleaned


@pytest.mark.parametrize("time", [None, "now", -1, 10**400, float("nan"), float("inf"), 1e12])
def test_a_time_nobody_can_have_meant_stands_for_its_arrival(time):
    assert clean(checked(time=time))["time"] == 0.0
    assert clean(checked())["time"] == T0


def test_the_same_event_has_the_same_id_and_another_one_another():
    assert event_id(clean(checked(extra=1))) == event_id(clean(dict(reversed(checked().items()))))
    ids = {event_id(clean(checked(n=n, time=T0 + dt))) for n in range(3) for dt in range(3)}
    assert len(ids) == 9


@pytest.mark.parametrize("handle", ["ada", "Ada-7", "team.7", "x", "世界", "हिन्दी", "Žofie_1", "a" * 24])
def test_a_handle_in_any_script(handle):
    assert bad_handle(handle) is None


@pytest.mark.parametrize(
    "handle",
    [
        "", "a" * 25, "a b", "<b>x</b>", "=cmd()", "+1", "-x", "@x", "\u202eada", "a\u0000", "a\nb", "a\ud800", "😀",
        "a" + "\u0301" * 3, "\u0301a", 'a"b', "a,b", "a/b",
    ],
)  # fmt: skip
def test_what_cannot_be_a_handle_says_why(handle):
    assert bad_handle(handle)


def test_handles_that_look_the_same_are_the_same():
    assert folded("Ada") == folded("ADA") == folded("Ａda")


@pytest.mark.parametrize("raw", [b"", b"{", b"NaN", b'{"a": Infinity}', b"\xff", b"[" * 100_000, b"1" * 5_000])
def test_what_is_no_json_is_a_value_error(raw):
    with pytest.raises(ValueError, match=r".*"):
        plain_json(raw)
