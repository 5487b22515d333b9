"""One file of data per architecture family; the table below is the list of all."""

from __future__ import annotations

from answerable.subjects.language_model.families import (
    bert,
    distilbert,
    gemma,
    gpt2,
    gpt_neox,
    llama,
    mixture,
    olmo2,
    opt,
    phi3,
)
from answerable.subjects.language_model.families.family import Family, Fused

FAMILIES: tuple[Family, ...] = (
    llama.FAMILY,
    gemma.FAMILY,
    gpt2.FAMILY,
    gpt_neox.FAMILY,
    opt.FAMILY,
    phi3.FAMILY,
    olmo2.FAMILY,
    bert.FAMILY,
    bert.ROBERTA,
    bert.ELECTRA,
    distilbert.FAMILY,
    mixture.FAMILY,
    mixture.SHARED,
)

BY_MODEL_TYPE: dict[str, Family] = {model_type: family for family in FAMILIES for model_type in family.model_types}

__all__ = ["BY_MODEL_TYPE", "FAMILIES", "Family", "Fused"]
