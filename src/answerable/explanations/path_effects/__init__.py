"""Through which path does a sensitive attribute move a decision?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "api": ["PathSpecificEffects"],
        "boosting": ["BoostedTrees"],
        "cohort": ["Cohort", "build_cohort"],
        "intensive_care": ["IntensiveCare", "make_intensive_care"],
        "fitted": ["PathEffects"],
        "identification": ["Obstacle", "identify"],
        "solver": ["influence_scores", "stretch_weights", "telescope"],
    },
)
