"""NaN, infinities and None come back from disk as themselves, and no expectation holds or fails on a number that is not there."""

import math
from pathlib import Path

import pytest

from answerable.answer import Answer, Metric, decode, encode
from answerable.errors import BadInput
from answerable.expectations import parse


def there_and_back(answer: Answer, folder: Path) -> Answer:
    return Answer.load(answer.save(folder))


def test_each_kind_of_missing_number_stays_itself(tmp_path: Path) -> None:
    metrics = {
        "nan": Metric(math.nan, reason="no rows were left"),
        "infinite": Metric(math.inf, -math.inf, math.inf, kind="bounds", method="open"),
        "open": Metric(1.0, low=0.5, kind="one_sided", method="bound"),
        "nan_end": Metric(1.0, low=math.nan, high=2.0, kind="bounds", method="bound"),
        "whole": Metric(3, kind="exact", method="count"),
        "real": Metric(3.0, kind="exact", method="sum"),
    }
    back = there_and_back(Answer("x", metrics), tmp_path / "a").metrics
    assert math.isnan(back["nan"].value)
    assert back["nan"].reason == "no rows were left"
    assert back["nan"].low is None
    assert (back["infinite"].value, back["infinite"].low, back["infinite"].high) == (math.inf, -math.inf, math.inf)
    assert (back["open"].low, back["open"].high) == (0.5, None)
    assert math.isnan(back["nan_end"].low or 0)
    assert isinstance(back["whole"].value, int)
    assert isinstance(back["real"].value, float)


def test_a_missing_number_needs_its_reason() -> None:
    with pytest.raises(BadInput, match="gives no reason"):
        Metric(math.nan)


@pytest.mark.parametrize(
    "text", ["metrics.x > 0", "metrics.x <= 0", "not metrics.x > 0", "metrics.x == 0 ± 1", "metrics.x.value > 0"]
)
def test_an_expectation_over_nan_could_not_run(text: str) -> None:
    outcome = parse(text).check(Answer("x", {"x": Metric(math.nan, reason="no rows were left")}))
    assert outcome.word == "not run"
    assert "no rows were left" in outcome.reason


def test_parameters_keep_their_infinities() -> None:
    value = {"a": [1.5, math.inf, {"b": -math.inf}], "c": None, "d": 1}
    assert decode(encode(value)) == value
    assert math.isnan(decode(encode(math.nan)))
