"""From event tables of an intensive care unit to one row per stay, with nothing measured after the decision.

Measurements before the index time are summarised by exponentially weighted means, the weight of one made t minutes
before being exp(-gamma t). The index time is when invasive ventilation first began; for a stay without, when it ended.
What comes later is a consequence of the decision and is left out. So are the OASIS points for ventilation and the OASIS
total, which are functions of the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from answerable.errors import BadInput, unknown
from answerable.subjects.table import read_table

FROM_OUTCOME = ("vent_oasis", "oasis")  # scores that count ventilation itself
SATURATION = (70.0, 100.0)  # per cent; outside it a reading is an error
LARGEST_GAP = 30.0  # points of SpO2 less SaO2 that are believed
HORIZON = 10_000.0  # minutes before the index time after which a measurement counts for nothing
ADULT = 18.0
INVASIVE = "InvasiveVent"
# What the two groups are called in MIMIC-IV and eICU.
GROUPS: Mapping[str, Sequence[str]] = {"White": ("WHITE", "CAUCASIAN"), "Black": ("BLACK", "AFRICAN AMERICAN")}
ARTERIAL = ("ph", "paco2", "pao2", "sao2", "carboxyhemoglobin", "methemoglobin", "bicarbonate", "lactate")


class Cohort(NamedTuple):
    """One row per stay.

    Attributes
    ----------
    table : the columns of ``stays`` that are not times, ``vented`` (0 or 1), ``vent_duration`` (hours, missing where
        not ventilated), and NAME_ewa for each measurement, with ``discrepancy_ewa``, SpO2 less SaO2
    left_out : stays or measurements that do not count, by the reason
    """

    table: pl.DataFrame
    left_out: dict[str, int]


def build_cohort(
    stays: Any,
    measurements: Any,
    ventilations: Any,
    *,
    index_time: str | None = None,
    gamma: float = 0.01,
    match_minutes: float = 5.0,
    least_hours: float = 0.0,
    keep_from_outcome: bool = False,
) -> Cohort:
    """Stays with what was known of them before the decision.

    Parameters
    ----------
    stays : table of ``stay``, ``race``, ``age`` (years, or "> 89"), ``discharge`` (minutes after admission), and any
        columns that are fixed at admission
    measurements : table of ``stay``, ``minute`` (after admission), ``name`` and ``value``; with a column ``specimen``,
        blood gases count only where it begins with "art"
    ventilations : table of ``stay``, ``start``, ``stop`` (minutes) and ``kind``; invasive ones count
    index_time : column of ``stays`` with another index time, in minutes
    gamma : decay of a measurement's weight, per minute
    match_minutes : an SpO2 is compared with an SaO2 that follows it by at most this much
    least_hours : shorter stays are left out
    keep_from_outcome : keep `FROM_OUTCOME`, to repeat work that conditioned on them

    Raises
    ------
    UnknownName : a column that is not there
    BadInput : a setting out of range, a stay twice, an age or minute that is no number, an index time after discharge,
        or no stay left
    """
    if not 0 <= gamma <= 1 or not 0 < match_minutes <= 60 or least_hours < 0:
        found = f"gamma {gamma}, match_minutes {match_minutes}, least_hours {least_hours}"
        raise BadInput(f"settings are {found}", where="cohort", mend="give 0 to 1, 0 to 60 and at least 0")
    left_out: dict[str, int] = {}
    adults = _stays(_columns(stays, "stays", ("stay", "race", "age", "discharge")), left_out, least_hours)
    vents = _columns(ventilations, "ventilations", ("stay", "start", "stop", "kind"))
    with_index = _index_times(adults, vents, index_time)
    events = _columns(measurements, "measurements", ("stay", "minute", "name", "value"))
    before = _before(events, with_index, left_out)
    summaries = pl.concat([before, _discrepancies(before, match_minutes)], how="vertical")
    weighed = summaries.with_columns(weight=(-gamma * pl.col("ago")).exp() * (pl.col("ago") <= HORIZON))
    wide = (
        weighed.filter(pl.col("weight") > 0)
        .group_by("stay", "name")
        .agg(mean=(pl.col("weight") * pl.col("value")).sum() / pl.col("weight").sum())
        .sort("name", "stay")
        .pivot("name", index="stay", values="mean")
    )
    wide = wide.rename({name: f"{name}_ewa" for name in wide.columns if name != "stay"})
    dropped = [] if keep_from_outcome else [name for name in FROM_OUTCOME if name in with_index.columns]
    times = [name for name in ("discharge", "_index", index_time) if name is not None]
    table = with_index.drop(*times, *dropped).join(wide, on="stay", how="left", maintain_order="left")
    if not keep_from_outcome:
        table = table.drop([f"{name}_ewa" for name in FROM_OUTCOME if f"{name}_ewa" in table.columns])
    return Cohort(table, {reason: count for reason, count in left_out.items() if count})


def _columns(subject: Any, where: str, needed: Sequence[str]) -> pl.DataFrame:
    frame = read_table(subject)
    for name in needed:
        if name not in frame.columns:
            raise unknown("column", name, frame.columns, where=where)
    return frame


def _number(frame: pl.DataFrame, name: str, where: str) -> pl.DataFrame:
    """The frame with a column as numbers."""
    numbers = frame[name].cast(pl.Float64, strict=False)
    bad = numbers.is_null() | ~numbers.is_finite().fill_null(False)
    if bad.any():
        row = int(bad.arg_max() or 0)
        found = str(frame[name][row])[:40]
        raise BadInput(f"{found!r} is no number", where=f"{where}, column {name}, row {row + 1}", mend="mend the entry")
    return frame.with_columns(numbers)


def _stays(frame: pl.DataFrame, left_out: dict[str, int], least_hours: float) -> pl.DataFrame:
    """Adults of the two groups, each once."""
    twice = frame["stay"].is_duplicated()
    if twice.any():
        found = str(frame["stay"][int(twice.arg_max() or 0)])[:40]
        raise BadInput(f"stay {found!r} stands there twice", where="stays", mend="give one row per stay")
    old = pl.col("age").cast(pl.String).str.replace(r"^\s*>\s*89\s*$", "90")
    frame = _number(_number(frame.with_columns(age=old), "age", "stays"), "discharge", "stays")
    word = pl.col("race").cast(pl.String).str.to_uppercase()
    race = pl.lit(None, pl.String)
    for group, starts in GROUPS.items():
        race = (
            pl.when(pl.any_horizontal([word.str.starts_with(start) for start in starts]))
            .then(pl.lit(group))
            .otherwise(race)
        )
    frame = frame.with_columns(race=race)
    kept = frame.filter(pl.col("race").is_not_null())
    left_out["stays of other groups"] = frame.height - kept.height
    adults = kept.filter(pl.col("age") >= ADULT)
    left_out["stays of children"] = kept.height - adults.height
    long = adults.filter(pl.col("discharge") >= 60 * least_hours)
    left_out["stays that were too short"] = adults.height - long.height
    if not long.height:
        raise BadInput("no stay is left", where="stays", mend=f"race has to begin with one of {_all_names()}")
    return long


def _all_names() -> str:
    return ", ".join(name for names in GROUPS.values() for name in names)


def _index_times(stays: pl.DataFrame, vents: pl.DataFrame, index_time: str | None) -> pl.DataFrame:
    """Stays with ``vented``, ``vent_duration`` and ``_index``."""
    for name in ("start", "stop"):
        vents = _number(vents, name, "ventilations")
    first = (
        vents.filter(pl.col("kind") == INVASIVE)
        .sort("start")
        .group_by("stay", maintain_order=True)
        .agg(pl.col("start").first(), pl.col("stop").first())
    )
    joined = stays.join(first, on="stay", how="left", maintain_order="left").with_columns(
        vented=pl.col("start").is_not_null().cast(pl.Int64), vent_duration=(pl.col("stop") - pl.col("start")) / 60
    )
    if index_time is None:
        chosen = joined.with_columns(_index=pl.coalesce("start", "discharge"))
    else:
        if index_time not in joined.columns:
            raise unknown("column", index_time, stays.columns, where="stays, index_time")
        chosen = _number(joined, index_time, "stays").with_columns(_index=pl.col(index_time))
    late = chosen["_index"] > pl.select(pl.min_horizontal(chosen["discharge"], chosen["start"])).to_series()
    if late.any():
        row = int(late.arg_max() or 0)
        raise BadInput(
            f"its index time is {chosen['_index'][row]:g} min, after ventilation began or the stay ended",
            where=f"stays, stay {chosen['stay'][row]}",
            mend="choose a time before the decision: what is measured later is its consequence",
        )
    return chosen.drop("start", "stop")


def _before(events: pl.DataFrame, stays: pl.DataFrame, left_out: dict[str, int]) -> pl.DataFrame:
    """Measurements of stays in use before their index time: stay, name, value, ago."""
    events = _number(events, "minute", "measurements").with_columns(pl.col("value").cast(pl.Float64, strict=False))
    if "specimen" in events.columns:
        arterial = pl.col("specimen").cast(pl.String).str.to_lowercase().str.starts_with("art").fill_null(False)
        kept = events.filter(~pl.col("name").is_in(ARTERIAL) | arterial)
        left_out["blood gases that are not arterial"] = events.height - kept.height
        events = kept
    low, high = SATURATION
    saturation = pl.col("name").is_in(["sao2", "spo2"])
    there = events.filter(pl.col("value").is_finite() & (~saturation | pl.col("value").is_between(low, high)))
    left_out["measurements without a possible value"] = events.height - there.height
    own = there.join(stays.select("stay", "_index"), on="stay", how="inner", maintain_order="left")
    before = own.with_columns(ago=pl.col("_index") - pl.col("minute")).filter(pl.col("ago") >= 0)
    left_out["measurements after the index time"] = own.height - before.height
    return before.select("stay", "name", "value", "ago")


def _discrepancies(before: pl.DataFrame, match_minutes: float) -> pl.DataFrame:
    """SpO2 less SaO2 at each SaO2, by the last SpO2 shortly before it."""
    arterial = before.filter(pl.col("name") == "sao2").with_columns(at=-pl.col("ago")).sort("at")
    pulse = before.filter(pl.col("name") == "spo2").select("stay", at=-pl.col("ago"), pulse="value").sort("at")
    matched = arterial.join_asof(
        pulse, on="at", by="stay", strategy="backward", tolerance=match_minutes, check_sortedness=False
    ).drop_nulls("pulse")
    gap = (pl.col("pulse") - pl.col("value")).clip(-LARGEST_GAP, LARGEST_GAP)
    return matched.select("stay", pl.lit("discrepancy").alias("name"), gap.alias("value"), "ago")
