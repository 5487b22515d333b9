"""Which features carry the target, and which only suppress noise?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "aggregation": ["input_importance"],
        "components": ["check_components", "components_of"],
        "estimator": ["PatternGAM", "PatternQLR"],
        "metrics": ["emda", "fni_emda", "ima"],
        "nam": ["NAMEnsemble"],
        "solver": ["TermScores", "activation_pattern", "quadratic_features", "quadratic_terms", "term_scores"],
        "streaming": ["streamed_scores"],
        "xai_tris": ["make_xai_tris"],
    },
)
