"""Pictures say what their tables say, on both widths, also where the tables are odd."""

import numpy as np
import polars as pl
import pytest

from answerable.answer import Figure
from answerable.provenance.detection_curves import roc_points
from answerable.provenance.machine_text.figures import (
    coloured_text,
    densities,
    roc_curves,
    score_by_length,
    shown_token,
)

POINTS = pl.DataFrame(
    {
        "group": ["calibration"] * 6 + ["human"] * 2 + ["machine"] * 2,
        "length": [60.0, 70, 80, 90, 100, 110, 75, 85, 75, 85],
        "score": [-6.0, -7, -8, -9, -10, -11, -7.5, -2.0, 4.0, 5.0],
    }
)
POOLS = pl.DataFrame({"kind": [""], "low": [60.0], "high": [110.0], "threshold": [-5.0]})


def test_a_density_is_that_of_a_gaussian_kernel() -> None:
    """It integrates to one and peaks where the scores are."""
    figure = Figure.drawn(densities, POINTS.filter(pl.col("group") == "calibration"), [], name="score [nats]")
    rows = next(layer for layer in figure.wide["layer"] if len(layer["data"]["values"]) > 1)["data"]["values"]
    x, y = (np.array([row[name] for row in rows]) for name in ("score", "density"))
    assert abs(x[y.argmax()] - -8.5) < 0.5
    assert 0.8 < np.trapezoid(y, x) <= 1.001


def test_titles_count_what_lies_beyond_the_threshold() -> None:
    figure = Figure.drawn(densities, POINTS, [-5.0], name="score [nats]")
    assert figure.title == "2 of 2 machine texts, 1 of 2 human texts lie beyond the threshold"
    several = Figure.drawn(densities, POINTS, [-5.0, 1.0], name="score [nats]")
    assert several.title == "Median scores: calibration −8.5; human −4.75; machine 4.5"


def test_length_and_score_agree_in_rank() -> None:
    figure = Figure.drawn(score_by_length, POINTS, POOLS, name="score [nats]")
    assert figure.title == "In human texts length and score have a rank correlation of −1"
    assert "1 thresholds by length" in figure.description


@pytest.mark.parametrize("rows", [1, 3000])
def test_one_text_and_thousands(rows: int) -> None:
    rng = np.random.default_rng(0)
    points = pl.DataFrame(
        {"group": ["asked"] * rows, "length": rng.integers(1, 90, rows), "score": rng.normal(size=rows)}
    )
    for figure in (
        Figure.drawn(densities, points, [], name="score [1]"),
        Figure.drawn(score_by_length, points, POOLS.clear(), name="score [1]"),
    ):
        assert figure.svg(narrow=True).startswith("<svg")


def test_kinds_that_share_lengths_share_no_ground() -> None:
    """What lies below the threshold of one kind may be flagged in another."""
    one = Figure.drawn(score_by_length, POINTS, POOLS, name="score [nats]").wide
    two = POOLS.vstack(POOLS.with_columns(kind=pl.lit("poem"), threshold=pl.lit(-3.0)))
    several = Figure.drawn(score_by_length, POINTS, two, name="score [nats]").wide
    kinds = [[layer["mark"]["type"] for layer in drawn["layer"]] for drawn in (one, several)]
    assert kinds[0].count("rect") == 1
    assert "rect" not in kinds[1]
    assert "Black rules: the thresholds of 2 kinds" in " ".join(several["title"]["subtitle"])


def test_roc_points_by_hand() -> None:
    """Machine scores 3 and 1, human 2 and 0: half are found before the first false alarm."""
    labels, scores = np.array([True, False, True, False]), np.array([3.0, 2.0, 1.0, 0.0])
    assert roc_points(labels, scores) == [(0.25, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)]
    tied = roc_points(labels, np.zeros(4))
    assert tied == [(0.25, 0.0), (1.0, 1.0)]


def test_the_roc_says_what_is_found_at_one_percent() -> None:
    points = roc_points(
        np.repeat([True, False], [10, 200]), np.r_[np.full(7, 9.0), np.full(3, -1.0), np.linspace(0, 1, 200)]
    )
    curves = pl.concat(
        pl.DataFrame(points, schema=["fpr", "tpr"], orient="row").with_columns(
            statistic=pl.lit(name), auroc=pl.lit(0.7)
        )
        for name in ("irm", "lrr", "length (shorter)")
    )
    figure = Figure.drawn(roc_curves, curves, ours="irm", control="length (shorter)")
    assert figure.title == "At 1 % false alarms irm finds 70% of machine texts"


def test_tokens_that_cannot_be_seen_are_written_out() -> None:
    assert [shown_token(token) for token in (" a", " ", "", "\n", "\x00", "\u202e", "x" * 40)] == [
        "a", "·", "(empty)", "\\n", "⟨0000⟩", "⟨202E⟩", "x" * 15 + "…",
    ]  # fmt: skip


@pytest.mark.parametrize("evidence", [[0.0, 0.0], [1e-9, -1e-9], [1e6, 2.0], [1.0, np.pi]])
def test_any_evidence_can_be_coloured(evidence: list[float]) -> None:
    tokens = pl.DataFrame({"position": [1, 2], "token": ["a", "b"], "evidence": evidence})
    figure = Figure.drawn(coloured_text, tokens, title="A finding", name="Log-ratio [nats]")
    assert figure.title == "A finding"
    assert "2 tokens" in figure.description


def test_a_long_text_is_cut_and_says_so() -> None:
    n = 1000
    tokens = pl.DataFrame({"position": range(n), "token": ["word"] * n, "evidence": np.linspace(-1, 1, n)})
    figure = Figure.drawn(coloured_text, tokens, title="t", name="n")
    assert "The first 240 of 1000 tokens." in " ".join(figure.wide["title"]["subtitle"])
