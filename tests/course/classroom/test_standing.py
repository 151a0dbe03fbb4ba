"""Who stands where, who is stuck, what stops most; as data and in words."""

from __future__ import annotations

import random
import re

import pytest

from course.classroom import model as model_module
from course.classroom.class_file import ClassError, ClassFile, EventRow
from course.classroom.limits import Limit, Limiter
from course.classroom.model import class_model, specimen_of
from course.classroom.orders import ordered, said
from course.classroom.roll import Roll
from course.classroom.standing import standings
from course.classroom.words import class_text
from course.curriculum.manifest import EXERCISES
from tests.support.class_ends import T0, checked, secret
from tests.support.golden import recorded


def rows(*events):
    return [EventRow(seq, 1, event["time"], False, event) for seq, event in enumerate(events)]


def minute(n):
    return T0 + 60 * n


def test_once_passed_stays_passed_and_keeps_what_passed():
    found = standings(
        rows(
            checked(time=minute(0), n=1),
            checked(time=minute(1), n=1),
            checked(time=minute(2), n=2),
            checked(status="passed", time=minute(3), n=3, rules_passed=16),
            checked(time=minute(4), n=4),
        ),
        {},
    )["3.1"]
    assert (found.status, found.rule, found.attempts, found.rules_passed) == ("passed", "", 4, 16)
    assert found.code_hash.endswith("3")
    assert found.failed_rules == {"E"}
    assert (found.attempt_at, found.minutes) == (minute(4), 4)


def test_the_order_of_arrival_does_not_matter():
    events = [checked(time=minute(n), n=n % 5, status="failed" if n % 4 else "timeout") for n in range(12)]
    hint = {"event": "hint", "exercise": "3.1", "rule": "E"}
    events += [hint | {"rung": 1 + n, "time": minute(20 + n)} for n in range(3)]
    wanted = standings(rows(*events), {})
    for seed in range(5):
        mixed = rows(*events)
        random.Random(seed).shuffle(mixed)
        assert standings(mixed, {}) == wanted, seed


def test_a_pause_counts_for_five_minutes_at_most():
    events = [checked(time=minute(n)) for n in (0, 2, 120)] + [checked("0.1", time=minute(123))]
    found = standings(rows(*events), {})
    assert (found["3.1"].minutes, found["0.1"].minutes) == (7, 3)


def test_a_reset_forgets_results_and_keeps_attempts():
    passed = checked(status="passed", time=minute(0))
    found = standings(rows(passed), {"3.1": minute(1)})["3.1"]
    assert (found.status, found.attempts, found.code_hash) == ("not_started", 1, "")
    again = standings(rows(passed, checked(time=minute(2), n=2)), {"3.1": minute(1)})["3.1"]
    assert (again.status, again.attempts) == ("failed", 2)


def test_caught_up_is_neither_passed_nor_tried():
    catchup = {"event": "catchup", "exercise": "3.1", "time": minute(1)}
    assert standings(rows(checked(time=minute(0)), catchup), {})["3.1"].status == "caught_up"
    assert standings(rows(checked(status="passed", time=minute(0)), catchup), {})["3.1"].status == "passed"
    assert standings(rows(catchup, checked(time=minute(2))), {})["3.1"].status == "failed"


# -- the room --------------------------------------------------------------------------------------


class Class:
    """A class file with learners in it, and what the dashboard makes of it."""

    def __init__(self, path):
        self.file = ClassFile(path, create=True, title="Tuesday")
        self.roll = Roll(ClassFile(path))

    def join(self, handle, n, at=T0):
        with self.file.transaction():
            return self.file.join(handle, secret(n), at).id

    def add(self, learner, *events, at=T0):
        with self.file.transaction():
            self.file.add_events(learner, events, at)

    def seen(self, *learners, at):
        with self.file.transaction():
            self.file.touch(dict.fromkeys(learners, at))

    def order(self, at=T0, **order):
        with self.file.transaction():
            self.file.add_action(ordered(order), at)

    def model(self, now, lessons=frozenset()):
        self.roll.refresh()
        return class_model(self.roll, now, lessons)


@pytest.fixture
def made(tmp_path):
    room = Class(tmp_path / "class.sqlite")
    yield room
    room.file.close()
    room.roll._file.close()


def here(made, *learners, until):
    """These learners' machines speak each minute, as couriers do."""
    for n in range(until + 1):
        made.seen(*learners, at=minute(n))


