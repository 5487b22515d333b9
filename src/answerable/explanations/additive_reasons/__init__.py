"""What is the smallest reason for this decision, and the smallest change that flips it?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "api": [
            "all_reasons",
            "check",
            "explain",
            "is_sufficient",
            "minimum_change",
            "minimum_sufficient_reason",
        ],
        "hardness": ["complexity"],
        "likelihood": ["count_completions", "shapley_values"],
        "mattering": ["redundant_features"],
        "completions": ["Component", "Probability", "at_least_zero"],
        "covers": ["Cover", "cheapest_cover"],
        "minimal": ["minimal_reasons"],
        "redundancy": ["Redundancy", "redundancies"],
        "shapley": ["Shapley", "of_class", "of_probability", "of_probability_over_rows", "of_score"],
        "solver": ["Reasons", "reasons", "sufficient", "tie_class"],
    },
)
