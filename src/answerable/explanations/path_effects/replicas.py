"""Made-up studies of known effects: the paper's two models, a randomised one, and a wide one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from scipy import integrate, special

from answerable.explanations.path_effects.solver import Levels, telescope
from answerable.statistics import Floats, Ints

Replica = Literal["randomised", "binary", "continuous", "wide"]
REPLICAS: tuple[Replica, ...] = ("randomised", "binary", "continuous", "wide")
CONTINUOUS_SIZES = {"Z": 3, "W": 10, "V": 3}  # of the wide study too


class Study(NamedTuple):
    """A made-up study.

    Attributes
    ----------
    table : one row per person, columns x, y, and those of the blocks
    covariates : columns of Z
    mediators : columns of W and V
    truth : theta(a) of every step from nobody to everybody exposed
    """

    table: pl.DataFrame
    covariates: list[str]
    mediators: dict[str, list[str]]
    truth: Mapping[Levels, float]


def make_study(name: Replica, n: int, rng: np.random.Generator) -> Study:
    """A study of one of the models whose effects are known.

    Parameters
    ----------
    name : ``randomised`` (no covariates, two binary mediators), ``binary`` and ``continuous`` (the paper's), ``wide``
        (sixteen measurements, groups that overlap well)
    n : persons
    rng : what draws them
    """
    return {"randomised": _randomised, "binary": _binary, "continuous": _continuous, "wide": _wide}[name](n, rng)


# A randomised attribute and two binary mediators

W_GIVEN_X = np.array([0.25, 0.75])
V_GIVEN_XW = np.array([[0.2, 0.4], [0.5, 0.8]])


def randomised_mean(x: Any, w: Any, v: Any) -> Any:
    """E[Y | x, w, v] of the randomised study."""
    return 0.1 + 0.1 * x + 0.2 * w + 0.4 * v + 0.1 * w * v * x


def _randomised(n: int, rng: np.random.Generator) -> Study:
    x = rng.integers(0, 2, n)
    w = (rng.random(n) < W_GIVEN_X[x]).astype(np.int64)
    v = (rng.random(n) < V_GIVEN_XW[x, w]).astype(np.int64)
    y = (rng.random(n) < randomised_mean(x, w, v)).astype(np.int64)
    table = pl.DataFrame({"x": x, "w": w, "v": v, "y": y})
    truth = {levels: _randomised_theta(levels) for levels in telescope(2)}
    return Study(table, [], {"W": ["w"], "V": ["v"]}, truth)


def _randomised_theta(levels: Levels) -> float:
    total = 0.0
    for w, v in itertools.product((0, 1), repeat=2):
        p_w = W_GIVEN_X[levels[0]] if w else 1 - W_GIVEN_X[levels[0]]
        p_v = V_GIVEN_XW[levels[1], w] if v else 1 - V_GIVEN_XW[levels[1], w]
        total += p_w * p_v * randomised_mean(levels[2], w, v)
    return float(total)


# The paper's binary model: thresholds of sums of standard normals


class BinaryLaw(NamedTuple):
    """The exact law of the paper's binary model.

    Attributes
    ----------
    z : (2,) P(Z = z)
    x : (2,) P(X = 1 | z)
    w : (2, 2) P(W = 1 | x, z)
    v : (2, 2, 2) P(V = 1 | x, w, z)
    y : (2, 2, 2, 2) P(Y = 1 | x, w, v, z)
    """

    z: Floats
    x: Floats
    w: Floats
    v: Floats
    y: Floats

    def theta(self, levels: Levels) -> float:
        """E[Y(aY, W(a1), V(a2, W(a1)))], summed over all cells."""
        a, b, c = levels
        total = 0.0
        for z, w, v in itertools.product((0, 1), repeat=3):
            p_w = self.w[a, z] if w else 1 - self.w[a, z]
            p_v = self.v[b, w, z] if v else 1 - self.v[b, w, z]
            total += self.z[z] * p_w * p_v * self.y[c, w, v, z]
        return float(total)


def binary_law() -> BinaryLaw:
    """P of every variable of the binary model given its causes, by the normal distribution function."""
    tail = float(special.ndtr(-0.2))

    def density(u: float) -> float:
        return float(np.exp(-u * u / 2) / np.sqrt(2 * np.pi))

    # Z = 1 exactly where the shared cause exceeds 0.2; X = 1 where Z + shared + own exceeds 0.2.
    both = integrate.quad(lambda u: density(u) * special.ndtr(0.8 + u), 0.2, np.inf, epsabs=1e-15, epsrel=1e-13)[0]
    alone = integrate.quad(lambda u: density(u) * special.ndtr(u - 0.2), -np.inf, 0.2, epsabs=1e-15, epsrel=1e-13)[0]
    x, w, v, z = np.ix_(*[(0, 1)] * 4)
    return BinaryLaw(
        np.array([1 - tail, tail]),
        np.array([alone / (1 - tail), both / tail]),
        special.ndtr(np.array([[x - z - 0.8 for z in (0, 1)] for x in (0, 1)])),
        special.ndtr(np.array([[[x - z + w - 0.8 for z in (0, 1)] for w in (0, 1)] for x in (0, 1)])),
        special.ndtr((x - z + 2 * (w - v) - 0.5).astype(np.float64)),
    )


def _binary(n: int, rng: np.random.Generator) -> Study:
    shared, own, for_w, for_v, for_y = rng.standard_normal((5, n))
    z = (shared > 0.2).astype(np.int64)
    x = (z + shared + own > 0.2).astype(np.int64)
    w = (x - z + for_w > 0.8).astype(np.int64)
    v = (x - z + w + for_v > 0.8).astype(np.int64)
    y = (x - z + 2 * (w - v) + for_y > 0.5).astype(np.int64)
    law = binary_law()
    return Study(
        pl.DataFrame({"z": z, "x": x, "w": w, "v": v, "y": y}),
        ["z"],
        {"W": ["w"], "V": ["v"]},
        {levels: law.theta(levels) for levels in telescope(2)},
    )


# The paper's continuous model: linear in Gaussian noise, the outcome and the attribute are thresholds


class _Slopes(NamedTuple):
    x: Floats  # of Z and its own noise
    w: Floats  # of X, Z
    v: Floats  # of X, W, Z
    y: Floats  # of X, W, V, Z


def _slopes() -> _Slopes:
    """The coefficients, drawn with the seed that the published sampler has."""
    k, w, v = CONTINUOUS_SIZES["Z"], CONTINUOUS_SIZES["W"], CONTINUOUS_SIZES["V"]
    draw = np.random.RandomState(42)  # the generator that the coefficients came from
    x_from, w_from, v_from, y_from = (
        draw.standard_normal(shape) for shape in ((2 * k, 1), (k + 1, w), (k + w + 1, v), (k + w + v + 1, 1))
    )
    w_from[1:] /= np.sqrt(k)
    v_from[1 : w + 1] /= np.sqrt(w)
    v_from[w + 1 :] /= np.sqrt(k)
    y_from[0] *= 5
    y_from[1 : w + 1] /= np.sqrt(w)
    y_from[w + 1 : w + v + 1] *= np.sqrt(5)
    y_from[w + v + 1 :] /= np.sqrt(k)
    return _Slopes(x_from, w_from, v_from, y_from)


def _continuous(n: int, rng: np.random.Generator) -> Study:
    slopes = _slopes()
    noise = _noise(n, rng)
    z = noise["Z"] - 1
    x = (np.hstack([z, noise["Z"]]) @ slopes.x + noise["X"] > 0).astype(np.int64)  # sigmoid > 0.5
    w = np.hstack([x, z]) @ slopes.w + noise["W"]
    v = np.hstack([x, w, z]) @ slopes.v + noise["V"]
    y = _decided(x, w, v, z, noise, slopes)
    columns = {
        f"{name}{j + 1}": part[:, j] for name, part in (("z", z), ("w", w), ("v", v)) for j in range(part.shape[1])
    }
    truth = continuous_truth()
    named = {block.upper(): [c for c in columns if c[0] == block] for block in ("w", "v")}
    return Study(pl.DataFrame({"x": x[:, 0], "y": y, **columns}), [c for c in columns if c[0] == "z"], named, truth)


def continuous_truth(n: int = 200_000, seed: int = 0) -> dict[Levels, float]:
    """Monte Carlo means of the nested counterfactuals, n persons (standard error at most 0.0011 at the default)."""
    slopes, noise = _slopes(), _noise(n, np.random.default_rng(seed))
    z = noise["Z"] - 1
    arms = [np.full((n, 1), level) for level in (0, 1)]
    found = {}
    for levels in telescope(2):
        w = np.hstack([arms[levels[0]], z]) @ slopes.w + noise["W"]
        v = np.hstack([arms[levels[1]], w, z]) @ slopes.v + noise["V"]
        found[levels] = float(_decided(arms[levels[2]], w, v, z, noise, slopes).mean())
    return found


def _noise(n: int, rng: np.random.Generator) -> dict[str, Floats]:
    sizes = {"Z": CONTINUOUS_SIZES["Z"], "X": 1, "W": CONTINUOUS_SIZES["W"], "V": CONTINUOUS_SIZES["V"], "Y": 1}
    return {name: rng.standard_normal((n, size)) for name, size in sizes.items()}


def _decided(x: Any, w: Floats, v: Floats, z: Floats, noise: Mapping[str, Floats], slopes: _Slopes) -> Ints:
    score = np.hstack([x, w, v, z]) @ slopes.y + noise["Y"]
    return (score[:, 0] > np.log(0.2 / 0.8)).astype(np.int64)  # sigmoid > 0.2


# Sixteen measurements, smooth and with interactions, of groups that overlap well

WIDE_PERSONS, WIDE_PARTS = 200_000, 4  # that its truth is the mean of


def _wide(n: int, rng: np.random.Generator) -> Study:
    z, x, w, v, score = _wide_draw(n, rng, None)
    y = (rng.random(n) < special.expit(score)).astype(np.int64)
    columns = {
        f"{name}{j + 1}": part[:, j] for name, part in (("z", z), ("w", w), ("v", v)) for j in range(part.shape[1])
    }
    named = {block.upper(): [c for c in columns if c[0] == block] for block in ("w", "v")}
    return Study(pl.DataFrame({"x": x, "y": y, **columns}), [c for c in columns if c[0] == "z"], named, wide_truth())


@functools.cache
def wide_truth() -> Mapping[Levels, float]:
    """Monte Carlo means of the nested counterfactuals, 800,000 persons (standard error at most 0.0006)."""
    return {
        levels: float(
            np.mean(
                [
                    special.expit(_wide_draw(WIDE_PERSONS, np.random.default_rng([5, k]), levels)[-1]).mean()
                    for k in range(WIDE_PARTS)
                ]
            )
        )
        for levels in telescope(2)
    }


def _wide_draw(n: int, rng: np.random.Generator, levels: Levels | None) -> tuple[Floats, Ints, Floats, Floats, Floats]:
    """Z, X, W, V and the log odds of the outcome; with the attribute's own levels, or those given."""
    z = rng.standard_normal((n, 3))
    x = (rng.random(n) < special.expit(z @ [0.5, -0.4, 0.3])).astype(np.int64)
    to_w, to_v, to_y = [x] * 3 if levels is None else [np.full(n, level) for level in levels]
    w = 0.3 * z[:, [0]] + rng.standard_normal((n, 10))
    w[:, :4] += to_w[:, None] * [0.3, 0.3, 0.15, 0.15]
    v = 0.3 * w[:, :3] + rng.standard_normal((n, 3))
    v[:, :2] += to_v[:, None] * [0.4, 0.2]
    score = 0.5 * (to_y - 1 + z[:, 0]) + 0.7 * (w[:, 0] + v[:, 0]) + 0.3 * v[:, 0] * v[:, 1] + 0.2 * w[:, 0] ** 2
    return z, x, w, v, score
