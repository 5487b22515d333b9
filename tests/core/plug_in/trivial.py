"""A plug-in with two small questions that the tests of the core ask: one exact, one that rests on chance."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from answerable.answer import Answer, Figure, Metric, Table, Verdict
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject, Text
from answerable.run import Run


class Mean(Question):
    """What is the mean of these numbers?"""

    name: ClassVar[str] = "trivial/mean"
    numbers: list[float] = Field(description="the numbers", min_length=1, unit="metres")
    label: Annotated[str, Text()] = Field("numbers", description="what the numbers are")
    digits: int = Field(3, ge=0, le=9, unit="digits", description="digits of the summary")
    centre: Literal["mean", "median"] = Field("mean", description="which centre")

    def answer(self, run: Run) -> Answer:
        _leave_a_mark()
        numbers = sorted(self.numbers)
        value = sum(numbers) / len(numbers) if self.centre == "mean" else numbers[len(numbers) // 2]
        return Answer(
            summary=f"The {self.centre} of {self.label} is {value:.{self.digits}f}.",
            metrics={"mean": Metric(value, unit="metres", kind="exact", method="arithmetic mean")},
            verdict=Verdict("positive" if value > 0 else "undecided", f"the mean is {value}"),
            limits=["Says nothing about spread."],
        )


class Luck(Question):
    """How often does a coin show heads?"""

    name: ClassVar[str] = "trivial/luck"
    chance: ClassVar[bool] = True
    tosses: int = Field(100, ge=1, le=10**6, unit="tosses", description="tosses in each unit")
    units: int = Field(4, ge=1, le=1000, unit="units", description="units of work")
    slowness: float = Field(0.0, ge=0, le=10, unit="s", description="time each unit takes")
    everywhere: bool = Field(False, description="whether units run on all workers")
    fail_at: int = Field(-1, ge=-1, unit="unit", description="unit at which to fail, -1 for none")

    def answer(self, run: Run) -> Answer:
        import altair as alt
        import polars as pl

        def heads(unit: int) -> int:
            if unit == self.fail_at:
                raise BadInput("this unit fails", where=f"unit {unit}", mend="choose another")
            _leave_a_mark()
            _die_once(unit)
            time.sleep(self.slowness)
            return int(run.rng("unit", unit).binomial(self.tosses, 0.5))

        work = run.map if self.everywhere else run.each
        counts = work(heads, list(range(self.units)), "tossing")
        share = sum(counts) / (self.units * self.tosses)
        width = 1 / (self.units * self.tosses) ** 0.5
        table = pl.DataFrame({"unit": range(self.units), "heads": counts})

        def bars(frame: pl.DataFrame, width: int) -> alt.Chart:
            title = f"Heads in {share:.0%} of all tosses"
            x, y = alt.X("heads:Q", title="heads [tosses]"), alt.Y("unit:O", title="unit")
            return (
                alt.Chart(
                    frame, title=title, width=width - 100, description=f"Bars of heads per unit; {share:.0%} overall."
                )
                .mark_bar()
                .encode(x, y)
            )

        return Answer(
            summary=f"{share:.0%} of the tosses show heads.",
            metrics={
                "share": Metric(share, share - width, share + width, method="normal interval, 95 %"),
                "tosses": Metric(self.units * self.tosses, kind="exact", method="count"),
            },
            tables={
                "units": Table(
                    table, {"unit": "number of the unit", "heads": "tosses that show heads"}, title="Heads by unit"
                )
            },
            figures={"units": Figure.drawn(bars, table)},
            limits=["The coin is a random generator."],
        )


def _die_once(unit: int) -> None:
    """Kill the process that works on unit 2, the first time, where a test names the file that says it was done."""
    once = os.environ.get("ANSWERABLE_TEST_DIE_ONCE")
    if once and unit == 2 and not Path(once).exists():
        Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _leave_a_mark() -> None:
    """Count a unit of work in the folder that a test names, so that it can tell what was run again."""
    folder = os.environ.get("ANSWERABLE_TEST_MARKS")
    if folder:
        Path(folder, f"{time.time_ns()}-{os.getpid()}").touch()


class Test(Question):
    """Is this p-value small?"""

    name: ClassVar[str] = "trivial/test"
    p: float = Field(description="the p-value", ge=0, le=1, unit="1")

    def answer(self, run: Run) -> Answer:
        return Answer(
            f"The p-value is {self.p:g}.", {"p": Metric(self.p, unit="p-value", kind="exact", method="given")}
        )


class Rows(Question):
    """How many rows does this table have?"""

    name: ClassVar[str] = "trivial/rows"
    table: Annotated[Any, Subject("table")] = Field(description="CSV or Parquet file, or a dataframe")

    def answer(self, run: Run) -> Answer:
        from answerable.subjects import read_table

        _leave_a_mark()
        rows = read_table(self.table).height
        return Answer(f"It has {rows} rows.", {"rows": Metric(rows, unit="rows", kind="exact", method="count")})
