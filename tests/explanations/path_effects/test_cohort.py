"""Event tables to one row per stay: by hand, with nothing from after the decision, and through to known effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from answerable.errors import AnswerableError
from answerable.explanations.path_effects import PathSpecificEffects, build_cohort, make_intensive_care

STAYS = {
    "stay": [1, 2, 3, 4, 5],
    "race": ["BLACK/AFRICAN AMERICAN", "White", "ASIAN", "Caucasian", "WHITE - OTHER"],
    "age": ["> 89", "64", "50", "17", "40"],
    "charlson": [3, 1, 2, 0, 5],
    "vent_oasis": [9, 0, 0, 0, 9],
    "oasis": [40, 20, 10, 5, 33],
    "discharge": [3000.0, 1000.0, 2000.0, 900.0, 4000.0],
}
MEASUREMENTS = [
    (1, 400.0, "lactate", 2.0), (1, 500.0, "lactate", 4.0), (1, 700.0, "lactate", 9.0),
    (1, 498.0, "spo2", 96.0), (1, 500.0, "sao2", 91.0), (1, 550.0, "sao2", 90.0), (1, 590.0, "spo2", 60.0),
    (2, 100.0, "lactate", 1.0), (2, 990.0, "lactate", float("nan")),
    (3, 100.0, "lactate", 1.5), (5, 100.0, "spo2", 99.0),
]  # fmt: skip
VENTILATIONS = {
    "stay": [1, 1, 5, 2], "start": [900.0, 600.0, 1500.0, 300.0], "stop": [990.0, 720.0, 2100.0, 400.0],
    "kind": ["InvasiveVent", "InvasiveVent", "InvasiveVent", "NonInvasiveVent"],
}  # fmt: skip


def events(**columns: Any) -> pl.DataFrame:
    frame = pl.DataFrame(MEASUREMENTS, schema=["stay", "minute", "name", "value"], orient="row")
    return frame.with_columns(**columns)


def test_a_small_unit_by_hand() -> None:
    cohort = build_cohort(STAYS, events(), VENTILATIONS)
    rows = {row["stay"]: row for row in cohort.table.iter_rows(named=True)}
    assert list(rows) == [1, 2, 5]
    assert [rows[k]["race"] for k in rows] == ["Black", "White", "White"]
    assert rows[1]["age"] == 90
    assert [rows[k]["vented"] for k in rows] == [1, 0, 1]
    assert [rows[k]["vent_duration"] for k in rows] == [2.0, None, 10.0]
    # Lactate 200 and 100 minutes before ventilation at 600; the one at 700 is a consequence.
    weights = np.exp([-2.0, -1.0])
    assert rows[1]["lactate_ewa"] == pytest.approx((weights @ [2.0, 4.0]) / weights.sum())
    assert rows[2]["lactate_ewa"] == 1.0
    # The SpO2 of 498 fits the SaO2 of 500 and is too old for that of 550; 60 is no saturation.
    assert rows[1]["discrepancy_ewa"] == 5.0
    assert rows[1]["spo2_ewa"] == 96.0
    assert {"vent_oasis", "oasis"}.isdisjoint(cohort.table.columns)
    assert cohort.left_out == {
        "stays of other groups": 1,
        "stays of children": 1,
        "measurements without a possible value": 2,
        "measurements after the index time": 1,
    }


def test_scores_of_the_outcome_may_be_kept() -> None:
    kept = build_cohort(STAYS, events(), VENTILATIONS, keep_from_outcome=True)
    assert {"vent_oasis", "oasis"} <= set(kept.table.columns)


def test_blood_gases_count_where_they_are_arterial() -> None:
    venous = events(specimen=pl.when(pl.col("value") == 4.0).then(pl.lit("VEN")).otherwise(pl.lit("ART.")))
    cohort = build_cohort(STAYS, venous, VENTILATIONS)
    assert cohort.table["lactate_ewa"][0] == 2.0
    assert cohort.left_out["blood gases that are not arterial"] == 1


def test_a_long_decay_forgets() -> None:
    far = pl.DataFrame({"stay": [1], "minute": [400.0], "name": ["ph"], "value": [7.4]})
    stays = {**STAYS, "discharge": [30_000.0, 1000.0, 2000.0, 900.0, 4000.0]}
    late = {**VENTILATIONS, "start": [25_000.0, 24_000.0, 1500.0, 300.0], "stop": [26_000.0, 24_500.0, 2100.0, 400.0]}
    assert "ph_ewa" not in build_cohort(stays, far, late).table.columns


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "index after ventilation": (
        {"stays": {**STAYS, "chosen": [700.0] * 5}, "index_time": "chosen"},
        "stays, stay 1: its index time is 700 min, after ventilation began or the stay ended; choose a time before",
    ),
    "no such index": ({"index_time": "when"}, "stays, index_time: there is no column 'when'"),
    "stay twice": ({"stays": {**STAYS, "stay": [1, 1, 2, 3, 4]}}, "stays: stay '1' stands there twice"),
    "age in words": (
        {"stays": {**STAYS, "age": ["old", "64", "50", "17", "40"]}}, "stays, column age, row 1: 'old' is no number",
    ),
    "nobody left": (
        {"stays": {**STAYS, "race": ["x"] * 5}}, "stays: no stay is left; race has to begin with one of WHITE, CAUCASIAN",
    ),
    "no kind": ({"ventilations": {"stay": [1], "start": [1], "stop": [2]}}, "ventilations: there is no column 'kind'"),
    "negative decay": ({"gamma": -1.0}, "cohort: settings are gamma -1.0, match_minutes 5.0, least_hours 0.0; give 0"),
    "minute in words": (
        {"measurements": events(minute=pl.lit("noon"))}, "measurements, column minute, row 1: 'noon' is no number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_one_line(case: str) -> None:
    fields, said = REFUSED[case]
    given: dict[str, Any] = {"stays": STAYS, "measurements": events(), "ventilations": VENTILATIONS, **fields}
    with pytest.raises(AnswerableError) as raised:
        build_cohort(**given)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_made_up_unit_gives_back_its_effects() -> None:
    unit = make_intensive_care(6000, np.random.default_rng(3))
    cohort = build_cohort(unit.stays, unit.measurements, unit.ventilations)
    assert cohort.left_out["measurements after the index time"] > 100_000
    assert cohort.table["lactate_ewa"].null_count() > 1000
    found = PathSpecificEffects(unit.mediators, reference="White", comparison="Black").fit(
        cohort.table, treatment="race", outcome="vented", covariates=unit.covariates
    )
    assert found.flaws == []
    for name, truth in unit.truth.items():
        assert found[name].interval.value == pytest.approx(truth, abs=4 * found[name].se)
    assert found["through oximeter"].interval.high < 0 < found["through state"].interval.low