def test_the_heat_map_counts_learners_and_not_tries(made):
    ada, bob, eve = (made.join(handle, n) for n, handle in enumerate(("ada", "bob", "eve")))
    made.add(ada, checked(n=1), checked(n=2, time=T0 + 1))
    made.add(bob, checked(n=1), checked(n=2, rule="F", time=T0 + 1), at=T0 + 2)
    made.add(eve, checked(n=1), checked(status="passed", n=2, time=T0 + 1), at=T0 + 2)
    made.add(eve, {"event": "hint", "exercise": "3.1", "rule": "E", "rung": 2, "time": T0})
    found = {row["rule"]: row for row in made.model(T0)["rules"] if row["exercise"] == "3.1"}
    assert [(found[rule]["now"], found[rule]["ever"]) for rule in "ABEF"] == [(0, 0), (0, 0), (1, 3), (1, 1)]
    assert found["E"]["hints"] == 1
    assert found["E"]["specimen"] == "w01_header_in_every_buffer"
    assert found["E"]["belief"]
    assert next(iter(found)) == "S"


def test_stuck_is_eight_minutes_without_another_attempt(made):
    ada, bob = made.join("ada", 1), made.join("bob", 2)
    made.add(ada, checked(n=1))
    made.add(bob, checked(n=1))
    here(made, ada, bob, until=9)
    made.add(ada, checked(n=1, time=minute(5)), at=minute(5))  # the same code again is no attempt
    made.add(bob, checked(n=2, time=minute(5)), at=minute(5))
    assert made.model(minute(7))["stuck"] == []
    (stuck,) = made.model(minute(9))["stuck"]
    assert (stuck["handle"], stuck["exercise"], stuck["rule"], stuck["minutes"]) == ("ada", "3.1", "E", 9)
    marked = [
        (learner["handle"], exercise)
        for learner in made.model(minute(9))["learners"]
        for exercise, cell in zip(EXERCISES, learner["cells"], strict=True)
        if cell["stuck"]
    ]
    assert marked == [("ada", "3.1")]


def test_who_is_away_or_done_is_not_stuck(made):
    ada, bob = made.join("ada", 1), made.join("bob", 2)
    made.add(ada, checked(n=1))
    made.add(bob, checked(status="passed"))
    here(made, bob, until=20)
    model = made.model(minute(20))
    assert model["stuck"] == []
    assert [learner["here"] for learner in model["learners"]] == [False, True]
    made.seen(ada, at=minute(20))  # the machine slept; its learner has just sat down again
    assert made.model(minute(21))["stuck"] == []


def test_who_has_not_begun_with_the_checkpoint_is_stuck_there(made):
    ada = made.join("ada", 1)
    here(made, ada, until=18)
    assert made.model(minute(19))["stuck"] == []
    made.order(minute(10), kind="checkpoint", exercise="3.1")
    assert made.model(minute(17))["stuck"] == []
    (stuck,) = made.model(minute(19))["stuck"]
    assert (stuck["exercise"], stuck["rule"], stuck["attempts"]) == ("3.1", "", 0)
    assert "ada  3.1  9 min  no attempt yet" in class_text(made.model(minute(19)))


def test_columns_count_everybody_and_lessons_can_be_picked(made):
    ada = made.join("ada", 1)
    made.join("bob", 2)
    made.add(ada, checked(status="passed"))
    made.order(kind="unlock", exercise="3.1", rung=3)
    made.order(kind="checkpoint", exercise="3.1")
    column = next(each for each in made.model(T0)["exercises"] if each["id"] == "3.1")
    assert (column["passed"], column["not_started"], column["unlocked"], column["stuck"]) == (1, 1, 3, 0)
    here(made, ada, 2, until=60)
    column = next(each for each in made.model(T0 + 3600)["exercises"] if each["id"] == "3.1")
    assert column["stuck"] == 1, "bob, who has not begun"
    assert [each["id"] for each in made.model(T0)["exercises"]] == list(EXERCISES)
    picked = made.model(T0, frozenset({3}))
    assert [each["id"] for each in picked["exercises"]] == ["3.1"]
    assert [len(learner["cells"]) for learner in picked["learners"]] == [1, 1]


def test_a_reset_for_all_empties_the_column(made):
    ada = made.join("ada", 1)
    made.add(ada, checked(status="passed"))
    at = [*EXERCISES].index("3.1")
    assert made.model(T0)["exercises"][at]["passed"] == 1
    made.order(T0 + 1, kind="reset", exercise="3.1")
    model = made.model(T0 + 2)
    assert (model["exercises"][at]["passed"], model["learners"][0]["cells"][at]["attempts"]) == (0, 1)


