"""What a notebook offers: `from course import lesson; L = lesson(3)`.

Every output is text that depends on the learner's code and the seed only, so that a notebook's
stored output can be compared. What a check needs of the exercise is the *source* of the cell.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from course.curriculum import questions
from course.curriculum.languages import language, wrong_choice
from course.curriculum.lesson_texts import lesson_title
from course.curriculum.manifest import DEFAULT_SEED, VECTORS_VERSION, Lesson, exercise, lesson_info
from course.curriculum.messages import belief, said
from course.curriculum.own_lessons import own_lesson
from course.curriculum.seams import seam
from course.curriculum.specimens import zoo as specimens
from course.curriculum.stubs import stub
from course.curriculum.wrapping import wrap
from course.grading.remote import judge_apart, prepare
from course.grading.report import COLUMNS, Report
from course.grading.runner import GraderError
from course.learner import hints, membership, progress
from course.learner.answers import cell_names, current_source, latest_cell, num_cells, shell, unmarked_cell
from course.learner.choices import Choices
from course.learner.saved import progress_report
from course.learner.step_by_step import drawn, view_of
from course.places import work_folder
from course.version import __version__

__all__ = [
    "LessonHandle", "Text", "all_parts", "ask_again", "check", "hint", "lesson", "predict", "progress_list", "quiz",
    "receipt", "reset", "reveal", "show", "swap", "zoo",
]  # fmt: skip

_Part = TypeVar("_Part")
_ZOO_IN_A_LESSON = 3


class Text(str):
    """Text that a notebook shows as it is, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(slots=True)
class _Answer:
    """What this process knows of one exercise: the live object, its source, the last report.

    Cells up to number `after` do not count: they were run before a `reset`.
    """

    part: Any = None
    source: str | None = None
    report: Report | None = None
    after: int = 0
    was_reset: bool = False


_answers: dict[str, _Answer] = {}


def _answer(exercise_id: str) -> _Answer:
    return _answers.setdefault(exercise(exercise_id).id, _Answer())


def check(exercise_id: str, *, seed: int | None = None, all: bool = False) -> Report | Text:  # noqa: A002
    """Grade the cell of this exercise; the report shows the first rule that fails, or all with `all=True`."""
    answer = _answer(exercise_id)
    newest = latest_cell(exercise_id, answer.after)
    if newest is not None and newest != answer.source:
        # It was run and did not come as far as its decorator.
        answer.source, answer.part = newest, None
    if answer.source is None and (missing := _why_nothing(exercise_id, answer)):
        return missing
    chosen = progress.seed_of_a_check() if seed is None else seed
    try:
        report = judge_apart(exercise_id, [answer.source], chosen, cell_names())[0]
    except KeyboardInterrupt:
        return _say("interrupted", exercise_id)
    except GraderError as error:
        return _say("not_checked", exercise_id, error=error)
    report.num_specimens = len(specimens(exercise_id))
    report.show_all = all
    answer.report = report
    if not progress.record_check(report, answer.source):
        print(progress.NOT_KEPT)
    _tell_news()
    return report


def _say(key: str, exercise_id: str, **values: object) -> Text:
    return Text(said(f"notebook.{key}", exercise=exercise_id, **values))


def _tell_news() -> None:
    """Say what the class has decided since the learner was last told; outside a class that is nothing."""
    for line in membership.news():
        print(line)


def _why_nothing(exercise_id: str, answer: _Answer) -> Text | None:
    """What to say where no cell is marked although there is an answer somewhere; None for a learner who has none."""
    wanted = seam(exercise_id)
    mark = f'@L.exercise("{exercise_id}")'
    number = unmarked_cell(wanted.name, wanted.methods, answer.after)
    if number is not None:
        return _say("unmarked", exercise_id, number=number, mark=mark)
    kept = progress.attempts(exercise_id)
    if not kept or answer.was_reset or shell() is None:
        return None
    return _say("not_run", exercise_id, mark=mark, number=int(kept[-1].stem))


def hint(exercise_id: str, *, rung: int | None = None, now: bool = False) -> Text:
    """The next rung for the rule that failed last; `rung` asks for a certain one (self-study only)."""
    answer = _answer(exercise_id)
    newest = latest_cell(exercise_id, answer.after)
    if answer.report is None or (newest is not None and newest != answer.source):
        checked = check(exercise_id)
        if isinstance(checked, Text):  # it did not come to an answer, and says why
            return checked
    assert answer.report is not None, "a check that came to an answer keeps it"
    return Text(hints.hint_for(answer.report, answer.source or "", rung, now=now))


def show(exercise_id: str) -> object:
    """Yours beside Flink's on the failing input, step by step."""
    report = _answer(exercise_id).report
    if report is None:
        return _say("show_first", exercise_id)
    if report.trace is None:
        return _say("nothing_to_show", exercise_id, report=report)
    return drawn(view_of(exercise_id, report.trace))


