"""What can be questioned: the only code that opens files and loads models.

Opening this folder loads nothing: a subject's module is imported when it is first needed. A digest never needs torch.
"""

from __future__ import annotations

import importlib

import lazy_loader

from answerable.errors import unknown

SUBJECTS = {
    "language_model": "answerable.subjects.language_model",
    "table": "answerable.subjects.table",
    "additive_model": "answerable.subjects.additive_model",
    "causal_graph": "answerable.subjects.causal_graph",
    "concept_table": "answerable.subjects.concept_table",
    "arrays": "answerable.subjects.arrays",
    "texts": "answerable.subjects.texts",
    "corpus": "answerable.subjects.corpus",
    "sparse_autoencoder": "answerable.subjects.sparse_autoencoder",
    "token_logprobs": "answerable.subjects.token_logprobs",
    "movements": "answerable.subjects.movements",
    "infrastructure": "answerable.subjects.infrastructure",
    "streets": "answerable.subjects.streets",
    "census_blocks": "answerable.subjects.census_blocks",
    "matrix_game": "answerable.subjects.matrix_game",
    "word_list": "answerable.subjects.word_list",
    "answer_log": "answerable.subjects.answer_log",
    "endpoint": "answerable.subjects.endpoint",
    "images": "answerable.subjects.images",
    "vision_backbone": "answerable.subjects.vision_backbone",
}

__getattr__, __dir__, _exported = lazy_loader.attach(
    __name__,
    submod_attrs={
        "answer_log": ["AnswerLog", "read_answer_log"],
        "arrays": ["read_arrays"],
        "concept_table": ["read_concepts", "read_partition"],
        "census_blocks": ["read_blocks"],
        "conversion": ["convert"],
        "corpus": ["Corpus", "read_corpus"],
        "images": ["ImageSource", "Picture", "decode", "list_images"],
        "infrastructure": ["read_infrastructure"],
        "matrix_game": ["read_matrix_game", "write_game", "write_nfg", "write_npz"],
        "movements": ["read_movebank"],
        "streets": ["read_streets"],
        "sparse_autoencoder": ["SparseAutoencoder", "read_sparse_autoencoder"],
        "endpoint": ["Endpoint"],
        "table": ["as_table", "read_column", "read_table"],
        "texts": ["read_text", "read_texts"],
        "token_logprobs": ["RecordedTokens", "read_token_logprobs"],
        "word_list": ["read_word_list"],
        "vision_backbone": ["VisionBackbone"],
    },
)
__all__ = ["SUBJECTS", "digest", *_exported]


def digest(kind: str, value: object) -> str | None:
    """SHA-256 of what a subject holds: never of its name, its path or its dates.

    Parameters
    ----------
    kind : a key of ``SUBJECTS``
    value : an address, or the live object itself

    Returns
    -------
    64 hexadecimal digits, or None for a live object whose content cannot be told from its parts

    Raises
    ------
    UnknownName : there is no such kind
    CannotRead, Refused : the address leads to nothing, or to something that is not read
    """
    if kind not in SUBJECTS:
        raise unknown("kind of subject", kind, SUBJECTS)
    found: str | None = importlib.import_module(SUBJECTS[kind]).digest(value)
    return found
