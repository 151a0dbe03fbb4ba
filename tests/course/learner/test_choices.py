"""A question can be answered with a click; without a browser it is its words."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from course.curriculum.questions import Question
from course.learner.choices import Choices

ASKED = Question("0.z", "quiz", "One < two?", {"a": "yes & no", "b": "no"}, right="a", because="It is.")


@pytest.fixture
def asked():
    chosen = []

    def answer(letter):
        chosen.append(letter)
        return f"{letter} <it is>"

    choices = Choices(ASKED, answer, "Answer by letter.")
    assert "application/vnd.jupyter.widget-view+json" in choices._repr_mimebundle_()
    return choices, chosen, choices._box.children


def test_its_words_hold_the_question_the_choices_and_how_to_answer(asked):
    choices, _, _ = asked
    assert choices._repr_mimebundle_()["text/plain"] == repr(choices)
    assert repr(choices).splitlines() == ["0.z  One < two?", "    a) yes & no", "    b) no", "  Answer by letter."]


def test_a_choice_is_an_answer_and_another_choice_another(asked):
    _, chosen, (_, radio, said) = asked
    assert (radio.value, said.value) == (None, "")
    radio.value = "a"
    assert (chosen, said.value) == (["a"], "a &lt;it is&gt;")
    radio.value = "b"
    assert (chosen, said.value) == (["a", "b"], "b &lt;it is&gt;")


def test_without_a_kernel_each_choice_is_a_fold_with_its_own_answer_in_it(asked):
    choices, _, _ = asked
    page = choices._repr_mimebundle_()["text/html"]
    assert page == choices.page()
    assert "<b>One &lt; two?</b>" in page
    folds = re.findall(r'<details name="0\.z"><summary>(.*?)</summary><p>(.*?)</p></details>', page)
    assert folds == [
        ("a) yes &amp; no", "✓ right. It is."), ("b) no", "✗ not that one; think again, choose another.")
    ]  # fmt: skip


def test_no_style_of_a_view_on_the_same_page_lies_on_a_question(asked):
    named = {name for names in re.findall(r'class="(.*?)"', asked[0].page()) for name in names.split()}
    assert named
    for sheet in resources.files("widgets").joinpath("static").iterdir():
        if sheet.name.endswith(".css"):
            assert not named & set(re.findall(r"\.([a-z][\w-]*)", sheet.read_text(encoding="utf-8"))), sheet.name


def test_two_displays_share_what_was_chosen(asked):
    choices, _, children = asked
    choices._repr_mimebundle_()
    assert choices._box.children == children
