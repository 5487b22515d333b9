"""Made-up and small real logs of known lineage: a simulated one, and classifiers of handwritten digits.

The digits replica is 27 scikit-learn classifiers of four families (7 random forests, 3 nearest neighbours, 11
multilayer perceptrons, 6 logistic regressions), each trained on its own 80 % of a training part, and the rest of the
digits under five corruptions, three draws each. The corruption is the data set, the picture stands for the text.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from answerable.subjects.answer_log import AnswerLog

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CORRUPTIONS = ("noise", "blur", "rotation", "shift", "lost pixels")
TREES = ((20, 6), (40, 8), (60, None), (80, 10), (100, None), (30, None), (50, 7))
NEIGHBOURS = (1, 3, 7)
LAYERS = ((32,), (64,), (128,), (64, 32), (32, 32), (100,), (50,), (200,), (64, 64), (40,), (80,))
PENALTIES = (0.01, 0.1, 1.0, 10.0, 0.03, 0.3)


class Replica(NamedTuple):
    """Models of known families, and their answers.

    answers : (M, N) int64, what each model answered to each item
    gold : (N,) int64, the right answers
    models, families : (M,) names
    datasets : (N,) names
    points : (N, d) float64, embedding of each item
    others : (N,) int64 answers by name, of models that are none of these: derived from one of them, or strangers
    """

    answers: Ints
    gold: Ints
    models: list[str]
    families: list[str]
    datasets: list[str]
    points: Floats
    others: dict[str, Ints]

    @property
    def errors(self) -> Floats:
        """(M, N) float64, 1 where an answer is wrong."""
        return (self.answers != self.gold).astype(np.float64)


def simulated(n_items: int, seed: int, sizes: tuple[int, ...] = (8, 8, 7), *, taste: float = 2.2) -> Replica:
    """Answers drawn from a logistic model: an item's difficulty, the model's skill, and the taste of its family.

    Parameters
    ----------
    sizes : models of each family
    taste : standard deviation of what a family finds hard or easy at an item, in logits
    """
    rng = np.random.default_rng(seed)
    n_families, topics = len(sizes), 8
    points = rng.normal(size=(n_items, topics))
    difficulty = rng.normal(size=n_items)
    families = np.repeat(np.arange(n_families), sizes)
    liking = taste * rng.normal(size=(n_families, n_items)) + min(taste, 1.0) * points[:, :n_families].T
    skill = rng.normal(1.2, 0.4, size=len(families))
    logits = difficulty + liking[families] - skill[:, None] + 0.6 * rng.normal(size=(len(families), n_items))
    gold = rng.integers(0, 4, n_items)
    wrong = rng.random((len(families), n_items)) < 1 / (1 + np.exp(-logits))
    answers = np.where(wrong, (gold + rng.integers(1, 4, wrong.shape)) % 4, gold)
    names = [chr(ord("a") + family) for family in families]
    datasets = np.array(["first", "second"])[(points[:, 0] > 0).astype(int)]
    models = [f"{name}-{1 + names[:i].count(name)}" for i, name in enumerate(names)]
    return Replica(answers, gold, models, names, datasets.tolist(), points, {})


@functools.cache
def digits(seed: int = 0, *, draws: int = 3) -> Replica:
    """The digits replica.

    Parameters
    ----------
    seed : of the models' samples, of the models themselves and of the corruptions
    draws : of each corruption; 3 give 16,185 items
    """
    train, test, train_y, test_y = digits_parts()
    rng = np.random.default_rng(seed)
    classifiers: list[Any] = []
    models: list[str] = []
    families: list[str] = []
    for family, model in _classifiers(seed):
        rows = rng.choice(len(train), int(0.8 * len(train)), replace=False)
        classifiers.append(_fitted(model, train[rows], train_y[rows]))
        models.append(f"{family}-{families.count(family) + 1}")
        families.append(family)
    shown = [(name, corrupted(test, name, rng)) for _ in range(draws) for name in CORRUPTIONS]
    items = np.concatenate([pictures for _, pictures in shown])
    datasets = [name for name, pictures in shown for _ in range(len(pictures))]
    gold = np.tile(test_y, len(shown))
    answers = np.array([model.predict(items) for model in classifiers])
    others = _others(classifiers[models.index("mlp-8")], classifiers[models.index("mlp-3")], train, train_y, seed)
    told = {name: model.predict(items) for name, model in others.items()}
    return Replica(answers, gold, models, families, datasets, embedded(items), told)


def digits_parts() -> tuple[Floats, Floats, Ints, Ints]:
    """Pictures for training and testing as rows of 64 pixels in [0, 1], and what they show."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pictures, shown = load_digits(return_X_y=True)
    return tuple(train_test_split(pictures / 16, shown, test_size=0.6, random_state=0, stratify=shown))


