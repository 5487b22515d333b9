"""The question model-lineage: from answer logs to a family, what supports it and how easily it is hidden."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from answerable.answer import Answer, Verdict
from answerable.errors import BadInput, unknown
from answerable.question import Field, Question, Subject

if TYPE_CHECKING:
    import numpy as np

    from answerable.run import Run
    from answerable.subjects.answer_log import AnswerLog

    from .deciding import Finding
    from .estimator import ErrorTracer
    from .tables import Given

UNREADABLE = 0.05  # share of answers that name no option, above which it is said


class ModelLineage(Question):
    """From which family does this black-box model descend?

    Models of one family share rare mistakes. From recorded answers of models whose family is known, ErrorTrace (Zang
    and others, NeurIPS 2025) finds the items that tell a family, and measures how a suspect errs on them. What
    left-out models and left-out families get says how sure that is.
    """

    name: ClassVar[str] = "model-lineage"
    smallest: ClassVar[Mapping[str, Any]] = {
        "replica": "simulated", "suspect": "b-2", "n_points": 300, "start": 200, "end": 100, "least_evidence": 100,
    }  # fmt: skip

    log: Annotated[Any, Subject("answer_log")] = Field(
        None,
        description="answers of models of known family: a CSV, Parquet or JSON-lines file, a dataframe, or a folder",
    )
    suspect: str = Field("", max_length=300, description="the model in question, by its name in the log")
    suspect_log: Annotated[Any, Subject("answer_log")] = Field(
        None, description="the suspect's own log, where its answers are not in the other"
    )
    gold: Annotated[Any, Subject("table")] = Field(
        None, description="table of right answers (item_id, gold, and dataset and text) where the log has none"
    )
    families: Annotated[Any, Subject("table")] = Field(
        None, description="table of model and family, where the log has no column family"
    )
    rates: Annotated[Any, Subject("table")] = Field(
        None,
        description="table of dataset and rate, the suspect's error rates on other items; by default they are taken "
        "from the evidence itself, which is optimistic",
    )
    endpoint: Annotated[Any, Subject("endpoint")] = Field(
        None,
        description="server of the suspect with the OpenAI interface, http://HOST:PORT/v1; it is asked the items",
    )
    endpoint_model: str = Field("", max_length=300, description="the model's name on that server")
    collected: str = Field(
        "", max_length=1000, description="file that its replies are kept in, as JSON lines, and gone on with"
    )
    at_once: int = Field(8, ge=1, le=256, unit="requests", description="requests under way at most")
    timeout: float = Field(60.0, gt=0, le=3600, unit="s", description="time that the server may take for one reply")
    replica: Literal["simulated", "digits"] | None = Field(
        None, description="models of known lineage made here instead of a log: simulated, or classifiers of digits"
    )
    score: Literal["error_trace", "likelihood", "cosine"] = Field("error_trace", description="the score that decides")
    growth: Literal["paper", "half", "none"] = Field("paper", description="how items join an error space")
    n_points: int = Field(2000, ge=10, le=10_000, unit="items", description="items in each family's graph")
    start: int = Field(1200, ge=4, le=10_000, unit="items", description="size at which an error space begins to shrink")
    end: int = Field(600, ge=2, le=10_000, unit="items", description="size at which it ends")
    min_weight: float = Field(0.05, ge=0, lt=1, unit="1", description="least weight of an item in the graph")
    alpha: float = Field(0.05, gt=0, lt=1, unit="1", description="level of the decision")
    least_evidence: int = Field(
        500, ge=10, le=100_000, unit="items", description="items of evidence the suspect must have answered"
    )

    @model_validator(mode="after")
    def _one_source(self) -> ModelLineage:
        if (self.log is None) == (self.replica is None):
            raise ValueError("it needs either a log or a replica; give one of the two")
        if self.replica is not None and (self.suspect_log is not None or self.endpoint is not None or not self.suspect):
            raise ValueError("a replica has its own suspects; name one with suspect")
        sources = [
            bool(self.suspect) and self.suspect_log is None,
            self.suspect_log is not None,
            self.endpoint is not None,
        ]
        if sum(sources) != 1:
            raise ValueError(
                "the suspect is a model of the log, or has a log of its own, or an endpoint; give one of the three"
            )
        if self.endpoint is not None and not (self.endpoint_model and self.collected):
            raise ValueError("an endpoint needs endpoint_model, and collected for the replies")
        if not self.end < self.start <= self.n_points:
            raise ValueError("end, start and n_points must rise; give end < start <= n_points")
        return self

    def answer(self, run: Run) -> Answer:
        """Gather the answers, make the families' error spaces, and see what the suspect is nearest to."""
        from .estimator import ErrorTracer
        from .tables import figures_of, metrics_of, tables_of

        given = self._given(run)
        if self.rates is not None:
            given = given._replace(rates=_rates(self.rates, given.references))
        run.status("error spaces of the families")
        tracer = ErrorTracer(
            self.n_points, self.start, self.end, self.min_weight, self.growth, self.score, "calibrate", self.alpha,
            self.least_evidence,
        )  # fmt: skip
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            tracer.fit(
                given.references.errors, given.families, datasets=given.references.datasets, embeddings=given.points,
                texts=given.references.texts, accuracy=_accuracies(given.references),
                each=lambda work, items: run.each(work, items, "left out in turn"),
            )  # fmt: skip
        (finding,) = tracer.findings(given.suspect.errors, rates=given.rates)
        tables = tables_of(tracer, given, finding)
        return Answer(
            summary=_summary(given, finding),
            metrics=metrics_of(tracer, given, finding, tables),
            tables=tables,
            figures=figures_of(tracer, given, finding, tables),
            limits=_limits(tracer, given, [*given.notes, *(str(one.message) for one in said)]),
            verdict=_verdict(finding),
        )

    def _given(self, run: Run) -> Given:
        if self.replica is not None:
            return self._replica(run)
        from answerable.subjects.answer_log import read_answer_log

        from .tables import Given

        log = read_answer_log(self.log, gold=self.gold)
        known = _families(self.families) if self.families is not None else dict(log.families)
        others = [model for model in log.models if model in known and model != self.suspect]
        left = [model for model in log.models if model not in known and model != self.suspect]
        if not known:
            mend = "add a column family to it, or name a table of model and family"
            raise BadInput("nothing says of which family its models are", where="model-lineage, field log", mend=mend)
        if not others:
            raise BadInput(
                "no model of known family is left", where="model-lineage, field log", mend="add reference models"
            )
        notes = [f"Left aside, of no known family: {', '.join(left[:10])}."] if left else []
        references = log.of(others)
        suspect, more = self._suspect(run, log, references)
        return Given(references, [known[model] for model in others], suspect, None, notes + more)

    def _suspect(self, run: Run, log: AnswerLog, references: AnswerLog) -> tuple[AnswerLog, list[str]]:
        from answerable.subjects.answer_log import read_answer_log

        if self.endpoint is not None:
            return self._asked(run, references)
        if self.suspect_log is None:
            return log.of([self.suspect]), []
        own = read_answer_log(self.suspect_log, gold=self.gold)
        if not set(own.items) & set(references.items):
            (mine, *_), (theirs, *_) = own.items, references.items
            raise BadInput(
                f"it shares no item with the log: it has {' / '.join(mine)[:60]}, the log {' / '.join(theirs)[:60]}",
                where="model-lineage, field suspect_log", mend="name data sets and items alike in both",
            )  # fmt: skip
        name = self.suspect or own.models[0]
        if len(own.models) > 1 and not self.suspect:
            raise BadInput(
                f"it holds {len(own.models)} models",
                where="model-lineage, field suspect_log",
                mend="name one with suspect",
            )
        return own.of([name]).at(references.items), []

    def _asked(self, run: Run, references: AnswerLog) -> tuple[AnswerLog, list[str]]:
        from answerable.subjects.endpoint import Endpoint

        from .collecting import collect_answers

        server = self.endpoint
        if isinstance(server, str):
            server = Endpoint(server, self.endpoint_model, at_once=self.at_once, timeout=self.timeout)
        asked = collect_answers(
            server, references, self.collected, told=lambda done, total: run.status(f"{done} of {total} answers")
        )
        failed = len(asked.given_up)
        return asked.log, [f"To {failed} questions no answer came; they count as missing."] if failed else []

    def _replica(self, run: Run) -> Given:
        from . import replicas
        from .replicas import log_of
        from .tables import Given

        run.status(f"the {self.replica} replica")
        made = replicas.digits(0) if self.replica == "digits" else replicas.simulated(1500, 0)
        names = [*made.models, *made.others]
        if self.suspect not in names:
            raise unknown("model", self.suspect, names, where="model-lineage, field suspect")
        log = log_of(made)
        others = [model for model in made.models if model != self.suspect]
        references = log.of(others)
        families = [made.families[made.models.index(model)] for model in others]
        return Given(
            references, families, log.of([self.suspect]), made.points, ["The models are a replica's, not a user's."]
        )


