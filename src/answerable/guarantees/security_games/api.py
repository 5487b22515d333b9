"""The method as a library: games from files, solved, made random, written out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from answerable.errors import BadInput
from answerable.subjects.census_blocks import population_at, read_blocks
from answerable.subjects.infrastructure import read_infrastructure
from answerable.subjects.matrix_game import Matrices, write_game, write_nfg, write_npz
from answerable.subjects.matrix_game import read_matrix_game as _read
from answerable.subjects.movements import read_movebank
from answerable.subjects.streets import read_streets

from . import game as _game
from . import green, town, twins
from .graph import Floats, list_walks
from .schedules import patrol_schedules, schedule_actions

if TYPE_CHECKING:
    import polars as pl

    from .game import SecurityGame

MOST_WALKS = 5_000_000


class MatrixGame(NamedTuple):
    """A game written out.

    Parameters
    ----------
    defender, attacker : (m, n) payoffs
    title : of the game
    rows, columns : names of the actions
    """

    defender: Floats
    attacker: Floats
    title: str = ""
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def zero_sum(self) -> bool:
        """Whether one gains what the other loses."""
        return bool((self.defender == -self.attacker).all())

    @classmethod
    def read(cls, subject: Any) -> MatrixGame:
        """From an ``.nfg``, ``.game`` or ``.npz`` file, or from arrays; see ``subjects.matrix_game``."""
        return cls(*_read(subject))

    def to_nfg(self, path: str | Path) -> Path:
        """Write Gambit's strategic form."""
        return write_nfg(Matrices(*self), path)

    def to_game(self, path: str | Path) -> Path:
        """Write GAMUT's simple form."""
        return write_game(Matrices(*self), path)

    def to_npz(self, path: str | Path) -> Path:
        """Write numpy's arrays ``defender`` and ``attacker``."""
        return write_npz(Matrices(*self), path)


def grid_game(tracks: Any, **settings: Any) -> SecurityGame:
    """An anti-poaching game from a Movebank export or such a table; settings as ``green.grid_game``.

    Parameters
    ----------
    tracks : path or dataframe; see ``read_movebank``
    """
    return green.grid_game(read_movebank(tracks), **settings)


def street_game(
    streets: Any,
    features: Any,
    blocks: Any = None,
    *,
    nodes: Any = None,
    box: Sequence[float] | None = None,
    radius: float = 0.0,
    **settings: Any,
) -> SecurityGame:
    """A game over infrastructure; settings as ``town.street_game``.

    Parameters
    ----------
    streets : GraphML, or a table of edges (with ``nodes``); see ``read_streets``
    features : Overpass GeoJSON, or a table; see ``read_infrastructure``
    blocks : census blocks; None: the features' own column ``population``, or nobody anywhere
    box : south, north, west, east in degrees: features outside are left out
    radius : metres; sum the blocks this near, instead of taking the one that holds the feature
    """
    found = within(read_infrastructure(features), box)
    if blocks is not None:
        found = with_population(found, read_blocks(blocks), radius)
    return town.street_game(town.Network(*read_streets(streets, nodes=nodes)), found, **settings)


def within(features: pl.DataFrame, box: Sequence[float] | None) -> pl.DataFrame:
    """The features in a box.

    Raises
    ------
    BadInput : there is none; says where they lie
    """
    import polars as pl

    if box is None:
        return features
    lat, long = features["lat"].to_numpy(), features["long"].to_numpy()
    south, north, west, east = green.checked_box(box, lat, long)
    inside = features.filter(pl.col("lat").is_between(south, north) & pl.col("long").is_between(west, east))
    if not inside.height:
        extent = f"{lat.min():.5g} to {lat.max():.5g} N, {long.min():.5g} to {long.max():.5g} E"
        raise BadInput(f"no feature lies in it; they span {extent}", where="box", mend="choose a box that meets them")
    return inside


def with_population(features: pl.DataFrame, blocks: Any, radius: float) -> pl.DataFrame:
    """Features with the population of their blocks."""
    import polars as pl

    people = [population_at(blocks, lat, long, radius=radius) for lat, long in features.select("lat", "long").rows()]
    return features.with_columns(pl.Series("population", people, dtype=pl.Float64))


