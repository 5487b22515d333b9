"""By definition: bounds over all models by a linear programme over response types, and the paper's and our own models."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

Vector = tuple[int, ...]


class ResponseTypes:
    """All ways in which binary concepts may respond to their causes.

    Parameters
    ----------
    parents : by concept, numbers of its causes; causes have smaller numbers
    """

    def __init__(self, parents: Sequence[Sequence[int]]) -> None:
        self.parents = parents
        each = [list(itertools.product((0, 1), repeat=2 ** len(causes))) for causes in parents]
        self.types = list(itertools.product(*each))

    def values(self, types: tuple[Vector, ...], fixed: dict[int, int]) -> Vector:
        found: list[int] = []
        for i, causes in enumerate(self.parents):
            place = sum(found[p] << k for k, p in enumerate(causes))
            found.append(fixed.get(i, types[i][place]))
        return tuple(found)

    def programme(
        self, law: np.ndarray, query: dict[int, int], features: Sequence[int], output: Callable[[Vector], float]
    ) -> tuple[np.ndarray, csr_matrix, list[float]]:
        """Goal and equalities of the answer for one input with P(v | x) = ``law``."""
        cells = list(itertools.product((0, 1), repeat=len(self.parents)))
        place = {cell: k for k, cell in enumerate(cells)}
        rows = [place[self.values(types, {})] for types in self.types]
        demands = csr_matrix((np.ones(len(rows)), (rows, np.arange(len(rows)))), (len(cells), len(rows)))
        goal = np.array([output(tuple(self.values(t, query)[j] for j in features)) for t in self.types])
        return goal, demands, [law[cell] for cell in cells]

    def bounds(
        self, law: np.ndarray, query: dict[int, int], features: Sequence[int], output: Callable[[Vector], float]
    ) -> tuple[float, float]:
        """Smallest and largest answer, by HiGHS."""
        return solved(*self.programme(law, query, features, output))


def solved(goal: np.ndarray, demands: csr_matrix, law: list[float]) -> tuple[float, float]:
    low, high = (sign * linprog(sign * goal, A_eq=demands, b_eq=law, bounds=(0, None)).fun for sign in (1, -1))
    return low, high


def graphs(n: int) -> list[list[list[int]]]:
    """Every set of causes with edges from smaller to larger numbers, and thereby every DAG up to names."""
    pairs = list(itertools.combinations(range(n), 2))
    return [
        [[a for a, b in edges if b == i] for i in range(n)]
        for size in range(len(pairs) + 1)
        for edges in itertools.combinations(pairs, size)
    ]


def subsets(n: int) -> list[tuple[int, ...]]:
    return [chosen for size in range(1, n + 1) for chosen in itertools.combinations(range(n), size)]


# The paper's Example 4: two models that agree on everything observable, and on nothing asked.

TABLE_1 = {
    (0, 0, 0): 0.168, (0, 0, 1): 0.072, (0, 1, 0): 0.096, (0, 1, 1): 0.144,
    (1, 0, 0): 0.112, (1, 0, 1): 0.048, (1, 1, 0): 0.144, (1, 1, 1): 0.216,
}  # fmt: skip


def example_4(model: int) -> tuple[dict[Vector, float], float]:
    """P(F, S, C), and P(C_{S=0} = 1 | F = 1, S = 1, C = 1): male, smiling, high cheekbones."""
    law: dict[Vector, float] = dict.fromkeys(TABLE_1, 0.0)
    asked = given = 0.0
    for us, uf, u1, u2 in itertools.product((0, 1), repeat=4):
        first, second = (0.3, 0.6) if model == 1 else (0.5, 0.6)
        weight = np.prod([p if u else 1 - p for u, p in zip((us, uf, u1, u2), (0.6, 0.4, first, second))])

        def cheekbones(s: int, u1: int = u1, u2: int = u2) -> int:
            return (u2 if s else u1) if model == 1 else int((s or u1) and u2)

        s, f = us, uf ^ us
        law[f, s, cheekbones(s)] += weight
        if (f, s, cheekbones(s)) == (1, 1, 1):
            given += weight
            asked += weight * cheekbones(0)
    return law, asked / given


# Bar digits: everything by listing the hidden causes.


def bar_digits_population(features: str) -> dict[str, float]:
    """Log loss, accuracy and the closed form's errors for a model that predicts Y from ``features``, letters of BDC."""
    units = []
    for d, uc, u1, u2 in itertools.product((0, 1), repeat=4):
        weight = 0.5 * (0.4 if uc else 0.6) * (0.9 if u1 else 0.1) * (1 / 18 if u2 else 17 / 18)
        units.append((weight, d, d ^ uc, u1, u2))

    def world(d: int, c: int, u1: int, u2: int) -> dict[str, int]:
        return {"B": int(u1 and (d or u2)), "D": d, "C": c}

    def label(v: dict[str, int]) -> float:
        return 0.9 if sum(v.values()) >= 2 else 0.1

    def cell(v: dict[str, int], which: str = features) -> Vector:
        return tuple(v[name] for name in which)

    mass: dict[Vector, float] = {}
    ones: dict[Vector, float] = {}
    for weight, d, c, u1, u2 in units:
        v = world(d, c, u1, u2)
        mass[cell(v)] = mass.get(cell(v), 0) + weight
        ones[cell(v)] = ones.get(cell(v), 0) + weight * label(v)
    f = {t: ones[t] / mass[t] for t in mass}
    found = {
        "log_loss": -sum(mass[t] * (f[t] * np.log(f[t]) + (1 - f[t]) * np.log(1 - f[t])) for t in mass),
        "accuracy": sum(mass[t] * max(f[t], 1 - f[t]) for t in mass),
    }
    for name in "DC":
        truth: dict[Vector, float] = {}
        naive: dict[Vector, float] = {}
        seen: dict[Vector, float] = {}
        for weight, d, c, u1, u2 in units:
            v = world(d, c, u1, u2)
            other = world(1 - d, c, u1, u2) if name == "D" else {**v, "C": 1 - c}
            whole = cell(v, "BDC")
            seen[whole] = seen.get(whole, 0) + weight
            truth[whole] = truth.get(whole, 0) + weight * f[cell(other)]
            naive[whole] = naive.get(whole, 0) + weight * f[cell({**v, name: 1 - v[name]})]
        errors = {whole: abs(naive[whole] - truth[whole]) / seen[whole] for whole in seen}
        found[f"error_{name}"] = sum(errors[whole] * seen[whole] for whole in seen)
        found[f"largest_error_{name}"] = max(errors.values())
    return found
