"""What fitted and trained models are given, and what they say, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .concepts import BadConcepts

Floats = npt.NDArray[np.float64]

LARGEST = 1e100  # of numbers, whose squares can still be told


def as_rows(X: Any) -> Any:
    """Inputs as something with a length and rows: arrays, tensors and dataframes as they are, lists as arrays.

    Raises
    ------
    BadConcepts : no inputs at all, or inputs of different shapes
    """
    rows = X
    if not hasattr(X, "shape"):
        try:
            rows = np.asarray([np.asarray(entry) for entry in X])
        except (TypeError, ValueError):
            mend = "give one input a row, all of one shape"
            raise BadConcepts(f"a {type(X).__name__} holds no inputs of one shape", where="X", mend=mend) from None
    if not len(rows.shape) or not len(rows):
        raise BadConcepts("there are no inputs", where="X", mend="give one input a row")
    return rows


def flat(X: Any) -> Floats:
    """(n, n_numbers) float64 of (n, ...) inputs.

    Raises
    ------
    BadConcepts : inputs that are no numbers, missing, infinite, or too large to be squared; names the row
    """
    try:
        array = np.asarray(X)
        if np.iscomplexobj(array):
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise BadConcepts("inputs are no numbers", where="X", mend="turn them into numbers") from None
    array = array.reshape(len(array), -1)
    bad = ~(np.abs(array) <= LARGEST).all(axis=1)  # not a number among them
    if bad.any():
        where = f"X, row {int(np.argmax(bad)) + 1}"
        if np.isfinite(array[np.argmax(bad)]).all():
            raise BadConcepts(f"a number is beyond {LARGEST:g}", where=where, mend="scale the inputs")
        raise BadConcepts("an input is missing or not finite", where=where, mend="mend or drop the row")
    return array


def called(model: Any, X: Any) -> Floats:
    """What a trained function or torch module says."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        with torch.no_grad():
            return np.asarray(model(torch.as_tensor(np.asarray(X, np.float32))).cpu(), np.float64)
    return np.asarray(model(X), np.float64)


def probabilities(found: Any, where: str) -> Floats:
    """What a model gave, as numbers in [0, 1].

    Raises
    ------
    BadConcepts : something else; ``where`` names the model
    """
    array = np.asarray(found, np.float64)
    if not (np.isfinite(array).all() and (array >= -1e-6).all() and (array <= 1 + 1e-6).all()):
        worst = array.ravel()[np.argmax(np.abs(np.nan_to_num(array, nan=np.inf).ravel() - 0.5))]
        raise BadConcepts(f"it gives {worst:g}, no probability", where=where, mend="end it with a sigmoid or softmax")
    return np.clip(array, 0.0, 1.0)
