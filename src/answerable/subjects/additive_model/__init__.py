"""Additive models in one exact form: fitted models, their files, scorecards."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "content": ["digest"],
        "distributions": ["Marginal", "marginals"],
        "form": ["AdditiveModel"],
        "loading": ["load"],
        "parts": ["Pair", "Shape"],
        "ranges": ["Range", "ranges"],
    },
)
