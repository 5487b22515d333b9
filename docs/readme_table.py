"""The README's table of questions: those the registry finds and those that are planned, with what works marked.

python docs/readme_table.py           prints the table
python docs/readme_table.py --write   puts it into README.md
"""

import json
import sys
from importlib.resources import files
from pathlib import Path

from answerable import registry

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- questions: begin -->\n", "<!-- questions: end -->\n"
WINGS = ("mechanisms", "explanations", "provenance", "guarantees")


def table() -> str:
    """One row per question: its name (a link to its page once it works), the question, the paper's name."""
    rows = ["| question | in plain words | method | works |", "|---|---|---|:-:|"]
    for wing in WINGS:
        rows.append(f"| ***{wing}*** | | | |")
        rows += [_row(**entry) for entry in [*planned(), *unplanned()] if entry.pop("wing") == wing]
    return "\n".join(rows) + "\n"


def planned() -> list[dict[str, str]]:
    """The questions that one paper each was chosen for."""
    entries: list[dict[str, str]] = json.loads((files("answerable") / "questions.json").read_text(encoding="utf-8"))
    return entries


def unplanned() -> list[dict[str, str]]:
    """The questions that somebody added since."""
    known = {entry["name"] for entry in planned()}
    return [
        {"name": name, "wing": path.split(".")[1], "question": registry.find(name).in_plain_words(), "paper": ""}
        for name, path in registry.QUESTIONS.items()
        if name not in known
    ]


def _row(name: str, question: str, paper: str) -> str:
    works = name in registry.QUESTIONS
    linked = f"[`{name}`](docs/questions/{name}.md)" if works else f"`{name}`"
    return f"| {linked} | {question} | {paper} | {'yes' if works else '-'} |"


def with_table(readme: str) -> str:
    """The README's text with the table of today between its two marks."""
    before, rest = readme.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
