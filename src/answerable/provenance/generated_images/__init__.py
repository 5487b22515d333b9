"""Was this image generated?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "api": ["ConsistencyDetector", "DirectionCheck", "tangent_alignment"],
        "estimator": ["FlowConsistencyDetector"],
        "features": ["Features", "extract_features", "read_features"],
        "flow": ["AffineCouplingFlow", "flow_loss"],
        "solver": ["alignment", "dissimilarities", "manifold_gap", "scores"],
        "views": ["TRANSFORMS", "Transform"],
    },
)
