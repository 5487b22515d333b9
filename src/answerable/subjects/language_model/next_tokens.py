"""What models think of the next token, over many texts, a few logits at a time.

Texts are cut into pieces that a model can read, pieces of like length share a batch, and the logits of a batch are made
64 tokens at a time and reduced to a few numbers per token before the next ones are made: never more than 64 tokens
times the vocabulary are held for each model (or 8 MB, where a small vocabulary makes that more). Padding stands at the
right and is masked by the attention mask, never by the id of the padding token, which may occur in a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.subjects.language_model import parts
from answerable.subjects.language_model.loading import LanguageModel
from answerable.subjects.language_model.tokens import token_texts

CHUNK_TOKENS, CHUNK_LOGITS = 64, 2_000_000
MOST_TOKENS = 512
BATCH_TOKENS = 4096
SLACK = 8  # tokens of padding that are cheaper than another pass
_PROBE_TOKENS = 4

Long = Literal["truncate", "windows"]
Columns = dict[str, npt.NDArray[Any]]
Reduce = Callable[[list[Any], Any], dict[str, Any]]


class Piece(NamedTuple):
    """A run of tokens that a model reads at once.

    text : number of the text it belongs to, from 0
    ids : token ids
    n_special : how many of the first are the tokenizer's own (a token that begins each text)
    n_left : tokens of the text after this piece that nobody reads
    """

    text: int
    ids: list[int]
    n_special: int
    n_left: int = 0

    @property
    def first_scored(self) -> int:
        """Position of the first token that has something before it and belongs to the text."""
        return max(1, self.n_special)

    @property
    def n_scored(self) -> int:
        """How many tokens of the text have something before them."""
        return max(0, len(self.ids) - self.first_scored)


def pieces(
    lms: Sequence[LanguageModel], texts: Sequence[str], *, max_tokens: int = MOST_TOKENS, long: Long = "truncate"
) -> list[Piece]:
    """Texts as tokens, cut to what may be read at once; all models must see the same ids.

    Parameters
    ----------
    lms : one model or several that are to be compared token by token
    texts : the texts, raw: no chat template is put around them
    max_tokens : longest piece, the tokenizer's own first token included; never more than a model reads
    long : what becomes of a longer text: "truncate" drops the rest, "windows" makes several pieces of it, each read
        without the others

    Returns
    -------
    list of Piece, in the order of the texts; a text without tokens has none

    Raises
    ------
    BadInput : something that is no text, a model without tokenizer, or tokenizers that differ on a text; the line names
        the text (from 1), the first position that differs and both tokens
    """
    most = min([max_tokens, *(limit for lm in lms if (limit := longest(lm)))])
    found: list[Piece] = []
    for number, text in enumerate(texts):
        encoded = [_encoded(lm, text, number) for lm in lms]
        for lm, other in zip(lms[1:], encoded[1:], strict=True):
            _same(lms[0], lm, encoded[0], other, number)
        ids, n_special = encoded[0]
        found += _cut(number, ids, n_special, most, long)
    return found


def longest(lm: LanguageModel) -> int | None:
    """How many tokens the model reads at most; None where its configuration does not say."""
    most = getattr(getattr(lm.model, "config", None), "max_position_embeddings", None)
    return most if isinstance(most, int) and most > 0 else None


def batches(found: Sequence[Piece], batch_tokens: int = BATCH_TOKENS) -> list[list[int]]:
    """Numbers of the pieces that are read together: of like length, with at most ``batch_tokens`` after padding.

    None is padded by more than a third of its length and `SLACK`: a processor reads padding as slowly as text.
    """
    order = sorted(range(len(found)), key=lambda i: -len(found[i].ids))
    groups: list[list[int]] = []
    for i in order:
        length = len(found[i].ids)
        if groups:
            padded = len(found[groups[-1][0]].ids)  # what the group's longest makes of each
            if padded * (len(groups[-1]) + 1) <= batch_tokens and padded <= 4 / 3 * length + SLACK:
                groups[-1].append(i)
                continue
        groups.append([i])
    return groups


def reduced(
    lms: Sequence[LanguageModel],
    batch: Sequence[Piece],
    reduce: Reduce,
    *,
    last: bool = False,
    chunk_tokens: int | None = None,
) -> list[Columns]:
    """One batch through all models; for each scored token what ``reduce`` makes of the models' logits.

    Parameters
    ----------
    lms : the models; each gives logits over its own vocabulary, padded rows included
    batch : pieces, of like length for speed
    reduce : from the logits of at most ``chunk_tokens`` tokens, a list with (c, V) float32 for each model, and the ids
        that came, (c,) int64, to numbers by name, (c,) each. The ids are -1 after the end of a text
    last : whether the law of the token after each piece is reduced too
    chunk_tokens : tokens whose logits are held at once; by default 64, or as many as make two million logits

    Returns
    -------
    for each piece its columns, one row for each scored token (and one more with ``last``)

    Raises
    ------
    BadInput : a model that does not read from left to right, or logits that are no numbers; the line names the text
    """
    import torch

    if not batch:
        return []
    with torch.inference_mode():
        heads = [_head(lm) for lm in lms]
        ids, mask = _padded(batch)
        where = [
            (row, position)
            for row, piece in enumerate(batch)
            for position in range(piece.first_scored - 1, len(piece.ids) - (not last))
        ]
        rows, positions = (torch.tensor(side, dtype=torch.long) for side in zip(*where)) if where else (None, None)
        if rows is None or positions is None:
            return [{} for _ in batch]
        lengths = torch.tensor([len(piece.ids) for piece in batch])
        after = torch.where(positions + 1 < lengths[rows], ids[rows, (positions + 1).clamp(max=ids.shape[1] - 1)], -1)
        trunks = [head.trunk(ids, mask) for head in heads]
        size = chunk_tokens or max(CHUNK_TOKENS, CHUNK_LOGITS // max(_vocabulary(lm) for lm in lms))
        made = []
        for start in range(0, len(where), size):
            part = slice(start, start + size)
            logits = [
                head.logits(trunk, rows[part], positions[part]) for head, trunk in zip(heads, trunks, strict=True)
            ]
            ids_here = after[part].to(logits[0].device)
            made.append({name: column.cpu().numpy() for name, column in reduce(logits, ids_here).items()})
            del logits  # before the next ones are made
    columns = {name: np.concatenate([chunk[name] for chunk in made]) for name in made[0]}
    _all_numbers(lms, batch, where, columns)
    ends = np.cumsum([len(piece.ids) - (not last) - piece.first_scored + 1 for piece in batch])
    return [{name: column[start:end] for name, column in columns.items()} for start, end in zip([0, *ends[:-1]], ends)]


def log_probabilities(
    lm: LanguageModel, texts: Sequence[str], *, max_tokens: int = MOST_TOKENS, batch_tokens: int = BATCH_TOKENS
) -> list[npt.NDArray[np.float64]]:
    """Log-probability of each token of each text, given those before it; texts longer than that are cut.

    Parameters
    ----------
    lm : the model
    texts : raw texts
    max_tokens, batch_tokens : as in `pieces` and `batches`

    Returns
    -------
    for each text (n,) float64 [nats]; the first token has one only if the tokenizer puts one of its own before it

    Raises
    ------
    BadInput : as `pieces` and `reduced`
    """
    found = pieces([lm], texts, max_tokens=max_tokens)
    result = [np.empty(0) for _ in texts]
    for group in batches(found, batch_tokens):
        for i, columns in zip(group, reduced([lm], [found[i] for i in group], of_label), strict=True):
            result[found[i].text] = columns.get("log_probability", np.empty(0)).astype(np.float64)
    return result


def of_label(logits: list[Any], ids: Any) -> dict[str, Any]:
    """The log-probability of the token that came, by the first model."""
    (own,) = logits[:1]
    return {"log_probability": own.gather(1, ids.clamp(min=0)[:, None])[:, 0] - own.logsumexp(1)}


def _encoded(lm: LanguageModel, text: object, number: int) -> tuple[list[int], int]:
    """Ids, and how many of the first are the tokenizer's own; what it adds at the end is left out."""
    where = f"text {number + 1}"
    if not isinstance(text, str):
        raise BadInput(f"a {type(text).__name__} is no text", where=where, mend="give a string")
    if lm.tokenizer is None:
        mend = "give (model, tokenizer)"
        raise BadInput("the model came without a tokenizer", where=lm.name, mend=mend)
    try:
        found = lm.tokenizer(text, verbose=False, return_special_tokens_mask=True)
    except (TypeError, UnicodeError) as failure:  # lone surrogates
        raise BadInput(f"it cannot be turned into tokens ({failure})", where=where, mend="save it as UTF-8") from None
    ids, special = list(found["input_ids"]), list(found["special_tokens_mask"])
    own = [place for place, added in enumerate(special) if not added]
    if not own:
        return [], 0
    _known(lm, ids, where)
    return ids[: own[-1] + 1], own[0]


