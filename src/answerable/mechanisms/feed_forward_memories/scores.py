"""One table of scores: every feature set by every yardstick, the most reliable first, each with the noise of its seeds.

An audit of 2026 (arXiv 2605.18229) finds sparse probing the most reliable of these scores, and SCR and TPP unfit at
their default settings; the paper trusts RAVEL more than these. The table is in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.statistics import bootstrap_interval

from . import judging, probing
from .absorption import GOOD_PROBE, Absorption, LetterProbes, absorption, letter_probes
from .reading import Reading

Ints = npt.NDArray[np.int64]
MetricName = Literal["ev", "alive", "sparse_probe", "autointerp", "ravel", "tpp", "scr", "absorption"]
RELIABLE: tuple[MetricName, ...] = ("ev", "alive", "sparse_probe", "ravel", "autointerp", "tpp", "scr", "absorption")
NAMES: dict[str, str] = {
    "ev": "explained variance",
    "alive": "alive",
    "sparse_probe": "sparse probing",
    "ravel": "RAVEL",
    "autointerp": "auto-interpretation",
    "tpp": "TPP",
    "scr": "SCR",
    "absorption": "absorption",
}
JUDGED = 24  # features of each set that the game is played with
SHOWN_ERASED = 20


class Score(NamedTuple):
    """One number of one feature set.

    metric, setting : what is measured, and how
    features, role : the set, and whose it is
    value : the number; NaN where there is none, and then ``how`` says why
    low, high : smallest and largest over the seeds, or a bootstrap interval; None for a count
    how : how low and high were made
    seeds : (seeds,) the number by seed, for paired comparisons; empty for a count
    """

    metric: str
    setting: str
    features: str
    role: str
    value: float
    low: float | None
    high: float | None
    how: str
    seeds: tuple[float, ...] = ()


class Labelled(NamedTuple):
    """Texts with attributes.

    texts : as they read
    attributes : for each its values, one for each text
    """

    texts: list[str]
    attributes: dict[str, list[str]]

    def codes(self, name: str) -> tuple[Ints, list[str]]:
        """Numbers of an attribute's values, and the values by number."""
        values, codes = np.unique(np.array(self.attributes[name], dtype=object).astype(str), return_inverse=True)
        return codes.astype(np.int64), [str(value) for value in values]


def concepts_of(labelled: Labelled) -> dict[str, npt.NDArray[np.bool_]]:
    """One concept for each value of the first attribute that has at least 10 texts with it and 10 without.

    Raises
    ------
    BadInput : no value has
    """
    name = next(iter(labelled.attributes))
    codes, values = labelled.codes(name)
    found = {
        value: codes == number
        for number, value in enumerate(values)
        if min((codes == number).sum(), (codes != number).sum()) >= probing.FEWEST_TEXTS
    }
    if len(values) < 2 or not found:
        raise BadInput(
            f"{len(values)} values, {len(codes)} texts",
            where=f"concepts, {name}",
            mend=f"give at least {probing.FEWEST_TEXTS} texts with a value and as many without",
        )
    return found if len(values) > 2 else {values[1]: codes == 1}


def explained_scores(readings: Sequence[Reading], *, seed: int, resamples: int = 1000) -> list[Score]:
    """Explained variance, with a bootstrap over texts where there are at least two."""
    found = []
    for reading in readings:
        there = reading.tokens > 0
        value, one = reading.explained, reading.features
        setting = reading.definition
        if value > 1 - 1e-6:
            found.append(Score("ev", setting, one.name, one.role, value, None, None, "exact: every feature is kept"))
            continue
        if np.isnan(value) or there.sum() < 2 or reading.definition == "legacy_token_mean":
            why = "the outputs do not vary" if np.isnan(value) else "no interval: one text, or a mean of ratios"
            found.append(Score("ev", setting, one.name, one.role, value, None, None, why))
            continue
        interval = bootstrap_interval(
            reading.explained_of,
            reading.errors[there], reading.squares[there], reading.tokens[there], reading.outputs[there],
            seed=seed, resamples=resamples, method="percentile",
        )  # fmt: skip
        low, high = min(interval.low, value), min(1.0, max(interval.high, value))
        found.append(Score("ev", setting, one.name, one.role, value, low, high, "bootstrap over texts, 95 %"))
    return found


