"""How the golden answer of schema 1 was made: once, with the version that wrote this schema, and never again.

python tests/core/golden/make_schema_1.py    refuses where the folder stands
"""

import math
import sys
from pathlib import Path

import altair as alt
import polars as pl

from answerable.answer import Answer, Figure, Metric, Provenance, RunRecord, Table, Verdict

FOLDER = Path(__file__).parent / "schema-1"


def golden() -> Answer:
    """One answer with all that schema 1 can hold: each kind and role, NaN, both infinities, None, hostile text."""
    frame = pl.DataFrame(
        {
            "word": ["plain", "käse ‮ <b>", "=1+1"],
            "share": [0.25, math.nan, math.inf],
            "count": [1, None, -3],
        }
    )
    return Answer(
        summary="A quarter of the words are plain; of the others nothing is known.",
        metrics={
            "share": Metric(0.25, 0.125, 0.5, method="Wilson interval, 95 %", label="Share of plain words"),
            "bounded": Metric(2.0, -math.inf, 3.5, unit="bits", kind="bounds", method="cut", role="control"),
            "words": Metric(3, unit="words", kind="exact", method="count"),
            "at_most": Metric(0.1, None, 0.75, kind="one_sided", method="upper bound, 95 %", role="null"),
            "endless": Metric(-math.inf, kind="exact", method="logarithm of 0", role="baseline"),
            "missing": Metric(math.nan, reason="no word was read twice"),
            "half_missing": Metric(math.nan, math.nan, 1.0, reason="only its upper end is known"),
        },
        tables={
            "words": Table(
                frame, {"word": "the word", "share": "its share [1]", "count": "how often [times]"}, title="Words"
            )
        },
        figures={"words": Figure.drawn(_bars, frame)},
        limits=["Three words are few.", "\u001b[31mcontrol characters stay as they are\u0000"],
        verdict=Verdict("undecided", "only 3 words were read", "Read about 40 more words"),
        void="only 3 words were read",
        provenance=Provenance(
            question="trivial/words",
            key="5c" * 32,
            sources="a1" * 32,
            parameters={"text": "plain käse", "limit": math.inf, "floor": -math.inf, "none": None, "list": [1, 0.1]},
            seed=7,
            threads=2,
            packages={"numpy": "2.5.1"},
            tolerance=1e-6,
        ),
        run=RunRecord(
            made="2026-12-02T08:00:00+00:00",
            seconds=1.25,
            peak_mb=310.5,
            engine="ray",
            workers=4,
            addresses={"text": "words.txt"},
            command="answerable ask trivial/words --text @words.txt",
            version="0.1.0",
        ),
    )


def _bars(frame: pl.DataFrame, width: int) -> alt.Chart:
    title, words = "One word in four is plain", "Bars of the share of each word; the first is 0.25."
    x, y = alt.X("share:Q", title="Share [1]"), alt.Y("word:N", title="Word")
    return alt.Chart(frame.head(1), title=title, description=words, width=width - 100).mark_bar().encode(x, y)


if __name__ == "__main__":
    if FOLDER.exists():
        sys.exit(f"{FOLDER} stands; a golden answer is made once")
    golden().save(FOLDER)