def test_the_words_say_what_the_picture_shows(made):
    empty = class_text(made.model(T0))
    assert f"sluice join {made.roll.about['code']}@HOST:PORT --handle NAME" in empty
    ada, bob = made.join("ada", 1), made.join("bob", 2)
    made.add(ada, checked())
    made.add(bob, checked("0.1", "passed"))
    text = class_text(made.model(T0))
    assert "Class Tuesday: 2 learners, 2 here now" in text
    assert re.search(r"ada +○ +✗E 1", text)
    assert re.search(r"bob +✓ 1 +○", text)
    assert re.search(r"passed +1\n", text), "the totals of each exercise, as the picture has them"
    assert re.search(r"failing {11,}1\n", text)
    assert "  1  3.1 rule E: A record over two buffers (hints asked: 0)" in text
    assert max(map(len, text.splitlines())) <= 96


def test_many_exercises_stand_in_several_rows_of_columns(made):
    ada = made.join("a-rather-long-handle", 1)
    assert "Nobody has begun yet: a-rather-long-handle" in class_text(made.model(T0))
    for exercise in EXERCISES:
        made.add(ada, checked(exercise, "passed"))
    made.order(kind="checkpoint", exercise="0.1")
    text = class_text(made.model(minute(5)))
    assert text.count("✓ 1") == len(EXERCISES)
    assert max(map(len, text.splitlines())) <= 96
    assert text.count("a-rather-long-handle") > 1


def test_each_specimen_is_one_that_its_rule_catches(request):
    """Read from the recorded messages; `--rewrite` writes the table anew after the zoo has changed."""
    lines = [
        "# A known-wrong part for each rule that catches one, from the recorded messages of the zoo.",
        "# Made by: pytest tests/course/classroom --rewrite",
    ]
    for exercise in EXERCISES:
        caught = {}
        for name, message in sorted(recorded(exercise).items()):
            head = "\n".join(message.splitlines()[:2])
            caught.setdefault(re.search(r"rule (\w+)", head)[1], name)
        lines += ["", f'["{exercise}"]', *(f'{rule} = "{name}"' for rule, name in sorted(caught.items()))]
    table = model_module._SPECIMENS
    if request.config.getoption("--rewrite"):
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert table.read_text(encoding="utf-8") == "\n".join(lines) + "\n"
    assert specimen_of("3.1", "E")[1]
    assert specimen_of("3.1", "Z") == ("", "")


@pytest.mark.parametrize(
    "order",
    [
        None, {}, {"kind": "delete"}, {"kind": ["reset"]}, {"kind": "reset", "exercise": "9.9"},
        {"kind": "reset", "exercise": ["3.1"]}, {"kind": "unlock", "exercise": "3.1"},
        {"kind": "unlock", "exercise": "3.1", "rung": 6},
        {"kind": "unlock", "exercise": "3.1", "rung": True}, {"kind": "catchup", "lesson": "3"},
        {"kind": "catchup", "lesson": 99},
    ],
)  # fmt: skip
def test_there_is_no_such_decision(order):
    with pytest.raises(ClassError):
        ordered(order)


def test_a_decision_keeps_only_its_own_fields():
    assert ordered({"kind": "reset", "exercise": "3.1", "rung": 3, "x": "<b>"}) == {"kind": "reset", "exercise": "3.1"}
    kinds = [{"kind": "unlock", "exercise": "3.1", "rung": n} for n in (0, 3)] + [{"kind": "catchup", "lesson": 3}]
    kinds += [{"kind": kind, "exercise": "3.1"} for kind in ("reset", "checkpoint")]
    assert len({said(ordered(order)) for order in kinds}) == 5


def test_a_bucket_fills_again_and_old_ones_are_forgotten():
    limiter = Limiter(Limit(burst=3, per_second=0.5), max_keys=2)
    assert [limiter.take("a", T0) for _ in range(4)] == [0, 0, 0, 2.0]
    assert limiter.wait_s("a", T0) == 2.0
    assert limiter.take("a", T0 + 1) == 1.0
    assert limiter.take("a", T0 + 2) == 0.0
    assert limiter.take("b", T0 + 2) == 0.0
    assert limiter.take("c", T0 + 2) == 0.0
    assert len(limiter._buckets) == 2
    assert limiter.take("a", T0 - 100) == 0.0  # a clock that was set back gives nothing and takes nothing
