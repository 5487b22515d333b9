"""Public names are frozen: one that goes needs a deprecation of one minor version, one that comes is written down here."""

import importlib

import pytest

PUBLIC = {
    "answerable": {
        "Answer", "AnswerableError", "BadInput", "Dossier", "Field", "Figure", "Metric", "Question", "Run", "Subject",
        "Table", "Text", "Verdict", "ask", "questions",
    },
    "answerable.report": {"fragment", "html", "report_data", "write"},
    "answerable.mechanisms.attention_flow": {
        "AttentionFlow", "CutArc", "Interval", "Path", "Pruned", "attention_flow", "attention_rollout", "prune",
        "staircase_bound",
    },
    "answerable.mechanisms.path_patching": {
        "ComparedTraining", "Direction", "Effects", "KnockOut", "Mask", "Node", "Pair", "Pairs", "Patch", "PathPatching",
        "Place", "Receiver", "Trace", "Training", "compared_training", "effects_at", "intervened", "knock_out", "patched", "patched_sets", "patched_through", "random_directions",
        "random_nodes", "steering_direction", "targeted_mask", "trace", "train",
    },
    "answerable.subjects.language_model": {
        "AttentionPatterns", "HeadWeights", "LanguageModel", "Memory", "Seen", "Tokens", "attention_patterns",
        "candidate_maps", "capture", "digest", "head_weights", "intervene", "layer_count", "load", "log_probabilities",
        "mapped", "memory", "part", "record", "token_texts", "tokenise",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_the_public_names_are_these(name: str) -> None:
    module = importlib.import_module(name)
    assert set(module.__all__) == PUBLIC[name]
    assert PUBLIC[name] <= set(dir(module))
    for exported in PUBLIC[name]:
        assert getattr(module, exported) is not None