def _families(table: Any) -> dict[str, str]:
    from answerable.subjects.table import read_table

    frame = read_table(table)
    for needed in ("model", "family"):
        if needed not in frame.columns:
            raise unknown("column", needed, frame.columns, where="model-lineage, field families")
    found: dict[str, str] = {}
    for model, family in zip(frame["model"], frame["family"]):
        if model is None or family is None or not str(family).strip():
            continue
        if found.setdefault(str(model), str(family)) != str(family):
            said = f"{str(model)[:80]} has two families, {found[str(model)][:60]!r} and {str(family)[:60]!r}"
            raise BadInput(said, where="model-lineage, field families", mend="keep one of them")
    taken = sorted({"none", "undecided"} & set(found.values()))
    if taken:
        raise BadInput(
            f"a family is called {taken[0]!r}", where="model-lineage, field families", mend="call it otherwise"
        )
    return found


def _rates(table: Any, log: AnswerLog) -> np.ndarray:
    """The suspect's error rate on each data set of the log, sorted by name."""
    import numpy as np

    from answerable.subjects.table import read_table

    where, frame = "model-lineage, field rates", read_table(table)
    for needed in ("dataset", "rate"):
        if needed not in frame.columns:
            raise unknown("column", needed, frame.columns, where=where)
    found: dict[str, float] = {}
    for row, (name, rate) in enumerate(zip(frame["dataset"], frame["rate"]), 1):
        try:
            number = float(rate)
        except (TypeError, ValueError):
            number = float("nan")
        if not 0 <= number <= 1:
            raise BadInput(f"{str(rate)[:60]!r} is no rate", where=f"{where}, row {row}", mend="give one from 0 to 1")
        if str(name) in found:
            raise BadInput(f"{str(name)[:60]!r} stands twice", where=f"{where}, row {row}", mend="keep one row of it")
        found[str(name)] = number
    names = sorted(set(log.datasets))
    for name in names:
        if name not in found:
            raise BadInput(f"there is no rate on {name[:60]!r}", where=where, mend="add a row for it")
    return np.array([found[name] for name in names])


