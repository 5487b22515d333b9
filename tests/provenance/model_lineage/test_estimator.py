"""ErrorTracer on replicas of known lineage: who is named, who is not, and what must not change it."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

from answerable.errors import AnswerableError
from answerable.provenance.model_lineage import ErrorTracer
from answerable.provenance.model_lineage.replicas import digits, simulated

SMALL = {"n_points": 300, "start": 200, "end": 100, "least_evidence": 50}


@pytest.fixture(scope="module")
def replica():
    return simulated(1500, 0)


@pytest.fixture(scope="module")
def fitted(replica):
    return ErrorTracer(**SMALL).fit(
        replica.errors, replica.families, datasets=replica.datasets, embeddings=replica.points
    )


def test_left_out_models_are_named_rightly(fitted, replica):
    table = fitted.cross_validate()
    assert (table["error_trace"] == table["family"]).mean() >= 0.8
    assert (table["likelihood"] == table["family"]).mean() >= 0.9
    assert (table["cosine"] == table["family"]).mean() >= 0.9
    assert (fitted.decision_function(replica.errors).argmax(axis=1) == fitted.families_).mean() >= 0.9


def test_what_must_not_change_scores_changes_none(replica, seed):
    rng = np.random.default_rng(seed)
    errors, families, datasets, points = (
        replica.errors,
        np.array(replica.families),
        np.array(replica.datasets),
        replica.points,
    )
    options = SMALL | {"tau": None}
    suspect = errors[:1]
    expected = ErrorTracer(**options).fit(errors[1:], families[1:], datasets=datasets, embeddings=points)
    scores = expected._scores(suspect, None)[0]

    models = 1 + rng.permutation(len(errors) - 1)
    shuffled = ErrorTracer(**options).fit(errors[models], families[models], datasets=datasets, embeddings=points)
    np.testing.assert_allclose(shuffled._scores(suspect, None)[0], scores, atol=1e-12)

    renamed = ErrorTracer(**options).fit(
        errors[1:], ["z" + name for name in families[1:]], datasets=datasets, embeddings=3.7 * points + 1
    )
    np.testing.assert_allclose(renamed._scores(suspect, None)[0], scores, atol=1e-12)

    turned = np.linalg.qr(rng.normal(size=(points.shape[1],) * 2))[0]
    rotated = ErrorTracer(**options).fit(errors[1:], families[1:], datasets=datasets, embeddings=points @ turned)
    assert [set(a.items) for a in rotated.reference_.spaces] == [set(a.items) for a in expected.reference_.spaces]


def test_items_that_everybody_gets_right_change_no_space(replica):
    errors = np.column_stack([replica.errors, np.zeros((len(replica.errors), 50))])
    points = np.vstack([replica.points, np.zeros((50, replica.points.shape[1]))])
    accuracy = np.array([1 - replica.errors.mean(axis=1)]).T
    found = [
        ErrorTracer(**SMALL, tau=None).fit(e, replica.families, embeddings=p, accuracy=accuracy).reference_
        for e, p in ((replica.errors, replica.points), (errors, points))
    ]
    np.testing.assert_allclose(found[0].uniqueness.weight, found[1].uniqueness.weight[:, :1500], atol=1e-12)
    for before, after in zip(found[0].spaces, found[1].spaces):
        np.testing.assert_array_equal(before.items, after.items)


def test_families_by_lot_are_not_told_apart():
    rng = np.random.default_rng(5)
    errors = (rng.random((24, 800)) < 0.4).astype(float)
    tracer = ErrorTracer(n_points=200, start=120, end=60, least_evidence=50).fit(errors, list("abcd") * 6)
    named = tracer.cross_validate()
    assert (named["error_trace"] == named["family"]).mean() < 0.55  # chance is 1/4; 24 models
    words = [finding.word for finding in tracer.findings((rng.random((40, 800)) < 0.4).astype(float))]
    assert np.mean([word in "abcd" for word in words]) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 40)


def test_a_stranger_is_no_member(fitted, replica):
    rng = np.random.default_rng(8)
    strangers = (rng.random((30, 1500)) < replica.errors.mean()).astype(float)
    assert np.mean([word in ("a", "b", "c") for word in fitted.predict(strangers)]) <= 0.2


def test_p_values_count_left_out_models_of_other_families(fitted, replica):
    p_values = fitted.pvalues(replica.errors[:1])[0]
    null = fitted.validation_.scores[0][fitted.families_ != 0, 0]
    own = fitted.decision_function(replica.errors[:1])[0, 0]
    assert p_values[0] == pytest.approx((1 + (null >= own).sum()) / (1 + len(null)))


def test_a_threshold_decides_as_the_paper_does(replica):
    tracer = ErrorTracer(**SMALL, tau=10.0).fit(replica.errors, replica.families, embeddings=replica.points)
    assert set(tracer.predict(replica.errors[:3])) == {"none"}
    tracer.set_params(tau=0.0)
    assert set(tracer.predict(replica.errors[:3])) <= {"a", "b", "c"}
    assert clone(tracer).tau == 0.0


def test_the_evidence_is_what_the_suspect_got_wrong(fitted, replica):
    table = fitted.explain(replica.errors[0], 10)
    assert (replica.errors[0, table["item"].to_numpy()] == 1).all()
    assert table["weight"].is_sorted(descending=True)
    own, others = replica.errors[:8][:, table["item"].to_numpy()], replica.errors[8:][:, table["item"].to_numpy()]
    np.testing.assert_allclose(table["family"], own.mean(axis=0))
    np.testing.assert_allclose(table["others"], others.mean(axis=0))


def test_a_family_whose_space_the_suspect_hardly_answered_has_no_curve(fitted, replica):
    errors = replica.errors[0].copy()
    errors[fitted.reference_.spaces[1].items] = np.nan
    curves = fitted.contraction(errors)
    assert set(curves["family"]) == {"a", "c"}
    assert curves.schema["family"] == pl.String
    assert fitted.findings(errors[None])[0].word != "b"


def test_repairing_hides_and_forging_frames(fitted, replica):
    repaired = fitted.attack_curve(replica.errors[0], "repair", [0, 300, 600], family="a")
    leads = repaired.filter(repaired["score"] == "likelihood")["lead"].to_list()
    assert leads[0] > leads[1] > leads[2]
    assert leads[0] > 0
    forged = fitted.attack_curve(replica.errors[0], "forge", [0, 600], family="b")
    leads = forged.filter(forged["score"] == "likelihood")["lead"].to_list()
    assert leads[0] < leads[1]


def test_two_families_are_enough_and_nothing_tells_a_stranger(replica):
    rows = np.array([family in "ab" for family in replica.families])
    tracer = ErrorTracer(**SMALL).fit(replica.errors[rows], np.array(replica.families)[rows], embeddings=replica.points)
    finding = tracer.findings(replica.errors[:1])[0]
    assert np.isnan(finding.strangers).all()
    assert finding.word in ("a", "b", "none", "undecided")


@pytest.mark.filterwarnings("ignore:error spaces below start")
def test_texts_are_embedded_by_their_words():
    rng = np.random.default_rng(2)
    words = ["alpha", "beta", "gamma", "delta", "omega"]
    texts = [" ".join(rng.choice(words, 4)) for _ in range(300)]
    errors = (rng.random((9, 300)) < 0.4).astype(float)
    tracer = ErrorTracer(n_points=90, start=60, end=30, least_evidence=10, tau=None).fit(
        errors, list("abc") * 3, texts=texts
    )
    assert tracer.points_.shape == (300, 4)
    assert ErrorTracer(n_points=90, start=60, end=30, tau=None).fit(errors, list("abc") * 3).points_ is None


ONE = np.ones((4, 600))


@pytest.mark.parametrize(
    ("errors", "families", "options", "line"),
    [
        (ONE, ["a"] * 4, {}, "families: 1 family; give at least two; what is rare needs others"),
        (ONE, ["a", "b"], {}, "families: 2 entries; give 4"),
        (2 * ONE, list("aabb"), {}, "errors, model 1, item 1: 2 is no error; give 1 for wrong, 0 for right"),
        ([["x"]], ["a"], {}, "errors: no numbers; give 1 for wrong"),
        (ONE, list("aabb"), {"datasets": ["x"]}, "datasets: 1 entries; give 600"),
        (ONE, list("aabb"), {"accuracy": [[1.0]]}, "accuracy: shape (1, 1); give 4 models by 1 data sets"),
        (ONE, list("aabb"), {"embeddings": np.full((600, 2), np.nan)}, "embeddings: embeddings of shape (600, 2)"),
    ],
)
def test_bad_input_is_one_line(errors, families, options, line):
    with pytest.raises(AnswerableError) as raised:
        ErrorTracer().fit(errors, families, **options)
    assert line in str(raised.value)


def test_a_suspect_who_answered_too_little_is_refused(fitted, replica):
    suspect = np.full((1, 1500), np.nan)
    suspect[0, :20] = 1
    with pytest.raises(AnswerableError, match=r"suspect 1: it answered \d+ of \d+ items of evidence; put at least 50"):
        fitted.predict(suspect)
    with pytest.raises(AnswerableError, match="suspects: 3 items, and the references have 1500; align them"):
        fitted.predict(np.ones((1, 3)))
    with pytest.raises(AnswerableError, match="there is no family 'aa'"):
        fitted.explain(replica.errors[0], family="aa")


def test_weak_references_are_warned_of():
    rng = np.random.default_rng(0)
    errors = (rng.random((5, 600)) < 0.4).astype(float)
    with pytest.warns(UserWarning, match="one model alone|error spaces below") as said:
        ErrorTracer(n_points=400, start=300, end=200, tau=None).fit(errors, list("aabbc"))
    assert any("one model alone stands for c" in str(one.message) for one in said)
    assert any("error spaces below start = 300" in str(one.message) for one in said)


@pytest.mark.parametrize("name", ["end", "score", "growth", "alpha"])
def test_a_setting_that_makes_no_sense_is_refused(name):
    with pytest.raises(AnswerableError, match=r"ErrorTracer"):
        ErrorTracer(**{name: {"end": 5000, "score": "size", "growth": "fast", "alpha": 2.0}[name]}).fit(
            ONE, list("aabb")
        )


def test_the_digits_replica_is_traced():
    made = digits(0, draws=1)
    tracer = ErrorTracer(n_points=1000, start=600, end=300, n_jobs=2, least_evidence=100)
    with pytest.warns(UserWarning, match="error spaces below start"):
        tracer.fit(made.errors, made.families, datasets=made.datasets, embeddings=made.points)
    table = tracer.cross_validate()
    assert (table["error_trace"] == table["family"]).mean() >= 0.74
    assert (table["likelihood"] == table["family"]).mean() >= 0.9
    assert (table["cosine"] == table["family"]).mean() >= 0.9
    derived = np.array([made.others[name] != made.gold for name in made.others if name.startswith("mlp-8")], float)
    named = tracer.classes_[tracer._scores(derived, None)[:, 2].argmax(axis=1)]
    assert (named == "mlp").mean() >= 0.8
