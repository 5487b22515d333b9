"""The JSON schema of a dossier, made of the schemas of all questions: editors check and complete dossiers with it."""

from __future__ import annotations

from typing import Any

from answerable import registry
from answerable.question import Question


def dossier_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of a dossier that asks any question of the catalogue."""
    expectation = {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "that": {"type": "string"},
                    "words": {"type": "string"},
                    "why": {"type": "string"},
                    "severity": {"enum": ["fail", "warn"]},
                },
                "required": ["that"],
                "additionalProperties": False,
            },
        ]
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dossier",
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "description": {"type": "string"},
            "seed": {"type": "integer", "minimum": 0},
            "threads": {"type": "integer", "minimum": 1},
            "undecided": {"enum": ["fail", "warn"]},
            "multiplicity": {"enum": ["benjamini-hochberg", "holm", "none"]},
            "ask": {"type": "array", "minItems": 1, "items": {"oneOf": [_ask(kind) for kind in registry.catalogue()]}},
        },
        "required": ["ask"],
        "additionalProperties": False,
        "$defs": {"expectation": expectation},
    }


def _ask(kind: type[Question]) -> dict[str, Any]:
    fields = kind.model_json_schema()
    own = {
        "question": {"const": kind.name, "description": kind.in_plain_words()},
        "name": {"type": "string"},
        "seed": {"type": "integer", "minimum": 0},
        "expect": {
            "anyOf": [{"$ref": "#/$defs/expectation"}, {"type": "array", "items": {"$ref": "#/$defs/expectation"}}]
        },
    }
    return {
        "type": "object",
        "properties": {**own, **fields["properties"]},
        "required": ["question", *fields.get("required", [])],
        "additionalProperties": False,
    }
