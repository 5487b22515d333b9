"""What the core itself costs: asking, storing, a dossier of a thousand asks, a report of a hundred answers, starting.

No other tool does the same work, so nothing is raced; each line has a time it must not exceed.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from answerable import registry
from answerable.answer import Answer, Figure, Metric, Table
from answerable.asking import Settings, ask
from answerable.dossier import Dossier, Result
from answerable.question import Field, Question
from answerable.report import write
from answerable.run import Run
from answerable.store import Store
from bench.racing import Race


class Mean(Question):
    """What is the mean of these numbers?"""

    name: ClassVar[str] = "mean"
    numbers: list[float] = Field(description="the numbers", min_length=1)
    drawn: bool = Field(False, description="whether to draw them")

    def answer(self, run: Run) -> Answer:
        value = sum(self.numbers) / len(self.numbers)
        metric = Metric(value, kind="exact", method="arithmetic mean")
        if not self.drawn:
            return Answer(f"The mean is {value:g}.", {"mean": metric})
        import polars as pl

        frame = pl.DataFrame({"place": range(len(self.numbers)), "number": self.numbers})
        table = Table(frame, {"place": "place in the list, from 0", "number": "the number [1]"}, title="Numbers")
        return Answer(f"The mean is {value:g}.", {"mean": metric}, {"numbers": table}, {"numbers": _figure(frame)})


def races(*, quick: bool) -> list[Race]:
    registry.QUESTIONS["mean"] = f"{Mean.__module__}:Mean"
    folder = Path(tempfile.mkdtemp(prefix="answerable-bench-"))
    asks, answers, stored = (100, 20, 1000) if quick else (1000, 100, 10_000)
    reported, full = _result(answers), _filled(folder / "full", stored)
    write(reported, folder / "warm.html")  # every picture is drawn once and kept
    new = itertools.count()
    starts = {"answerable --help": ["--help"], "answerable questions": ["questions"]}

    def one(work: str, call: Callable[[], Any], seconds: float) -> Race:
        return Race(work=work, peer="-", ours=call, target_s=seconds)

    return [
        one("one ask, no store", lambda: ask("mean", numbers=[1, next(new)], store=False), 0.005),
        one("one ask, stored", lambda: ask("mean", numbers=[2, next(new)], store=folder / "one"), 0.020),
        one(f"dossier of {asks} asks", lambda: _run(asks, folder / f"dossier-{next(new)}"), 30 * asks / 1000),
        one(f"report of {answers} answers, warm", lambda: write(reported, folder / "warm.html"), 3.0),
        one(f"list {stored} stored answers", lambda: full.listed(), 1.0),
        one(f"resume among {stored} stored answers", lambda: ask("mean", numbers=[0.0], store=folder / "full"), 1.0),
        *(one(work, lambda words=words: _start(words), 0.5) for work, words in starts.items()),  # type: ignore[misc]
    ]


def _figure(frame: Any) -> Figure:
    import altair as alt

    def bars(frame: Any, width: int) -> alt.Chart:
        title = f"The largest of {frame.height} numbers is {frame['number'].max():g}"
        x, y = alt.X("number:Q", title="Number [1]"), alt.Y("place:O", title="Place")
        return alt.Chart(frame, title=title, description=title, width=width - 100).mark_bar().encode(x, y)

    return Figure.drawn(bars, frame)


def _run(asks: int, folder: Path) -> Result:
    return _dossier(asks, drawn=False).run(Settings(store=Store(folder)))


def _dossier(asks: int, *, drawn: bool) -> Dossier:
    entries = [
        {"question": "mean", "numbers": [i, 1, 2], "drawn": drawn, "expect": "metrics.mean > 0"} for i in range(asks)
    ]
    return Dossier.from_mapping({"ask": entries})


def _result(answers: int) -> Result:
    return _dossier(answers, drawn=True).run()


def _filled(folder: Path, count: int) -> Store:
    for number in range(count):
        ask("mean", numbers=[float(number)], store=folder)
    return Store(folder)


def _start(words: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "answerable", *words], check=True, stdout=subprocess.DEVNULL)
