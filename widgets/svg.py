"""The few shapes all pictures are made of, and the frame around them.

Rules of this file:
- The same model gives the same bytes: no clock, no counter, no random id.
- Whatever changes while a run is watched carries its state in a `data-` attribute; the style sheet
  turns states into colour *and* hatch *and* dash, and each state is also written out as a word. The
  browser module changes those attributes and nothing else, so still and live picture are one drawing.
- Every shape has an outline in the colour of the text, which holds in light and in dark themes.
"""

from __future__ import annotations

import html
import re
import zlib
from importlib import resources
from typing import Any

from widgets.letters import fitting

__all__ = [
    "allowed",
    "document",
    "element",
    "escape",
    "name_element",
    "picture_id",
    "sendable",
    "static_text",
    "text_element",
]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_HATCHES = (
    ("queued", "hatch", "M-2 2 l4 -4 M0 8 l8 -8 M6 10 l4 -4"),
    ("reading", "hatch", "M2 2 h1.6 v1.6 h-1.6 z M6 6 h1.6 v1.6 h-1.6 z"),
    ("stuck", "hatch", "M-2 6 l4 4 M0 0 l8 8 M6 -2 l4 4"),
    ("header", "hatch thin", "M-2 2 l4 -4 M0 8 l8 -8 M6 10 l4 -4"),
)


def static_text(name: str) -> str:
    """A file of `widgets/static`."""
    return (resources.files("widgets") / "static" / name).read_text(encoding="utf-8")


def picture_id(kind: str, facts: str) -> str:
    """An id that two different pictures on one page do not share, and that never changes."""
    return f"{kind}-{zlib.crc32(facts.encode(errors='surrogatepass')):08x}"


def allowed(words: str) -> str:
    """What XML can hold of it: of a control character or half a character a sign is left."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", words)


def sendable(value: Any) -> Any:
    """The same where UTF-8 can hold it: a browser and a file take no half of a character (a lone surrogate)."""
    if isinstance(value, str):
        return value if _is_whole(value) else allowed(value)
    if isinstance(value, dict):
        return {sendable(name): sendable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(each) for each in value]
    return value


def _is_whole(words: str) -> bool:
    if words.isascii():  # without looking at each character, as nearly always
        return True
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape(words: str) -> str:
    """Words as they stand in XML."""
    return html.escape(allowed(words))


def element(name: str, body: str = "", /, **attributes: object) -> str:
    """One element; `_` in a name stands for `-`, a trailing `_` is dropped, `None` leaves it out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{body}</{name}>" if body else f"<{name}{written}/>"


def text_element(x: float, y: float, words: str, class_: str = "", **attributes: object) -> str:
    """Words at a point."""
    opening = element("text", "\0", x=x, y=y, class_=class_ or None, **attributes)
    return opening.replace("\0", escape(words))


def name_element(x: float, y: float, name: str, room: float, class_: str = "") -> str:
    """A name at a point that takes at most `room` pixels; one that is cut is told whole to a pointer."""
    shown = fitting(name, room, class_)
    drawn = text_element(x, y, shown, class_)
    return drawn if shown == name else drawn.replace(">", f">{element('title', escape(name))}", 1)


def document(id_: str, width: float, height: float, title: str, description: str, body: str, *more_styles: str) -> str:
    """A whole picture: sized, named, described, styled; `more_styles` are files beside `picture.css`."""
    patterns = "".join(
        f'<pattern id="{id_}-{name}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<path d="{path}" class="{class_}"/></pattern>'
        for name, class_, path in _HATCHES
    )
    style = "".join(map(static_text, ("picture.css", *more_styles))).replace("#ID", f"#{id_}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{id_}" class="sluice-picture" role="img" '
        f'viewBox="0 0 {_number(width)} {_number(height)}" width="{_number(width)}" height="{_number(height)}" '
        f'aria-labelledby="{id_}-title {id_}-desc">'
        f'<title id="{id_}-title">{escape(title)}</title><desc id="{id_}-desc">{escape(description)}</desc>'
        f"<style>{style}</style><defs>{patterns}</defs>"
        f'<rect class="paper" width="{_number(width)}" height="{_number(height)}" rx="10"/>{body}</svg>'
    )


def _number(value: object) -> str:
    """A number without needless digits; anything else as it is."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
