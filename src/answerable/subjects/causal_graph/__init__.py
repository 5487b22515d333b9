"""Causal graphs: which concept moves which, and which share a hidden cause. Opening this folder loads nothing."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "graph": ["CausalGraph"],
        "reading": ["digest", "load"],
        "recanting": [
            "RecantingDistrict",
            "RecantingWitness",
            "edges_after",
            "recanting_district",
            "recanting_witness",
        ],
    },
)
