"""Next-token numbers over many texts: against the model's own loss, a token-by-token loop, and one text at a time."""

import numpy as np
import pytest
import torch

from answerable.errors import BadInput
from answerable.subjects.language_model import LanguageModel, log_probabilities, next_tokens
from answerable.subjects.language_model.next_tokens import Piece, batches, of_label, pieces, reduced
from tests.subjects.tiny_models import TINY, WORDS, tiny
from tests.subjects.tiny_tokenizers import spelled

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ENCODERS = ("bert", "roberta", "electra", "distilbert")
DECODERS = [name for name in TINY if name not in ENCODERS]


def rows(lengths: list[int], seed: int = 3) -> list[Piece]:
    """Random pieces; id 0, which stands for padding in a batch, occurs inside them."""
    rng = np.random.default_rng(seed)
    made = [Piece(k, rng.integers(0, WORDS, n).tolist(), 0) for k, n in enumerate(lengths)]
    for piece in made:
        piece.ids[len(piece.ids) // 2] = 0
    return made


def scored(lm: LanguageModel, batch: list[Piece], **more: int) -> list[np.ndarray]:
    return [columns.get("log_probability", np.empty(0)) for columns in reduced([lm], batch, of_label, **more)]


def by_loop(lm: LanguageModel, ids: list[int]) -> list[float]:
    """Each prefix by itself through the whole model."""
    with torch.no_grad():
        laws = [lm.model(torch.tensor([ids[:t]])).logits[0, -1].double().log_softmax(0) for t in range(1, len(ids))]
    return [float(law[token]) for law, token in zip(laws, ids[1:], strict=True)]


@pytest.mark.parametrize("name", DECODERS)
def test_every_family_agrees_with_a_token_by_token_loop(name: str) -> None:
    (piece,) = rows([7])
    (found,) = scored(tiny(name), [piece])
    np.testing.assert_allclose(found, by_loop(tiny(name), piece.ids), atol=1e-4)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "mistral"])
def test_the_sum_is_the_loss_of_transformers(name: str) -> None:
    (piece,) = rows([11])
    ids = torch.tensor([piece.ids])
    with torch.no_grad():
        loss = tiny(name).model(ids, labels=ids).loss
    assert scored(tiny(name), [piece])[0].sum() == pytest.approx(-float(loss) * 10, abs=1e-4)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "opt 350m"])
@pytest.mark.parametrize("chunk_tokens", [1, 5, 64])
def test_a_batch_of_mixed_lengths_equals_one_by_one(name: str, chunk_tokens: int) -> None:
    batch = rows([9, 2, 17, 5, 1, 30, 3, 12])
    together = scored(tiny(name), batch, chunk_tokens=chunk_tokens)
    for piece, found in zip(batch, together, strict=True):
        assert len(found) == len(piece.ids) - 1
        np.testing.assert_allclose(found, scored(tiny(name), [piece])[0], atol=1e-4)


@pytest.mark.parametrize("name", ["llama", "opt 350m"])
def test_no_more_than_a_chunk_of_logits_is_held(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    def look(logits: list[torch.Tensor], ids: torch.Tensor) -> dict[str, torch.Tensor]:
        seen.append(tuple(logits[0].shape))
        return of_label(logits, ids)

    monkeypatch.setattr(next_tokens, "CHUNK_LOGITS", 0)
    reduced([tiny(name)], rows([40, 33, 50]), look)
    assert {width for _, width in seen} == {WORDS}
    assert [count for count, _ in seen] == [64, 56]


def test_two_models_of_different_width_keep_their_own_vocabularies() -> None:
    """A padded vocabulary takes part in the law; truncating before normalising would change it."""
    one, other = tiny("llama"), padded(tiny("qwen2"), WORDS + 14)

    def both(logits: list[torch.Tensor], ids: torch.Tensor) -> dict[str, torch.Tensor]:
        return {str(side.shape[1]): of_label([side], ids)["log_probability"] for side in logits}

    (piece,) = rows([9])
    (found,) = reduced([one, other], [piece], both)
    assert set(found) == {str(WORDS), str(WORDS + 14)}
    np.testing.assert_allclose(found[str(WORDS + 14)], by_loop(other, piece.ids), atol=1e-4)


def padded(lm: LanguageModel, width: int) -> LanguageModel:
    import copy

    model = copy.deepcopy(lm.model)
    model.resize_token_embeddings(width, mean_resizing=False)
    return LanguageModel(model.eval(), None, lm.name, None)


def test_the_law_after_the_end_is_there_when_asked_for() -> None:
    (piece,) = rows([5])

    def look(logits: list[torch.Tensor], ids: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"id": ids, "largest": logits[0].amax(1)}

    (found,) = reduced([tiny("llama")], [piece], look, last=True)
    assert found["id"].tolist() == [*piece.ids[1:], -1]
    with torch.no_grad():
        logits = tiny("llama").model(torch.tensor([piece.ids])).logits[0]
    np.testing.assert_allclose(found["largest"], logits.amax(1), atol=1e-5)


def test_nothing_to_score_gives_nothing() -> None:
    assert reduced([tiny("llama")], [Piece(0, [4], 0)], of_label) == [{}]
    assert reduced([tiny("llama")], [], of_label) == []


@pytest.mark.parametrize("name", ENCODERS)
def test_a_model_that_reads_both_ways_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="does not read from left to right"):
        reduced([tiny(name)], rows([5]), of_label)


