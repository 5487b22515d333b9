"""What a stranger tried on model-lineage: contradicting tables, half-read marks, empty evidence, twice the same name."""

import numpy as np
import polars as pl
import pytest

import answerable as aw
from answerable.cli import run
from answerable.errors import AnswerableError
from answerable.provenance.model_lineage.estimator import ErrorTracer
from answerable.provenance.model_lineage.figures import AXES, MOST_MODELS, similarity_chart
from answerable.provenance.model_lineage.replicas import simulated
from answerable.subjects.answer_log import read_answer_log
from tests.provenance.model_lineage.conftest import SIZES, options


def said(**fields):
    with pytest.raises(AnswerableError) as raised:
        aw.ask("model-lineage", store=False, **fields, **SIZES)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def when(condition, value, column):
    return pl.when(condition).then(pl.lit(value)).otherwise(column).alias(column)


def test_a_model_of_two_families_is_refused(table):
    twice = table.with_columns(when((pl.col("model") == "a-2") & (pl.col("item_id") == "3"), "b", "family"))
    assert "a-2 has several families: 'a', 'b'; keep one of them" in said(log=twice, suspect="a-1")
    families = pl.DataFrame({"model": ["a-2", "b-1", "a-2"], "family": ["a", "b", "b"]})
    assert "a-2 has two families, 'a' and 'b'; keep one of them" in said(log=table, suspect="a-1", families=families)


def test_rows_without_model_or_family_say_nothing(table):
    families = table.select("model", "family").unique(maintain_order=True)
    blank = pl.DataFrame({"model": [None, "c-1"], "family": ["q", ""]})
    given = pl.concat([families.filter(pl.col("model") != "c-1"), blank])
    answer = aw.ask("model-lineage", log=table, suspect="a-1", families=given, store=False, **SIZES)
    counted = dict(answer.tables["families"].frame.select("family", "models").iter_rows())
    expected = dict(families.filter(~pl.col("model").is_in(["a-1", "c-1"]))["family"].value_counts().iter_rows())
    assert counted == expected
    assert any("Left aside, of no known family: c-1" in limit for limit in answer.limits)


def test_an_item_of_two_right_answers_is_refused_where_they_mark(table):
    twice = table.with_columns(when(pl.col("model") == "a-2", "7", "gold"))
    assert "has several right answers: " in said(log=twice, suspect="a-1")
    marked = twice.with_columns(correct=pl.col("answer") == table["gold"])
    assert read_answer_log(marked).errors.shape == (len(set(table["model"])), 400)


@pytest.mark.parametrize(
    ("marks", "line"),
    [
        (["yes", "no"], "answer log, column correct, row 1: 'yes' is no score; give a number from 0 to 1, true or"),
        (["", "no"], "answer log, column correct, row 2: 'no' is no score"),
        ([[1.0], [0.0]], r"answer log, column correct: a column of List\(Float64\) holds no scores"),
    ],
)
def test_marks_that_cannot_be_read_are_not_taken_for_missing(marks, line):
    frame = pl.DataFrame({"model": ["m", "m"], "item_id": ["1", "2"], "correct": marks})
    with pytest.raises(AnswerableError, match=line):
        read_answer_log(frame)


def test_marks_that_are_none_are_missing():
    marks = ["True", "false", "N/A", " ", None, "nan", "0.25", "C"]
    frame = pl.DataFrame({"model": ["m"] * 8, "item_id": [str(n) for n in range(8)], "correct": marks})
    np.testing.assert_array_equal(read_answer_log(frame).errors[0], [0, 1, *[np.nan] * 4, 0.75, 0])


def test_half_of_a_surrogate_pair_in_a_reply_is_read(tmp_path):
    line = '{"model": "m", "item_id": "1", "answer": "x \\ud83d", "gold": "x", "family": "a"}\n'
    (tmp_path / "log.jsonl").write_text(line)
    log = read_answer_log(tmp_path / "log.jsonl")
    assert log.answers[0, 0] == "x ?"
    assert log.errors.tolist() == [[0.0]]


