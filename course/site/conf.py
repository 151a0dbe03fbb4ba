"""Sphinx's settings for the site. Nothing is run, and no page asks another server for anything."""

from pathlib import Path
from typing import Any

from course.curriculum.languages import ENGLISH
from course.site.languages import folds, language_of, links, site_languages
from course.site.published import for_keys_and_readers, tags

project = "Sluice"
author = "the Sluice maintainers"
extensions = ["myst_nb"]
html_theme = "furo"
html_title = "Sluice"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/icon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
nb_execution_mode = "off"
# Pictures move by themselves (static/moving.js), so no library for widgets is needed.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
nb_mime_priority_overrides = [
    ("html", "image/svg+xml", 0), ("html", "text/markdown", 1), ("html", "text/html", 2), ("html", "text/plain", 3)
]  # fmt: skip
nb_merge_streams = True
nb_code_prompt_show, nb_code_prompt_hide = folds(ENGLISH).values()
nb_render_markdown_format = "gfm"
myst_heading_anchors = 3
myst_heading_slug_func = "course.curriculum.glossary.anchor"
suppress_warnings = ["mystnb.unknown_mime_type"]


def setup(app: Any) -> None:
    """A page says what it is to those who link to it, leads to other languages, and loads what makes pictures move."""

    languages = site_languages()

    def load(app: Any, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
        context["metatags"] = context.get("metatags", "") + tags(
            page,
            context.get("title") or project,
            app.config.html_baseurl,
            language_of(app.config.language, languages),
        )
        context["theme_announcement"] = links(page, app.config.language, languages)
        if Path(app.srcdir, "static", "views", f"{page}.js").is_file():
            app.add_js_file(f"views/{page}.js", loading_method="defer")
            app.add_js_file("moving.js", loading_method="defer")

    def finish(app: Any, error: Exception | None) -> None:
        for page in () if error else Path(app.outdir).glob("*.html"):
            page.write_text(for_keys_and_readers(page.read_text(encoding="utf-8")), encoding="utf-8")

    app.connect("html-page-context", load)
    app.connect("build-finished", finish)
