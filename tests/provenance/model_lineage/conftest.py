"""A small replica as a user's answer log, and the sizes that fit it."""

import numpy as np
import polars as pl
import pytest

from answerable.provenance.model_lineage.replicas import log_of, simulated

N = 400
SIZES = {"n_points": 150, "start": 100, "end": 50, "least_evidence": 30}


def options(fields):
    """Fields as the command takes them."""
    return [word for name, value in fields.items() for word in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(scope="session")
def made():
    return simulated(N, 3)


@pytest.fixture(scope="session")
def table(made):
    """One row an answer, questions of a few words."""
    log = log_of(made)
    words = np.random.default_rng(0).choice(["river", "stone", "cloud", "lamp", "field"], (N, 5))
    rows = [
        (model, dataset, item, log.answers[m, n], log.gold[n], f"Item {n}: {' '.join(words[n])}?", made.families[m])
        for m, model in enumerate(log.models)
        for n, (dataset, item) in enumerate(log.items)
    ]
    names = ("model", "dataset", "item_id", "answer", "gold", "text", "family")
    return pl.DataFrame(rows, schema=names, orient="row")