def alive_scores(readings: Sequence[Reading]) -> list[Score]:
    """Alive rate, ever non-zero, density and L0: counts, without an interval."""
    found = []
    for reading in readings:
        one = reading.features
        for setting, value in (
            ("above 0", reading.alive),
            ("ever non-zero", reading.ever_nonzero),
            ("mean density (above 0)", float(reading.density.mean())),
            ("L0 (not 0)", reading.l0),
        ):
            found.append(Score("alive", setting, one.name, one.role, value, None, None, "count"))
    return found


def labelled_scores(
    readings: Sequence[Reading],
    labelled: Labelled,
    *,
    seeds: int,
    rng: Callable[..., np.random.Generator],
    metrics: Sequence[str] = ("sparse_probe", "ravel", "autointerp", "tpp", "scr"),
) -> list[Score]:
    """Every score that needs labelled texts, each once for every seed.

    Parameters
    ----------
    readings : of these texts, in the order of the table
    seeds : how often texts are split anew
    rng : gives a generator for a name and a number
    """
    concepts = concepts_of(labelled)
    there = readings[0].tokens > 0
    if not there.all():
        raise BadInput(
            "it has no token", where=f"concepts, row {int(np.argmin(there)) + 1}", mend="leave empty texts out"
        )
    found: list[Score] = []
    splits = {
        (seed, name): probing.balanced_split(labels, rng("split", seed, name))
        for seed in range(seeds)
        for name, labels in concepts.items()
    }
    if "sparse_probe" in metrics:
        found += _sparse_probing(readings, concepts, splits, seeds)
    if "ravel" in metrics:
        found += _ravel(readings, labelled, seeds, rng)
    if "autointerp" in metrics:
        found += _judged(readings, labelled, seeds, rng)
    if "tpp" in metrics and len(concepts) > 1:
        found += _tpp(readings, concepts, splits, seeds)
    if "scr" in metrics:
        found += _scr(readings, labelled, seeds, rng)
    return found


def absorption_scores(
    readings: Sequence[tuple[Any, npt.NDArray[Any], npt.NDArray[Any]]],
    letters: npt.NDArray[np.str_],
    *,
    seeds: int,
    rng: Callable[..., np.random.Generator],
) -> list[Score]:
    """Mean absorption over letters, and the share of words that can score at all.

    Parameters
    ----------
    readings : for each set (features, outputs at the words, activations there); sets that share an array of outputs
        share its probes
    """
    found = []
    probes: dict[tuple[int, int], LetterProbes] = {}
    for features, outputs, activations in readings:
        by_seed: dict[str, list[float]] = {"mean fraction": [], "full": [], "share of words that can score": []}
        counts = []
        for seed in range(seeds):
            key = id(outputs), seed
            if key not in probes:
                probes[key] = letter_probes(outputs, letters, rng("letters", seed))
            letters_found = absorption(outputs, activations, features.directions, letters, probes[key])
            scored = [one for one in letters_found.values() if one.words]
            counts.append(len(scored))
            for setting, name in zip(by_seed, Absorption._fields[:3]):
                by_seed[setting].append(
                    float(np.mean([getattr(one, name) for one in scored])) if scored else float("nan")
                )
        told = [len(one.f1) for (outputs_id, _), one in probes.items() if outputs_id == id(outputs)]
        note = f"{min(counts)} to {max(counts)} of {max(told)} letters have a probe good enough (F1 above {GOOD_PROBE})"
        found += [_over_seeds("absorption", setting, features, values, note) for setting, values in by_seed.items()]
    return found


