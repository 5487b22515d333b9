"""Auto-interpretation: can whoever has seen some of a feature's texts tell which other texts it is active in?

The benchmark's game: for each feature 14 texts are shown - 2 with its largest activations, 2 drawn in proportion to
their activation, 10 at random without it - and the judge says which it is active in, knowing that it is two to four.
The paper's judge is a large language model. Ours is a fixed rule, the *lexical judge*: words and pairs of words that
were more frequent in the active examples it learned from than in the others vote for a text. It sees form and not
meaning, so it finds superficial features and misses conceptual ones. :func:`questions` and :func:`score` write the game
out and read answers back, so that another judge, human or model, can play it.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

SHOWN_TOP, SHOWN_DRAWN, SHOWN_RANDOM = 2, 2, 10
LEARN_TOP, LEARN_DRAWN = 10, 5
FEWEST_ACTIVE = 15
_WORD = re.compile(r"\w+|[^\w\s]")


class Game(NamedTuple):
    """One feature's game.

    feature : its number
    learn, learn_active : texts to learn from, and whether it is active in each
    shown : texts to tell
    active : whether it is active in each of them
    """

    feature: int
    learn: list[str]
    learn_active: list[bool]
    shown: list[str]
    active: list[bool]


def make_game(feature: int, strengths: npt.NDArray[Any], texts: Sequence[str], rng: np.random.Generator) -> Game | None:
    """The game of one feature, or None where it is active in fewer than 15 texts or silent in fewer than 20.

    Parameters
    ----------
    strengths : (texts,) its largest activation in each, on one side of zero; 0 where it is not active
    """
    active = np.flatnonzero(strengths > 0)
    silent = np.flatnonzero(strengths <= 0)
    if len(active) < FEWEST_ACTIVE or len(silent) < 2 * SHOWN_RANDOM:
        return None
    ranked = active[np.argsort(-strengths[active], kind="stable")]
    # Texts to tell are never texts to learn from: the strongest go to both in turn.
    told_top, learn_top = ranked[1 : 2 * SHOWN_TOP : 2], ranked[0 : 2 * SHOWN_TOP : 2]
    rest = ranked[2 * SHOWN_TOP :]
    more = rest[: LEARN_TOP - len(learn_top)]
    left = rest[len(more) :]
    if len(left) < SHOWN_DRAWN:
        more, left = rest[:-SHOWN_DRAWN], rest[-SHOWN_DRAWN:]
    weight = strengths[left] / strengths[left].sum()
    drawn = rng.choice(left, min(len(left), SHOWN_DRAWN + LEARN_DRAWN), replace=False, p=weight)
    told, learned = drawn[:SHOWN_DRAWN], drawn[SHOWN_DRAWN:]
    quiet = rng.permutation(silent)
    learn = np.concatenate([learn_top, more, learned, quiet[SHOWN_RANDOM : 2 * SHOWN_RANDOM]])
    shown = rng.permutation(np.concatenate([told_top, told, quiet[:SHOWN_RANDOM]]))
    return Game(
        feature,
        [texts[i] for i in learn],
        [bool(strengths[i] > 0) for i in learn],
        [texts[i] for i in shown],
        [bool(strengths[i] > 0) for i in shown],
    )


def lexical_judge(game: Game) -> list[bool]:
    """Which of the shown texts the feature is active in, by words and pairs of words alone.

    Each word or pair votes with the logarithm of how much more often it stood in the active examples than in the
    others (one added to both counts); the strongest vote of a text decides its rank, and the four first are chosen,
    the number that are active in every game.
    """
    counts = {True: Counter[str](), False: Counter[str]()}
    totals = Counter(game.learn_active)
    for text, active in zip(game.learn, game.learn_active):
        counts[active].update(set(_grams(text)))
    votes = {
        gram: math.log((counts[True][gram] + 1) / (totals[True] + 2))
        - math.log((counts[False][gram] + 1) / (totals[False] + 2))
        for gram in {*counts[True], *counts[False]}
    }
    strengths = [sum(sorted((votes.get(g, 0.0) for g in set(_grams(text))), reverse=True)[:3]) for text in game.shown]
    first = sorted(range(len(strengths)), key=lambda place: (-strengths[place], place))[: SHOWN_TOP + SHOWN_DRAWN]
    return [place in first for place in range(len(strengths))]


def accuracy(game: Game, says: Sequence[bool]) -> float:
    """Share of the shown texts that were told right."""
    return sum(a == b for a, b in zip(game.active, says)) / len(game.active)


def chance_accuracy() -> float:
    """What telling four of 14 at random gives on average."""
    n, k = SHOWN_TOP + SHOWN_DRAWN + SHOWN_RANDOM, SHOWN_TOP + SHOWN_DRAWN
    return (k * k + (n - k) * (n - k)) / (n * n)


def questions(games: Sequence[Game]) -> str:
    """The games as JSON Lines, without their answers: ``{"feature", "examples": [{"text", "active"}], "texts"}``."""
    return "".join(
        json.dumps(
            {
                "feature": game.feature,
                "examples": [{"text": text, "active": active} for text, active in zip(game.learn, game.learn_active)],
                "texts": game.shown,
            },
            ensure_ascii=False,
        )
        + "\n"
        for game in games
    )


class Line(NamedTuple):
    """One answer of another judge, and the number of its line, from 1."""

    number: int
    entry: dict[str, Any]


def lines_of(text: str) -> list[Line]:
    """Another judge's answers, one JSON object a line; empty lines count, but say nothing.

    Raises
    ------
    BadInput : a line that is no JSON object, or none at all
    """
    found = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise BadInput("no JSON", where=f"judge, line {number}", mend='{"features", "feature", "active"}') from None
        if not isinstance(entry, dict):
            what = f"a {type(entry).__name__} and no object"
            raise BadInput(what, where=f"judge, line {number}", mend='{"features", "feature", "active"}')
        found.append(Line(number, entry))
    if not found:
        raise BadInput("there are no answers", where="judge", mend="give one line for each game, or leave judge out")
    return found


def score(games: Sequence[Game], answers: Sequence[Line], name: str = "") -> dict[int, float]:
    """Accuracy by feature for another judge's answers, ``{"feature": 7, "active": [0, 5, ...]}`` (places from 0).

    Parameters
    ----------
    name : of the feature set whose games they are

    Raises
    ------
    BadInput : a feature that has no game, is answered twice or not at all, or a place that is not there
    """
    by_feature = {game.feature: game for game in games}
    of = f" of {name}" if name else ""
    found: dict[int, float] = {}
    for number, answer in answers:
        where = f"judge, line {number}"
        feature, places = answer.get("feature"), answer.get("active")
        if type(feature) is not int or feature not in by_feature:
            what = f"there is no game of feature {str(feature)[:40]!r}{of}"
            raise BadInput(what, where=where, mend="answer the games given")
        if feature in found:
            raise BadInput(f"feature {feature}{of} is answered twice", where=where, mend="keep one of the two")
        shown = len(by_feature[feature].shown)
        if not isinstance(places, list) or not all(type(place) is int and 0 <= place < shown for place in places):
            what = f"active is {str(places)[:40]!r}"
            raise BadInput(what, where=where, mend=f"list places from 0 to {shown - 1}")
        found[feature] = accuracy(by_feature[feature], [place in places for place in range(shown)])
    missing = sorted(by_feature.keys() - found.keys())
    if missing:
        raise BadInput(f"feature {missing[0]}{of} has no answer", where="judge", mend="answer every game")
    return found


def read_answers(answers: Sequence[Line], by_set: Mapping[str, Sequence[Game]]) -> dict[str, dict[int, float]]:
    """Accuracy by feature set and feature, from another judge's ``{"features", "feature", "active"}``.

    Raises
    ------
    BadInput : a line that names no set of these, or what :func:`score` refuses
    """
    lines: dict[str, list[Line]] = {}
    for line in answers:
        name = line.entry.get("features")
        if not isinstance(name, str) or name not in by_set:
            where, known = f"judge, line {line.number}", ", ".join(map(repr, by_set))
            raise BadInput(f"no feature set {str(name)[:40]!r}", where=where, mend=f"one of {known}")
        lines.setdefault(name, []).append(line)
    return {name: score(by_set[name], few, name) for name, few in lines.items()}


def _grams(text: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(text)]
    return words + [f"{a} {b}" for a, b in itertools.pairwise(words)]
