"""The question: from tracks, streets or a matrix to a certified patrol plan in words, tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from answerable.answer import Answer
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject

if TYPE_CHECKING:
    from answerable.run import Run

    from .game import SecurityGame
    from .solver import Solution

# Worked by hand: one patrol that can reach either of two sites worth 3 and 1 covers them 3/4 and 1/4 of the time.
SMALLEST: dict[str, Any] = {
    "movements": {
        "animal_id": ["a"] * 8,
        "lat": [0.5] * 8,
        "long": [0.5, 0.5, 0.5, 2.5, 0.5, 0.5, 0.5, 2.5],
        "timestamp": [f"2021-03-0{day} 00:00" for day in range(1, 9)],
    },
    "box": [0.0, 1.0, 0.0, 3.0],
    "rows": 1,
    "columns": 3,
    "values": "density",
    "homes": ["0.5, 1.5"],
    "steps": 3,
    "return_home": True,
    "twins": 2,
}


class SecurityGames(Question):
    """How should we patrol, against an adversary who watches?

    Krever, Cerny, Blanchard and Kroer, GUARD (NeurIPS 2025): games from tracked animals or from infrastructure and
    streets. The answer is a mixed plan of real walks with what it secures, proved from both sides, where the attacker
    then goes, what one more patrol is worth, and how random games of the same shape compare.
    """

    name: ClassVar[str] = "security-games"
    chance: ClassVar[bool] = True
    tolerance: ClassVar[float] = 1e-6
    smallest: ClassVar[Mapping[str, Any]] = SMALLEST

    movements: Annotated[Any, Subject("movements")] = Field(
        None, description="tracked animals: a Movebank export, or a table of animal_id, lat, long, timestamp"
    )
    infrastructure: Annotated[Any, Subject("infrastructure")] = Field(
        None, description="what may be attacked in a town: Overpass GeoJSON, or a table of type, lat, long"
    )
    streets: Annotated[Any, Subject("streets")] = Field(
        None, description="streets to patrol: GraphML as OSMnx saves it, or a table of edges"
    )
    nodes: Annotated[Any, Subject("table")] = Field(
        None, description="places of the crossings where streets is a table of edges: node, lat, long"
    )
    blocks: Annotated[Any, Subject("census_blocks")] = Field(
        None, description="census blocks with POP20: GeoJSON, or a table with INTPTLAT20 and INTPTLON20"
    )
    matrix: Annotated[Any, Subject("matrix_game")] = Field(
        None, description="a game as it is, instead: .nfg, .game or .npz"
    )
    box: list[float] | None = Field(
        None, min_length=4, max_length=4, description="south, north, west, east in degrees; needed with movements"
    )
    homes: list[str] | None = Field(None, min_length=1, max_length=100, description='bases, each "latitude, longitude"')
    own_homes: bool = Field(
        False, description="whether each patrol has the base of its own number; else all may use all"
    )
    patrols: int = Field(1, ge=1, le=6, unit="patrols", description="patrols at once")
    steps: int = Field(
        8, ge=2, le=60, unit="time steps", description="time steps of a patrol, the one at time 0 counted"
    )
    dwell: int = Field(
        1, ge=1, le=20, unit="time steps", description="time steps at a target, in all, after which it is covered"
    )
    return_home: bool = Field(False, description="whether a patrol ends where it began; else at any of its bases")
    wait: bool = Field(True, description="whether a patrol may stay where it is")
    attackers: int = Field(1, ge=1, le=6, unit="attacks", description="targets attacked at once")
    rows: int = Field(7, ge=1, le=60, unit="cells", description="rows of the grid, with movements")
    columns: int = Field(7, ge=1, le=60, unit="cells", description="columns of the grid, with movements")
    values: Literal["centroid", "density"] = Field(
        "centroid",
        description="cells that count: those with the centre of a cluster of positions, or all with positions",
    )
    clusters: int = Field(10, ge=1, le=200, unit="clusters", description="clusters of positions")
    cluster_seed: int = Field(42, ge=0, le=2**31 - 1, unit="seed", description="seed of the clustering")
    payoffs: Literal["zero-sum", "general-sum"] = Field(
        "zero-sum", description="whether the attacker gains just what the defender loses"
    )
    attacker_value: float = Field(
        2350.0, gt=0, le=1e12, unit="US$", description="general-sum: what one unit of value brings the attacker"
    )
    defender_value: float = Field(
        22966.0, gt=0, le=1e12, unit="US$", description="general-sum: what losing one unit of value costs the defender"
    )
    move_cost: float = Field(
        1.17, ge=0, le=1e9, unit="US$", description="general-sum: cost of a kilometre on a grid, of a move on streets"
    )
    escape: list[str] | None = Field(
        None, min_length=1, max_length=2,
        description='general-sum: where the attacker flees to: a place, or both ends of a line, "latitude, longitude"',
    )  # fmt: skip
    nearness: float = Field(
        1.0, ge=0, le=100, unit="1", description="general-sum: how much more the target nearest to escape is worth"
    )
    penalty: float | None = Field(
        None, gt=1, le=1e6, unit="1",
        description="attacks on a covered target bring this many times less; by default nothing",
    )  # fmt: skip
    population_power: float = Field(
        1.0, ge=0, le=10, unit="1", description="exponent of the population's factor in a feature's value"
    )
    population_radius: float = Field(
        0.0,
        ge=0,
        le=100_000,
        unit="m",
        description="sum the blocks this near; 0 takes the block that holds the feature",
    )
    merge: Literal["max+mean", "max", "sum"] = Field(
        "max+mean", description="what a crossing is worth at which several features stand"
    )
    form: Literal["walks", "schedules"] = Field(
        "walks", description="whether patrols are walks, or rounds over sets of targets from home and back"
    )
    single: bool = Field(False, description="schedules of one target at most")
    strict: bool = Field(True, description="schedules count time steps as walks do; else one more, as published")
    concept: Literal["auto", "nash", "stackelberg"] = Field(
        "auto", description="whether the attacker watches (stackelberg, and auto) or not (nash)"
    )
    method: Literal["auto", "simplex", "interior-point", "double-oracle", "rm", "rm+", "prm+"] = Field(
        "auto", description="what solves a zero-sum game; auto chooses by size"
    )
    most_plans: int = Field(8, ge=1, le=50, unit="plans", description="distinct plans up to which fewer are tried")
    days: int = Field(14, ge=0, le=366, unit="days", description="days of the roster that is drawn from the plan")
    twins: int = Field(10, ge=0, le=100, unit="draws", description="random twins of each kind")
    precision: float = Field(
        1e-9, ge=1e-12, le=1, unit="unit of the loss", description="gap at which iterative methods stop"
    )

    def answer(self, run: Run) -> Answer:
        """Build the game, solve it, and put the plan into words, tables and pictures."""
        if self.matrix is not None:
            from .matrix_answer import matrix_answer

            return matrix_answer(self, run)
        from .plan_answer import plan_answer
        from .solver import Solution

        game = self.game()
        (found,) = run.each(lambda one: self.solved(one, run), [game], "solving")
        return plan_answer(self, game, Solution(*found), run)  # a kept unit comes back as a plain tuple

    def game(self) -> SecurityGame:
        """The game that was asked of."""
        from .api import grid_game, street_game

        if (self.movements is None) == (self.infrastructure is None):
            raise BadInput(
                "neither movements nor infrastructure is given" if self.movements is None else "both are given",
                where=self.name,
                mend="give movements, or infrastructure with streets, or matrix",
            )
        if not self.homes:
            raise BadInput("there is no base", where="homes", mend='give "latitude, longitude" of at least one')
        common: dict[str, Any] = {
            "homes": places(self.homes, "homes"), "own_homes": self.own_homes, "defenders": self.patrols,
            "attackers": self.attackers, "steps": self.steps, "dwell": self.dwell, "return_home": self.return_home,
            "wait": self.wait, "payoffs": self.payoffs, "attacker_value": self.attacker_value,
            "defender_value": self.defender_value, "nearness": self.nearness,
            "escape": places(self.escape or [], "escape"), "penalty": self.penalty,
        }  # fmt: skip
        if self.movements is not None:
            if self.box is None:
                raise BadInput("there is no box", where="box", mend="give south, north, west, east in degrees")
            return grid_game(
                self.movements, box=tuple(self.box), shape=(self.rows, self.columns), targets=self.values,
                n_clusters=self.clusters, random_state=self.cluster_seed, cost_per_km=self.move_cost, **common,
            )  # fmt: skip
        if self.streets is None:
            raise BadInput("infrastructure without streets", where="streets", mend="give GraphML, or a table of edges")
        return street_game(
            self.streets, self.infrastructure, self.blocks, nodes=self.nodes, box=self.box,
            radius=self.population_radius, power=self.population_power, merge=self.merge, step_cost=self.move_cost,
            **common,
        )  # fmt: skip

    def solved(self, game: SecurityGame, run: Run) -> Solution:
        """The plan for a game, by the concept and method that were asked for."""
        from .solver import solve

        return solve(
            game, concept=self.concept, method=self.method, form=self.form, simple=self.single, strict=self.strict,
            tolerance=self.precision, threads=run.threads,
        )  # fmt: skip


def places(entries: list[str], field: str) -> list[tuple[float, float]]:
    """``latitude, longitude`` lines as numbers.

    Raises
    ------
    BadInput : a line that is none; says which
    """
    found = []
    for number, entry in enumerate(entries, 1):
        parts = entry.replace(";", ",").split(",")
        try:
            lat, long = (float(part) for part in parts)
        except ValueError:
            lat = long = math.nan
        if not (abs(lat) <= 90 and abs(long) <= 180):
            raise BadInput(
                f"{entry[:60]!r} is no place", where=f"{field}, entry {number}", mend='write "latitude, longitude"'
            )
        found.append((lat, long))
    return found
