"""The statistics: by hand, by a plain version, against sampling, and on a chain whose optimum is known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from answerable.errors import BadInput
from answerable.provenance.machine_text import irm_from_logprobs, statistics_of_tokens, token_statistics
from answerable.provenance.machine_text.solver import STATISTICS, suspicious
from answerable.statistics import aurocs
from tests.oracles.machine_text import TiltedChain, plain_statistics


def random_logits(seed: int, n: int, width: int, other_width: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    rng = np.random.default_rng(seed)
    sides = [torch.tensor(rng.normal(0, 3, (n, w)), dtype=torch.float32) for w in (width, other_width)]
    return sides, torch.tensor(rng.integers(0, min(width, other_width), n))


def arrays(found: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: column.numpy() for name, column in found.items()}


# Token by token


def test_worked_by_hand() -> None:
    """One token, laws (1/2, 1/4, 1/4) and (1/4, 1/2, 1/4); the second word came."""
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
    logits = [torch.tensor(np.log(law)[None], dtype=torch.float32) for law in (p, q)]
    found = arrays(token_statistics(logits, torch.tensor([1])))
    mean = 0.25 * np.log(0.5) + 0.75 * np.log(0.25)
    assert found["log_p"] == pytest.approx(np.log(0.25), abs=1e-6)
    assert found["log_q"] == pytest.approx(np.log(0.5), abs=1e-6)
    assert found["rank"] == 2  # one word is likelier; the other of the same probability does not count
    assert found["entropy"] == pytest.approx(1.5 * np.log(2), abs=1e-6)
    assert found["mean"] == pytest.approx(mean, abs=1e-6)
    variance = 0.25 * np.log(0.5) ** 2 + 0.75 * np.log(0.25) ** 2 - mean**2
    assert found["variance"] == pytest.approx(variance, abs=1e-6)
    text = statistics_of_tokens(found)
    assert text.binoculars == pytest.approx(np.log(4) / -mean, abs=1e-6)
    assert text.lrr == pytest.approx(2.0, abs=1e-6)  # log 4 over log 2
    assert text.irm == text.irm_mean == text.irm_sqrt == pytest.approx(-np.log(2), abs=1e-6)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(2, 40), st.integers(2, 40))
def test_agrees_with_the_plain_version(seed: int, n: int, width: int, other_width: int) -> None:
    logits, ids = random_logits(seed, n, width, other_width)
    found = arrays(token_statistics(logits, ids))
    for name, expected in plain_statistics([side.double().numpy() for side in logits], ids.numpy()).items():
        np.testing.assert_allclose(found[name], expected, rtol=2e-4, atol=2e-5, err_msg=name)
    alone = arrays(token_statistics(logits[:1], ids))
    for name, expected in plain_statistics([logits[0].double().numpy()], ids.numpy()).items():
        np.testing.assert_allclose(alone[name], expected, rtol=2e-4, atol=2e-5, err_msg=name)


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from answerable.provenance.machine_text import solver

    logits, ids = random_logits(1, 50, 30, 33)
    whole = arrays(token_statistics(logits, ids))
    monkeypatch.setattr(solver, "_BLOCK_BYTES", 4 * 30 * 3)
    for name, column in arrays(token_statistics(logits, ids)).items():
        np.testing.assert_allclose(column, whole[name], rtol=1e-5, atol=1e-6)


def test_logits_are_left_as_they_were() -> None:
    logits, ids = random_logits(2, 5, 30, 33)
    before = [side.clone() for side in logits]
    token_statistics(logits, ids)
    assert all(torch.equal(side, kept) for side, kept in zip(logits, before, strict=True))


def test_a_word_that_cannot_come_adds_nothing_to_a_mean() -> None:
    logits = [torch.tensor([[0.0, 0.0, -torch.inf]]), torch.tensor([[0.0, 0.0, -torch.inf]])]
    found = arrays(token_statistics(logits, torch.tensor([0])))
    assert found["entropy"] == pytest.approx(np.log(2), abs=1e-6)
    assert found["mean"] == pytest.approx(-np.log(2), abs=1e-6)


def test_large_logits_do_not_overflow() -> None:
    logits = [torch.tensor([[3e4, 3e4, -3e4]]), torch.tensor([[-3e4, 3e4, 3e4]])]
    found = arrays(token_statistics(logits, torch.tensor([0])))
    assert found["log_p"] == pytest.approx(-np.log(2), abs=1e-6)
    assert all(np.isfinite(column).all() for column in found.values())


def test_fast_detect_is_what_sampling_gives(seed: int) -> None:
    """Bao et al. sample 10,000 texts from the law; the analytic value lies within their error."""
    rng = np.random.default_rng(seed)
    logits, ids = random_logits(seed, 20, 30, 30)
    law = logits[1].double().softmax(1).numpy()
    log_p = logits[0].double().log_softmax(1).numpy()
    draws = np.stack([rng.choice(30, 10_000, p=row / row.sum()) for row in law], axis=1)
    totals = log_p[np.arange(20), draws].sum(axis=1)
    found = statistics_of_tokens(arrays(token_statistics(logits, ids)))
    own = log_p[np.arange(20), ids.numpy()].sum()
    sampled = (own - totals.mean()) / totals.std()
    # The error of a mean of 10,000 is 0.01 standard deviations; that of their spread adds its share.
    error = np.hypot(0.01, abs(sampled) / np.sqrt(2 * 10_000))
    assert found.fast_detect == pytest.approx(sampled, abs=4 * error)


# Text by text


def test_without_tokens_there_is_nothing() -> None:
    empty = statistics_of_tokens({})
    assert empty.n_scored == 0
    assert all(np.isnan(value) for value in empty[1:])


def test_log_probabilities_alone_give_what_they_give() -> None:
    found = statistics_of_tokens({"log_p": np.array([-1.0, -3.0]), "log_q": np.array([-2.0, -2.5])})
    assert (found.n_scored, found.loglik, found.irm) == (2, -2.0, 0.5)
    assert np.isnan([found.logrank, found.lrr, found.entropy, found.fast_detect, found.binoculars]).all()


def test_a_certain_model_gives_infinity_not_an_error() -> None:
    found = statistics_of_tokens({"log_p": np.array([-0.1]), "rank": np.array([1.0])})
    assert (found.logrank, found.lrr) == (-0.0, np.inf)


def test_binoculars_as_its_public_code_has_it() -> None:
    """The surprise averaged over n - 1 tokens, the cross-entropy over n."""
    tokens = {name: np.array([-1.0, -2.0, -3.0]) for name in ("log_p", "log_q", "mean")}
    tokens |= {"rank": np.ones(3), "entropy": np.ones(3), "variance": np.ones(3)}
    assert statistics_of_tokens(tokens, compat=True).binoculars == pytest.approx(1.5 / 2.0)
    assert statistics_of_tokens({n: c[:2] for n, c in tokens.items()}).binoculars == pytest.approx(1.5 / 1.5)


def test_what_falls_for_machines_is_turned_by_a_minus() -> None:
    assert suspicious("binoculars", [0.5, 3.0]).tolist() == [-0.5, -3.0]
    assert suspicious("irm", [0.5, 3.0]).tolist() == [0.5, 3.0]


# Recorded log-probabilities


def test_recorded_log_probabilities_by_hand() -> None:
    policy, reference = [-1.0, -2.0, -0.5, -0.5], [-2.0, -2.5, -1.0, -2.5]
    assert irm_from_logprobs(policy, reference) == pytest.approx(4.0)
    assert irm_from_logprobs(policy, reference, "mean") == pytest.approx(1.0)
    assert irm_from_logprobs(policy, reference, normalize="sqrt") == pytest.approx(2.0)
    assert irm_from_logprobs(reference, policy) == -irm_from_logprobs(policy, reference)
    assert np.isnan(irm_from_logprobs([], []))


@pytest.mark.parametrize(
    "policy, reference, line",
    [
        ([-1.0], [-1.0, -2.0], "there are 1 and 2 log-probabilities"),
        ([-1.0, np.nan], [-1.0, -1.0], "policy_logprobs, token 2: nan is no log-probability"),
        ([-1.0], [0.5], "reference_logprobs, token 1: 0.5 is no log-probability"),
        ([-np.inf], [-1.0], "policy_logprobs, token 1: -inf is no log-probability"),
    ],
)
def test_recorded_numbers_that_are_none(policy: list[float], reference: list[float], line: str) -> None:
    with pytest.raises(BadInput, match=line):
        irm_from_logprobs(policy, reference)


# The chain whose optimum is known


def test_the_score_is_the_reward_up_to_an_affine_map(seed: int) -> None:
    """pi ~ rho exp(R / beta) token by token: the score is R / beta less the logs of the normalisers, to 1e-10."""
    chain = TiltedChain(np.random.default_rng(seed))
    for text in chain.texts(chain.rho, 20, 30):
        score = irm_from_logprobs(chain.log_probs(chain.pi, text), chain.log_probs(chain.rho, text))
        assert score == pytest.approx(chain.reward(text) / chain.beta - chain.log_normalisers(text), abs=1e-10)


def test_a_whole_text_tilted_has_one_normaliser(seed: int) -> None:
    """Over all texts of a length, pi(y) ~ rho(y) exp(R(y) / beta): r = R / beta - log Z, the same Z for every text."""
    chain = TiltedChain(np.random.default_rng(seed), n_words=3)
    texts, log_rho, log_pi, reward, log_z = chain.all_texts_tilted(5)
    assert np.exp(log_pi).sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(log_pi - log_rho, reward / chain.beta - log_z, atol=1e-10)
    assert len(texts) == 3**5


def test_equal_models_give_exactly_nothing_and_swapped_ones_the_opposite(seed: int) -> None:
    logits, ids = random_logits(seed, 12, 25, 25)
    same = statistics_of_tokens(arrays(token_statistics([logits[0], logits[0].clone()], ids)))
    assert same.irm == same.irm_mean == same.irm_sqrt == 0.0
    forth, back = (statistics_of_tokens(arrays(token_statistics(s, ids))) for s in (logits, logits[::-1]))
    assert forth.irm == -back.irm != 0.0


def test_two_texts_read_apart_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [(-rng.exponential(2, n), -rng.exponential(2, n)) for n in (7, 12)]
    together = irm_from_logprobs(*(np.concatenate(side) for side in zip(*parts, strict=True)))
    assert together == pytest.approx(sum(irm_from_logprobs(*part) for part in parts), abs=1e-12)


def test_no_companion_beats_the_likelihood_ratio(seed: int) -> None:
    """Neyman and Pearson: of "drawn from pi" against "drawn from rho" nothing tells more than the ratio itself."""
    chain = TiltedChain(np.random.default_rng(seed))
    n_texts, length = 500, 12
    texts = [*chain.texts(chain.rho, n_texts, length), *chain.texts(chain.pi, n_texts, length)]
    rows = [statistics_of_tokens(arrays(token_statistics(*chain.logits(text)))) for text in texts]
    columns = np.stack([suspicious(name, [getattr(row, name) for row in rows]) for name in STATISTICS], axis=1)
    values, variances = aurocs(np.repeat([0, 1], n_texts), columns)
    ours = STATISTICS.index("irm")
    assert values[ours] > 0.6
    assert (values <= values[ours] + 4 * np.sqrt(variances.sum(axis=1))).all()
    companions = [k for k, name in enumerate(STATISTICS) if not name.startswith("irm")]
    assert values[companions].max() < values[ours]
