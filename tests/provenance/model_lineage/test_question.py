"""model-lineage asked as a user asks it: from files, from a server, and with whatever can be wrong."""

import polars as pl
import pytest

import answerable as aw
from answerable.cli import run
from answerable.errors import AnswerableError
from tests.provenance.model_lineage.conftest import SIZES, options


def test_a_member_is_traced_from_a_file(tmp_path, table):
    table.write_parquet(tmp_path / "log.parquet")
    answer = aw.ask("model-lineage", log=str(tmp_path / "log.parquet"), suspect="a-3", store=False, **SIZES)
    assert answer.tables["families"].frame["family"][0] == "a"
    assert answer.metrics["scores_agree"].value == 1
    assert answer.verdict.word in ("a", "undecided")
    assert answer.metrics["stranger_p_value"].value <= 0.1
    evidence = answer.tables["evidence"].frame
    assert evidence["text"][0].startswith("Item ")
    assert (evidence["suspect"] != evidence["gold"]).all()
    assert "a-3" not in answer.tables["left_out"].frame["model"]


def test_a_suspect_may_have_a_log_and_the_families_a_table_of_their_own(tmp_path, table):
    own = table.filter(pl.col("model") == "b-1").drop("family")
    others = table.filter(pl.col("model") != "b-1").drop("family")
    families = table.select("model", "family").unique(maintain_order=True)
    answer = aw.ask("model-lineage", log=others, suspect_log=own, families=families, store=False, **SIZES)
    assert answer.tables["families"].frame["family"][0] == "b"
    # The same from one log, where the suspect's row stands in it.
    whole = aw.ask("model-lineage", log=table, suspect="b-1", store=False, **SIZES)
    assert whole.tables["families"].frame.equals(answer.tables["families"].frame)


def test_the_command_answers_and_says_what_is_wrong(tmp_path, capsys, table):
    table.write_csv(tmp_path / "log.csv")
    sizes = [*options(SIZES), "--store", str(tmp_path / "s")]
    assert run(["ask", "model-lineage", "--log", str(tmp_path / "log.csv"), "--suspect", "a-1", *sizes]) == 0
    assert "a-1" in capsys.readouterr().out
    assert run(["ask", "model-lineage", "--log", str(tmp_path / "log.csv"), "--suspect", "a-9", *sizes]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "there is no model 'a-9'; did you mean 'a-1'" in said or "there is no model 'a-9'" in said


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "it needs either a log or a replica; give one of the two"),
        ({"replica": "simulated"}, "a replica has its own suspects; name one with suspect"),
        ({"replica": "simulated", "suspect": "z"}, "field suspect: there is no model 'z'"),
        ({"replica": "simulated", "suspect": "a-1", "start": 10, "end": 20}, "end, start and n_points must rise"),
        ({"log": "x.csv"}, "the suspect is a model of the log, or has a log of its own, or an endpoint"),
        ({"log": "x.csv", "endpoint": "http://127.0.0.1:1/v1"}, "an endpoint needs endpoint_model, and collected"),
    ],
)
def test_fields_that_do_not_fit_are_one_line(fields, line):
    with pytest.raises(AnswerableError) as raised:
        aw.ask("model-lineage", store=False, **fields)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_logs_that_do_not_fit_are_one_line(table):
    def said(**fields):
        with pytest.raises(AnswerableError) as raised:
            aw.ask("model-lineage", store=False, **fields, **SIZES)
        return str(raised.value)

    assert "nothing says of which family its models are" in said(log=table.drop("family"), suspect="a-1")
    one = table.filter(pl.col("family") == "a")
    assert "1 family; give at least two" in said(log=one, suspect="a-1")
    called = pl.DataFrame({"model": ["a-1", "b-1"], "family": ["none", "b"]})
    assert "a family is called 'none'" in said(log=table, suspect="a-2", families=called)
    short = table.filter((pl.col("model") != "a-1") | (pl.col("item_id").cast(pl.Int64) < 9))
    assert "items of evidence; put at least 30 of them to it" in said(log=short, suspect="a-1")
    twice = pl.concat([table, table.head(7)])
    assert said(log=twice, suspect="a-1").count(" / ") == 10  # five rows are named
    both = table.filter(pl.col("model").is_in(["a-1", "a-2"]))
    assert "it holds 2 models; name one with suspect" in said(log=table, suspect_log=both)


def test_answers_that_name_no_option_are_missing_and_said(table):
    verbose = pl.when((pl.col("model") == "a-1") & (pl.col("item_id").cast(pl.Int64) % 5 == 0))
    changed = table.with_columns(
        verbose.then(pl.lit("I would rather not say")).otherwise(pl.col("answer")).alias("answer")
    )
    answer = aw.ask("model-lineage", log=changed, suspect="a-1", store=False, **SIZES)
    assert any("of the suspect's answers name none of the options" in limit for limit in answer.limits)
    assert answer.metrics["evidence"].value < aw.ask(
        "model-lineage", log=table, suspect="a-1", store=False, **SIZES
    ).metrics["evidence"].value  # fmt: skip


def test_hostile_names_reach_no_picture_as_more_than_text(table):
    from answerable.report import drawing

    named = table.with_columns(
        pl.col("family").replace({"a": "<script>alert(1)</script>"}), pl.col("model").replace({"a-1": "=cmd|'x'!A0"})
    )
    answer = aw.ask("model-lineage", log=named, suspect="=cmd|'x'!A0", store=False, **SIZES)
    for figure in answer.figures.values():
        assert "<script>alert" not in figure.svg()
    assert drawing.png(answer.figures["similarity"].wide).startswith(b"\x89PNG")
