"""What the image sheet shows: images and their changed twins, decoded once more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from answerable.subjects.images import decode

from . import views as moves
from .figures import Grey, thumbnail
from .scanning import squared

if TYPE_CHECKING:
    from .reading import Read
    from .reporting import Reported


def pairs_of(found: Reported, read: Read, most: int) -> list[tuple[str, str, Grey, Grey]]:
    """Name, what is said of it, and thumbnails of image and twin, the lowest p-values first.

    Of more images than ``most`` a third are the highest p-values, so that both ends are seen.
    """
    if read.network is None or read.looking is None or not most:
        return []
    p_values = found.decisions.p_values
    order = [int(k) for k in np.argsort(p_values, kind="stable")]
    if len(order) > most:
        last = [k for k in order if not math.isnan(p_values[k])][-(most // 3) :] if most >= 3 else []
        order = order[: most - len(last)] + [k for k in last if k not in order[: most - len(last)]]
    pairs = []
    for k in order:
        pixels = decode(read.asked.sources[k]).pixels
        if pixels is None:
            continue
        pixels = np.ascontiguousarray(squared(pixels, read.network.size))
        size = min(read.network.size, pixels.shape[0])
        drawn = moves.draw(pixels, n_views=read.looking.n_views, size=size, transform=read.looking.transform,
                           views=read.looking.ways, random_state=read.looking.random_state)  # fmt: skip
        shown = int(np.argmax(drawn.flips | drawn.jitters))  # the first view that was changed at all
        cut = moves.crops(pixels, drawn, size)
        twin = moves.changed(cut, drawn)
        picture = read.asked.seen.pictures[k]
        pairs.append((picture.name, _said(found, k), thumbnail(cut[shown]), thumbnail(twin[shown])))
    return pairs


def sheet_title(found: Reported) -> str:
    """The finding of the sheet."""
    flagged, undecided = found.count("flagged"), found.count("undecided")
    words = f"{flagged} of {found.n} images are flagged"
    return f"{words}, {undecided} undecided" if undecided else words


def _said(found: Reported, k: int) -> str:
    p, word = found.decisions.p_values[k], found.decisions.words[k]
    label = {1: ", generated", 0: ", real", None: ""}[found.asked.labels[k]]
    return (f"p {p:.2g}" if not math.isnan(p) else "no p-value") + f"{label}; {word}"
