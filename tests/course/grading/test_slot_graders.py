"""The grader of lesson 16's matching of slots: right in any style passes, wrong in one point is told as that."""

from __future__ import annotations

import pytest

from course.curriculum.specimens import right_answers
from course.curriculum.stubs import solution
from course.exercises.e16_1_slot_matching import check
from course.grading.judge import judge

RIGHT = {
    "match_and_tuples": """
class Matching:
    def __init__(self):
        self.all = []
        self.wanted = ()

    def request(self, request, before, near):
        free = [(slot != before, where not in near, n, slot) for n, (slot, where, user) in enumerate(self.all)
                if user is None]
        match sorted(free):
            case [(_, _, number, slot), *_]:
                self.all[number] = slot, self.all[number][1], request
                return slot
            case _:
                self.wanted += (request,)

    def offer(self, slot, task_manager):
        if any(each == slot for each, _, _ in self.all):
            return None
        self.all += [(slot, task_manager, "nobody")]
        return self.release(slot)

    def release(self, slot):
        for number, (each, where, user) in enumerate(self.all):
            if each == slot and user is not None:
                chosen = slot if slot in self.wanted else (self.wanted or (None,))[0]
                self.wanted = tuple(each for each in self.wanted if each != chosen)
                self.all[number] = slot, where, chosen
                return chosen

    def withdraw(self, request):
        self.wanted = tuple(each for each in self.wanted if each != request)

    def remove(self, slot):
        self.all = [row for row in self.all if row[0] != slot]
""",
    "by_the_text_of_an_id": """
class Matching:
    def __init__(self, size=0):
        self.slots, self.wishes = {}, {}

    def request(self, request, before, near):
        def rank(key):
            slot, where, _ = self.slots[key]
            return 2 * (slot == before) + (where in near)
        free = [key for key in self.slots if not self.slots[key][2]]
        if free:
            best = max(free, key=rank)
            self.slots[best][2] = True
            return self.slots[best][0]
        self.wishes[str(request)] = request

    def offer(self, slot, task_manager):
        if str(slot) not in self.slots:
            self.slots[str(slot)] = [slot, task_manager, True]
            return self.release(slot)

    def release(self, slot):
        row = self.slots.get(str(slot))
        if row and row[2]:
            key = str(slot) if str(slot) in self.wishes else next(iter(self.wishes), None)
            row[2] = key is not None
            return self.wishes.pop(key, None)

    def withdraw(self, request):
        self.wishes.pop(str(request), None)
        return True

    def remove(self, slot):
        return self.slots.pop(str(slot), None)
""",
}

PLAIN = right_answers("16.1")[0].source
WRONG = [
    ("is_for_equal", "        if slot in self.waiting:\n            served = slot",
     "        served = next((each for each in self.waiting if each is slot), served)", "B"),
    ("no_idle_slots", "        self.users.pop(slot, None)\n        self.places.pop(slot, None)",
     "        self.users.pop(slot, None)", ""),
    ("a_slot_of_a_lost_one_waits_again", "        self.users.pop(slot, None)",
     "        user = self.users.pop(slot, None)\n        self.waiting += [user] if user else []", "F"),
    ("withdraw_frees_the_slot", "        if request in self.waiting:\n",
     ("        for slot, user in self.users.items():\n            if user == request:\n"
      "                self.users[slot] = None\n        if request in self.waiting:\n"), "F"),
    ("before_in_use", "        if before in free:", "        if before in self.users:", "E"),
    ("ten_requests", "            self.waiting.append(request)\n",
     "            self.waiting.append(request)\n            del self.waiting[50:]\n", "G"),
    ("waits_as_a_set", "        served = self.waiting[0]", "        served = sorted(self.waiting)[-1]", "B"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_an_answer_written_otherwise_passes(name):
    report = judge("16.1", RIGHT[name])
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "old", "new", "rule"), WRONG, ids=[name for name, *_ in WRONG])
def test_an_answer_that_is_wrong_in_one_point_is_turned_down(name, old, new, rule):
    assert old in PLAIN, old
    report = judge("16.1", PLAIN.replace(old, new))
    if rule:
        assert not report.passed, name
        assert f"rule {rule}" in str(report), f"{name}\n{report}"
    else:
        assert report.passed, "what is only kept longer than needed harms nobody"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 4711])
def test_right_answers_pass_with_other_seeds(seed):
    for source in (solution("16.1"), *(each.source for each in right_answers("16.1"))):
        report = judge("16.1", source, seed=seed)
        assert report.passed, str(report)


def test_no_case_asks_for_what_a_job_cannot_do():
    """An id is one request's only, and a slot is where it is until it is gone."""
    assert all(check._is_valid(ops) for cases in check._CASES.values() for ops in cases)
    assert all(check._is_valid(ops) for ops in check._seeded(3))
    assert not check._is_valid([["request", 1, 0, []], ["request", 1, 0, []]])
    assert not check._is_valid([["offer", 1, 0], ["offer", 1, 2]])
