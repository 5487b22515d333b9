"""The question: from tracks, streets or a matrix to a certified patrol plan in words, tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from answerable.answer import Answer, Figure, Metric, Table, Verdict
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from answerable.run import Run

    from .game import SecurityGame
    from .solver import Solution

MOST_ENTRIES_COMPARED = 1_000_000  # of a matrix on which several methods are run for comparison
MOST_ROWS_SEARCHED = 60  # of a matrix on which the best k plans are searched
MOST_STEPS_SHOWN = 60
LOOKS = 2_000  # iterations of regret matching in the comparison
ENOUGH = 1e-6  # gap, relative to the payoffs' range, below which a value is certified

PLANS = {
    "plan": "number of the plan, the likeliest first",
    "probability": "how often it should be run [1]",
    "patrol": "number of the patrol that walks",
    "walk": "where it stands at each time step",
    "covers": "targets that the whole team covers in this plan",
    "cost": "cost of the plan's moves [unit of the loss]",
}
ROWS = {
    "plan": "number of the row's action, the likeliest first",
    "probability": "how often it should be played [1]",
    "row": "number of the row in the matrix, from 1",
    "name": "its name in the file, where it has one",
}
TARGETS = {
    "target": "the target",
    "latitude": "degrees",
    "longitude": "degrees",
    "loss": "what the defender loses when an attack succeeds [unit of the loss]",
    "gain": "what the attacker gains then [unit of the loss]",
    "coverage": "how often it is covered [1]",
    "expected_gain": "what an attack on it gains, covered this often [unit of the loss]",
    "attack": "how often an attacker who knows the plan, and whom the plan leaves indifferent, goes there [1]",
}
COLUMNS = {
    "column": "number of the column in the matrix, from 1",
    "name": "its name in the file, where it has one",
    "attack": "how often the attacker plays it [1]",
    "expected_gain": "what it gains him against this mix [payoff]",
}
BY_PLANS = {
    "plans": "distinct plans allowed",
    "loss": "loss that the best mix of so many secures [unit of the loss]",
    "least_loss": "no mix of so many loses less than this [unit of the loss]",
}
TEAMS = {
    "patrols": "number of patrols",
    "loss": "loss that they secure [unit of the loss]",
    "least_loss": "no plan of theirs loses less than this [unit of the loss]",
    "joint_walks": "joint walks to choose from",
}
METHODS = {
    "method": "what solved the game",
    "loss": "loss that its plan secures [unit of the loss]",
    "least_loss": "lower bound of the loss that it proves [unit of the loss]",
    "gap": "the difference [unit of the loss]",
    "iterations": "of that method",
    "plans": "plans in its mix",
}
LOOKED = {
    "method": "what solved the game",
    "multiplications": "work so far",
    "gap": "between the two bounds at that point [unit of the loss]",
}
TWINS = {
    "game": "real, random matrix (independent entries) or random values (same graph)",
    "number": "of the draw; 0 for the real game",
    "rows": "rows of the game",
    "columns": "columns of the game",
    "loss": "its value as a loss [unit of the loss]",
    "support": "plans in the mix that was found",
}

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
        "centroid", description="cells that count: those with the centre of a cluster of positions, or all with positions"
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
        0.0, ge=0, le=100_000, unit="m", description="sum the blocks this near; 0 takes the block that holds the feature"
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
    twins: int = Field(10, ge=0, le=100, unit="draws", description="random twins of each kind")
    precision: float = Field(
        1e-9, ge=1e-12, le=1, unit="unit of the loss", description="gap at which iterative methods stop"
    )

    def answer(self, run: Run) -> Answer:
        """Build the game, solve it, and put the plan into words, tables and pictures."""
        if self.matrix is not None:
            from .matrix_answer import matrix_answer

            return matrix_answer(self, run)
        game = self.game()
        run.status("solving")
        found = self.solved(game, run)
        parts = _Parts(self, game, found, run)
        tables = parts.tables()
        return Answer(
            summary=parts.summary(),
            metrics=parts.metrics(tables),
            tables=tables,
            figures=parts.figures(tables),
            limits=parts.limits(),
            verdict=verdict(found.gap, _range(game)),
        )

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


class _Parts:
    """The parts of an answer about a security game."""

    def __init__(self, asked: SecurityGames, game: SecurityGame, found: Solution, run: Run) -> None:
        self.asked, self.game, self.found, self.run = asked, game, found, run
        self.unit = "share of the largest loss" if game.zero_sum else "US$"
        self.labels = game.target_labels()

    def tables(self) -> dict[str, Table]:
        """All tables, the plan first."""
        tables = {
            "plans": Table(self._plans(), PLANS, title="Which patrols to run, and how often"),
            "targets": Table(self._targets(), TARGETS, title="How well each target is covered"),
        }
        self.run.status("one more patrol")
        tables["teams"] = Table(self._teams(), TEAMS, title="What more or fewer patrols secure")
        if not self.game.zero_sum:
            return tables
        rows = self._matrix()
        if rows is not None:
            from .comparison import by_plans, compared, twin_rows

            self.run.status("fewer plans")
            if len(rows) <= MOST_ROWS_SEARCHED:
                tables["by_plans"] = Table(
                    by_plans(rows, self.asked.most_plans), BY_PLANS, title="What few distinct plans secure"
                )
            self.run.status("other methods")
            oracle = self.game if self.asked.form == "walks" else None
            methods, looks = compared(rows, oracle)
            tables["methods"] = Table(methods, METHODS, title="What each method proves")
            tables["gaps"] = Table(looks, LOOKED, title="Gap by work")
            if self.asked.twins:
                self.run.status("random twins")
                twins = twin_rows(self.game, self.found, rows, self.asked.twins, self.run, self._solve)
                tables["twins"] = Table(twins, TWINS, title="The real game and random ones of its shape")
        return tables

    def _solve(self, game: SecurityGame) -> Solution:
        return self.asked.solved(game, self.run)

    def _matrix(self) -> np.ndarray | None:
        """The reduced game's payoffs to the defender; None where they were too many to be listed or compared."""
        from .game import payoffs
        from .solver import listed

        if self.found.n_rows == 0 or self.found.n_rows * self.game.n_targets > MOST_ENTRIES_COMPARED:
            return None
        rows = listed(self.game, form=self.asked.form, simple=self.asked.single, strict=self.asked.strict)
        return payoffs(self.game, rows.covered, rows.cost)[0]

    def _plans(self) -> pl.DataFrame:
        import polars as pl

        found, labels = self.found, self.game.graph.labels
        rows = []
        for k, probability in enumerate(found.probabilities):
            covers = ", ".join(self.labels[t] for t in found.covered[k].nonzero()[0]) or "nothing"
            for member, walks in enumerate(found.walks, 1):
                walk = " > ".join(labels[node] for node in walks[k][:MOST_STEPS_SHOWN])
                rows.append((k + 1, float(probability), member, walk, covers, float(found.cost[k])))
        return pl.DataFrame(rows, schema=list(PLANS), orient="row")

    def _targets(self) -> pl.DataFrame:
        import polars as pl

        game, found = self.game, self.found
        left = 1 - found.coverage * (1 - game.residual)
        return pl.DataFrame(
            {
                "target": self.labels,
                "latitude": game.graph.latitude[game.targets],
                "longitude": game.graph.longitude[game.targets],
                "loss": game.loss,
                "gain": game.gain,
                "coverage": found.coverage,
                "expected_gain": game.gain * left,
                "attack": found.attacks,
            }
        ).sort("expected_gain", "target", descending=[True, False])

    def _teams(self) -> pl.DataFrame:
        """One patrol less, as many, one more: with the same losses, so that the numbers compare."""
        import polars as pl

        n = len(self.game.homes)
        rows = []
        for size in sorted({max(1, n - 1), n, n + 1}):
            try:
                found = self.found if size == n else self._solve(self.game.with_patrols(size))
            except BadInput:  # one more has too many joint coverages in this form
                continue
            rows.append((size, -found.low, -found.high, float(found.n_joint)))
        return pl.DataFrame(rows, schema=list(TEAMS), orient="row")

    def summary(self) -> str:
        """One sentence."""
        found, n = self.found, len(self.game.homes)
        team = "One patrol" if n == 1 else f"{n} patrols"
        verb = "holds" if n == 1 else "hold"
        loss = f"{-found.low:.3g}" if self.game.zero_sum else f"US$ {-found.low:,.0f}"
        of = " of the largest possible" if self.game.zero_sum else ""
        plans = len(found.probabilities)
        mixed = "with one plan" if plans == 1 else f"mixed over {plans} plans"
        at = int(found.attacks.argmax())
        where = " ".join(self.labels[at].split()[:6])
        return (
            f"{team}, {mixed}, {verb} the loss to {loss}{of}; the attacker's likeliest target, {where}, "
            f"is covered {found.coverage[at]:.0%} of the time."
        )

    def metrics(self, tables: dict[str, Table]) -> dict[str, Metric]:
        """The numbers."""
        found, game = self.found, self.game
        proved = "what the plan secures, and what the attacker's answer concedes"
        if not game.zero_sum:
            proved = "what the plan secures, and multipliers that bound every plan"
        metrics = {
            "loss": Metric(
                -found.low, -found.high, -found.low, unit=self.unit, kind="bounds", method=proved,
                label="Loss that the plan secures",
            ),
            "gap": _exact(found.gap, self.unit, "upper less lower bound", "Gap between the bounds"),
            "plans": _exact(len(found.probabilities), "plans", "in the mix", "Plans in the mix"),
            "joint_walks": _exact(float(found.n_joint), "walks", "powers of the adjacency matrix", "Joint walks")
            if self.asked.form == "walks"
            else _exact(float(found.n_joint), "schedules", "counted", "Joint schedules"),
            "coverages": _exact(found.n_rows, "rows", "distinct, dominated ones left out", "Rows after the reduction")
            if found.n_rows
            else Metric(math.nan, unit="rows", kind="exact", reason="double oracle lists none", method="", label="Rows"),
            "attacker_gain": _exact(found.attacker_value, self.unit, "his best response", "What the attacker gains"),
            "least_covered_attacked": _exact(
                float(found.coverage[found.attacks > 1e-9].min()), "1", "over targets that he attacks",
                "Least coverage of an attacked target",
            ),
        }  # fmt: skip
        if not game.zero_sum:
            metrics["loss_if_ties_break_against"] = _exact(
                -found.against_ties, self.unit, "an indifferent attacker does what is worst for the defender",
                "Loss if ties break against the defender",
            )  # fmt: skip
        teams = {row["patrols"]: row for row in tables["teams"].frame.iter_rows(named=True)}
        n = len(game.homes)
        if n + 1 in teams:
            more, own = teams[n + 1], teams[n]
            metrics["one_more_patrol"] = Metric(
                own["loss"] - more["loss"], own["least_loss"] - more["loss"], own["loss"] - more["least_loss"],
                unit=self.unit, kind="bounds", method="bounds of both games", label="Loss that one more patrol saves",
            )  # fmt: skip
        if "by_plans" in tables:
            last = tables["by_plans"].frame.row(-1, named=True)
            reached = last["loss"] <= -found.high + 1e-7
            metrics["fewest_plans"] = (
                _exact(last["plans"], "plans", "mixed-integer search", "Fewest plans that secure as much")
                if reached
                else Metric(
                    math.nan, unit="plans", kind="exact", method="mixed-integer search",
                    reason=f"more than {last['plans']}", label="Fewest plans that secure as much",
                )
            )  # fmt: skip
        if "twins" in tables:
            metrics |= self._twin_metrics(tables["twins"].frame)
        return metrics

    def _twin_metrics(self, twins: pl.DataFrame) -> dict[str, Metric]:
        import polars as pl

        from answerable.statistics import mean_interval

        found = {}
        for kind in ("random matrix", "random values"):
            losses = twins.filter(pl.col("game") == kind)["loss"].to_numpy()
            if len(losses) >= 2:
                mean = mean_interval(losses)
                found[f"{kind.replace(' ', '_')}_loss"] = Metric(
                    mean.value, mean.low, mean.high, unit=self.unit, method=mean.method, role="null",
                    label=f"Loss in a {kind.replace('values', 'valued')} twin, mean",
                )  # fmt: skip
        return found

    def figures(self, tables: dict[str, Table]) -> dict[str, Figure]:
        """All pictures."""
        from . import figures

        places, moves, streets = self._map()
        drawn = {
            "map": Figure.drawn(
                figures.patrol_map, places, moves, streets, cell=self.game.graph.cell, finding=self._map_title(),
                value_unit=self.unit,
            ),
            "coverage": Figure.drawn(figures.coverage_bars, tables["targets"].frame, gain_unit=self.unit),
        }  # fmt: skip
        if "by_plans" in tables:
            drawn["by_plans"] = Figure.drawn(
                figures.value_by_plans, tables["by_plans"].frame, value=-self.found.high, unit=self.unit
            )
        if "gaps" in tables:
            drawn["gaps"] = Figure.drawn(figures.gap_by_work, tables["gaps"].frame, unit=self.unit)
        if "twins" in tables:
            drawn["twins"] = Figure.drawn(figures.twins_strip, tables["twins"].frame, unit=self.unit)
        return drawn

    def _map_title(self) -> str:
        plans, n = len(self.found.probabilities), len(self.game.homes)
        team = "one patrol" if n == 1 else f"{n} patrols"
        least = f"{-self.found.low:.3g}" if self.game.zero_sum else f"US$ {-self.found.low:,.0f}"
        return f"{'One plan' if plans == 1 else f'{plans} plans'} of {team} hold{'s' * (plans == 1)} the loss to {least}"

    def _map(self) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Places, moves with their probabilities, and streets."""
        import numpy as np
        import polars as pl

        graph, found = self.game.graph, self.found
        bases = np.unique(np.concatenate(self.game.homes))
        attacked = found.attacks > 1e-6
        nodes = np.concatenate([self.game.targets, bases])
        n = len(self.game.targets)
        places = pl.DataFrame(
            {
                "lat": graph.latitude[nodes],
                "long": graph.longitude[nodes],
                "label": [graph.labels[node] for node in nodes],
                "kind": ["target"] * n + ["base"] * len(bases),
                "value": np.concatenate([self.game.loss, np.zeros(len(bases))]),
                "attacked": np.concatenate([attacked, np.zeros(len(bases), bool)]),
            }
        )
        often: dict[tuple[int, int], float] = {}
        for k, probability in enumerate(found.probabilities):
            made = {
                (int(a), int(b)) for walks in found.walks for a, b in zip(walks[k][:-1], walks[k][1:], strict=True) if a != b
            }
            for move in made:
                often[move] = often.get(move, 0.0) + float(probability)
        moves = self._between(sorted(often)).with_columns(
            pl.Series("probability", [min(often[move], 1.0) for move in sorted(often)], dtype=pl.Float64)
        )
        arcs = np.column_stack([np.repeat(np.arange(graph.n_nodes), np.diff(graph.first)), graph.neighbours])
        streets = [] if graph.cell[0] else [(int(a), int(b)) for a, b in arcs if a < b]
        return places, moves, self._between(streets[:4000])

    def _between(self, pairs: list[tuple[int, int]]) -> pl.DataFrame:
        import polars as pl

        lat, long = self.game.graph.latitude, self.game.graph.longitude
        rows = [(float(lat[a]), float(long[a]), float(lat[b]), float(long[b])) for a, b in pairs]
        return pl.DataFrame(rows, schema=dict.fromkeys(("lat", "long", "lat2", "long2"), pl.Float64), orient="row")

    def limits(self) -> list[str]:
        """What the method cannot say about this game."""
        game = self.game
        limits = [
            "The plan is best against an attacker who knows how often each patrol is run and nothing of today's draw.",
            "Values of targets are taken from the data as they are; the certificate says nothing of their errors.",
        ]
        if self.asked.movements is not None:
            limits.append("Animals are taken to be where they were; a cell without positions is worth nothing.")
        if game.zero_sum and game.scale != 1:
            limits.append(f"Losses are divided by {game.scale:.6g}, the largest that any patrol and attack can lead to.")
        bare = [self.labels[t] for t in (self._least_gain() > self.found.attacker_value + 1e-9).nonzero()[0]]
        if bare:
            limits.append(f"Covered by no plan at all: {', '.join(bare[:5])}.")
        hopeless = self._never_covered()
        if hopeless:
            worst = max(hopeless, key=lambda t: game.loss[t])
            limits.append(
                f"{len(hopeless)} of {game.n_targets} targets cannot be covered in {game.steps} time steps; the most "
                f"valuable of them, {self.labels[worst]}, loses {game.loss[worst]:.3g} whatever is done."
            )
        if game.lost:
            limits.append(f"Left out, on streets that do not lead home: {', '.join(game.lost[:5])}.")
        if not game.zero_sum:
            limits.append("Where the attacker is indifferent he is taken to do what is best for the defender.")
        return [*limits, *game.notes]

    def _least_gain(self) -> np.ndarray:
        """What the attacker gains at each target if it is always covered."""
        return self.game.gain * self.game.residual

    def _never_covered(self) -> list[int]:
        """Targets that no plan can cover: none of the team can be there and back in time."""
        from .graph import distances

        game = self.game
        if self.asked.form == "schedules" or game.dwell > 1 and len(game.homes) > 1:
            return [t for t in range(game.n_targets) if self.found.n_rows and not self._some_row(t)]
        near = [
            2 * distances(game.graph, home)[game.targets] + (game.dwell - 1) <= game.steps - 1 for home in game.homes
        ]
        return [t for t in range(game.n_targets) if not any(ok[t] for ok in near) and not self.found.covered[:, t].any()]

    def _some_row(self, target: int) -> bool:
        from .solver import listed

        if not hasattr(self, "_rows"):
            self._rows = listed(
                self.game, form=self.asked.form, simple=self.asked.single, strict=self.asked.strict
            ).covered.any(axis=0)
        return bool(self._rows[target])


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


def verdict(gap: float, spread: float) -> Verdict:
    """Whether the two bounds are close enough to be called one value."""
    if gap <= ENOUGH * spread:
        return Verdict("certified", f"upper and lower bound are {gap:.1e} apart")
    return Verdict(
        "undecided", f"upper and lower bound are {gap:.1e} apart", "leave method to auto, or ask for more precision"
    )


def _range(game: SecurityGame) -> float:
    return float(game.loss.max()) or 1.0


def _exact(value: float, unit: str, method: str, label: str) -> Metric:
    return Metric(value, kind="exact", unit=unit, method=method, label=label)
