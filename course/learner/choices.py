"""A question to answer with a click in a notebook; its words everywhere else."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from course.curriculum.questions import Question

__all__ = ["Choices"]


class Choices:
    """Asks `question`; what `answer` says of the letter that was chosen appears below.

    Every choice is an answer: a second thought replaces the first. A terminal shows the words, which say how to
    answer without a mouse. Where no kernel runs, in the stored notebook and on the site, a choice unfolds its answer.
    """

    def __init__(self, question: Question, answer: Callable[[str], str], how: str) -> None:
        self.question = question
        self._answer = answer
        self._how = how
        self._box: Any = None

    def __repr__(self) -> str:
        return f"{self.question.text()}\n  {self._how}"

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, Any]:
        if self._box is None:
            self._box = self._make_box()
        return {**self._box._repr_mimebundle_(), "text/plain": repr(self), "text/html": self.page()}

    def page(self) -> str:
        """The question as HTML that needs no kernel and no script: the answer to a choice lies folded below it."""
        asked = self.question
        choices = (
            f'<details name="{html.escape(asked.id)}"><summary>{letter}) {html.escape(words)}</summary>'
            f"<p>{html.escape(asked.answer(letter))}</p></details>"
            for letter, words in asked.choices.items()
        )
        return f'<div class="sluice-choices"><p><b>{html.escape(asked.ask)}</b></p>{"".join(choices)}</div>'

    def _make_box(self) -> Any:
        import ipywidgets

        letters = [(f"{letter})  {words}", letter) for letter, words in self.question.choices.items()]
        radio = ipywidgets.RadioButtons(options=letters, value=None, layout=ipywidgets.Layout(width="auto"))
        asked = ipywidgets.HTML(f"<b>{html.escape(self.question.ask)}</b>")
        said = ipywidgets.HTML()

        def choose(change: dict[str, Any]) -> None:
            said.value = html.escape(self._answer(change["new"]))

        radio.observe(choose, "value")
        return ipywidgets.VBox([asked, radio, said], layout=ipywidgets.Layout(max_width="60em"))
