"""Which heads and MLPs carry this behaviour, and by which path?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "ablation": ["KnockOut", "knock_out"],
        "effects": ["Effects", "PathPatching"],
        "pairs": ["Pair", "Pairs"],
        "positions": ["Place", "effects_at"],
        "solver": ["Direction", "intervened", "random_directions", "steering_direction"],
        "sweep": ["Node", "Patch", "Receiver", "patched", "patched_sets", "patched_through"],
        "targets": ["Mask", "random_nodes", "targeted_mask"],
        "tracing": ["Trace", "trace"],
        "training": ["ComparedTraining", "Training", "compared_training", "train"],
    },
)