@pytest.mark.parametrize("samples", ["5", "[3, null]"])
def test_an_inspect_log_without_samples_is_one_line(tmp_path, samples):
    (tmp_path / "a.json").write_text(f'{{"eval": {{"model": "m"}}, "samples": {samples}}}')
    with pytest.raises(AnswerableError, match=r"a\.json: its samples are no list of objects; write the log again"):
        read_answer_log(tmp_path)


@pytest.mark.parametrize("output", ['"x"', '{"choices": [5]}', '{"choices": 5}', '{"choices": [{"message": 3}]}'])
def test_an_inspect_sample_of_odd_parts_is_no_answer(tmp_path, output):
    sample = f'{{"id": 1, "target": "x", "scores": 3, "output": {output}}}'
    (tmp_path / "a.json").write_text(f'{{"eval": {{"model": "m"}}, "samples": [{sample}]}}')
    assert np.isnan(read_answer_log(tmp_path).errors).all()


def test_answers_that_tell_no_families_apart_are_refused_with_what_to_do(table):
    right = table.with_columns(answer=pl.col("gold"))
    mend = "add items that models get wrong, or lower min_weight, or least_evidence (30)"
    assert f"references: only 0 items tell the families apart; {mend}" in said(log=right, suspect="a-1")


@pytest.mark.parametrize("alike", ["right", "wrong"])
def test_a_suspect_whose_answers_are_all_alike_is_undecided(table, alike):
    other = pl.when(pl.col("gold") == "0").then(pl.lit("1")).otherwise(pl.lit("0"))
    mine = pl.when(pl.col("model") == "a-1").then(pl.col("gold") if alike == "right" else other)
    answer = aw.ask(
        "model-lineage", log=table.with_columns(answer=mine.otherwise("answer")), suspect="a-1", store=False, **SIZES
    )
    assert answer.verdict.word == "undecided"
    assert f"equally {alike}, so that nothing tells" in answer.verdict.reason


def test_a_log_that_names_items_otherwise_is_refused_with_both_names(table):
    own = table.filter(pl.col("model") == "a-1").with_columns(pl.col("item_id") + ".0")
    line = said(log=table.filter(pl.col("model") != "a-1"), suspect_log=own)
    assert "it shares no item with the log: it has " in line
    assert line.endswith("name data sets and items alike in both")


def test_rates_from_other_items_are_used(table, tmp_path):
    others, own = table.filter(pl.col("model") != "b-1"), table.filter(pl.col("model") == "b-1")
    names = sorted(set(table["dataset"]))
    rates = pl.DataFrame({"dataset": [*names, "unused"], "rate": [0.1 * (n + 1) for n in range(len(names))] + [0.5]})
    fields = {"log": others, "suspect_log": own, "store": False, **SIZES}
    answer = aw.ask("model-lineage", rates=rates, **fields)
    plain = aw.ask("model-lineage", **fields)
    log, mine = read_answer_log(others), read_answer_log(own)
    tracer = ErrorTracer(**SIZES, tau=None)
    families = [log.families[model] for model in log.models]
    with pytest.warns(UserWarning, match="shrink from what they hold to half of it"):
        tracer.fit(log.errors, families, datasets=log.datasets, texts=log.texts)
    given = [0.1 * (n + 1) for n in range(len(names))]
    expected = tracer.decision_function(mine.at(log.items).errors, rates=[given])[0]
    found = dict(answer.tables["families"].frame.select("family", "error_trace").iter_rows())
    assert [found[name] for name in tracer.classes_] == pytest.approx(expected)
    assert found != dict(plain.tables["families"].frame.select("family", "error_trace").iter_rows())
    first = answer.tables["attack"].frame.row(0, named=True)  # nothing is repaired yet
    assert first["lead"] == pytest.approx(answer.metrics["lead"].value)
    assert any("error rates come from other items" in limit for limit in answer.limits)
    assert any("which is optimistic" in limit for limit in plain.limits)


