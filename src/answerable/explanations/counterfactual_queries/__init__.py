"""Which what-if questions may this model be asked at all?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "api": [
            "Admissibility",
            "Excluded",
            "MaximalFeatures",
            "admissible",
            "answerable_queries",
            "is_answerable",
            "maximal_features",
            "naive_meaning",
        ],
        "bar_digits": ["BarDigits", "make_bar_digits"],
        "cells": ["CellClassifier"],
        "closed_form": ["expectation", "propagated_error"],
        "estimator": ["ConceptPredictor", "HybridWarning", "NotAnswerable", "UnseenWarning"],
        "intervals": ["extremes", "independent_extremes", "independent_interval"],
        "solver": ["answerable_masks", "maximal_mask", "offending_mask", "repaired_mask"],
        "tradeoffs": ["feature_sets", "tradeoff"],
    },
)
