"""A dossier that was run, invented: one answer that holds, one that fails, one void and undecided, one that could not run.

``python -m tests.report.sample FILE`` writes its report.
"""

import math
import sys
from typing import Any, ClassVar

import altair as alt
import polars as pl

from answerable import theme
from answerable.answer import Answer, Figure, Metric, Provenance, RunRecord, Table, Verdict
from answerable.dossier import Ask, Asked, Dossier, Expected, Result
from answerable.expectations import Outcome, parse
from answerable.question import Field, Question
from answerable.run import Run

TOKENS = "When Mary and John went to the store , John gave a drink to".split()
FLOW = [7.8, 31.2, 4.4, 9.6, 3.9, 2.5, 2.2, 6.3, 5.1, 8.7, 5.6, 1.9, 6.0, 4.8]
NULL = [(11.9 - 0.7 * i, 20.6 - 0.9 * i) for i in range(14)]
LAYERS = 12


class Flow(Question):
    """Which input tokens did this output draw on, through all layers?"""

    name: ClassVar[str] = "attention-flow"
    text: str = Field("", description="the sentence")

    def answer(self, run: Run) -> Answer:
        raise NotImplementedError


class Reasons(Flow):
    """What is the smallest reason for this decision, and the smallest change that flips it?"""

    name: ClassVar[str] = "additive-reasons"


class Paths(Flow):
    """Through which path does a sensitive attribute move a decision?"""

    name: ClassVar[str] = "path-effects"


class Written(Flow):
    """Was this text written by a language model?"""

    name: ClassVar[str] = "machine-text"


# Pictures


def dots(table: pl.DataFrame, *, width: int) -> alt.LayerChart:
    """Flow of each token against the band that shuffled weights give."""
    inner = width - 62
    per_px = 35 / inner
    rules = [
        rule
        for row in table.iter_rows(named=True)
        for rule in theme.hatch(
            row["low"], row["high"], row["position"] - 0.3, row["position"] + 0.3, x_per_px=per_px, y_per_px=1 / 18
        )
    ]
    x = alt.X("flow:Q", title="share of attention flow to the output (%)", scale=alt.Scale(domain=[0, 35]))
    span = alt.Scale(domain=[14.5, 0.5], nice=False, zero=False)
    y = alt.Y("position:Q", title="token", scale=span, axis=None)
    hatch = (
        alt.Chart(pl.DataFrame(rules))
        .mark_rule(style=theme.style("null-hatch"))
        .encode(
            x=alt.X("x:Q", scale=alt.Scale(domain=[0, 35])), x2="x2:Q", y=alt.Y("y:Q", scale=span, axis=None), y2="y2:Q"
        )
    )
    base = alt.Chart(table)
    names = base.mark_text(style=theme.style("label"), align="right", baseline="middle", dx=-6, x=0).encode(
        y=y, text="token:N"
    )
    ours = base.mark_point(style=theme.style("exact")).encode(x=x, y=y)
    most = base.transform_filter(alt.FieldEqualPredicate(field="token", equal="Mary")).mark_text(
        style=theme.style("label-ours"),
        align="left" if width > 500 else "right",
        dx=10 if width > 500 else -10,
        baseline="middle",
    )
    return alt.layer(hatch, ours, names, most.encode(x=x, y=y, text=alt.Text("flow:Q", format=".1f"))).properties(
        width=inner,
        height=14 * 18,
        title=alt.TitleParams(
            "“Mary” stands far outside the control; every other word lies inside or below it",
            subtitle="Share of attention flow by input token. Exact values; hatched, what 200 networks with shuffled weights give.",
        ),
        description="Attention flow of 14 tokens: Mary draws 31.2 %, the next one 9.6 %; only Mary is above its control.",
    )


