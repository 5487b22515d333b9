"""All that can be wrong ends in one line that names the place and the mend, from Python and from the command line."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import answerable as aw
from answerable.cli import run
from answerable.errors import AnswerableError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PROSE = "The mill stands on the hill, and nobody in the village knows why it was built so far from the river."


def told(capsys: pytest.CaptureFixture[str], words: list[str], saved: Path) -> str:
    """The one line that a failing command says; nothing is written."""
    assert run(["ask", "machine-text", *words, "--save", str(saved), "--store", str(saved.parent / "store")]) == 2
    said = capsys.readouterr().err.strip()
    assert "Traceback" not in said
    assert not saved.exists()
    return said.splitlines()[-1]


@pytest.fixture
def files(tmp_path: Path, example: Path) -> dict[str, str]:
    """Files by name: good ones, and each with one thing wrong."""
    record = {"tokens": ["a", "b"], "logprobs": [None, -1.0]}
    contents: dict[str, Any] = {
        "texts": [{"text": PROSE, "label": "human"}],
        "labelled": [{"text": PROSE, "label": "dolphin"}],
        "machine": [{"text": PROSE, "label": "machine"}],
        "nothing": [],
        "null": [None],
        "few": [f"{PROSE} {k}" for k in range(18)],
        "short": [f"mill {k}" for k in range(100)],
        "copies": [PROSE] * 100,
        "record": [record],
        "two": [record, record],
        "split": [{"tokens": ["a", "\ud83d"], "logprobs": [None, -1.0]}],
        "other": [{"tokens": ["a", "c"], "logprobs": [None, -1.0]}],
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    for name in ("instruct", "base"):
        shutil.copytree(example / name, tmp_path / name)
    letters = json.loads((tmp_path / "base" / "tokenizer.json").read_text(encoding="utf-8"))
    words = letters["model"]["vocab"]
    words["m"], words["n"] = words["n"], words["m"]
    shutil.copytree(tmp_path / "base", tmp_path / "strange")
    (tmp_path / "strange" / "tokenizer.json").write_text(json.dumps(letters), encoding="utf-8")
    return {path.stem: str(path) for path in tmp_path.iterdir()}


COMMANDS: dict[str, tuple[list[str], str]] = {
    "nothing given": ([], "machine-text: it needs model, or logprobs; give one of the two"),
    "no text": (["--model", "{base}"], "it needs either text or texts; give one of the two"),
    "both texts": (["--model", "{base}", "--text", "a", "--texts", "{texts}"], "it needs either text or texts"),
    "no base": (["--model", "{base}", "--text", "a", "--statistic", "irm"], "irm compares two models; give base too"),
    "both ways": (["--model", "{base}", "--logprobs", "{record}"], "with models or with recorded log-probabilities"),
    "half recorded": (["--logprobs", "{record}", "--human-logprobs", "{record}", "--base-logprobs", "{record}"], "has to be recorded of the human ones"),
    "not recorded": (["--base-logprobs", "{record}"], "recorded log-probabilities of the texts are missing; give logprobs"),
    "not in records": (["--logprobs", "{record}", "--statistic", "lrr"], "log-probabilities alone do not give lrr; choose among auto, loglik"),
    "alpha": (["--model", "{base}", "--text", "a", "--alpha", "0"], "field alpha: it is 0.0, and should be greater than 0"),
    "edges": (["--model", "{base}", "--text", "a", "--edges", "3", "--edges", "2"], "field edges: it is [3.0, 2.0], and should rise from above 0"),
    "statistic": (["--model", "{base}", "--text", "a", "--statistic", "magic"], "magic"),  # the rest is cyclopts' own, in words that change with its versions
    "missing file": (["--model", "{base}", "--texts", "nowhere.csv"], "nowhere.csv"),
    "missing model": (["--model", "nowhere", "--text", "a"], "nowhere"),
    "a label": (["--model", "{base}", "--texts", "{labelled}"], "row 1, label: 'dolphin' says neither human nor machine; write human or machine"),
    "empty list": (["--model", "{base}", "--texts", "{nothing}"], "there is no text; give at least one"),
    "null": (["--model", "{base}", "--texts", "{null}"], "row 1: a NoneType is no text; give a string"),
    "no column": (["--model", "{base}", "--texts", "{texts}", "--column", "txt"], "row 1: there is no column 'txt'; did you mean 'text'?"),
    "no kind": (["--model", "{base}", "--texts", "{texts}", "--kind", "genre"], "row 1: there is no 'genre'; give each row its kind"),
    "kind of a text": (["--model", "{base}", "--text", "a", "--kind", "genre"], "a text given as such has no kind"),
    "same weights": (["--model", "{base}", "--base", "{base}", "--text", "a"], "model and base: both models hold the same weights, so that every score is 0"),
    "tokenizers": (["--model", "{instruct}", "--base", "{strange}", "--text", "the mill"], "texts, text 1: the tokenizers differ at token 4: 'm' (78) and 'm' (79)"),
    "too few humans": (["--model", "{base}", "--text", PROSE, "--human", "{few}", "--alpha", "0.05"], "human: 18 different texts are too few for alpha = 0.05; give at least 19, or a larger alpha"),
    "short humans": (["--model", "{base}", "--text", PROSE, "--human", "{short}"], "human: none of 100 texts has 50 scored tokens; give longer texts, or a smaller min_tokens"),
    "copied humans": (["--model", "{base}", "--text", PROSE, "--human", "{copies}"], "human: one text is too few for alpha = 0.01; give at least 99"),
    "nothing decided": (["--model", "{base}", "--text", PROSE, "--max-tokens", "40"], "only 40 tokens are read and fewer than 50 are undecided; give a larger max_tokens, or a smaller min_tokens"),
    "one model twice": (["--logprobs", "{record}", "--base-logprobs", "{record}"], "logprobs and base_logprobs: both hold the same log-probabilities, so that every score is 0"),
    "half a letter": (["--logprobs", "{split}"], "record 1, token 2: the token holds a lone surrogate; save it as UTF-8"),
    "machine humans": (["--model", "{base}", "--text", PROSE, "--human", "{machine}"], "human, row 1: a calibration text is labelled machine; leave out what machines wrote"),
    "explain": (["--model", "{base}", "--text", PROSE, "--explain", "2"], "explain: there is no text 2; give a number from 1 to 1, or 0 for the highest"),
    "counts": (["--logprobs", "{record}", "--base-logprobs", "{two}"], "logprobs and base_logprobs: there are 1 and 2 records; record the same texts with both models"),
    "tokens": (["--logprobs", "{record}", "--base-logprobs", "{other}"], "logprobs and base_logprobs, record 1: the tokens differ from number 2 on"),
    "texts for records": (["--logprobs", "{texts}"], "record 1: there are no tokens with log-probabilities"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_says_one_line(
    name: str, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, line = COMMANDS[name]
    said = told(capsys, [word.format(**files) if word[0] == "{" else word for word in words], tmp_path / "saved")
    assert line in said


@pytest.mark.parametrize(
    "fields, line",
    [
        ({"texts": [PROSE, 3]}, "row 2: a int is no text"),
        ({"texts": object()}, "texts: a object holds no texts; give a list of texts, a dataframe or a path"),
        ({"texts": b"mill"}, "texts: a bytes holds no texts"),
        ({"texts": (text for text in [PROSE])}, "texts: a generator holds no texts"),
        ({"texts": np.array([3, 4])}, "texts, row 1: a int is no text"),
        ({"text": b"mill"}, "bytes are no text; decode them"),
        ({"text": PROSE, "human": [PROSE, None]}, "human, row 2: a NoneType is no text"),
        ({"texts": {"text": [PROSE], "label": [7]}}, "row 1, label: '7' says neither human nor machine"),
        ({"text": [PROSE, None]}, "field text, entry 2"),
        ({"text": "\ud800"}, "a lone surrogate"),
        ({"text": []}, "field text"),
        ({"text": PROSE, "human": [*(f"{PROSE} {k}" for k in range(8)), "", "x"]}, "8 calibration scores are too few"),
        ({"text": PROSE, "human": 3}, "a int holds no texts"),
        ({"text": PROSE, "max_tokens": 1}, "field max_tokens"),
    ],
)
def test_python_says_one_line(example: Path, fields: dict[str, Any], line: str) -> None:
    with pytest.raises(AnswerableError) as error:
        aw.ask("machine-text", store=False, model=str(example / "base"), alpha=0.1, **fields)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


HOSTILE = [
    "<script>alert(1)</script>" * 4,
    "\x00\x01\x02" * 30,
    "\u202eabc" * 30,
    "𝚏іе" * 40,
    "a" * 200_000,
    "\n" * 400,
]


def test_hostile_texts_are_answered(example: Path) -> None:
    """Markup, control characters, letters turned round, look-alikes, one long text, empty lines."""
    answer = aw.ask(
        "machine-text", store=False, model=str(example / "instruct"), base=str(example / "base"),
        text=[*HOSTILE, PROSE], explain=1,
    )  # fmt: skip
    assert answer.tables["texts"].frame["n_scored"].to_list() == [99, 0, 119, 119, 511, 0, len(PROSE) - 1]
    assert "<script" not in answer.figures["text"].svg()