def matrix_of(game: SecurityGame, *, written_out: bool = False, title: str = "") -> MatrixGame:
    """A security game as matrices.

    Parameters
    ----------
    written_out : one row for every joint walk; else one for every distinct coverage (dominated ones too), which is the
        same game
    title : of the game

    Raises
    ------
    BadInput : more walks or payoffs than are written out; says how many
    """
    columns = tuple(
        " and ".join(game.graph.labels[game.targets[t]] for t in chosen) or "abstain"
        for chosen in _game.attack_sets(game.n_targets, game.attackers)
    )
    if written_out:
        covered, cost, rows = _every_walk(game)
    else:
        found = _game.actions(game, undominated=False)
        covered, cost = found.covered, found.cost
        rows = tuple(f"coverage {k}" for k in range(1, len(cost) + 1))
    return MatrixGame(*_game.payoffs(game, covered, cost), title, rows, columns)


def _every_walk(game: SecurityGame) -> tuple[np.ndarray, Floats, tuple[str, ...]]:
    from .coverage import visits_of_walks

    n_joint = _game.count_joint_walks(game)
    if n_joint > MOST_WALKS:
        raise BadInput(
            f"{n_joint} joint walks take {8.0 * n_joint * game.n_targets:.1e} bytes",
            where="game",
            mend="keep one row for each coverage",
        )
    walks = [list_walks(game.graph, home, game.steps, same_end=game.same_end) for home in game.homes]
    places = np.meshgrid(*(np.arange(len(found)) for found in walks), indexing="ij")
    visits = np.zeros((n_joint, game.n_targets), np.uint8)
    moves = np.zeros(n_joint)
    for found, place in zip(walks, places, strict=True):
        chosen = place.ravel()
        visits += visits_of_walks(found, game.targets, game.dwell)[chosen]
        moves += (np.diff(found, axis=1) != 0).sum(axis=1)[chosen]
    names = tuple(f"walk {k}" for k in range(1, n_joint + 1))
    return visits >= game.dwell, moves * game.step_cost, names


def random_twin(
    game: SecurityGame | MatrixGame,
    *,
    kind: Literal["matrix", "values", "schedules", "utilities"] = "matrix",
    seed: int = 1,
) -> SecurityGame | MatrixGame:
    """A random game of a real one's shape.

    Parameters
    ----------
    kind : ``matrix``: independent entries, uniform between the ends of the real ones; ``values``: the same graph with
        random target values; ``schedules``: as many schedules a patrol as in the real game, each of three targets drawn
        with replacement and of random cost; ``utilities``: the real schedules, with random payoffs of each target,
        covered ones nearer to zero
    seed : of the draw

    Raises
    ------
    BadInput : random values, schedules or utilities for a game without a graph
    """
    rng = np.random.default_rng(seed)
    if kind != "matrix":
        if isinstance(game, MatrixGame):
            raise BadInput("a matrix has no graph", where="kind", mend="ask for kind matrix")
        if kind == "values":
            return twins.with_random_values(game, rng)
        return _of_schedules(game, kind == "schedules", rng, f"random twin {seed}")
    real = game if isinstance(game, MatrixGame) else matrix_of(game)
    own = twins.uniform_matrix(real.defender.shape, float(real.defender.min()), float(real.defender.max()), rng)
    if real.zero_sum:
        return MatrixGame(own, -own, f"random twin {seed}")
    other = twins.uniform_matrix(real.attacker.shape, float(real.attacker.min()), float(real.attacker.max()), rng)
    return MatrixGame(own, other, f"random twin {seed}")


def _of_schedules(game: SecurityGame, redrawn: bool, rng: np.random.Generator, title: str) -> MatrixGame:
    """Random schedules with the real values, or the real schedules with random utilities."""
    if redrawn:
        each = [patrol_schedules(game, home) for home in game.homes]
        dearest = max(float(found.moves.max()) for found in each) * game.step_cost
        n_joint = math.prod(len(found.moves) for found in each)
        if n_joint > MOST_WALKS:
            raise BadInput(f"{n_joint} joint schedules", where="kind", mend="ask of fewer patrols or steps")
        covered, cost = twins.joint_schedules(
            [len(found.moves) for found in each], game.n_targets, rng, largest_cost=dearest
        )
        return MatrixGame(*_game.payoffs(game, covered, cost), title)
    rows = schedule_actions(game)
    own, own_covered, other_covered, other = twins.random_utilities(game.n_targets, rng)
    columns = _game.attack_matrix(game.n_targets, game.attackers)
    defender = np.where(rows.covered, own_covered, own) @ columns - rows.cost[:, None]
    attacker = np.where(rows.covered, other_covered, other) @ columns
    return MatrixGame(defender, -defender if game.zero_sum else attacker, title)
