"""From which family does this black-box model descend?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "solver": ["Space", "Uniqueness", "error_space", "error_uniqueness", "gain_curve", "grow"],
        "graph": ["densest_distance", "scaled_distances"],
        "rivals": ["centred_cosines", "log_likelihoods"],
        "estimator": ["ErrorTracer"],
        "collecting": ["Asked", "collect_answers"],
    },
)