def _vocabulary(lm: LanguageModel) -> int:
    return int(parts.word_table(lm.model).weight.shape[0])


def _known(lm: LanguageModel, ids: list[int], where: str) -> None:
    rows = _vocabulary(lm)
    wrong = next((i for i in ids if not 0 <= i < rows), None)
    if wrong is not None:
        problem = f"token id {wrong} is not from 0 to {rows - 1}"
        raise BadInput(problem, where=f"{where}, {lm.name}", mend="use this model's tokenizer")


def _same(
    one: LanguageModel, other: LanguageModel, first: tuple[list[int], int], second: tuple[list[int], int], number: int
) -> None:
    if first == second:
        return
    ids, others = first[0], second[0]
    shared = next((k for k, (a, b) in enumerate(zip(ids, others)) if a != b), min(len(ids), len(others)))
    shown = [_shown(lm, tokens, shared) for lm, tokens in ((one, ids), (other, others))]
    raise BadInput(
        f"the tokenizers differ at token {shared}: {shown[0]} and {shown[1]}",
        where=f"text {number + 1}",
        mend="use a model and the base model it was made from",
    )


def _shown(lm: LanguageModel, ids: list[int], place: int) -> str:
    return f"{token_texts(lm, [ids[place]])[0][:40]!r} ({ids[place]})" if place < len(ids) else "nothing"