def differences(scores: Sequence[Score], metric: str, setting: str, first: str, second: str) -> tuple[float, ...]:
    """By seed, the score of one set less that of another on the same splits."""
    by_name = {one.features: one.seeds for one in scores if (one.metric, one.setting) == (metric, setting)}
    return tuple(a - b for a, b in zip(by_name[first], by_name[second]))


def _over_seeds(metric: str, setting: str, features: Any, values: Sequence[float], note: str = "") -> Score:
    how = f"smallest and largest of {len(values)} seeds" + (f"; {note}" if note else "")
    numbers = np.asarray(values, np.float64)
    if not len(numbers) or np.isnan(numbers).any():
        return Score(
            metric, setting, features.name, features.role, float("nan"), None, None, note or "not defined here"
        )
    return Score(
        metric, setting, features.name, features.role,
        float(numbers.mean()), float(numbers.min()), float(numbers.max()), how, tuple(map(float, numbers)),
    )  # fmt: skip


def _sparse_probing(
    readings: Sequence[Reading], concepts: Mapping[str, Any], splits: Mapping[Any, probing.Split], seeds: int
) -> list[Score]:
    found = []
    for reading in readings:
        ks = [k for k in probing.PROBED if k <= reading.features.count]
        accuracy = np.array(
            [
                [
                    probing.sparse_probing(reading.means, labels, splits[seed, name], ks=ks).accuracy
                    for name, labels in concepts.items()
                ]
                for seed in range(seeds)
            ]
        ).mean(axis=1)
        found += [
            _over_seeds("sparse_probe", f"k = {k}", reading.features, accuracy[:, place].tolist())
            for place, k in enumerate(ks)
        ]
    return found


def _tpp(
    readings: Sequence[Reading], concepts: Mapping[str, Any], splits: Mapping[Any, probing.Split], seeds: int
) -> list[Score]:
    classes = np.full(len(next(iter(concepts.values()))), -1)
    for number, labels in enumerate(concepts.values()):
        classes[labels] = number
    found = []
    for reading in readings:
        erased = [n for n in probing.ERASED if n <= reading.features.count]
        by_seed = [
            probing.targeted_probe_perturbation(
                reading.outputs, reading.adding, reading.features.directions, classes,
                [splits[seed, name] for name in concepts], erased=erased,
            )
            for seed in range(seeds)
        ]  # fmt: skip
        found += _by_erased("tpp", reading, erased, by_seed)
    return found


def _scr(
    readings: Sequence[Reading], labelled: Labelled, seeds: int, rng: Callable[..., np.random.Generator]
) -> list[Score]:
    """With the two most frequent values of each of the first two attributes; none where there is one attribute."""
    names = list(labelled.attributes)[:2]
    if len(names) < 2:
        return []
    rows = np.ones(len(labelled.texts), bool)
    pair = []
    for name in names:
        codes, values = labelled.codes(name)
        if len(values) < 2:
            return []
        first, second = np.argsort(-np.bincount(codes), kind="stable")[:2]
        rows &= (codes == first) | (codes == second)
        pair.append(codes == first)
    wanted, spurious = (labels[rows] for labels in pair)
    cells = [int(((wanted == a) & (spurious == b)).sum()) for a in (True, False) for b in (True, False)]
    if min(cells) < probing.FEWEST_TEXTS:
        return []
    found = []
    for reading in readings:
        erased = [n for n in probing.ERASED if n <= reading.features.count]
        by_seed = [
            probing.spurious_correlation_removal(
                reading.outputs[rows], reading.adding[rows], reading.features.directions, wanted, spurious,
                rng("scr", seed), erased=erased,
            )
            for seed in range(seeds)
        ]  # fmt: skip
        found += _by_erased("scr", reading, erased, by_seed)
    return found


def _by_erased(metric: str, reading: Reading, erased: Sequence[int], by_seed: Sequence[Any]) -> list[Score]:
    table = np.array(by_seed)
    return [
        _over_seeds(metric, f"N = {n}", reading.features, table[:, place].tolist(), "it changes much with N")
        for place, n in enumerate(erased)
    ]


