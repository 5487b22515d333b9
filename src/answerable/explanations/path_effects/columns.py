"""From a table and the roles of its columns to arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from answerable.errors import BadInput, unknown
from answerable.statistics import Floats, Ints
from answerable.statistics.inputs import Bools

OTHER, MISSING = -1, -2  # of the treatment: a value that is neither of the two, and none
MOST_KINDS = 50  # words of one column, each of which becomes a column of its own
MOST_PERSONS = 50_000_000
LARGEST = 1e100  # of numbers, whose squares can still be told
# Of the outcome, whose scores are raised to the fourth power and whose gradients are in single precision.
LARGEST_OUTCOME, SMALLEST_SPREAD, SMALLEST_SHARE = 1e30, 1e-30, 1e-9
LEAST_GROUPS = 5  # whose scatter an interval between groups could be told from
# What the identifier of a person is called in tables of stays, admissions and visits.
PERSON_COLUMNS = ("subject_id", "patient_id", "person_id", "uniquepid", "patientid", "personid")


@dataclass(frozen=True)
class Roles:
    """Which column plays which part.

    Parameters
    ----------
    treatment : the attribute whose effect is asked for
    outcome : what it may move
    mediators : columns of each block by its name, blocks in causal order
    covariates : columns that come before the treatment's consequences
    reference, comparison : the treatment's two values; rows of others are left out. None where it is 0 or 1
    positive : the outcome's value that counts as 1; None for a numeric outcome
    groups : column of persons or hospitals whose rows depend on each other
    counts : column that says how many rows each row stands for
    """

    treatment: str
    outcome: str
    mediators: Mapping[str, Sequence[str]]
    covariates: Sequence[str] = ()
    reference: Any = None
    comparison: Any = None
    positive: Any = None
    groups: str | None = None
    counts: str | None = None


@dataclass(frozen=True)
class Arrays:
    """What the engine works on.

    Parameters
    ----------
    treated : (n,) int64, 1 for the comparison
    outcome : (n,) float64
    X : (n, p) float64, columns of covariates, then of each block; NaN is missing
    columns : number of columns of Z, of Z and M1, ...
    names : (p,) names of the columns of X
    reference, comparison : the treatment's two values, as words
    groups : (n,) labels, or None
    dropped : number of rows left out, by the reason
    notes : what a reader must know of the table
    """

    treated: Ints
    outcome: Floats
    X: Floats
    columns: tuple[int, ...]
    names: tuple[str, ...]
    reference: str
    comparison: str
    groups: np.ndarray | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def arrays_of(
    frame: pl.DataFrame, roles: Roles, *, coded: bool = False, drop_missing: bool = False, where: str = "table"
) -> Arrays:
    """The arrays of a table.

    Parameters
    ----------
    frame : one row per person or stay
    roles : the parts of its columns
    coded : words become numbers of kinds (for cells), instead of a column of 0 and 1 for each kind
    drop_missing : leave out rows without treatment or outcome, instead of refusing them
    where : what the table is called in an error

    Raises
    ------
    UnknownName : a column that is not there
    BadInput : a column with two parts, a constant one, a treatment of other than two values, an arm that a mediator
        gives away, a missing treatment or outcome; the line names column, row and the mend
    """
    _check_roles(frame, roles, where)
    frame = _repeated(frame, roles.counts, where)
    treated, labels = _treatment(frame[roles.treatment], roles, where)
    outcome = _outcome(frame[roles.outcome], roles, where)
    dropped = {
        f"{roles.treatment} missing": int((treated == MISSING).sum()),
        f"{roles.outcome} missing": int(np.isnan(outcome[treated != OTHER]).sum()),
    }
    for count, name in zip(dropped.values(), (roles.treatment, roles.outcome), strict=True):
        if count and not drop_missing:
            raise BadInput(
                f"{count} of {len(treated)} rows have no value",
                where=f"{where}, column {name}",
                mend="fill them in, or set drop_missing to leave those rows out",
            )
    dropped[f"{roles.treatment} is another value"] = int((treated == OTHER).sum())
    rows = np.flatnonzero((treated >= 0) & ~np.isnan(outcome))
    if len(rows) < len(treated):
        frame, treated, outcome = frame[rows], treated[rows], outcome[rows]
    for arm, label in enumerate(labels):
        if not (treated == arm).any():
            found = ", ".join(_words(frame[roles.treatment])[:5]) or "none"
            raise BadInput(
                f"no row has the value {label!r} (found: {found})",
                where=f"{where}, column {roles.treatment}",
                mend="set reference and comparison to two of its values",
            )
    _check_outcome(outcome, treated, f"{where}, column {roles.outcome}")
    blocks = [list(roles.covariates), *(list(block) for block in roles.mediators.values())]
    parts = [[_encoded(frame[name], treated, coded, where) for name in block] for block in blocks]
    flat = [part for block in parts for part in block]
    return Arrays(
        treated,
        outcome,
        np.column_stack([np.zeros((len(treated), 0)), *(column for column, _ in flat)]),
        tuple(int(total) for total in np.cumsum([sum(len(names) for _, names in block) for block in parts])),
        tuple(name for _, names in flat for name in names),
        *labels,
        None if roles.groups is None else _labels(frame[roles.groups], where),
        {reason: count for reason, count in dropped.items() if count},
        _notes(frame, roles),
    )


def _check_roles(frame: pl.DataFrame, roles: Roles, where: str) -> None:
    """Every column is there, and plays one part."""
    if not roles.mediators:
        raise BadInput("no mediator is named", where="mediators", mend="name at least one column between the two")
    part_of: dict[str, str] = {}
    mediators = [(f"mediators, {block}", name) for block, names in roles.mediators.items() for name in names]
    named = [("treatment", roles.treatment), ("outcome", roles.outcome), *mediators]
    named += [("covariates", name) for name in roles.covariates]
    named += [(part, name) for part, name in (("groups", roles.groups), ("counts", roles.counts)) if name is not None]
    for part, name in named:
        if name not in frame.columns:
            raise unknown("column", name, frame.columns, where=f"{where}, {part}")
        if name in part_of:
            raise BadInput(
                f"it is named as {part_of[name]} and as {part}",
                where=f"{where}, column {name}",
                mend="give each column one part",
            )
        part_of[name] = part
    for block, names in roles.mediators.items():
        if not names:
            raise BadInput("it has no column", where=f"mediators, {block}", mend="name its columns or leave it out")


def _repeated(frame: pl.DataFrame, counts: str | None, where: str) -> pl.DataFrame:
    """Every row as often as its count says."""
    if counts is None:
        return frame
    numbers = frame[counts].cast(pl.Float64, strict=False).to_numpy()
    bad = ~(np.isfinite(numbers) & (numbers >= 0) & (numbers == np.round(numbers)))
    if bad.any():
        row = int(np.argmax(bad))
        found = str(frame[counts][row])[:40]
        raise BadInput(
            f"{found!r} is no count", where=f"{where}, column {counts}, row {row + 1}", mend="give whole numbers"
        )
    if not 0 < numbers.sum() <= MOST_PERSONS:
        raise BadInput(
            f"the counts add up to {numbers.sum():.9g}", where=f"{where}, column {counts}",
            mend=f"give between 1 and {MOST_PERSONS} in all",
        )  # fmt: skip
    return frame[np.repeat(np.arange(frame.height), numbers.astype(np.int64))]


def _treatment(column: pl.Series, roles: Roles, where: str) -> tuple[Ints, tuple[str, str]]:
    """1 for the comparison, 0 for the reference, `OTHER`, `MISSING`; and the two values as words."""
    values = _as_words(column)
    found = _words(column)
    place = f"{where}, column {roles.treatment}"
    shown = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "")
    if roles.reference is None and roles.comparison is None and found == ["0", "1"]:
        labels = ("0", "1")
    elif roles.reference is None or roles.comparison is None:
        raise BadInput(
            f"its values are {shown or 'all missing'}", where=place, mend="set reference and comparison to two of them"
        )
    else:
        labels = (_word(roles.reference), _word(roles.comparison))
    for label, name in zip(labels, ("reference", "comparison"), strict=True):
        if label not in found:
            raise BadInput(
                f"{name} is {label!r}, its values are {shown}", where=place, mend=f"set {name} to one of them"
            )
    if labels[0] == labels[1]:
        raise BadInput(f"reference and comparison are both {labels[0]!r}", where=place, mend="give two values")
    codes = np.full(len(values), OTHER, dtype=np.int64)
    if values.null_count():
        codes[values.is_null().to_numpy()] = MISSING
    for arm, label in enumerate(labels):
        codes[_are(values, label)] = arm
    return codes, labels


def _outcome(column: pl.Series, roles: Roles, where: str) -> Floats:
    """The outcome as numbers, NaN where it is missing."""
    place = f"{where}, column {roles.outcome}"
    if roles.positive is not None:
        found = _words(column)
        if _word(roles.positive) not in found:
            raise BadInput(
                f"positive is {_word(roles.positive)!r}, its values are {', '.join(found[:8])}",
                where=place,
                mend="set positive to one of them",
            )
        values = _as_words(column)
        return (values == _word(roles.positive)).cast(pl.Float64).to_numpy().astype(np.float64)
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        found = _words(column)
        raise BadInput(
            f"its values are words ({', '.join(found[:5])})",
            where=place,
            mend="set positive to the one that counts as 1",
        )
    numbers = column.cast(pl.Float64).to_numpy().astype(np.float64)
    _check_size(numbers, place)
    return numbers


def _check_outcome(outcome: Floats, treated: Ints, place: str) -> None:
    """Refuse an outcome that is all but constant, in all rows or in each arm, or out of the range of the arithmetic."""
    spread, size = float(np.ptp(outcome)), float(np.abs(outcome).max())
    if spread < SMALLEST_SPREAD:
        found = f"every value is {outcome[0]:g}" + (" or nearly so" if spread else "")
        raise BadInput(found, where=place, mend="choose another outcome or unit")
    if size > LARGEST_OUTCOME:
        raise BadInput(f"a value is {size:.3g} in size", where=place, mend="choose another unit")
    if spread < SMALLEST_SHARE * size:
        found = f"values differ by {spread:.3g}, at a size of {size:.3g}"
        raise BadInput(found, where=place, mend="take away what all values have in common")
    if all(np.ptp(outcome[treated == arm]) == 0 for arm in (0, 1)):
        mend = "choose another outcome: this one is the attribute under another name"
        raise BadInput("it has one value in each arm, so nothing is left to explain", where=place, mend=mend)


def _encoded(column: pl.Series, treated: Ints, coded: bool, where: str) -> tuple[Floats, list[str]]:
    """A column as one or several columns of numbers, with their names."""
    place = f"{where}, column {column.name}"
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        numbers = column.cast(pl.Float64).to_numpy().astype(np.float64)
        _check_size(numbers, place)
        with_missing = np.nan_to_num(numbers, nan=np.inf)
        if with_missing.min() == with_missing.max():
            raise _constant(column, place)
        _check_overlap(with_missing, treated, place)
        return numbers[:, None], [column.name]
    if column.dtype.is_temporal() or column.dtype.is_nested():
        raise BadInput(f"a column of {column.dtype} is no number", where=place, mend="turn it into numbers or words")
    if column.n_unique() == 1:
        raise _constant(column, place)
    kinds = sorted(_words(column))
    words = _as_words(column).fill_null("")
    kinds = [*kinds, ""] if column.null_count() else kinds
    codes = {kind: code for code, kind in enumerate(kinds)}
    if len(kinds) > MOST_KINDS and not coded:
        mend = f"join them to at most {MOST_KINDS} kinds"
        raise BadInput(f"it has {len(kinds)} different words", where=place, mend=mend)
    numbers = np.array([codes[word] for word in words.to_list()], dtype=np.float64)
    by_arm = [set(numbers[treated == arm].tolist()) for arm in (0, 1)]
    if not by_arm[0] & by_arm[1]:
        raise _given_away(place)
    if coded:
        return numbers[:, None], [column.name]
    first = 1 if len(kinds) == 2 else 0
    return (
        np.column_stack([numbers == code for code in range(first, len(kinds))]).astype(np.float64),
        [f"{column.name} = {kind or '(missing)'}" for kind in kinds[first:]],
    )


def _constant(column: pl.Series, place: str) -> BadInput:
    return BadInput(f"every value is {str(column[0])[:40]}", where=place, mend="leave the column out")


def _check_size(numbers: Floats, place: str) -> None:
    """Refuse what is infinite, or too large to be squared."""
    bad = np.abs(numbers) > LARGEST
    if bad.any():
        row = int(np.argmax(bad))
        found = "the value is infinite" if np.isinf(numbers[row]) else f"the value is {numbers[row]:g}"
        raise BadInput(found, where=f"{place}, row {row + 1}", mend="mend it or leave it empty")


def _check_overlap(numbers: Floats, treated: Ints, place: str) -> None:
    """Refuse a column of which the arms hold different values throughout: it gives the treatment away."""
    one, other = (numbers[treated == arm] for arm in (0, 1))
    parted = one.max() < other.min() or other.max() < one.min()
    # Most columns of many values show it in their first rows, which is quicker than sorting all.
    few = all(len(np.unique(some)) <= 2 * MOST_KINDS for some in (numbers[: 20 * MOST_KINDS], numbers))
    if parted or (few and not np.isin(np.unique(one), np.unique(other)).any()):
        raise _given_away(place)


def _given_away(place: str) -> BadInput:
    return BadInput(
        "it tells the two arms apart without error, so nobody can be compared",
        where=place,
        mend="leave the column out: it is the treatment under another name",
    )


def _labels(column: pl.Series, where: str) -> np.ndarray:
    if column.null_count():
        row = int(np.argmax(column.is_null().to_numpy())) + 1
        raise BadInput("there is no value", where=f"{where}, column {column.name}, row {row}", mend="fill it in")
    numbers = np.unique(_as_words(column).to_numpy().astype(str), return_inverse=True)[1]
    if numbers.max() + 1 < LEAST_GROUPS:
        found = f"{numbers.max() + 1} groups" if numbers.max() else "one group"
        mend = f"give at least {LEAST_GROUPS}, or leave groups out"
        raise BadInput(f"all rows are of {found}", where=f"{where}, column {column.name}", mend=mend)
    return numbers


def _notes(frame: pl.DataFrame, roles: Roles) -> tuple[str, ...]:
    if roles.groups is not None:
        return ()
    persons = next((name for name in frame.columns if name.lower() in PERSON_COLUMNS), None)
    if persons is None or frame[persons].n_unique() == frame.height:
        return ()
    again = frame.height - frame[persons].n_unique()
    return (f"{again} rows are of a {persons} seen before; set groups = {persons}, or intervals are too narrow.",)


def _as_words(column: pl.Series) -> pl.Series:
    """The values as words; 1, 1.0 and True are "1"."""
    if column.dtype == pl.Boolean:
        return column.cast(pl.Int8).cast(pl.String)
    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.drop_nulls().to_numpy()
        if (np.isfinite(whole) & (whole == np.round(whole)) & (np.abs(whole) < 2**53)).all():
            return column.cast(pl.Int64).cast(pl.String)
    return column.cast(pl.String)


def _words(column: pl.Series) -> list[str]:
    """The distinct values as words, sorted; without missing ones."""
    return sorted({word for word in _as_words(column.unique()).to_list() if word is not None})


def _are(values: pl.Series, word: str) -> Bools:
    """Which of some words are this one; a missing one is not."""
    same = values == word
    return (same.fill_null(False) if same.null_count() else same).to_numpy()


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
