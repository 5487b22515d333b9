"""The question: from a table and an additive model to verdicts on its terms, in words, tables and pictures."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from answerable.answer import Answer, Figure, Metric, Table, Verdict
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from answerable.run import Run

    from .cases import Cases
    from .estimator import PatternGAM, PatternQLR

MOST_RESAMPLED, MOST_RESAMPLED_SQUARED = 152, 16  # features whose terms are refitted on resamples; of 16 it is 152
MOST_PAIRS = 128  # of pixels, in table and picture
SUPPRESSORS = ("suppressor", "negative suppressor")

TERMS = {
    "term": "the term: a feature, its square, or a product or pair of two",
    "verdict": "informative and used; informative, unused; suppressor; negative suppressor; unused; undecided",
    "kind": "feature, square or pair",
    "weight": "coefficient of the term's component in the refit [1]",
    "sd_model": "baseline: standard deviation of the model's curve [log-odds]",
    "sd_model_low": "lower end of its interval [log-odds]",
    "sd_model_high": "upper end of its interval [log-odds]",
    "slope": "height of the pattern curve over height of the model's curve [1]",
    "slope_low": "lower end of its interval [1]",
    "slope_high": "upper end of its interval [1]",
    "sd_pattern": "standard deviation of the pattern curve: the term's own link with the target [log-odds]",
    "sd_pattern_low": "lower end of its interval [log-odds]",
    "sd_pattern_high": "upper end of its interval [log-odds]",
    "pattern": "size of the activation pattern [1]",
    "discriminability": "2 (AUROC of the model's curve alone - 1/2), null for a numeric target [1]",
    "product": "deviation of the model's curve times that of the pattern curve [log-odds squared]",
    "product_low": "lower end of its interval [log-odds squared]",
    "product_high": "upper end of its interval [log-odds squared]",
    "p_value": "p-value of: the term has the same mean in both classes (Welch)",
    "p_adjusted": "the same after Holm over all terms",
}
FEATURES = {
    "feature": "the input feature",
    "importance": "product, aggregated from terms to features, summing to 1 [1]",
    "importance_model": "baseline: deviation of the model's curves, aggregated in the same way [1]",
    "correlation": "correlation of the feature with the target, null for kinds, which have no order [1]",
}
POINTS = {
    "feature": "the input feature",
    "x": "its value; a code, for a column of words",
    "word": "the word of a column of words, null for numbers",
    "model": "the model's curve about its mean [log-odds]",
    "pattern": "the pattern curve about its mean [log-odds]",
    "rows": "share of the rows about this value [1]",
}
PIXELS = {
    "row": "row of the pixel, from 0",
    "column": "column of the pixel, from 0",
    "importance": "product, aggregated to pixels, summing to 1 [1]",
    "importance_model": "baseline: deviation of the model's curves, aggregated to pixels [1]",
    "truth": "whether the pixel carries the class",
}


PAIRS = {
    "row": "row of the first pixel, from 0",
    "column": "its column, from 0",
    "other_row": "row of the second pixel, from 0",
    "other_column": "its column, from 0",
    "product": "deviation of the model's term times that of the pattern term [log-odds squared]",
    "truth": "whether both pixels carry the class",
}


class ActivationPatterns(Question):
    """Which features carry the target, and which only suppress noise?

    A model that adds up one curve per feature may lean on a feature that tells nothing of the target, because it
    cancels noise in others: a suppressor. Every curve is shown beside its pattern, the same curve scaled to its own
    link with the target (Clark and others, NeurIPS 2025), and gets a verdict from intervals.
    """

    name: ClassVar[str] = "activation-patterns"
    chance: ClassVar[bool] = True
    smallest: ClassVar[dict[str, Any]] = {"replica": "suppressor", "rows": 2000, "resamples": 100}

    table: Annotated[Any, Subject("table")] = Field(
        None, description="CSV or Parquet file or dataframe, one row per case"
    )
    target: str = Field("", max_length=200, description="column of the label (two values) or of the numeric target")
    positive: str = Field("", max_length=200, description="the label set against all others; the larger one if empty")
    features: list[str] | None = Field(
        None, min_length=1, description="columns used; by default those that the model names, or all but the target"
    )
    nominal: list[str] = Field(
        [], description="columns whose numbers are codes of kinds; words always are, and so is race in COMPAS"
    )
    recipe: Literal["none", "compas"] = Field(
        "none", description="how rows are prepared: as they stand, or as ProPublica's analysis of COMPAS did"
    )
    replica: Literal["suppressor", "icu", "linear", "multiplicative", "xor"] | None = Field(
        None, description="a made-up table of known truth instead of a table"
    )
    rows: int = Field(8000, ge=200, le=200_000, multiple_of=4, unit="rows", description="rows of the replica")
    background: Literal["white", "correlated"] = Field("correlated", description="background of image replicas")
    distractor: bool = Field(False, description="lay squares of random sign over image replicas")
    model: Annotated[Any, Subject("additive_model")] = Field(
        None, description="a fitted additive model or its file; one is fitted here when left out"
    )
    curves: Literal["splines", "quadratic", "linear", "nam"] = Field(
        "splines", description="the model that is fitted where none is given"
    )
    learners: int = Field(20, ge=1, le=200, unit="networks", description="neural additive models of the ensemble")
    epochs: int = Field(40, ge=1, le=1000, unit="epochs", description="epochs of the ensemble")
    link: Literal["logit", "identity"] = Field("logit", description="logit for a label, identity for a numeric target")
    scale: Literal["logit", "probability"] = Field("logit", description="scale of the model's output in the pattern")
    aggregate: Literal["auto", "max", "stronger"] = Field("auto", description="rule from terms to features")
    ridge: float = Field(
        0.0, ge=0, le=1e6, unit="1", description="penalty on the standardised terms of refit and slopes"
    )
    margin: float = Field(
        0.1, gt=0, lt=1, unit="1", description="slope within which a used term is called a suppressor"
    )
    least_share: float = Field(
        0.05, ge=0, lt=1, unit="share", description="share of the widest curve below which a term counts as unused"
    )
    resamples: int = Field(500, ge=100, le=20_000, unit="resamples", description="bootstrap resamples of the rows")

    @model_validator(mode="after")
    def _one_source(self) -> ActivationPatterns:
        if (self.table is None) == (self.replica is None):
            raise ValueError("it needs either a table or a replica; give one of the two")
        if self.table is not None and not self.target and self.recipe == "none":
            raise ValueError("a table needs its target; name the column")
        return self

    def answer(self, run: Run) -> Answer:
        """Fit what is missing, judge every term on rows the curves were not fitted on, and word it."""
        given = self._cases(run)
        run.status("activation patterns")
        found, judged, notes = self._judged(given, run)
        tables = self._tables(found, judged, given)
        return Answer(
            summary=_summary(tables["terms"].frame, self._unit),
            metrics=self._metrics(found, tables, given),
            tables=tables,
            figures=_figures(tables, self.margin, self._unit),
            limits=self._limits(found, given, notes),
            verdict=_verdict(tables["terms"].frame),
            void=_void(found),
        )

    @property
    def _unit(self) -> str:
        return "log-odds" if self.link == "logit" else "units of the target"

    def _cases(self, run: Run) -> Cases:
        from .cases import replicated, tabulated

        if self.replica is not None:
            seed = int(run.rng("replica").integers(2**31))
            return replicated(
                self.replica, n=self.rows, seed=seed, background=self.background, distractor=self.distractor
            )
        return tabulated(
            self.table, target=self.target, positive=self.positive, features=self.features, recipe=self.recipe,
            numeric=self.link == "identity", model=self.model, nominal=self.nominal,
        )  # fmt: skip

    def _judged(self, given: Cases, run: Run) -> tuple[PatternGAM | PatternQLR, np.ndarray, list[str]]:
        """The fitted pattern, the rows it was judged on, and what was warned of."""
        import numpy as np

        from .estimator import PatternGAM, PatternQLR

        order = run.rng("split").permutation(len(given.y))
        own_curves = self.model is None and self.curves in ("splines", "nam")
        half = len(order) // 2 if own_curves else 0
        fitted, judged = np.sort(order[:half]), np.sort(order[half:])
        if self.link == "logit":
            for part in (fitted, judged) if half else (judged,):
                few = min(float(given.y[part].sum()), float(len(part) - given.y[part].sum()))
                if few < 2:
                    halves = ", in one half of the rows" if half else ""
                    what = f"fewer than two rows have one of the labels{halves}"
                    raise BadInput(what, where="target", mend="give more rows of it")
        options: dict[str, Any] = {
            "scale": self.scale, "aggregate": self.aggregate, "link": self.link, "ridge": self.ridge,
            "margin": self.margin, "least_share": self.least_share, "n_boot": self._n_boot(given),
            "random_state": int(run.rng("resamples").integers(2**31)),
        }  # fmt: skip
        if self.model is None and self.curves == "quadratic":
            if given.coded:
                raise BadInput(
                    "its entries are kinds, and products of their codes mean nothing",
                    where=f"column {given.coded[0]}",
                    mend="give one column of 0 and 1 for each kind, or choose curves = splines",
                )
            found: PatternGAM | PatternQLR = PatternQLR(**options)
        else:
            model = self.model if self.model is not None else self._fitted(given, fitted, run)
            found = PatternGAM(model, positive=given.positive or None, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            found.fit(given.rows(judged, words=self.model is not None), given.labels[judged])
        notes = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
        return found, judged, [note for note in notes if note.startswith(("term ", "Pair "))]

    def _n_boot(self, given: Cases) -> int:
        """Resamples; none for a model of so many terms that a refit takes seconds."""
        own_squares = self.curves == "quadratic" and self.model is None
        return 0 if given.X.shape[1] > (MOST_RESAMPLED_SQUARED if own_squares else MOST_RESAMPLED) else self.resamples

    def _fitted(self, given: Cases, rows: np.ndarray, run: Run) -> Any:
        if self.curves == "linear":
            return None
        if self.curves == "splines":
            from .curves import SplineGAM

            return SplineGAM(link=self.link).fit(given.rows(rows), given.y[rows])
        if self.link == "identity":
            raise BadInput("neural additive models are fitted for labels", where="curves", mend="choose splines")
        from .nam import NAMEnsemble

        seed = int(run.rng("nam").integers(2**31))
        ensemble = NAMEnsemble(n_learners=self.learners, epochs=self.epochs, random_state=seed)
        return ensemble.fit(given.rows(rows), given.y[rows])

    def _tables(self, found: Any, judged: np.ndarray, given: Cases) -> dict[str, Table]:
        import numpy as np
        import polars as pl

        terms = found.importances_.select(list(TERMS)).sort("product", descending=True)
        described = {name: words.replace("log-odds", self._unit) for name, words in TERMS.items()}
        importance, baseline = found.input_importance("product"), found.input_importance("sd_model")
        with np.errstate(invalid="ignore"):
            linked = [
                None if name in given.coded else float(np.corrcoef(column, given.y)[0, 1]) if np.ptp(column) else 0.0
                for name, column in zip(given.names, given.X.T, strict=True)
            ]
        features = pl.DataFrame(
            {
                "feature": given.names,
                "importance": importance,
                "importance_model": baseline,
                "correlation": linked,
            }
        ).sort("importance", descending=True)
        tables = {
            "terms": Table(terms, described, title="Every term: what it carries, what it is used for"),
            "features": Table(features, FEATURES, title="Input features"),
        }
        if given.truth is None:
            points = _points(found, given, judged, words=self.model is not None)
            described = {name: words.replace("log-odds", self._unit) for name, words in POINTS.items()}
            tables["curves"] = Table(points, described, title="Model curves and pattern curves")
        else:
            places = np.indices(given.truth.shape).reshape(2, -1)
            pixels = pl.DataFrame(
                {
                    "row": places[0],
                    "column": places[1],
                    "importance": importance,
                    "importance_model": baseline,
                    "truth": given.truth.ravel(),
                }
            )
            tables["pixels"] = Table(pixels, PIXELS, title="Pixels")
            if any(len(term) > 1 for term in found.terms_):
                tables["pairs"] = Table(_pairs(found, given.truth), PAIRS, title="Pairs of pixels, largest first")
        return tables

    def _metrics(self, found: Any, tables: dict[str, Table], given: Cases) -> dict[str, Metric]:
        import numpy as np

        frame, how = tables["terms"].frame, found.intervals_method_
        metrics = {}
        if self.link == "logit":
            area = found.auroc_
            metrics["auroc"] = Metric(
                area.value, area.low, area.high, method=area.method, label="AUROC of the refitted model"
            )
        for name, word in (
            ("suppressors", "suppressor"), ("negative_suppressors", "negative suppressor"),
            ("informative_and_used", "informative and used"), ("informative_unused", "informative, unused"),
            ("unused", "unused"), ("undecided", "undecided"),
        ):  # fmt: skip
            count = int((frame["verdict"] == word).sum())
            metrics[name] = Metric(
                count, unit="terms", kind="exact", method="count of verdicts", label=f"Terms found: {word}"
            )
        top = frame.row(0, named=True)
        metrics["largest_product"] = Metric(
            top["product"], top["product_low"], top["product_high"], unit=f"{self._unit} squared", method=how,
            label=f"Largest product, {top['term'][:40]}",
        )  # fmt: skip
        leaning = frame.filter(frame["verdict"].is_in(SUPPRESSORS)).sort("sd_model", descending=True)
        if leaning.height:
            row = leaning.row(0, named=True)
            metrics["largest_suppressor"] = Metric(
                row["sd_model"], row["sd_model_low"], row["sd_model_high"], unit=self._unit, method=how,
                label=f"Spread of the largest suppressor, {row['term'][:40]}",
            )  # fmt: skip
            metrics["its_own_link"] = Metric(
                row["sd_pattern"], row["sd_pattern_low"], row["sd_pattern_high"], unit=self._unit, method=how,
                label=f"Spread of its pattern curve, {row['term'][:40]}",
            )  # fmt: skip
        if given.planted is not None:
            planted = {name for name, is_one in zip(given.names, given.planted, strict=True) if is_one}
            hit = sum(row["verdict"] in SUPPRESSORS for row in frame.iter_rows(named=True) if row["term"] in planted)
            metrics["planted_found"] = Metric(
                hit / len(planted), kind="exact", method="share of planted suppressors with that verdict",
                label="Planted suppressors found",
            )  # fmt: skip
        if given.truth is not None:
            from .metrics import emda, fni_emda, ima

            pixels = tables["pixels"].frame
            for column, role, suffix in (("importance", "ours", ""), ("importance_model", "baseline", "_model")):
                values = np.asarray(pixels[column]).reshape(given.truth.shape)
                for key, score in (("ima", ima), ("emda", emda), ("fni_emda", fni_emda)):
                    label = f"{key.upper().replace('_', '-')} of the {'model deviations' if suffix else 'product'}"
                    metrics[key + suffix] = _of_map(score, values, given.truth, role, label)
        return metrics

    def _limits(self, found: Any, given: Cases, notes: list[str]) -> list[str]:
        limits = [
            "A link with the target is not a cause of it; terms are judged one by one: two alike both count.",
            "A feature that tells the classes apart only by its spread counts as not informative.",
        ]
        if any(len(term) > 1 for term in found.terms_):
            limits.append(
                "Nothing is proved for pairs: one may carry the target though neither feature does; none can share it."
            )
        if self.model is not None:
            limits.append(
                "The rows may be those the model was fitted on; a curve that fits their noise then looks informative."
            )
        if self.scale == "logit" and self.link == "logit":
            limits.append(
                "The activation pattern is on the scale of log-odds, where it is not quite blind to suppressors; "
                "the verdicts do not rest on it."
            )
        if self.ridge:
            limits.append(
                "With a ridge the covariances of a term with prediction and with label differ: slopes are drawn to 0."
            )
        n_classes = getattr(found, "n_model_classes_", 2)
        if n_classes > 2:
            limits.append(f"The model has {n_classes} classes: {given.positive[:40]} is set against the rest.")
        ordered = self._ordered(given)
        if ordered:
            limits.append(
                "Kinds stand as numbers, words in the order of the alphabet; curves follow it: "
                f"{', '.join(ordered)[:150]}."
            )
        if self.replica is not None:
            limits.append("The table is made up: it shows what the method finds where the truth is known.")
        return limits + [note if note.endswith(".") else f"{note[:1].upper()}{note[1:]}." for note in notes]

    def _ordered(self, given: Cases) -> list[str]:
        """Columns of kinds whose curve, fitted here, follows the order of their codes."""
        from .curves import FEW_VALUES

        if self.model is not None:
            return []
        if self.curves != "splines":
            return given.coded
        return [name for name in given.coded if given.frame[name].n_unique() > FEW_VALUES]


def _of_map(score: Any, values: np.ndarray, truth: np.ndarray, role: Any, label: str) -> Metric:
    if not values.any():
        return Metric(float("nan"), kind="exact", role=role, label=label, reason="every importance is 0")
    return Metric(score(values, truth), kind="exact", method="of this map", role=role, label=label)


def _pairs(found: Any, truth: np.ndarray) -> pl.DataFrame:
    """The pairs of largest product, with the places of both pixels."""
    import numpy as np
    import polars as pl

    pairs = [(number, *term) for number, term in enumerate(found.terms_) if len(term) == 2 and term[0] != term[1]]
    numbers, first, second = np.array(pairs).T
    product, width = found.scores_.product[numbers], truth.shape[1]
    flat = truth.ravel()
    frame = pl.DataFrame(
        {
            "row": first // width,
            "column": first % width,
            "other_row": second // width,
            "other_column": second % width,
            "product": product,
            "truth": flat[first] & flat[second],
        }
    )
    return frame.sort("product", descending=True, maintain_order=True).head(MOST_PAIRS)


def _points(found: Any, given: Cases, judged: np.ndarray, *, words: bool) -> pl.DataFrame:
    """Curves of the features that the model uses most, at a few values each."""
    import polars as pl

    from .curves import MOST_POINTS, thinned
    from .figures import MOST_CURVES

    own = [(number, term[0]) for number, term in enumerate(found.terms_) if len(term) == 1]
    chosen = sorted(own, key=lambda pair: -found.scores_.sd_model[pair[0]])[:MOST_CURVES]
    X, values = given.X[judged], found.component_values(given.rows(judged, words=words))
    parts = []
    for number, j in chosen:
        words_of = given.words.get(given.names[j])
        heights = found.scores_.weight[number] * values[:, number]
        curve = thinned(X[:, j], heights, None if words_of else MOST_POINTS)
        parts.append(
            pl.DataFrame(
                {
                    "feature": [given.names[j]] * len(curve.x),
                    "x": curve.x,
                    "word": [words_of[round(code) - 1] for code in curve.x] if words_of else [None] * len(curve.x),
                    "model": curve.height,
                    "pattern": found.scores_.slope[number] * curve.height,
                    "rows": curve.rows,
                },
                schema_overrides={"word": pl.String},
            )
        )
    return pl.concat(parts)


def _figures(tables: dict[str, Table], margin: float, unit: str) -> dict[str, Figure]:
    from . import figures

    terms = tables["terms"].frame
    drawn = {
        "deviations": Figure.drawn(figures.deviations, terms, unit=unit),
        "slopes": Figure.drawn(figures.slopes, terms, margin=margin),
    }
    if "curves" in tables:
        drawn["curves"] = Figure.drawn(figures.curves, tables["curves"].frame, unit=unit)
    if "pixels" in tables:
        drawn["pixels"] = Figure.drawn(figures.pixel_map, tables["pixels"].frame)
    if "pairs" in tables:
        drawn["pairs"] = Figure.drawn(figures.pair_map, tables["pairs"].frame)
    return drawn


def _summary(terms: pl.DataFrame, unit: str) -> str:
    from .figures import called

    found = terms.filter(terms["verdict"].is_in(SUPPRESSORS)).sort("sd_model", descending=True)
    carrying = int((terms["verdict"] == "informative and used").sum())
    if found.height:
        row = found.row(0, named=True)
        others = f" and {found.height - 1} more" if found.height > 1 else ""
        return (
            f"{row['term'][:40]}{others} moves the model by {row['sd_model']:.2f} {unit} and carries "
            f"{row['sd_pattern']:.2f}; {carrying} of {terms.height} {called(terms)} carry the target and are used."
        )
    carrying_ones = f"{carrying} of {terms.height} {called(terms)} carry the target and are used"
    return f"{carrying_ones}; none is shown to be a suppressor."


def _verdict(terms: pl.DataFrame) -> Verdict:
    from .figures import called

    what = called(terms)
    found = terms.filter(terms["verdict"].is_in(SUPPRESSORS)).sort("sd_model", descending=True)
    open_ones = terms.filter(terms["verdict"] == "undecided").sort("sd_model", descending=True)
    if found.height:
        row = found.row(0, named=True)
        return Verdict(
            "suppressors found",
            f"the slope of {row['term'][:40]} lies between {row['slope_low']:.3f} and {row['slope_high']:.3f}",
        )
    if open_ones.height:
        row = open_ones.row(0, named=True)
        return Verdict(
            "undecided",
            f"{open_ones.height} of {terms.height} {what} could not be decided, {row['term'][:40]} the largest",
            mend=f"give more rows, or leave out {what} that say the same",
        )
    return Verdict("no suppressor", f"each of {terms.height} {what} is informative or unused")


def _void(found: Any) -> str:
    area = getattr(found, "auroc_", None)
    if area is not None and area.low <= 0.5:
        return f"The model does not tell the classes apart: its AUROC may be {area.low:.3f}."
    return ""
