"""Which input tokens did this output draw on, through all layers?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "bounds": ["attention_rollout", "staircase_bound"],
        "pruning": ["Interval", "Pruned", "prune"],
        "solver": ["AttentionFlow", "CutArc", "Path", "attention_flow"],
    },
)
