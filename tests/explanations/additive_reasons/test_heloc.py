"""FICO's HELOC table is given out on request only: a file of its format, with made-up values, goes the same ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from answerable.answer import Answer
from answerable.cli import run
from reproductions import additive_reasons as reproduction

COLUMNS = """ExternalRiskEstimate MSinceOldestTradeOpen MSinceMostRecentTradeOpen AverageMInFile NumSatisfactoryTrades
NumTrades60Ever2DerogPubRec NumTrades90Ever2DerogPubRec PercentTradesNeverDelq MSinceMostRecentDelq
MaxDelq2PublicRecLast12M MaxDelqEver NumTotalTrades NumTradesOpeninLast12M PercentInstallTrades
MSinceMostRecentInqexcl7days NumInqLast6M NumInqLast6Mexcl7days NetFractionRevolvingBurden NetFractionInstallBurden
NumRevolvingTradesWBalance NumInstallTradesWBalance NumBank2NatlTradesWHighUtilization PercentTradesWBalance""".split()
WITHOUT_CODES = COLUMNS[:9]  # features whose domain is narrowed to what was recorded


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was not recorded (-9), of no use (-8) or does not apply (-7) stands among ordinary whole numbers."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 100, (300, len(COLUMNS)))
    codes = rng.random(values.shape) < 0.15
    values[codes] = rng.choice([-9, -8, -7], codes.sum())
    bad = values[:, 0] + 20 * (values[:, 8] == -7) + rng.normal(0, 15, 300) < 45
    frame = pd.DataFrame(values, columns=COLUMNS)
    frame.insert(0, "RiskPerformance", np.where(bad, "Bad", "Good"))
    path = tmp_path_factory.mktemp("heloc")
    frame.to_csv(path / reproduction.HELOC, index=False)
    return path


def test_the_reproductions_rows_are_made_of_the_users_own_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "DATA", folder)
    frame = reproduction.heloc()
    X, y = frame.drop(columns="RiskPerformance"), frame["RiskPerformance"]
    model = reproduction.boosting_machine(X, y)
    rows = {name: ours for name, _, ours, _ in reproduction.certificates("HELOC", model, X, 3, 300)}
    assert rows["HELOC: largest difference of scores"] < 1e-10
    assert rows["HELOC: share proved smallest"] == 1
    assert rows["HELOC: random completions that flip a reason"] == 0
    assert rows["HELOC: changes that flip the fitted model"] == 1


def test_an_absent_file_is_said_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "DATA", tmp_path)
    with pytest.raises(reproduction.CannotRead, match=r"heloc_dataset_v1.csv: not at hand.*ANSWERABLE_TEST_DATA"):
        reproduction.heloc()


@pytest.mark.filterwarnings("ignore:JSON formats are in beta")
def test_the_file_goes_in_by_its_path_and_a_domain_leaves_the_codes_out(folder: Path, tmp_path: Path) -> None:
    from interpret.glassbox import ExplainableBoostingClassifier

    frame = pd.read_csv(folder / reproduction.HELOC)
    X, y = frame[COLUMNS], frame["RiskPerformance"]
    options = {"max_rounds": 50, "outer_bags": 1, "interactions": 0, "n_jobs": 1, "random_state": 0}
    machine = ExplainableBoostingClassifier(**options).fit(X, y)
    machine.to_json(str(tmp_path / "ebm.json"))
    # a row without codes, so that it lies in every domain that leaves them out
    plain = int(np.flatnonzero((X[WITHOUT_CODES] >= 0).all(axis=1))[0])
    command = ["ask", "additive-reasons", "--model", str(tmp_path / "ebm.json")]
    command += ["--rows", str(folder / reproduction.HELOC), "--cases", str(plain + 1), "--seed", "0"]
    for name in WITHOUT_CODES:
        command += ["--domain", f"{name}: 0 to 99"]
    assert run([*command, "--save", str(tmp_path / "answer")]) == 0
    features = Answer.load(tmp_path / "answer").tables["features"].frame
    reason = features.filter(features["in_reason"])["feature"].to_list()
    changed = features.filter(features["in_change"])
    assert 0 < len(reason) < len(COLUMNS) and len(changed) > 0
    rng = np.random.default_rng(1)
    completed, flipped = (pd.DataFrame(np.repeat(X.iloc[[plain]].to_numpy(), n, 0), columns=COLUMNS) for n in (2000, 1))
    for name in set(COLUMNS) - set(reason):
        low, high = (0 if name in WITHOUT_CODES else X[name].min()), min(99, X[name].max())
        completed[name] = rng.integers(low, high + 1, 2000)
    decision = machine.predict(X.iloc[[plain]])[0]
    assert (machine.predict(completed) == decision).all()
    for name, value in changed.select("feature", "new_value").iter_rows():
        assert name not in WITHOUT_CODES or 0 <= float(value) <= 99
        flipped[name] = float(value)
    assert machine.predict(flipped)[0] != decision
