"""Predictions and quiz questions: read from questions.toml, shown and answered as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from course.curriculum.languages import language
from course.curriculum.manifest import LESSONS
from course.curriculum.messages import read_catalogue, said
from course.curriculum.own_lessons import FIRST_NUMBER, own_questions

__all__ = ["NoSuchQuestionError", "Question", "question", "questions"]

_NAMES = {"predict": "no prediction", "quiz": "no quiz question"}


class NoSuchQuestionError(KeyError):
    """A question id, or a choice, that the lesson does not have."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Question:
    """One question: a prediction, which has an answer to each choice, or a quiz question, which has a right one."""

    id: str
    kind: str
    ask: str
    choices: dict[str, str]
    right: str = ""
    because: str = ""
    answers: dict[str, str] = field(default_factory=dict)

    def text(self, chosen: str | None = None) -> str:
        """The question with its choices; a chosen one is marked."""
        lines = [f"{self.id}  {self.ask}"]
        for letter, words in self.choices.items():
            lines.append(f"  {'▸' if letter == chosen else ' '} {letter}) {words}")
        return "\n".join(lines)

    def answer(self, chosen: str) -> str:
        """What is said to whoever chose this letter.

        Raises:
            NoSuchQuestionError: it is no choice.
        """
        if chosen not in self.choices:
            raise NoSuchQuestionError(f"{self.id} has the choices {', '.join(self.choices)}; got {chosen!r}")
        if self.kind == "predict":
            return self.answers[chosen]
        if chosen == self.right:
            return said("questions.right", because=self.because)
        return said("questions.not_that_one")


def questions(lesson: int) -> dict[str, Question]:
    """All questions of one lesson by id, in the current language; none if it has none."""
    if lesson >= FIRST_NUMBER:  # whose teacher may just be writing them
        return {name: Question(name, **row) for name, row in own_questions(lesson).items()}
    return _questions(lesson, language())


@cache
def _questions(lesson: int, language: str) -> dict[str, Question]:
    rows = read_catalogue("curriculum/questions.toml", language).items()
    return {name: Question(name, **row) for name, row in rows if name.partition(".")[0] == str(lesson)}


def question(name: str, kind: str) -> Question:
    """One question by its name, such as "3.a"; `kind` is "predict" or "quiz".

    Raises:
        NoSuchQuestionError: its lesson does not have it, or not of this kind; the text lists those it has.
    """
    number = name.partition(".")[0]
    lesson = int(number) if number.isdecimal() else -1
    found = {each.id: each for each in questions(lesson).values() if each.kind == kind}
    if name not in found:
        where = f"lesson {lesson}" if lesson in LESSONS else "the course"
        raise NoSuchQuestionError(f"{where} has {_NAMES[kind]} {name!r}; it has {', '.join(found) or 'none'}")
    return found[name]
