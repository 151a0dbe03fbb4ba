"""Every choice of a prediction has an answer to the belief behind it; a quiz question has a right one."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from course.curriculum.manifest import LESSONS
from course.curriculum.questions import NoSuchQuestionError, question, questions

ALL = [each for lesson in LESSONS for each in questions(lesson).values()]
PREDICTIONS = [each for each in ALL if each.kind == "predict"]


@pytest.mark.parametrize("asked", PREDICTIONS, ids=lambda each: each.id)
def test_every_choice_of_a_prediction_has_an_answer_of_its_own(asked):
    assert list(asked.answers) == list(asked.choices)
    assert all(len(asked.answer(letter).split()) >= 10 for letter in asked.choices)
    assert len(set(asked.answers.values())) == len(asked.choices)


@pytest.mark.parametrize("asked", PREDICTIONS, ids=lambda each: each.id)
def test_one_choice_is_right_and_its_answer_says_so(asked):
    assert [words.startswith("Right: ") for words in asked.answers.values()].count(True) == 1


def test_no_answer_stands_under_two_questions():
    assert max(Counter(words for each in PREDICTIONS for words in each.answers.values()).values()) == 1


@pytest.mark.parametrize("asked", [each for each in ALL if each.kind == "quiz"], ids=lambda each: each.id)
def test_a_quiz_question_has_a_right_choice_and_says_why(asked):
    for letter in asked.choices:
        said = asked.answer(letter)
        assert said == f"✓ right. {asked.because}" if letter == asked.right else re.match("✗ not that one", said)


def test_a_letter_that_is_no_choice_is_refused():
    with pytest.raises(NoSuchQuestionError, match=r"0\.a has the choices a, b, c, d; got 'z'"):
        question("0.a", "predict").answer("z")
