"""A made-up intensive care unit: event tables with the columns of the real ones, and effects that are known.

A pulse oximeter reads too high, more so for Black patients; whoever decides on ventilation sees its reading. A tenth of
the stays are of Black patients. Every value is drawn; nothing comes from a hospital.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from answerable.statistics import Floats

DECAY = 0.01  # per minute, as in `build_cohort`
READINGS = 3  # of each laboratory value or vital sign
PAIRS = 4  # of SpO2 and SaO2

# Mean, spread, and how much a spread of severity moves each.
STATES: dict[str, tuple[float, float, float]] = {
    "ph": (7.36, 0.08, -0.6), "paco2": (42, 9, 0.4), "pao2": (95, 30, -0.4), "bicarbonate": (24, 4, -0.5),
    "co2": (25, 4, -0.3), "carboxyhemoglobin": (1.5, 0.6, 0.1), "chloride": (104, 6, 0.1),
    "creatinine": (1.4, 0.8, 0.4), "glucose": (140, 40, 0.3), "hct": (32, 5, -0.3), "hgb": (10.5, 1.8, -0.3),
    "lactate": (2.2, 1.3, 0.8), "methemoglobin": (1.0, 0.4, 0.0), "potassium": (4.2, 0.6, 0.2),
    "sodium": (138, 5, 0.0), "respiration": (20, 5, 0.6), "temperature": (36.9, 0.7, 0.2), "heartrate": (88, 16, 0.5),
}  # fmt: skip
SCORES = (
    "gcs_oasis",
    "heartrate_oasis",
    "map_oasis",
    "respiratoryrate_oasis",
    "temperature_oasis",
    "urineoutput_oasis",
)
COVARIATES = ("gender", "age", "charlson", "pre_icu_los_oasis", "electivesurgery_oasis")
RARE = ("carboxyhemoglobin", "methemoglobin", "lactate", "ph", "paco2", "pao2")  # measured at a part of the stays
BIAS = (0.5, 1.7)  # points that the oximeter reads too high: White, Black


class IntensiveCare(NamedTuple):
    """Event tables of a made-up unit.

    Attributes
    ----------
    stays, measurements, ventilations : as `build_cohort` takes them
    covariates, mediators : columns of the cohort's table
    truth : total, direct, through state and through oximeter effect on the probability of ventilation
    """

    stays: pl.DataFrame
    measurements: pl.DataFrame
    ventilations: pl.DataFrame
    covariates: list[str]
    mediators: dict[str, list[str]]
    truth: Mapping[str, float]


def make_intensive_care(n: int, rng: np.random.Generator) -> IntensiveCare:
    """A unit of n stays.

    Parameters
    ----------
    n : stays
    rng : what draws them
    """
    world = _World(n, rng)
    black = world.black
    state = world.states(black)
    oximeter = world.oximeter(black, state)
    chance = world.chance(black, state, oximeter)
    vented = world.coin < chance
    return IntensiveCare(
        world.stays(vented),
        world.events(state, oximeter),
        world.ventilations(vented),
        [*COVARIATES],
        {
            "state": [*(f"{name}_ewa" for name in STATES), *SCORES],
            "oximeter": ["sao2_ewa", "spo2_ewa", "discrepancy_ewa"],
        },
        world.truth(),
    )


class _State(NamedTuple):
    readings: dict[str, Floats]  # (n, READINGS), NaN where never measured
    scores: dict[str, Floats]
    severity: Floats  # what can be seen of it


class _Oximeter(NamedTuple):
    sao2: Floats  # (n, PAIRS)
    spo2: Floats


class _World:
    """All noise of a unit, so that the same patients can be seen under the other value of the attribute."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n = n
        self.age = np.clip(rng.normal(62, 15, n), 18, 95).round()
        self.male = rng.random(n) < 0.56
        self.charlson = rng.poisson(3, n)
        self.waited = rng.integers(0, 6, n)
        self.elective = rng.random(n) < 0.2
        log_odds = -2.2 - 0.01 * (self.age - 62) + 0.06 * (self.charlson - 3)
        self.black = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(np.int64)
        self.sick, self.coin = rng.normal(size=n), rng.random(n)
        self.index = rng.integers(900, 3000, n).astype(float)
        self.duration = rng.exponential(2400, n).round() + 60
        self.ago = np.sort(rng.integers(5, 800, (n, READINGS)), axis=1).astype(float)
        self.pair_ago = np.sort(rng.integers(10, 800, (n, PAIRS)), axis=1).astype(float)
        self.lag = rng.integers(0, 5, (n, PAIRS)).astype(float)
        self.noise = {name: rng.normal(size=(n, READINGS + 1)) for name in STATES}
        self.missing = {name: rng.random(n) < (0.25 if name in RARE else 0.05) for name in STATES}
        self.points = {name: rng.normal(size=n) for name in SCORES}
        self.blood, self.sensor = rng.normal(size=(n, PAIRS + 1)), rng.normal(size=(n, PAIRS + 1))

    def states(self, black: Any) -> _State:
        """What the attribute makes of the patients' state."""
        severity = self.sick + 0.35 * black + 0.02 * (self.age - 62) + 0.1 * (self.charlson - 3)
        readings, seen = {}, np.zeros(self.n)
        for name, (mean, spread, load) in STATES.items():
            noise = self.noise[name]
            lasting = load * severity + np.sqrt(1 - load**2 * 0.8) * 0.8 * noise[:, -1]
            found = np.round(mean + spread * (lasting[:, None] + 0.4 * noise[:, :-1]), 2)
            found[self.missing[name]] = np.nan
            readings[name] = found
            seen += load * np.nan_to_num((_decayed(found, self.ago) - mean) / spread)
        scores = {name: np.clip(np.round(4 + 2 * severity + 2 * self.points[name]), 0, 14) for name in SCORES}
        return _State(readings, scores, seen / 2)

    def oximeter(self, black: Any, state: _State) -> _Oximeter:
        """Saturation as it is, and as it is read."""
        lasting = 96.0 - 0.8 * state.severity + 1.2 * self.blood[:, -1]
        sao2 = np.round(np.clip(lasting[:, None] + 0.5 * self.blood[:, :-1], 75, 100), 1)
        bias = np.where(black == 1, BIAS[1], BIAS[0])
        own = bias + 1.6 * self.sensor[:, -1]  # skin, finger, device
        spo2 = np.round(np.clip(sao2 + own[:, None] + 0.8 * self.sensor[:, :-1], 75, 100))
        return _Oximeter(sao2.astype(np.float64), spo2.astype(np.float64))

    def chance(self, black: Any, state: _State, oximeter: _Oximeter) -> Floats:
        """Probability of ventilation, from what is seen."""
        read = _decayed(oximeter.spo2, self.pair_ago + self.lag)
        log_odds = -0.7 + 0.7 * state.severity - 0.35 * (read - 96.5) + 0.15 * black - 0.5 * self.elective
        found: Floats = 1 / (1 + np.exp(-log_odds))
        return found

    def truth(self) -> dict[str, float]:
        """Effects along paths, by seeing the same patients under both values."""
        arms = [np.zeros(self.n), np.ones(self.n)]
        states = [self.states(arm) for arm in arms]
        mean = {
            (w, v, y): float(self.chance(arms[y], states[w], self.oximeter(arms[v], states[w])).mean())
            for w, v, y in ((0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1))
        }
        steps = list(mean.values())
        return {
            "total": steps[3] - steps[0], "direct": steps[1] - steps[0], "through state": steps[2] - steps[1],
            "through oximeter": steps[3] - steps[2],
        }  # fmt: skip

    def stays(self, vented: Any) -> pl.DataFrame:
        """One row per stay; the ages beyond 89 are hidden, as in the real tables."""
        state = self.states(self.black)
        total = np.sum([state.scores[name] for name in SCORES], axis=0)
        return pl.DataFrame(
            {
                "stay": np.arange(self.n) + 1,
                "race": np.where(self.black == 1, "BLACK/AFRICAN AMERICAN", "WHITE"),
                "gender": np.where(self.male, "M", "F"),
                "age": [f"{age:.0f}" if age <= 89 else "> 89" for age in self.age],
                "charlson": self.charlson,
                "pre_icu_los_oasis": self.waited,
                "electivesurgery_oasis": np.where(self.elective, 0, 6),
                **state.scores,
                "vent_oasis": np.where(vented, 9, 0),
                "oasis": total + np.where(vented, 9, 0),
                "discharge": np.where(vented, self.index + self.duration + 600, self.index),
            }
        )

    def ventilations(self, vented: Any) -> pl.DataFrame:
        """When invasive ventilation began and ended."""
        rows = np.flatnonzero(vented)
        start = self.index[rows]
        return pl.DataFrame(
            {
                "stay": rows + 1,
                "start": start,
                "stop": start + self.duration[rows],
                "kind": ["InvasiveVent"] * len(rows),
            }
        )

    def events(self, state: _State, oximeter: _Oximeter) -> pl.DataFrame:
        """Every measurement; also one of each kind after the index time, on which nobody may condition."""
        stay, parts = np.arange(self.n) + 1, []
        times = {"sao2": self.pair_ago, "spo2": self.pair_ago + self.lag}
        kinds = {**{name: (found, self.ago) for name, found in state.readings.items()},
                 "sao2": (oximeter.sao2, times["sao2"]), "spo2": (oximeter.spo2, times["spo2"])}  # fmt: skip
        for name, (values, ago) in kinds.items():
            later = np.column_stack([values, values[:, :1] * 0.95])
            minutes = self.index[:, None] - np.column_stack([ago, np.full(self.n, -30.0)])
            flat = pl.DataFrame(
                {"stay": np.repeat(stay, later.shape[1]), "minute": minutes.ravel(), "value": later.ravel()}
            )
            parts.append(flat.filter(pl.col("value").is_not_nan()).with_columns(name=pl.lit(name)))
        return pl.concat(parts).select("stay", "minute", "name", "value")


def _decayed(values: Floats, ago: Floats) -> Floats:
    """Exponentially weighted means (n,) of readings (n, k) that were made so many minutes ago."""
    weights = np.exp(-DECAY * ago)
    found: Floats = (weights * values).sum(axis=1) / weights.sum(axis=1)
    return found
