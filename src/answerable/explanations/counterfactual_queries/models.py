"""What fitted and trained models are given, and what they say, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .concepts import BadConcepts

Floats = npt.NDArray[np.float64]


def as_rows(X: Any) -> Any:
    """Inputs as something with a length and rows: arrays, tensors and dataframes as they are, lists as arrays."""
    if hasattr(X, "shape"):
        return X
    return np.asarray([np.asarray(entry) for entry in X])


def flat(X: Any) -> Floats:
    """(n, n_numbers) float64 of (n, ...) inputs."""
    array = np.asarray(X, np.float64)
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))[0])
        raise BadConcepts("an input is missing or not finite", where=f"X, row {row + 1}", mend="mend or drop the row")
    return array.reshape(len(array), -1)


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