@pytest.mark.parametrize(
    ("rates", "line"),
    [
        ({"dataset": ["q"], "rate": [0.1]}, "field rates: there is no rate on "),
        ({"dataset": ["q"], "rate": [1.5]}, "field rates, row 1: '1.5' is no rate; give one from 0 to 1"),
        ({"dataset": ["q"], "rate": [None]}, "field rates, row 1: 'None' is no rate"),
        ({"dataset": ["q", "q"], "rate": ["0.1", "0.1"]}, "field rates, row 2: 'q' stands twice; keep one row of it"),
        ({"dataset": ["q"], "rates": [0.1]}, "field rates: there is no column 'rate'; did you mean 'rates'"),
    ],
)
def test_rates_that_are_none_are_one_line(table, rates, line):
    assert line in said(log=table, suspect="a-1", rates=pl.DataFrame(rates))


def test_rates_of_another_shape_are_refused():
    made = simulated(300, 0)
    tracer = ErrorTracer(100, 60, 30, tau=None, least_evidence=20).fit(made.errors, made.families)
    for rates in ([[0.1, 0.2]], [[2.0]], [[np.nan]]):
        with pytest.raises(AnswerableError, match="give 1 by 1 numbers from 0 to 1, suspects by data sets"):
            tracer.findings(made.errors[:1], rates=rates)


def test_a_suspect_of_a_reference_s_name_stands_apart_in_the_picture(table):
    own = table.filter(pl.col("model") == "b-1").with_columns(
        pl.col("answer").shuffle(seed=0)
    )  # their b-1 is another model
    answer = aw.ask("model-lineage", log=table, suspect_log=own, store=False, **SIZES)
    drawn = answer.figures["similarity"].wide
    assert "b-1 (suspect) errs most like" in str(drawn["title"])
    assert len(answer.tables["left_out"].frame) == len(set(table["model"]))


def test_of_many_models_those_most_like_the_suspect_are_shown():
    names = [f"m{n}" for n in range(MOST_MODELS)]
    pairs = pl.DataFrame(
        [(a, b, 1.0 if a == b else 0.1) for a in names for b in names],
        schema=["first", "second", "similarity"],
        orient="row",
    )
    for models, told in ((100, True), (MOST_MODELS, False)):
        title = similarity_chart(pairs, models, 736).to_dict()["title"]
        assert (f"The {MOST_MODELS - 1} most like it of 99" in " ".join(title["subtitle"])) is told


def test_labels_and_axis_titles_begin_with_capitals(table):
    answer = aw.ask("model-lineage", log=table, suspect="a-1", store=False, **SIZES)
    labels = [metric.label for metric in answer.metrics.values() if metric.label]
    titles = [title for figure in answer.figures.values() for title in _titles(figure.wide) if title]
    assert len(labels) >= 9
    assert len(titles) >= 7
    assert [words for words in (*labels, *titles, *AXES.values()) if not words[0].isupper()] == []


def _titles(part):
    """Axis and legend titles of a chart."""
    if isinstance(part, list):
        for one in part:
            yield from _titles(one)
    elif isinstance(part, dict):
        for name, one in part.items():
            if name in ("x", "y", "color") and isinstance(one, dict):
                for where in (one, one.get("legend"), one.get("axis")):
                    if isinstance(where, dict) and isinstance(where.get("title"), str):
                        yield where["title"]
            yield from _titles(one)


def test_the_command_refuses_in_one_line_and_writes_nothing(tmp_path, capsys, table):
    table.with_columns(correct=pl.lit("yes")).write_csv(tmp_path / "log.csv")
    words = ["ask", "model-lineage", "--log", str(tmp_path / "log.csv"), "--suspect", "a-1", *options(SIZES)]
    assert run([*words, "--store", str(tmp_path / "s"), "--save", str(tmp_path / "saved")]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "log.csv, column correct, row 1: 'yes' is no score" in line
    assert not (tmp_path / "saved").exists()
