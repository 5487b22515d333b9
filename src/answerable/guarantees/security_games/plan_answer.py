"""The answer about patrols on a graph: words, numbers, tables and pictures of a plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from answerable.answer import Answer, Figure, Metric, Table
from answerable.errors import BadInput
from answerable.statistics import mean_interval

from . import figures
from .comparison import by_plans, compared, twin_rows
from .game import Actions, SecurityGame, payoffs
from .printed import shown
from .schedules import patrol_schedules
from .solver import Solution, listed
from .wording import (
    BY_PLANS,
    LOOKED,
    METHODS,
    MOST_ENTRIES_COMPARED,
    MOST_ROWS_SEARCHED,
    PLANS,
    ROSTER,
    TARGETS,
    TEAMS,
    TWINS,
    exact,
    loss_of,
    range_of,
    stays,
    verdict,
)

if TYPE_CHECKING:
    from answerable.run import Run

    from .question import SecurityGames

ATTACKED = 1e-9  # probability from which a target counts as attacked, share of a gain from which it counts as one


def plan_answer(asked: SecurityGames, game: SecurityGame, found: Solution, run: Run) -> Answer:
    """The answer for a game and its solution.

    Parameters
    ----------
    asked : the question, for how other games of the same kind are solved
    """
    parts = _Parts(asked, game, found, run)
    tables = parts.tables()
    return Answer(
        summary=parts.summary(),
        metrics=parts.metrics(tables),
        tables=tables,
        figures=parts.figures(tables),
        limits=parts.limits(),
        verdict=verdict(found.gap, range_of(game)),
    )


class _Parts:
    """The parts of an answer about a security game."""

    def __init__(self, asked: SecurityGames, game: SecurityGame, found: Solution, run: Run) -> None:
        self.asked, self.game, self.found, self.run = asked, game, found, run
        self.unit = "share of the largest loss" if game.zero_sum else "US$"
        self.labels = game.target_labels()
        gains = found.attacker_value > ATTACKED * float(game.gain.max())
        self.attacked = (found.attacks > ATTACKED) & gains  # who gains nothing anywhere may as well stay away

    def tables(self) -> dict[str, Table]:
        """All tables, the plan first."""
        tables = {
            "plans": Table(self._plans(), PLANS, title="Which patrols to run, and how often"),
            "targets": Table(self._targets(), TARGETS, title="How well each target is covered"),
        }
        tables["teams"] = Table(self._teams(), TEAMS, title="What more or fewer patrols secure")
        if self.asked.days:
            tables["roster"] = Table(self._roster(), ROSTER, title="Which plan to run on which day")
        rows = self._rows()
        if rows is None:
            return tables
        if self.game.zero_sum:
            U = payoffs(self.game, rows.covered, rows.cost)[0]
            if len(U) <= MOST_ROWS_SEARCHED:
                tables["by_plans"] = Table(self._by_plans(U), BY_PLANS, title="What few distinct plans secure")
            methods, looks = self._compared(U)
            tables["methods"] = Table(methods, METHODS, title="What each method proves")
            tables["gaps"] = Table(looks, LOOKED, title="Gap by work")
        if self.asked.twins:
            draws, schedules = self.asked.twins, self._schedules()
            twins = twin_rows(self.game, self.found, rows, draws, self.run, schedules=schedules)
            tables["twins"] = Table(twins, TWINS, title="The real game and random ones of its shape")
        return tables

    def _rows(self) -> Actions | None:
        """The reduced game's rows; None where they were too many to be listed or compared."""
        if self.found.n_rows == 0 or self.found.n_rows * self.game.n_targets > MOST_ENTRIES_COMPARED:
            return None
        return listed(self.game, form=self.asked.form, simple=self.asked.single, strict=self.asked.strict)

    def _schedules(self) -> list[int]:
        """How many schedules each patrol has; none in the form of walks."""
        if self.asked.form == "walks":
            return []
        single, strict = self.asked.single, self.asked.strict
        each = [patrol_schedules(self.game, home, simple=single, strict=strict) for home in self.game.homes]
        return [len(found.moves) for found in each]

    def _by_plans(self, U: np.ndarray) -> pl.DataFrame:
        def unit(most: int) -> dict[str, list[float]]:
            return by_plans(U, most).to_dict(as_series=False)

        (found,) = self.run.each(unit, [self.asked.most_plans], "fewer plans")
        return pl.DataFrame(found)

    def _compared(self, U: np.ndarray) -> tuple[pl.DataFrame, pl.DataFrame]:
        oracle = self.game if self.asked.form == "walks" else None

        def unit(_: str) -> list[dict[str, list[Any]]]:
            return [frame.to_dict(as_series=False) for frame in compared(U, oracle)]

        ((methods, looks),) = self.run.each(unit, [self.asked.form], "other methods")
        return pl.DataFrame(methods), pl.DataFrame(looks)

    def _roster(self) -> pl.DataFrame:
        """Days to come, each with a plan drawn by the shares, and the walks to print."""
        shares = self.found.probabilities / self.found.probabilities.sum()
        drawn = self.run.rng("roster").choice(len(shares), self.asked.days, p=shares)
        rows = [
            (day, int(k) + 1, member, stays([self.game.graph.labels[node] for node in walks[k]]))
            for day, k in enumerate(drawn, 1)
            for member, walks in enumerate(self.found.walks, 1)
        ]
        return pl.DataFrame(rows, schema=list(ROSTER), orient="row")

    def _plans(self) -> pl.DataFrame:
        found, labels = self.found, self.game.graph.labels
        rows = []
        for k, probability in enumerate(found.probabilities):
            covers = "; ".join(self.labels[t] for t in found.covered[k].nonzero()[0]) or "nothing"
            for member, walks in enumerate(found.walks, 1):
                walk = stays([labels[node] for node in walks[k]])
                rows.append((k + 1, float(probability), member, walk, covers, float(found.cost[k])))
        return pl.DataFrame(rows, schema=list(PLANS), orient="row")

    def _targets(self) -> pl.DataFrame:
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
        n = len(self.game.homes)
        sizes = sorted({max(1, n - 1), n, n + 1})
        rows = [row for row in self.run.each(self._team, sizes, "more and fewer patrols") if row is not None]
        return pl.DataFrame(rows, schema=list(TEAMS), orient="row")

    def _team(self, size: int) -> tuple[int, float, float, float] | None:
        """What so many patrols secure; None where they have too many joint coverages in this form."""
        try:
            own = size == len(self.game.homes)
            found = self.found if own else self.asked.solved(self.game.with_patrols(size), self.run)
        except BadInput:
            return None
        return size, loss_of(found.low), loss_of(found.high), float(found.n_joint)

    def summary(self) -> str:
        """One sentence."""
        found, n = self.found, len(self.game.homes)
        team = "One patrol" if n == 1 else f"{n} patrols"
        verb = "holds" if n == 1 else "hold"
        loss = f"{loss_of(found.low):.3g}" if self.game.zero_sum else _dollars(found.low)
        of = " of the largest possible" if self.game.zero_sum else ""
        plans = len(found.probabilities)
        mixed = "with one plan" if plans == 1 else f"mixed over {plans} plans"
        at = int(found.attacks.argmax())
        where = shown(self.labels[at])
        told = (
            f"the attacker's likeliest target, {where}, is covered {found.coverage[at]:.0%} of the time"
            if self.attacked.any()
            else "no target is worth an attack"
        )
        return f"{team}, {mixed}, {verb} the loss to {loss}{of}; {told}."

    def metrics(self, tables: dict[str, Table]) -> dict[str, Metric]:
        """The numbers."""
        found, game, loss = self.found, self.game, loss_of(self.found.low)
        proved = "what the plan secures, and what the attacker's answer concedes"
        if not game.zero_sum:
            proved = "what the plan secures, and multipliers that bound every plan"
        metrics = {
            "loss": Metric(
                loss, loss_of(found.high), loss, unit=self.unit, kind="bounds", method=proved,
                label="Loss that the plan secures",
            ),
            "gap": exact(found.gap, self.unit, "upper less lower bound", "Gap between the bounds"),
            "plans": exact(len(found.probabilities), "plans", "in the mix", "Plans in the mix"),
            "joint_walks": exact(float(found.n_joint), "walks", "powers of the adjacency matrix", "Joint walks")
            if self.asked.form == "walks"
            else exact(float(found.n_joint), "schedules", "counted", "Joint schedules"),
            "coverages": exact(found.n_rows, "rows", "distinct, dominated ones left out", "Rows after the reduction")
            if found.n_rows
            else Metric(math.nan, unit="rows", kind="exact", reason="double oracle lists none", label="Rows"),
            "attacker_gain": exact(found.attacker_value, self.unit, "his best response", "What the attacker gains"),
            "least_covered_attacked": self._least_covered(),
        }  # fmt: skip
        if not game.zero_sum:
            metrics["loss_if_ties_break_against"] = exact(
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
                exact(last["plans"], "plans", "mixed-integer search", "Fewest plans that secure as much")
                if reached
                else Metric(
                    math.nan, unit="plans", kind="exact", method="mixed-integer search",
                    reason=f"more than {last['plans']}", label="Fewest plans that secure as much",
                )
            )  # fmt: skip
        if "twins" in tables:
            metrics |= self._twin_metrics(tables["twins"].frame)
        return metrics

    def _least_covered(self) -> Metric:
        """The least coverage of a target that is attacked; none where the attacker does best to stay away."""
        attacked = self.found.coverage[self.attacked]
        method, label = "over targets that he attacks", "Least coverage of an attacked target"
        if len(attacked):
            return exact(float(attacked.min()), "1", method, label)
        return Metric(math.nan, unit="1", kind="exact", method=method, reason="he attacks nothing", label=label)

    def _twin_metrics(self, twins: pl.DataFrame) -> dict[str, Metric]:
        most = self.game.attackers * max(1.0, float(self.game.loss.max()))
        bounds = (0.0, most) if self.game.zero_sum else (-math.inf, math.inf)
        found = {}
        for kind in ("random matrix", "random values", "random schedules"):
            losses = twins.filter(pl.col("game") == kind)["loss"].to_numpy()
            if len(losses) >= 2:
                mean = mean_interval(losses, bounds=bounds)
                found[f"{kind.replace(' ', '_')}_loss"] = Metric(
                    mean.value, mean.low, mean.high, unit=self.unit, method=mean.method, role="null",
                    label=f"Loss in a {kind.replace('values', 'valued')} twin, mean",
                )  # fmt: skip
        return found

    def figures(self, tables: dict[str, Table]) -> dict[str, Figure]:
        """All pictures."""
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
        least = f"{-self.found.low:.3g}" if self.game.zero_sum else _dollars(self.found.low)
        return (
            f"{'One plan' if plans == 1 else f'{plans} plans'} of {team} hold{'s' * (plans == 1)} the loss to {least}"
        )

    def _map(self) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Places, moves with their probabilities, and streets."""
        graph, found = self.game.graph, self.found
        bases = np.unique(np.concatenate(self.game.homes))
        nodes = np.concatenate([self.game.targets, bases])
        n = len(self.game.targets)
        places = pl.DataFrame(
            {
                "lat": graph.latitude[nodes],
                "long": graph.longitude[nodes],
                "label": [graph.labels[node] for node in nodes],
                "kind": ["target"] * n + ["base"] * len(bases),
                "value": np.concatenate([self.game.loss, np.zeros(len(bases))]),
                "attacked": np.concatenate([self.attacked, np.zeros(len(bases), bool)]),
            }
        )
        often: dict[tuple[int, int], float] = {}
        for k, probability in enumerate(found.probabilities):
            made = {
                (int(a), int(b))
                for walks in found.walks
                for a, b in zip(walks[k][:-1], walks[k][1:], strict=True)
                if a != b
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
            limits.append(
                f"Losses are divided by {game.scale:.6g}, the largest that any patrol and attack can lead to."
            )
        bare = [self.labels[t] for t in (self._least_gain() > self.found.attacker_value + 1e-9).nonzero()[0]]
        if bare:
            limits.append(f"Covered by no plan at all: {'; '.join(bare[:5])}.")
        hopeless = self._never_covered()
        if hopeless:
            worst = max(hopeless, key=lambda t: game.loss[t])
            limits.append(
                f"{len(hopeless)} of {game.n_targets} targets cannot be covered in {game.steps} time steps; the most "
                f"valuable of them, {self.labels[worst]}, loses {game.loss[worst]:.3g} whatever is done."
            )
        if game.lost:
            limits.append(f"Left out, on streets that do not lead home: {'; '.join(game.lost[:5])}.")
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
        if self.found.n_rows:
            rows = listed(game, form=self.asked.form, simple=self.asked.single, strict=self.asked.strict)
            return np.flatnonzero(~rows.covered.any(axis=0)).tolist()
        near = [
            2 * distances(game.graph, home)[game.targets] + (game.dwell - 1) <= game.steps - 1 for home in game.homes
        ]
        return [
            t for t in range(game.n_targets) if not any(ok[t] for ok in near) and not self.found.covered[:, t].any()
        ]


def _dollars(value: float) -> str:
    """A payoff as the loss that it is: whole dollars, of less than ten two digits after the point."""
    loss = loss_of(value)
    return f"US$ {loss:,.0f}" if abs(loss) >= 10 or not loss else f"US$ {loss:.2f}"
