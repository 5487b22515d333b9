"""The page to a file: one HTML document that loads nothing and runs nothing but its own style and script."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import jinja2.sandbox
from markupsafe import Markup

from answerable import atomic, theme
from answerable.answer import Answer
from answerable.report import page as pages
from answerable.report.visible import shown
from answerable.report.whiskers import Line, Scale, whisker

if TYPE_CHECKING:
    from answerable.dossier import Result


def write(
    found: Result | Sequence[Answer] | Answer, path: str | Path, *, title: str = "", every_picture: bool = False
) -> Path:
    """Write one self-contained HTML file, whole or not at all.

    The same answers give the same bytes: every date on the page is an answer's own.

    Parameters
    ----------
    found : a dossier that was run, or answers of which nothing was expected
    path : file to be written
    title : heading of the page; a dossier's own, or "Answers", when left out
    every_picture : show every picture also beyond 20 answers, where each answer's first is shown otherwise; such a file
        may weigh more than 5 MB

    Returns
    -------
    the path

    Raises
    ------
    CannotWrite : the file cannot be written
    """
    target = Path(path)
    atomic.write_bytes(target, html(found, title=title, every_picture=every_picture).encode("utf-8"))
    return target


def html(found: Result | Sequence[Answer] | Answer, *, title: str = "", every_picture: bool = False) -> str:
    """The report as one HTML document; see :func:`write`."""
    page = _page(found, shown(title), every_picture)
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template("report.html")
        .render(page=page, policy=Markup(policy), style=Markup(style), script=Markup(script), key=_key())
    )


def fragment(answer: Answer) -> str:
    """An answer for a notebook: the sentence, its numbers, its first picture and its limits, with a style of its
    own.
    """
    entry = pages.entry_of_answer(answer)
    return _environment().get_template("fragment.html").render(entry=entry, style=Markup(_fragment_style()))


def report_data(found: Result | Sequence[Answer] | Answer) -> dict[str, Any]:
    """All that the report shows, less when, where and how fast it was made, as plain JSON data.

    Two runs of one dossier on the same content give the same data, whatever interrupted them.
    """
    if isinstance(found, Answer):
        found = [found]
    if isinstance(found, Sequence):
        return {"answers": [pages.data_of_answer(answer) for answer in found]}
    return pages.data_of_result(found)


def _page(found: Result | Sequence[Answer] | Answer, title: str, every_picture: bool) -> pages.Page:
    if isinstance(found, Answer):
        found = [found]
    if isinstance(found, Sequence):
        return pages.page_of_answers(
            found, title or ("Answer" if len(found) == 1 else "Answers"), every_picture=every_picture
        )
    page = pages.page_of_result(found, every_picture=every_picture)
    page.title = title or page.title
    return page


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.sandbox.ImmutableSandboxedEnvironment(
        loader=jinja2.PackageLoader("answerable.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@functools.cache
def _style() -> str:
    return _tokens(":root", scheme="light dark") + _minified("page.css")


@functools.cache
def _fragment_style() -> str:
    # Notebooks say in a class or an attribute, not in the browser's own scheme, whether they are dark.
    dark = ", ".join(
        f"{place} .answerable" for place in ('[data-jp-theme-light="false"]', ".vscode-dark", ".theme-dark")
    )
    pairs = theme.tokens().items()
    light = ";".join(f"--{name}:{pair['light']}" for name, pair in pairs)
    night = ";".join(f"--{name}:{pair['dark']}" for name, pair in pairs)
    return f".answerable{{{light}}}{dark}{{{night}}}" + _minified("fragment.css")


@functools.cache
def _script() -> str:
    return _read("page.js").strip()


def _tokens(selector: str, *, scheme: str) -> str:
    """The colours: plain light ones first, for browsers that do not know ``light-dark``."""
    pairs = theme.tokens().items()
    light = ";".join(f"--{name}:{pair['light']}" for name, pair in pairs)
    both = ";".join(f"--{name}:light-dark({pair['light']},{pair['dark']})" for name, pair in pairs)
    return f"{selector}{{color-scheme:{scheme};{light}}}@supports(color:light-dark(#000,#fff)){{{selector}{{{both}}}}}"


def _minified(name: str) -> str:
    """A style sheet without comments and line breaks."""
    text = re.sub(r"/\*.*?\*/", "", _read(name), flags=re.DOTALL)
    return re.sub(r"\s*\n\s*", "", text)


def _read(name: str) -> str:
    return (files("answerable.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


@functools.cache
def _key() -> list[tuple[Markup, str]]:
    """The grammar of the small drawings, in small drawings."""
    scale, ends = Scale(-15.7, 25.7), (5.0, 2.0, 8.0)
    samples = [
        (whisker(*ends, "estimated", scale=scale, ground=False), "estimated, with its interval"),
        (whisker(*ends, "bounds", scale=scale, ground=False), "proved bounds"),
        (whisker(5.0, None, None, "exact", scale=scale, ground=False), "exact"),
        (whisker(*ends, "estimated", tone="undecided", scale=scale, ground=False), "undecided"),
        (
            whisker(float("nan"), None, None, "exact", scale=scale, line=Line(3.0, None, ">"), ground=False),
            "the line to clear, and the side that holds",
        ),
    ]
    return [(_small(drawing), text) for drawing, text in samples]


def _small(drawing: Markup) -> Markup:
    """A drawing at its middle 44 px, for a line of text that already says what it is."""
    text = str(drawing).replace('role="img" aria-label=""', 'aria-hidden="true"')
    return Markup(
        text.replace('width="200" height="24" viewBox="0 0 200 24"', 'width="44" height="24" viewBox="78 0 44 24"')
    )