def test_logits_that_are_no_numbers_name_the_text_and_the_format() -> None:
    import copy

    model = copy.deepcopy(tiny("llama").model)
    with torch.no_grad():
        model.get_input_embeddings().weight[7] = torch.nan
    broken = LanguageModel(model, None, "broken", None)
    batch = [Piece(0, [1, 2, 3], 0), Piece(4, [1, 7, 3], 0)]
    with pytest.raises(BadInput, match=r"^text 5: the logits are not finite \(float32\); load the model in float32"):
        reduced([broken], batch, of_label)


# From texts to pieces


def test_without_a_first_token_of_its_own_the_first_is_not_scored() -> None:
    (piece,) = pieces([spelled(tiny("llama"))], ["abcd"])
    assert (piece.n_special, piece.first_scored, piece.n_scored) == (0, 1, 3)


def test_with_one_every_token_of_the_text_is() -> None:
    (piece,) = pieces([spelled(tiny("llama"), begin=True, end=True)], ["abcd"])
    assert len(piece.ids) == 5  # what the tokenizer adds at the end is not the text's
    assert (piece.n_special, piece.first_scored, piece.n_scored) == (1, 1, 4)


def test_long_texts_are_cut_or_read_in_windows() -> None:
    lm = spelled(tiny("llama"), begin=True)
    cut = pieces([lm], ["abcdefgh"], max_tokens=4)
    windows = pieces([lm], ["abcdefgh"], max_tokens=4, long="windows")
    assert [len(piece.ids) for piece in cut] == [4]
    assert [len(piece.ids) for piece in windows] == [4, 4, 3]
    assert all(piece.ids[0] == cut[0].ids[0] for piece in windows)
    assert sum(piece.n_scored for piece in windows) == 8


def test_no_piece_is_longer_than_the_model_reads() -> None:
    (piece,) = pieces([spelled(tiny("llama"))], ["ab" * 100])
    assert len(piece.ids) == 64


def test_a_text_without_tokens_has_no_piece() -> None:
    assert [piece.text for piece in pieces([spelled(tiny("llama"), begin=True)], ["", "ab", ""])] == [1]


def test_tokenizers_that_differ_name_the_text_the_place_and_both_tokens() -> None:
    one, other = spelled(tiny("llama")), spelled(tiny("qwen2"), letters="abdc")
    assert pieces([one, other], ["ab"])[0].ids == [4, 5]
    with pytest.raises(
        BadInput, match=r"^text 2: the tokenizers differ at token 1: 'c' \(6\) and 'c' \(7\); use a model"
    ):
        pieces([one, other], ["ab", "acb"])
    with pytest.raises(BadInput, match=r"the tokenizers differ at token 0: '\[B\]' \(2\) and 'a' \(4\)"):
        pieces([spelled(tiny("llama"), begin=True), one], ["ab"])


@pytest.mark.parametrize("text", [None, 3, b"ab", ["ab"]])
def test_what_is_no_text_is_named(text: object) -> None:
    with pytest.raises(BadInput, match=f"^text 2: a {type(text).__name__} is no text"):
        pieces([spelled(tiny("llama"))], ["ab", text])


def test_batches_are_of_like_length_and_within_their_size() -> None:
    found = rows([3, 30, 4, 31, 5, 100, 2])
    groups = batches(found, 64)
    assert sorted(i for group in groups for i in group) == list(range(7))
    sizes = [[len(found[i].ids) for i in group] for group in groups]
    assert sizes == [[100], [31, 30], [5, 4, 3, 2]]
    # A third of 60 and 8 more is the most that 60 is padded by.
    for longest, together in ((88, 1), (89, 2)):
        assert len(batches(rows([60, longest]), 1000)) == together


def test_log_probabilities_of_texts() -> None:
    lm = spelled(tiny("llama"))
    texts = ["abcdef", "", "b", "dcba" * 5]
    found = log_probabilities(lm, texts, batch_tokens=16)
    assert [len(one) for one in found] == [5, 0, 0, 19]
    ids = pieces([lm], texts)[0].ids
    np.testing.assert_allclose(found[0], by_loop(lm, ids), atol=1e-4)