def zoo(exercise_id: str, *, all: bool = False, show: str | None = None) -> object:  # noqa: A002
    """Known-wrong parts with the belief behind each, and the rule that catches it: three, or all of them.

    `show` names one, such as "w01", and runs it in the picture that `show` of your own part opens.
    """
    found = specimens(exercise_id)
    chosen = found if all else found[:_ZOO_IN_A_LESSON]
    if show is not None:
        chosen = tuple(each for each in found if show in (each.name, each.name.partition("_")[0]))
        if not chosen:
            return _say("zoo_has", exercise_id, wanted=repr(show), names=", ".join(each.name for each in found))
    try:
        reports = judge_apart(exercise_id, [each.source for each in chosen], DEFAULT_SEED)
    except KeyboardInterrupt:
        return _say("zoo_interrupted", exercise_id)
    except GraderError as error:
        return _say("zoo_not_run", exercise_id, error=error)
    if show is not None and reports[0].trace is not None:
        return drawn(view_of(exercise_id, reports[0].trace))
    lines = [_say("zoo_head", exercise_id, shown=len(chosen), count=len(found))]
    for each, report in zip(chosen, reports, strict=True):
        rule = report.failed_rule
        lines += [Text(f"  {each.name}"), _say("zoo_belief", exercise_id, belief=belief(exercise_id, each.name))]
        if rule is None:
            lines.append(_say("zoo_escaped", exercise_id))
        else:
            lines.append(_say("zoo_caught", exercise_id, rule=rule.id, title=rule.title))
    return Text("\n".join([*lines, _say("zoo_see", exercise_id)]))


def reveal(exercise_id: str) -> Text:
    """The reference part and a diff with yours, after passing or after rung 5."""
    answer = _answer(exercise_id)
    seen = any(
        e.get("event") == "hint" and e.get("exercise") == exercise_id and e.get("rung") == hints.NUM_RUNGS
        for e in progress.events()
    )
    if not seen and progress.standing(exercise_id) not in {"passed", "caught_up"}:
        return _say("reveal_later", exercise_id)
    return Text(hints.difference(exercise_id, answer.source or ""))


def reset(exercise_id: str) -> Text:
    """The stub again, in a new cell below; your version is kept with the attempts."""
    answer = _answer(exercise_id)
    if answer.source and progress.keep_attempt(exercise_id, answer.source) is None:
        return _say("reset_failed", exercise_id, why=" ".join(progress.troubles()))
    _answers[exercise_id] = _Answer(after=num_cells(), was_reset=True)
    progress.record("reset", exercise=exercise_id)
    running = shell()
    if running is not None:
        running.set_next_input(stub(exercise_id, language()), replace=False)
        return _say("reset_kept" if answer.source else "reset", exercise_id)
    return Text(stub(exercise_id, language()))


def swap(exercise_id: str, **options: Any) -> Any:
    """Put your part into the running job; before it passes, ours runs and the output says so.

    `options` go to `course.swap.run(exercise_id, part, **options)`, whose report is returned.
    """
    from course import swap as engine_swap

    answer = _answer(exercise_id)
    if answer.part is not None and (answer.report is None or not answer.report.passed):
        check(exercise_id)
    passed = answer.report is not None and answer.report.passed and answer.part is not None
    if not passed:
        print(_say("ours_runs", exercise_id))
    progress.record("swap", exercise=exercise_id, learner=passed)
    return engine_swap.run(exercise_id, answer.part if passed else None, **options)


def all_parts(seed: int = 1) -> Any:
    """Put every part of yours that passed into one job, ours beside them, and let a Flink and Spark have their say.

    Parts of other lessons come from the sources that are kept of your checks. `seed` makes the job's bad day.
    """
    from course.data.session import SparkUnavailable, spark
    from course.learner.own_parts import own_parts
    from course.swap.all_parts import run_all_parts

    for exercise_id, answer in list(_answers.items()):
        if answer.part is not None and answer.report is None:
            check(exercise_id)
    live = {each: answer.part for each, answer in _answers.items() if answer.report and answer.report.passed}
    parts, notes = own_parts({each: part for each, part in live.items() if part is not None})
    progress.record("all_parts", learner=len(parts))
    try:
        session: Any = spark(quick=True)
    except SparkUnavailable as error:
        session = str(error)
    return run_all_parts(parts, seed, notes, session)


def predict(name: str, chosen: str | None = None) -> Text | Choices:
    """Ask for a prediction, or record the letter you choose and answer it; the next cell shows it."""
    asked = questions.question(name, "predict")
    if chosen is None:
        return Choices(asked, lambda letter: _predicted(asked, letter), said("questions.choose", name=name))
    return _with_answer(asked, chosen, _predicted(asked, chosen))


