"""The pictures of a page: each still in a frame, and behind it what lets it be scrubbed without a kernel.

A recorded view needs a kernel only to be made. So the cells that make views are run once while the pages are made, and
the state of each view goes into a file beside its page, with the view's own module; `static/moving.js` puts the view
in the place of its still. The view of a running job stays a still, and says so.
"""

from __future__ import annotations

import copy
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from course.author.build import execute

__all__ = ["State", "frame_pictures", "states_of_views", "views_script"]

_STILL = "image/svg+xml"
_VIEW = "application/vnd.jupyter.widget-view+json"
_STATES = "application/vnd.jupyter.widget-state+json"
_ROLES = frozenset({"setup", "figure", "zoo"})
_KEPT = ("title", "_mode", "_picture", "_topology", "_frames", "_at", "_controls")
_LIVE = "A job at work: in JupyterLab this view follows it, and has buttons to hold it and to let it go."
_MAX_ALT = 300  # characters: what a screen reader reads without a pause

State = Mapping[str, Any]
"""The traits of a view, as its front end gets them."""


def states_of_views(notebook: NotebookNode, name: str) -> dict[tuple[str, int], State]:
    """The state of each view that has a still, by the cell's id and the number of the still in it; `notebook` stays.

    Raises:
        BuildError: a cell failed, or no kernel started.
    """
    played = copy.deepcopy(notebook)
    played.cells = [each for each in played.cells if each.cell_type == "code" and each.metadata.tags[0] in _ROLES]
    execute(played, name)
    states = played.metadata.get("widgets", {}).get(_STATES, {}).get("state", {})
    found: dict[tuple[str, int], State] = {}
    for cell in played.cells:
        for number, data in enumerate(_stills(cell)):
            if _VIEW in data:
                found[cell.id, number] = states[data[_VIEW]["model_id"]]["state"]
    return found


def frame_pictures(
    notebook: NotebookNode, name: str, states: Mapping[tuple[str, int], State], folder: Path
) -> dict[str, State]:
    """Put each still of `notebook` into a file of `folder` and into a frame; the recordings, by the frame's name.

    A still that is not the picture of its state any more stays as it is: what a page says was said of the still.
    """
    moving = {}
    for cell in notebook.cells:
        for number, data in enumerate(_stills(cell)):
            state, place = states.get((cell.id, number), {}), f"{name}-{cell.id}-{number}"
            picture = "".join(data.pop(_STILL))
            (folder / f"{place}.svg").write_text(picture, encoding="utf-8")
            mode = state.get("_mode") if state.get("_picture") == picture else None
            if mode == "recorded":
                moving[place] = state
            data["text/html"] = frame(place, "".join(data["text/plain"]), _LIVE if mode == "live" else "")
    return moving


def frame(place: str, words: str, caption: str = "") -> str:
    """The frame around the picture of that name; `words` say what it shows."""
    said = " ".join(words.split())
    alt = said if len(said) <= _MAX_ALT else f"{said[: _MAX_ALT - 2]} …"
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    image = f'<img src="_static/pictures/{place}.svg" alt="{html.escape(alt)}" loading="lazy">'
    return f'<figure class="sluice-view" data-view="{place}">{image}{below}</figure>'


def views_script(moving: Mapping[str, State]) -> str:
    """What a page loads for its recordings: a script, for a page that is opened from a disk may load no data."""
    texts: dict[str, str] = {}
    views = {}
    for place, state in moving.items():
        names = []
        for text in (state["_esm"], state["_css"]):
            names.append(hashlib.sha256(text.encode()).hexdigest()[:12])
            texts[names[-1]] = text
        views[place] = {"state": {name: state[name] for name in _KEPT}, "module": names[0], "style": names[1]}
    data = json.dumps({"views": views, "texts": texts}, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return f"window.sluiceViews = {data};\n"


def _stills(cell: NotebookNode) -> Sequence[dict[str, Any]]:
    return [data for each in cell.get("outputs", []) if _STILL in (data := each.get("data", {}))]
