"""What does each feed-forward memory store, and would a sparse autoencoder tell more?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "absorption": ["Absorption", "LetterProbes", "absorption", "absorption_of_words", "letter_probes"],
        "alignment": ["Alignment", "expected_largest_cosine"],
        "api": ["FFMemories", "SAEFeatures", "align", "learned_features", "score_features"],
        "catalogue": ["Card", "Catalogue"],
        "feature_sets": ["FeatureSet", "Weights", "memory_features", "normalised", "random_features"],
        "judging": ["Game", "lexical_judge", "make_game"],
        "probing": [
            "Detector",
            "balanced_split",
            "detectors",
            "ravel",
            "sparse_probing",
            "spurious_correlation_removal",
            "targeted_probe_perturbation",
        ],
        "reading": ["Reading"],
        "scores": ["Labelled", "Score", "labelled_scores"],
        "solver": ["MemoryCounts", "contributions", "explained_variance", "k_term_errors", "written_words"],
    },
)
