"""Language models: loading them, the places of their parts, and looking inside while they run."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "attention": ["AttentionPatterns", "attention_patterns"],
        "content": ["digest"],
        "hooks": ["capture", "intervene"],
        "next_tokens": ["log_probabilities"],
        "loading": ["LanguageModel", "load"],
        "mapping": ["candidate_maps", "mapped"],
        "memories": ["Memory", "Seen", "memory", "record"],
        "parts": ["HeadWeights", "head_weights", "layer_count", "part"],
        "tokens": ["Tokens", "tokenise", "token_texts"],
    },
)
