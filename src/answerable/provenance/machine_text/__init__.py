"""Was this text written by a language model?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "api": ["ImplicitRewardDetector", "LanguageModelPair", "text_statistics"],
        "solver": ["TextStatistics", "irm_from_logprobs", "statistics_of_tokens", "token_statistics"],
    },
)