def _ravel(
    readings: Sequence[Reading], labelled: Labelled, seeds: int, rng: Callable[..., np.random.Generator]
) -> list[Score]:
    if len(labelled.attributes) < 2:
        return []
    codes = [labelled.codes(name)[0] for name in labelled.attributes]
    n = len(labelled.texts)
    found = []
    for reading in readings:
        isolation, causality = [], []
        for seed in range(seeds):
            order = rng("ravel", seed).permutation(n)
            cut = n // 2
            split = probing.Split(order[:cut], order[cut:])
            if any(len(np.unique(values[split.train])) < len(np.unique(values)) for values in codes):
                return []  # a value too rare to be learned and judged
            k = max(1, min(SHOWN_ERASED, reading.features.count // 8))  # a swap of all features swaps all
            one = probing.ravel(
                reading.outputs, reading.adding, reading.features.directions, codes, [split] * len(codes),
                rng("ravel pairs", seed), k=k,
            )  # fmt: skip
            isolation.append(one.isolation)
            causality.append(one.causality)
        note = "read by probes of the output"
        found += [
            _over_seeds("ravel", "isolation", reading.features, isolation, note),
            _over_seeds("ravel", "causality", reading.features, causality, note),
        ]
    return found


def _judged(
    readings: Sequence[Reading], labelled: Labelled, seeds: int, rng: Callable[..., np.random.Generator]
) -> list[Score]:
    found = []
    for reading in readings:
        by_seed, played = [], 0
        for seed in range(seeds):
            games = games_of(reading, labelled.texts, rng("games", seed))
            played += len(games)
            scores = [judging.accuracy(game, judging.lexical_judge(game)) for game in games]
            by_seed.append(float(np.mean(scores)) if scores else float("nan"))
        if not played:
            note = f"no feature is active in {judging.FEWEST_ACTIVE} texts and silent in {2 * judging.SHOWN_RANDOM}"
        else:
            note = f"lexical judge, {played} games; chance {judging.chance_accuracy():.3f}"
        found.append(_over_seeds("autointerp", "lexical judge", reading.features, by_seed, note))
    return found


def judge_scores(
    readings: Sequence[Reading], answers: Mapping[str, Mapping[int, float]], *, seed: int, resamples: int = 1000
) -> list[Score]:
    """Accuracy of the judge whose answers were given, over the games of each set that it answered."""
    found = []
    for reading in readings:
        one = reading.features
        accuracies = np.array(list(answers.get(one.name, {}).values()))
        if not len(accuracies):
            continue
        of = "autointerp", "given judge", one.name, one.role, float(accuracies.mean())
        if len(accuracies) < 2:
            found.append(Score(*of, None, None, "one game: no interval"))
            continue
        interval = bootstrap_interval(
            lambda few: float(few.mean()), accuracies, seed=seed, resamples=resamples, method="percentile"
        )
        found.append(Score(*of, interval.low, interval.high, f"bootstrap over {len(accuracies)} games, 95 %"))
    return found


def games_of(
    reading: Reading, texts: Sequence[str], rng: np.random.Generator, *, most: int = JUDGED
) -> list[judging.Game]:
    """Games of features drawn at random among those that can be played.

    An activation counts where it is above zero; of a feature that is above zero nearly everywhere, as those of gated
    layers are, where it is in the upper tenth of all texts.
    """
    found: list[judging.Game] = []
    for feature in rng.permutation(reading.features.count):
        strengths = reading.peaks[0, :, feature]
        if (strengths > 0).mean() > 0.5:
            strengths = np.where(strengths > np.quantile(strengths, 0.9), strengths, 0)
        game = judging.make_game(int(feature), strengths, texts, rng)
        if game is not None:
            found.append(game)
        if len(found) == most:
            break
    return found