def ask_again(*names: str) -> None:
    """Show these predictions once more, without their choices: above what answers them."""
    words = [f"{name}  {questions.question(name, 'predict').ask}" for name in names]
    asked = Text("\n".join(line for each in words for line in wrap(each, COLUMNS, then="     ", breaks_hyphens=True)))
    if shell() is None:
        print(asked)
        return
    from IPython.display import display

    display(asked)


def _predicted(asked: questions.Question, chosen: str) -> str:
    answer = asked.answer(chosen)
    progress.record("predict", question=asked.id, chosen=chosen)
    return said("questions.shown_next", said=answer)


def _with_answer(asked: questions.Question, chosen: str, answer: str) -> Text:
    return Text("\n".join([asked.text(chosen), *wrap(answer, COLUMNS, "  ", "  ", breaks_hyphens=True)]))


def quiz(name: str, chosen: str | None = None) -> Text | Choices:
    """Ask a quiz question, or answer it with a letter."""
    asked = questions.question(name, "quiz")
    if chosen is None:
        return Choices(asked, lambda letter: _answered(asked, letter), said("questions.answer", name=name))
    return _with_answer(asked, chosen, _answered(asked, chosen))


def _answered(asked: questions.Question, chosen: str) -> str:
    answer = asked.answer(chosen)
    progress.record("quiz", question=asked.id, chosen=chosen, right=chosen == asked.right)
    return answer


def progress_list() -> Text:
    """A bar and a list of what is done."""
    return Text(progress_report())


def receipt(lesson_number: int | None = None) -> Text:
    """Write receipt.json beside your notebooks: everything you passed, for anyone to check again."""
    from course.learner.receipts import make_receipt

    wanted = [each.id for each in lesson_info(lesson_number).exercises] if lesson_number is not None else None
    made = make_receipt(wanted)
    name = f"receipt-{lesson_number:02d}.json" if lesson_number is not None else "receipt.json"
    if not made["entries"]:
        return Text("○ no receipt yet: nothing of this has passed.")
    folder = work_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    lines = [f"✓ {name}: vectors {made['vectors']}"]
    lines += [f"  {e['exercise']} {e['status']}, {len(e['rules'])} rules, seed {e['seed']}" for e in made["entries"]]
    return Text("\n".join([*lines, f"  Anyone can check it again with: sluice verify {name}"]))


class LessonHandle:
    """One lesson in a notebook: `L`."""

    def __init__(self, info: Lesson) -> None:
        self.info = info

    def __repr__(self) -> str:
        return said("notebook.lesson", number=self.info.number, title=lesson_title(self.info))

    def exercise(self, exercise_id: str) -> Callable[[_Part], _Part]:
        """Decorator: this class or function, in this cell, is the answer to the exercise."""
        known = exercise(exercise_id)
        if known.lesson != self.info.number:
            raise ValueError(f"exercise {exercise_id} belongs to lesson {known.lesson}, not {self.info.number}")
        source = current_source(2)

        def register(part: _Part) -> _Part:
            before = _answer(exercise_id)
            _answers[exercise_id] = _Answer(part, source, after=before.after)
            return part

        return register

    def receipt(self) -> Text:
        """Write the receipt of this lesson."""
        return receipt(self.info.number)

    check = staticmethod(check)
    hint = staticmethod(hint)
    show = staticmethod(show)
    swap = staticmethod(swap)
    all_parts = staticmethod(all_parts)
    zoo = staticmethod(zoo)
    reveal = staticmethod(reveal)
    reset = staticmethod(reset)
    predict = staticmethod(predict)
    asked = staticmethod(ask_again)
    quiz = staticmethod(quiz)
    progress = staticmethod(progress_list)


def lesson(number: int) -> LessonHandle:
    """Open a lesson; prints where you stand.

    Raises:
        KeyError: this version has no such lesson.
    """
    info = own_lesson(number) or lesson_info(number)
    noted = progress.events()
    statuses = [progress.standing(each.id, noted) for each in info.exercises]
    squares, num_passed = progress.squares(statuses), statuses.count("passed")
    graded = said("notebook.passed", squares=squares, passed=num_passed, count=len(statuses))
    passed = graded if statuses else said("notebook.nothing_graded")
    if error := wrong_choice():
        print(said("language.wrong", error=error))
    about = {"version": __version__, "lesson": info.number, "minutes": info.minutes, "flink": VECTORS_VERSION}
    print(said("notebook.head", passed=passed, **about))
    _tell_news()
    if shell() is not None and info.exercises:
        prepare(info.exercises[0].id, DEFAULT_SEED)  # while the learner reads
    return LessonHandle(info)