def _cut(number: int, ids: list[int], n_special: int, most: int, long: Long) -> list[Piece]:
    """The pieces of one text; each begins with the tokenizer's own tokens."""
    special, own = ids[:n_special], ids[n_special:]
    room = most - n_special
    if not own or room < 1:
        return []
    if long == "truncate":
        return [Piece(number, special + own[:room], n_special, max(0, len(own) - room))]
    starts = range(0, len(own), room)
    return [Piece(number, special + own[start : start + room], n_special) for start in starts]


def _padded(batch: Sequence[Piece]) -> tuple[Any, Any]:
    import torch

    longest_here = max(len(piece.ids) for piece in batch)
    ids = torch.zeros(len(batch), longest_here, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, piece in enumerate(batch):
        ids[row, : len(piece.ids)] = torch.tensor(piece.ids)
        mask[row, : len(piece.ids)] = 1
    return ids, mask


def _all_numbers(
    lms: Sequence[LanguageModel], batch: Sequence[Piece], where: list[tuple[int, int]], columns: Columns
) -> None:
    for column in columns.values():
        wrong = np.isnan(column)
        if wrong.any():
            text = batch[where[int(wrong.argmax())][0]].text + 1
            kinds = ", ".join(
                dict.fromkeys(str(next(lm.model.parameters()).dtype).removeprefix("torch.") for lm in lms)
            )
            problem = f"the logits are not finite ({kinds})"
            raise BadInput(problem, where=f"text {text}", mend="load the model in float32")


class _Head(NamedTuple):
    """A model in two halves: all hidden states of a batch, and the logits of some of its tokens.

    trunk : (ids, mask) to what ``logits`` begins with
    logits : (what ``trunk`` gave, rows, positions) to (c, V) float32; rows are asked for in rising order
    """

    trunk: Callable[[Any, Any], Any]
    logits: Callable[[Any, Any, Any], Any]


def _head(lm: LanguageModel) -> _Head:
    """The two halves of a model, tried on four tokens against the whole."""
    import torch

    _reads_forward(lm)
    layer, device = lm.model.get_output_embeddings(), lm.model.get_input_embeddings().weight.device
    cap = getattr(lm.model.config, "final_logit_softcapping", None)

    def trunk(ids: Any, mask: Any) -> Any:
        return parts.backbone(lm)(input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False)[0]

    def logits(hidden: Any, rows: Any, positions: Any) -> Any:
        found = layer(hidden[rows.to(device), positions.to(device)])
        return (found if cap is None else cap * torch.tanh(found / cap)).float()

    def whole(ids: Any) -> Any:
        return lm.model(input_ids=ids.to(device), use_cache=False).logits

    return _Head(trunk, logits) if layer is not None and _halves_agree(trunk, logits, whole) else _one_by_one(whole)


def _one_by_one(whole: Callable[[Any], Any]) -> _Head:
    """For a model with something between output layer and logits: its own pass, the logits of one text at a time."""
    import torch

    def unpadded(ids: Any, mask: Any) -> Any:
        return [row[kept.bool()][None] for row, kept in zip(ids, mask, strict=True)], {}

    def logits(trunk: Any, rows: Any, positions: Any) -> Any:
        ids, kept = trunk
        parts_of_chunk = []
        for row in rows.unique().tolist():
            if row not in kept:
                kept.clear()
                kept[row] = whole(ids[row])[0]
            parts_of_chunk.append(kept[row][positions[rows == row].to(kept[row].device)].float())
        return torch.cat(parts_of_chunk)

    return _Head(unpadded, logits)


def _halves_agree(trunk: Any, logits: Any, whole: Any) -> bool:
    import torch

    ids = torch.arange(_PROBE_TOKENS)[None] + 1
    mask, rows, positions = (
        torch.ones_like(ids),
        torch.zeros(_PROBE_TOKENS, dtype=torch.long),
        torch.arange(_PROBE_TOKENS),
    )
    try:
        halves = logits(trunk(ids, mask), rows, positions)
    except (RuntimeError, TypeError, IndexError):  # widths that do not fit: a projection stands between
        return False
    together = whole(ids)[0].float()
    return halves.shape == together.shape and torch.allclose(halves, together, rtol=1e-3, atol=1e-3, equal_nan=True)


def _reads_forward(lm: LanguageModel) -> None:
    from answerable.subjects.language_model.families import BY_MODEL_TYPE

    family = BY_MODEL_TYPE.get(getattr(lm.model.config, "model_type", ""))
    if (family is not None and not family.causal) or getattr(lm.model.config, "is_encoder_decoder", False):
        mend = "give a model that predicts the next token"
        raise BadInput("the model does not read from left to right", where=lm.name, mend=mend)
