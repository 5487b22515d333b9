"""The README's table of questions: the nineteen that are planned, with those that the registry can find marked.

python docs/readme_table.py           prints the table
python docs/readme_table.py --write   puts it into README.md
"""

import json
import sys
from importlib.resources import files
from pathlib import Path

from answerable.registry import QUESTIONS

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- questions: begin -->\n", "<!-- questions: end -->\n"


def table() -> str:
    """One row per question: its name (a link to its page once it works), the question, the paper's name."""
    planned = json.loads((files("answerable") / "questions.json").read_text(encoding="utf-8"))
    rows = ["| question | in plain words | method | works |", "|---|---|---|:-:|"]
    wing = ""
    for row in planned:
        if row["wing"] != wing:
            wing = row["wing"]
            rows.append(f"| ***{wing}*** | | | |")
        works = row["name"] in QUESTIONS
        name = f"[`{row['name']}`](docs/questions/{row['name']}.md)" if works else f"`{row['name']}`"
        rows.append(f"| {name} | {row['question']} | {row['paper']} | {'yes' if works else '-'} |")
    return "\n".join(rows) + "\n"


def with_table(readme: str) -> str:
    """The README's text with the table of today between its two marks."""
    before, rest = readme.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