def _accuracies(log: AnswerLog) -> np.ndarray | None:
    import numpy as np

    if not log.accuracy:
        return None
    names = np.unique(np.asarray(log.datasets, dtype=str))
    try:
        return np.array([[log.accuracy[model, str(name)] for name in names] for model in log.models])
    except KeyError as missing:
        model, name = missing.args[0]
        raise BadInput(f"{model} has no accuracy on {name}", where="accuracy.csv", mend="add the line") from None


# Words


def _summary(given: Given, finding: Finding) -> str:
    name = given.suspect.models[0][:60]
    if finding.word == "none":
        return f"{name} descends from none of the {len(set(given.families))} families."
    if finding.word == "undecided":
        return f"Nothing is decided about {name}: {_first_clause(finding.reason)}."
    return f"{name} descends from the family {finding.word[:60]}; {_first_clause(finding.reason)}."


def _first_clause(reason: str) -> str:
    return reason if len(reason.split()) <= 24 else " ".join(reason.split()[:24])


def _verdict(finding: Finding) -> Verdict:
    word = "none of these" if finding.word == "none" else finding.word
    mend = "Put more questions to the suspect, or add reference models to the families." if word == "undecided" else ""
    return Verdict(word, _sentence(finding.reason), mend)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _limits(tracer: ErrorTracer, given: Given, notes: list[str]) -> list[str]:
    n = len(given.families)
    limits = [
        "Says whose mistakes the suspect makes, not why: two models taught on the same data err alike.",
        "Whoever knows the weightiest items can repair or forge them; the table of attacks shows how few suffice.",
        f"With {n} reference models no p-value lies below {1 / (n + 1):.3f}.",
        "Strangers are taken to be like families that are left out.",
        "The suspect's own error rates are taken from the same answers as the evidence, which is optimistic."
        if given.rates is None
        else "The suspect's error rates come from other items, those of left-out models from the evidence itself.",
    ]
    if tracer.points_ is None:
        limits.append("The items have no texts and no embedding, so that an error space is all of a family's items.")
    if len(tracer.classes_) < 3:
        limits.append(
            "With two families there is no stranger to compare with: the decision rests on p-values after Holm."
        )
    shares = given.suspect.unreadable
    if len(shares) and shares[0] > UNREADABLE:
        limits.append(f"{shares[0]:.0%} of the suspect's answers name none of the options; they count as missing.")
    limits += [note if note.endswith(".") else _sentence(note) for note in notes]
    return limits