def heat(table: pl.DataFrame, *, width: int) -> alt.Chart:
    """Share of each token in the flow of each layer."""
    return (
        alt.Chart(table)
        .mark_rect()
        .encode(
            x=alt.X("position:O", title="token position", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("layer:O", title="layer", sort="descending"),
            color=alt.Color(
                "share:Q",
                title="share of the layer’s flow (%)",
                scale=alt.Scale(**theme.steps("seq", [2, 5, 10, 20, 35, 60])),
                legend=alt.Legend(orient="bottom", titleLimit=400)
                if width > 500
                else alt.Legend(orient="bottom", titleOrient="top"),
            ),
        )
        .properties(
            width=width - 40,
            height=LAYERS * 15,
            title=alt.TitleParams(
                "The flow gathers on “Mary” from layer 4", subtitle="Where the flow passes, layer by layer."
            ),
            description="A heat map of 12 layers and 14 positions; position 2 carries most from layer 4 on.",
        )
    )


def intervals(table: pl.DataFrame, *, width: int) -> alt.LayerChart:
    """Effects with their intervals about zero."""
    base = alt.Chart(table).encode(y=alt.Y("path:N", sort=None, title="path"))
    x = alt.X("low:Q", title="points of approval")
    line = alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(style=theme.style("zero")).encode(x="zero:Q")
    return alt.layer(
        line,
        base.mark_rule(style=theme.style("interval-undecided")).encode(x=x, x2="high:Q"),
        base.mark_point(style=theme.style("estimate-undecided")).encode(x="value:Q"),
    ).properties(
        width=width - 120,
        height={"step": 30},
        title=alt.TitleParams(
            "Every interval holds zero", subtitle="Effect of each path in points, with its 95 % interval."
        ),
        description="Three path effects between −1.9 and 0.2 points; each interval holds zero.",
    )


# Answers


def record(question: str, seconds: float, command: str) -> dict[str, Any]:
    """Where an answer came from, and what differs from run to run."""
    return {
        "provenance": Provenance(
            question=question,
            key="5d1c08e2" * 7 + "77ab77ab",
            sources="0f3b9a11" * 8,
            parameters={
                "model": {"kind": "language_model", "digest": "ab12cd34" * 8},
                "text": " ".join(TOKENS),
                "draws": 200,
            },
            seed=0,
            packages={"numpy": "2.3.5", "torch": "2.13.0"},
        ),
        "run": RunRecord(
            made="2026-12-02T08:00:00+00:00",
            seconds=seconds,
            peak_mb=1234.0,
            workers=2,
            addresses={"model": "models/assistant"},
            command=command,
            version="0.1.0",
        ),
    }


def held() -> Answer:
    """An answer with three pictures' worth of evidence."""
    tokens = pl.DataFrame(
        {
            "position": list(range(1, 15)),
            "token": TOKENS,
            "flow": FLOW,
            "low": [low for low, _ in NULL],
            "high": [high for _, high in NULL],
        }
    )
    cells = pl.DataFrame(
        [
            {
                "layer": layer,
                "position": i + 1,
                "share": 60 * math.exp(-(((i - 1) / 2) ** 2)) * layer / LAYERS + 100 / 14 / layer,
            }
            for layer in range(1, LAYERS + 1)
            for i in range(14)
        ]
    )
    return Answer(
        summary="The next word, “Mary”, draws 31 % of its attention flow from the name given once; "
        "no other word rises above the control.",
        metrics={
            "this": Metric(
                31.2,
                unit="% of flow",
                kind="exact",
                method="maximum flow, minimum cut of equal size",
                label="From “Mary”, this sentence",
            ),
            "name_share": Metric(
                29.13,
                26.21,
                32.17,
                unit="% of flow",
                method="bootstrap over sentences, 95 %",
                label="From the name given once, 200 sentences",
            ),
            "null": Metric(
                9.4,
                6.0,
                13.1,
                unit="% of flow",
                method="200 shuffles, central 95 %",
                role="control",
                label="From “Mary”, shuffled weights",
            ),
            "last": Metric(
                11.9,
                unit="% of flow",
                kind="exact",
                method="last layer only",
                role="baseline",
                label="From “Mary”, last layer only",
            ),
            "bound": Metric(
                30.9,
                30.1,
                31.4,
                unit="% of flow",
                kind="bounds",
                method="staircase, certified",
                label="From “Mary”, pruned graph",
            ),
            "gap": Metric(0, kind="exact", method="largest difference of flow and cut", label="Gap"),
        },
        tables={
            "tokens": Table(
                tokens,
                {
                    "position": "place in the sentence, from 1",
                    "token": "token as the model reads it",
                    "flow": "share of the flow to the output (%)",
                    "low": "lower end of the central 95 % of 200 shuffles (%)",
                    "high": "upper end of the central 95 % of 200 shuffles (%)",
                },
                title="Flow by token",
            )
        },
        figures={"flow": Figure.drawn(dots, tokens), "layers": Figure.drawn(heat, cells)},
        limits=[
            "Flow is capacity, not cause: it shows what could reach the output through attention.",
            "Feed-forward layers are counted as passing straight through.",
            "The 200 sentences share one pattern; nothing is said about others.",
        ],
        **record(
            "attention-flow",
            41.2,
            "answerable ask attention-flow --model models/assistant --text 'When Mary and John …'",
        ),
    )


def failed() -> Answer:
    """An answer whose second expectation fails."""
    facts = pl.DataFrame(
        {
            "fact": ["Delinquencies, 24 months", "Use of credit lines", "Months since last enquiry", "Region"],
            "value": ["3", "81 %", "1", "North"],
            "push": [1.31, 0.97, 0.55, 0.04],
            "in_the_reason": [True, True, True, False],
        }
    )
    return Answer(
        summary="Three facts alone settle the decline of application 20417; changing two of them would turn it into an approval.",
        metrics={
            "reason_size": Metric(
                3, unit="facts", kind="exact", method="search over all sets", label="Smallest reason"
            ),
            "region_decides": Metric(
                0.4211,
                0.4012,
                0.4406,
                unit="%",
                kind="bounds",
                method="inclusion and exclusion",
                label="Applicants whom region decides",
            ),
        },
        tables={
            "facts": Table(
                facts,
                {
                    "fact": "a fact about the applicant",
                    "value": "as stated",
                    "push": "largest push (log-odds)",
                    "in_the_reason": "whether the smallest reason holds it",
                },
                title="Facts of application 20417",
            )
        },
        limits=["A reason speaks of the model, not of the world."],
        verdict=Verdict("settled", "", "Refit without region; this application’s score moves by 0.04 at most"),
        **record("additive-reasons", 0.02, "answerable ask additive-reasons --model scorecard.json"),
    )


def void() -> Answer:
    """An answer that its own diagnostic voids."""
    paths = pl.DataFrame(
        {
            "path": ["direct", "through state", "through device"],
            "value": [-1.2, 0.2, -0.3],
            "low": [-3.6, -1.4, -1.9],
            "high": [1.2, 1.8, 1.3],
        }
    )
    return Answer(
        summary="These 4,211 stays cannot tell whether the device reading moves the decision to ventilate.",
        metrics={
            "through_device": Metric(
                -0.3, -1.9, 1.3, unit="points", method="influence function, 95 %", label="Through the device"
            ),
            "direct": Metric(-1.2, -3.6, 1.2, unit="points", method="influence function, 95 %", label="Direct"),
            "effective": Metric(61, unit="stays", kind="exact", method="Kish", label="Effective comparison stays"),
            "upper": Metric(
                0.8, None, 2.1, unit="points", kind="one_sided", method="upper bound, 95 %", label="Total, at most"
            ),
            "total": Metric(math.nan, reason="no stay has both readings"),
        },
        figures={"paths": Figure.drawn(intervals, paths)},
        void="Only 61 effective patients stand for the comparison group; 100 are the least this method accepts",
        verdict=Verdict(
            "undecided", "too few comparable patients", "Find about 250 more comparison stays, or narrow the question"
        ),
        limits=["Patients with propensity above 0.6 are answered by extrapolation."],
        **record("path-effects", 187.0, "answerable ask path-effects --table stays.parquet"),
    )


def asked(question: Question, answer: Answer, *expectations: tuple[str, str], why: str = "", name: str = "") -> Asked:
    """An ask with its answer, every expectation checked."""
    expect = tuple(Expected(parse(text), words, why) for text, words in expectations)
    outcomes = tuple(one.expectation.check(answer) for one in expect)
    return Asked(Ask(name or question.name, question, expect, "audit.toml"), answer, outcomes=outcomes)


def not_run() -> Asked:
    """An ask that could not run."""
    line = "audit.toml, ask 4 (machine-text): there is no model in models/judge; name a folder with weights"
    expect = (Expected(parse("verdict != 'machine'"), "The letter was not written by a machine"),)
    ask = Ask("machine-text", Written(text="Dear Sir"), expect, "audit.toml")
    return Asked(ask, None, line, (Outcome("not run", "there is no model in models/judge"),))


def result() -> Result:
    """The whole dossier."""
    everything = [
        asked(
            Flow(text="When Mary"),
            held(),
            (
                "metrics.name_share > 20",
                "Over 200 sentences, more than a fifth of the flow comes from the name given once",
            ),
            ("metrics.null < 20", "Shuffled weights give it less than that"),
            ("metrics.gap == 0", "Every flow is certified by a cut of the same size"),
            ("tables.tokens.height == 14", ""),
        ),
        asked(
            Reasons(),
            failed(),
            ("metrics.reason_size <= 4", "The decline rests on at most four facts"),
            ("metrics.region_decides < 0.1", "Region never decides for more than one in a thousand"),
            why="Region stands in for ancestry here",
        ),
        asked(
            Paths(),
            void(),
            ("abs(metrics.through_device) < 1", "Less than one point passes through the device reading"),
            ("abs(metrics.direct) < 5", "The direct effect is below five points"),
            name="oximeter",
        ),
        not_run(),
    ]
    dossier = Dossier(
        title="Harbour Mutual: three systems in service",
        asks=tuple(one.ask for one in everything),
        description="Fourth-quarter review of the letter assistant, the loan scorecard and the ward’s triage.",
        seed=0,
    )
    return Result(dossier, everything)


if __name__ == "__main__":
    from answerable.report import write

    write(result(), sys.argv[1])
