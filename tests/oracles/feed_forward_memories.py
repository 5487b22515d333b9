"""The yardsticks of sparse autoencoders as their definitions read: text by text, word by word, feature by feature.

Written apart from the solver, for a handful of features and texts. Erasing keeps the error of the reconstruction: a
text's output is what is decoded from its features, less what is decoded from them before, plus what it was.
"""

import math
from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def probe(x: np.ndarray, labels: np.ndarray):  # type: ignore[no-untyped-def]
    """Standardised columns, then L2 logistic regression with C = 1."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000)).fit(x, labels)


def accuracy(fitted, x: np.ndarray, labels: np.ndarray) -> float:  # type: ignore[no-untyped-def]
    right = [bool(fitted.predict([row])[0]) == bool(label) for row, label in zip(x, labels)]
    return sum(right) / len(right)


def class_means(features: np.ndarray, labels: np.ndarray, j: int) -> float:
    with_it = [row[j] for row, label in zip(features, labels) if label]
    without = [row[j] for row, label in zip(features, labels) if not label]
    return sum(with_it) / len(with_it) - sum(without) / len(without)


def sparse_probe(features: np.ndarray, labels: np.ndarray, train: Sequence[int], test: Sequence[int], k: int) -> float:
    """Test accuracy of a probe on the k features whose class means differ most in training."""
    apart = [abs(class_means(features[train], labels[train], j)) for j in range(features.shape[1])]
    chosen = sorted(range(len(apart)), key=lambda j: (-apart[j], j))[:k]
    return accuracy(probe(features[train][:, chosen], labels[train]), features[test][:, chosen], labels[test])


def erased(outputs: np.ndarray, features: np.ndarray, directions: np.ndarray, gone: Sequence[int]) -> np.ndarray:
    """``y + decode(a') - decode(a)`` with the features of ``gone`` at 0."""
    found = []
    for y, a in zip(outputs, features):
        left = [0.0 if j in gone else value for j, value in enumerate(a)]
        decode = [sum(values[j] * directions[j] for j in range(len(a))) for values in (left, a)]
        found.append(y + decode[0] - decode[1])
    return np.array(found)


def weights_of(fitted) -> np.ndarray:  # type: ignore[no-untyped-def]
    return np.asarray(fitted[-1].coef_[0] / fitted[0].scale_)


def scr(
    outputs: np.ndarray,
    features: np.ndarray,
    directions: np.ndarray,
    wanted: np.ndarray,
    spurious: np.ndarray,
    confounded: Sequence[int],
    free: Sequence[int],
    test: Sequence[int],
    n: int,
) -> float:
    """``(A_erased - A_confounded) / (A_oracle - A_confounded)``, 0 where the denominator is below 0.001."""
    base, oracle = (probe(outputs[rows], wanted[rows]) for rows in (confounded, free))
    w = weights_of(probe(outputs[free], spurious[free]))
    effect = [
        abs(class_means(features[free], spurious[free], j) * float(directions[j] @ w)) for j in range(len(directions))
    ]
    gone = sorted(range(len(effect)), key=lambda j: (-effect[j], j))[:n]
    before, best = (accuracy(one, outputs[test], wanted[test]) for one in (base, oracle))
    if best - before < 0.001:
        return 0.0
    after = accuracy(base, erased(outputs[test], features[test], directions, gone), wanted[test])
    return (after - before) / (best - before)


def tpp(
    outputs: np.ndarray,
    features: np.ndarray,
    directions: np.ndarray,
    classes: np.ndarray,
    splits: Sequence[tuple[Sequence[int], Sequence[int]]],
    n: int,
) -> float:
    """``mean_i [(A_i - A_ii) - mean_(j != i) (A_j - A_ij)]``."""
    count = len(splits)
    probes = [probe(outputs[train], classes[train] == i) for i, (train, _) in enumerate(splits)]

    def judged(j: int, gone: Sequence[int]) -> float:
        test = splits[j][1]
        return accuracy(probes[j], erased(outputs[test], features[test], directions, gone), classes[test] == j)

    total = 0.0
    for i, (train, _) in enumerate(splits):
        effect = [
            max(class_means(features[train], classes[train] == i, j), 0) * float(directions[j] @ weights_of(probes[i]))
            for j in range(len(directions))
        ]
        gone = sorted(range(len(effect)), key=lambda j: (-effect[j], j))[:n]
        drops = [judged(j, []) - judged(j, gone) for j in range(count)]
        total += drops[i] - (sum(drops) - drops[i]) / (count - 1)
    return total / count


def absorbed(
    output: np.ndarray, activations: Sequence[float], values: np.ndarray, direction: np.ndarray, main: Sequence[int]
) -> float:
    """The absorption fraction of one word."""
    p = direction / math.sqrt(sum(float(x) ** 2 for x in direction))
    c = [float(a) * float(v @ p) for a, v in zip(activations, values)]
    carried, whole = sum(c[i] for i in main), float(output @ p)
    absorbers = []
    for i, v in enumerate(values):
        length = math.sqrt(float(v @ v))
        if i not in main and length > 0 and float(v @ p) / length >= 0.1 and c[i] > 0:
            absorbers.append(c[i])
    taken = sum(sorted(absorbers, reverse=True)[:3])
    if carried >= whole or whole <= 0 or taken / whole < 0.4:
        return 0.0
    if carried <= 0:
        return 1.0
    left = min(taken, whole - carried)
    return left / (left + carried)


def explained(outputs: np.ndarray, made: np.ndarray, definition: str) -> float:
    """Explained variance, dimension by dimension."""
    n, d = outputs.shape
    mean = [sum(outputs[:, i]) / n for i in range(d)]
    error = [sum((outputs[t, i] - made[t, i]) ** 2 for i in range(d)) for t in range(n)]
    apart = [sum((outputs[t, i] - mean[i]) ** 2 for i in range(d)) for t in range(n)]
    if definition == "fvu":
        return 1 - sum(error) / sum(apart)
    if definition == "uncentred":
        return 1 - sum(error) / sum(sum(x**2 for x in row) for row in outputs)
    return sum(1 - e / a for e, a in zip(error, apart)) / n