def corrupted(pictures: Floats, how: str, rng: np.random.Generator) -> Floats:
    """Pictures of 8 x 8 pixels, as rows, each corrupted in its own way."""
    from scipy import ndimage

    squares = pictures.reshape(-1, 8, 8)
    if how == "noise":
        changed = squares + rng.normal(0, 0.35, squares.shape)
    elif how == "blur":
        changed = ndimage.gaussian_filter(squares, (0, 0.9, 0.9))
    elif how == "rotation":
        turns = rng.uniform(-35, 35, len(squares))
        changed = np.array([ndimage.rotate(one, turn, reshape=False, order=1) for one, turn in zip(squares, turns)])
    elif how == "shift":
        steps = rng.integers(-1, 2, (len(squares), 2))
        changed = np.array([ndimage.shift(one, step, order=0) for one, step in zip(squares, steps)])
    else:
        changed = squares * (rng.random(squares.shape) < 0.7)
    return changed.reshape(len(pictures), -1)


def embedded(items: Floats) -> Floats:
    """The first 16 principal components."""
    from sklearn.decomposition import PCA

    found: Floats = PCA(16, svd_solver="full").fit_transform(items)
    return found


def _others(mlp: Any, second: Any, train: Floats, train_y: Ints, seed: int) -> dict[str, Any]:
    """What is derived from one multilayer perceptron, and two models of no family here."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.naive_bayes import GaussianNB

    half = np.random.default_rng(seed + 1).choice(len(train), len(train) // 2, replace=False)
    return {
        **{f"mlp-8, {share} % pruned": _pruned(mlp, share / 100) for share in (20, 40, 60, 80)},
        **{f"mlp-8, tuned {n} times": _tuned(mlp, train[half], train_y[half], n) for n in (1, 5, 20)},
        "mlp-8 voting with mlp-3": _Voting(mlp, second),
        "naive Bayes": GaussianNB(var_smoothing=1e-2).fit(train, train_y),
        "linear discriminant": LinearDiscriminantAnalysis().fit(train, train_y),
    }


class _Voting:
    """Two classifiers whose probabilities are averaged."""

    def __init__(self, *models: Any) -> None:
        self.models = models

    def predict(self, items: Floats) -> Ints:
        """The class of the largest mean probability."""
        return np.argmax(np.mean([model.predict_proba(items) for model in self.models], axis=0), axis=1)


def _pruned(mlp: Any, share: float) -> Any:
    """A copy whose smallest weights, this share of each layer's, are 0."""
    copied = copy.deepcopy(mlp)
    for layer in copied.coefs_:
        layer[np.abs(layer) < np.quantile(np.abs(layer), share)] = 0.0
    return copied


def _tuned(mlp: Any, X: Floats, y: Ints, times: int) -> Any:
    copied = copy.deepcopy(mlp)
    for _ in range(times):
        copied.partial_fit(X, y)
    return copied


def _classifiers(seed: int) -> list[tuple[str, Any]]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    return [
        *(("forest", RandomForestClassifier(n, max_depth=depth, random_state=seed + n)) for n, depth in TREES),
        *(("neighbours", KNeighborsClassifier(k)) for k in NEIGHBOURS),
        *(
            ("mlp", MLPClassifier(hidden, alpha=10.0 ** -(1 + i % 4), max_iter=120, random_state=seed + i))
            for i, hidden in enumerate(LAYERS)
        ),
        *(("logistic", LogisticRegression(C=C, max_iter=2000)) for C in PENALTIES),
    ]


def _fitted(model: Any, X: Floats, y: Ints) -> Any:
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():  # 120 iterations are the replica's, converged or not
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def log_of(replica: Replica) -> AnswerLog:
    """The replica as an answer log: its models, and the others after them."""
    from answerable.subjects.answer_log import AnswerLog

    answers = np.vstack([replica.answers, *replica.others.values()])
    counts: dict[str, int] = {}
    items = []
    for dataset in replica.datasets:
        counts[dataset] = counts.get(dataset, 0) + 1
        items.append((dataset, str(counts[dataset])))
    return AnswerLog(
        (*replica.models, *replica.others),
        tuple(items),
        (answers != replica.gold).astype(np.float64),
        answers.astype(str).astype(object),
        tuple(map(str, replica.gold)),
        ("",) * len(items),
        dict(zip(replica.models, replica.families)),
    )
