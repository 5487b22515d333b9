"""Made-up tables whose truth is known, and the rows of the COMPAS file as its first readers kept them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from answerable.errors import BadInput
from answerable.statistics import Bools, Floats

from .xai_tris import Background, Scenario, make_xai_tris

if TYPE_CHECKING:
    import polars as pl

Replica = Literal["suppressor", "icu", "linear", "multiplicative", "xor"]
COMPAS = ("age", "race", "priors_count", "length_of_stay", "sex", "charge_degree")


class Replicated(NamedTuple):
    """A made-up table.

    Attributes
    ----------
    X : (n, n_features) float64
    y : (n,) float64, 0 and 1
    names : of the features
    suppressors : (n_features,) which features were planted as suppressors
    truth : (8, 8) bool, the pixels that carry the class, None for tables that are no images
    """

    X: Floats
    y: Floats
    names: list[str]
    suppressors: Bools
    truth: Bools | None


def make_replica(
    replica: Replica,
    *,
    n: int,
    seed: int,
    background: Background = "correlated",
    distractor: bool = False,
) -> Replicated:
    """Make a table.

    Parameters
    ----------
    replica : ``suppressor``: one informative feature, one that shares its noise only; ``icu``: columns of an
        intensive-care table, where hematocrit was planted as a suppressor of lactate's noise; or an image scenario of
        :func:`make_xai_tris`
    n : rows
    seed : of everything random
    background, distractor : of the images
    """
    if replica == "suppressor":
        return _suppressor(n, np.random.default_rng(seed))
    if replica == "icu":
        return _icu(n, np.random.default_rng(seed))
    scenario: Scenario = replica
    made = make_xai_tris(scenario, background, distractor=distractor, n=n, seed=seed)
    names = [f"pixel {row},{column}" for row in range(8) for column in range(8)]
    return Replicated(made.X, made.y.astype(float), names, np.zeros(64, dtype=bool), made.truth)


def _suppressor(n: int, rng: np.random.Generator) -> Replicated:
    """The closed form: class means (2y - 1)(1, 0), variances 1, correlation 0.8; log-odds slopes 50/9 and -40/9."""
    y = rng.integers(0, 2, n).astype(np.float64)
    noise = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], n)
    X = noise + np.outer(2 * y - 1, [1.0, 0.0])
    return Replicated(X, y, ["signal", "noise"], np.array([False, True]), None)


def _icu(n: int, rng: np.random.Generator) -> Replicated:
    """Names and ranges of a table of intensive care; nobody's data."""
    age = np.clip(rng.normal(64, 16, n), 18, 90)
    severity = 0.03 * (age - 64) + rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(2.2 - 1.3 * severity))).astype(np.float64)
    shared = rng.normal(size=n)
    columns = {
        "age": age,
        "heart_rate": 86 + 6 * severity + 12 * rng.normal(size=n),
        "mean_arterial_pressure": 79 - 3 * severity + 9 * rng.normal(size=n),
        "oxygen_saturation": np.minimum(97 - 0.7 * severity + 1.5 * rng.normal(size=n), 100),
        "lactate": np.exp(0.5 + 0.25 * severity + 0.45 * shared + 0.1 * rng.normal(size=n)),
        "urea_nitrogen": np.exp(3.0 + 0.2 * severity + 0.5 * rng.normal(size=n)),
        "hematocrit": 33 + 5 * (0.95 * shared + 0.31 * rng.normal(size=n)),
        "insurance": rng.integers(1, 4, n).astype(np.float64),
    }
    names = list(columns)
    return Replicated(np.column_stack(list(columns.values())), y, names, np.array(names) == "hematocrit", None)


def compas_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows and columns of ProPublica's COMPAS file that its analysis uses.

    Kept are rows screened within 30 days of the arrest, with a known outcome, an ordinary charge and a score. Race is
    coded 1-6 in alphabetical order, sex 1 female and 2 male, charge degree 1 felony and 2 misdemeanour, length of stay
    in days between the dates of entering and leaving jail.

    Parameters
    ----------
    frame : ``compas-scores-two-years.csv`` as it stands

    Returns
    -------
    polars frame with the columns ``COMPAS`` and ``two_year_recid``

    Raises
    ------
    BadInput : a column that is missing
    """
    import polars as pl

    kept = _compas_kept(frame)

    def day(name: str) -> Any:
        return pl.col(name).cast(pl.String).str.slice(0, 10).str.to_date("%Y-%m-%d")

    def code(name: str) -> Any:
        return pl.col(name).rank("dense").cast(pl.Float64)

    return kept.select(
        pl.col("age").cast(pl.Float64),
        code("race").alias("race"),
        pl.col("priors_count").cast(pl.Float64),
        (day("c_jail_out") - day("c_jail_in")).dt.total_days().cast(pl.Float64).alias("length_of_stay"),
        code("sex").alias("sex"),
        code("c_charge_degree").alias("charge_degree"),
        pl.col("two_year_recid").cast(pl.Int64),
    )


def compas_words(frame: pl.DataFrame) -> dict[str, list[str]]:
    """What the codes of :func:`compas_rows` stand for, 1 first; the frame is the same."""
    kept = _compas_kept(frame)
    columns = {"race": "race", "sex": "sex", "charge_degree": "c_charge_degree"}
    return {name: sorted(kept[column].unique()) for name, column in columns.items()}


def _compas_kept(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    needed = (
        "days_b_screening_arrest", "is_recid", "c_charge_degree", "score_text", "c_jail_in", "c_jail_out",
        "age", "race", "priors_count", "sex", "two_year_recid",
    )  # fmt: skip
    for name in needed:
        if name not in frame.columns:
            raise BadInput(f"there is no column {name!r}", where="table", mend="give compas-scores-two-years.csv")
    return frame.filter(
        (pl.col("days_b_screening_arrest").cast(pl.Float64).abs() <= 30)
        & (pl.col("is_recid") != -1)
        & (pl.col("c_charge_degree") != "O")
        & (pl.col("score_text") != "N/A")
    )
