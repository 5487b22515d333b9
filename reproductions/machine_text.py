"""IRM (Liu et al., NeurIPS 2025) beside ours.

Its pairs of models are on no package index, so its tables cannot be run here; a tiny pair trained from shipped text
stands in (see `tiny_pair`). What a single small model tells is measured with SmolLM2-135M-Instruct.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from answerable.provenance.machine_text import LanguageModelPair, text_statistics
from answerable.provenance.machine_text.solver import suspicious
from answerable.statistics import Calibration, auroc_interval
from reproductions.tiny_pair import assistant_text, help_passages, package_passages, sample, train

Row = tuple[str, float | None, float | None, str]

# Measured once on a tiny pair of the same make, at 50, 100 and 250 characters.
BEFORE = {
    "irm": (0.987, 0.998, 1.0),
    "binoculars": (0.852, 0.925, 0.993),
    "loglik": (0.343, 0.311, 0.881),
    "fast_detect": (0.343, 0.293, 0.906),
}


def rows(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from tiny_pair(Path(folder), quick=quick)
    yield from false_alarms(repetitions=200 if quick else 2000)


def tiny_pair(folder: Path, *, quick: bool) -> Iterator[Row]:
    """AUROC of each statistic, machine text templated or drawn from the instruct model, at equal lengths."""
    places = train(folder, package_passages(), size="small" if quick else "full")
    pair = LanguageModelPair.from_pretrained(*map(str, places))
    rng = np.random.default_rng(0)
    human = help_passages()
    n = 100 if quick else 200
    machine = {
        "templated": [assistant_text(rng, held_out=True)[40:] for _ in range(n)],
        "drawn": sample(places[0], rng, n_texts=n, n_letters=260),
    }
    for kind, texts in machine.items():
        for place, length in enumerate((50, 100, 250)):
            people = [text[:length] for text in human if len(text) >= length][:n]
            given = people + [text[:length] for text in texts]
            labels = [0] * len(people) + [1] * len(texts)
            both, base = text_statistics(given, *pair), text_statistics(given, pair.base)
            for name, paper in BEFORE.items():
                column = (base if name in ("loglik", "fast_detect") else both)[name]
                area = auroc_interval(labels, suspicious(name, column))
                note = f"{area.low:.3f} to {area.high:.3f}"
                known = paper[place] if kind == "templated" else None
                yield f"{kind}, {length} characters: AUROC of {name}", known, area.value, note
            drift = both["irm_mean"].to_numpy()
            yield "    drift a token, human [nats]", None, float(drift[: len(people)].mean()), ""
            yield "    drift a token, machine [nats]", None, float(drift[len(people) :].mean()), ""


def false_alarms(repetitions: int) -> Iterator[Row]:
    """99 calibration scores, alpha = 0.05; and scores that grow with length, calibrated by length or all at once."""
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(repetitions):
        calibration = Calibration(rng.normal(size=99), alpha=0.05, least=99)
        words = calibration.decide(rng.normal(size=200)).words
        rates.append(words.count("flagged") / 200)
    yield f"false alarms at alpha = 0.05, {repetitions} repetitions", 0.05, float(np.mean(rates)), "exact: 0.05"
