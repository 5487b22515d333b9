"""Pictures of model-lineage, each from a plain table and a width in pixels to an Altair chart."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import altair as alt

from answerable.theme import colour, round_edges, steps, style

if TYPE_CHECKING:
    import polars as pl

LABEL = 150  # px left of an axis of names
NARROW = 500  # px of width, below which labels are fewer
SUBTITLE_PX = 6.6  # of a letter of a subtitle
MOST_MODELS = 40  # in the heat map
SCORE_NAMES = {"error_trace": "ErrorTrace", "likelihood": "likelihood", "cosine": "centred cosine"}
AXES = {
    "error_trace": "ErrorTrace score [1]",
    "likelihood": "Mean log-likelihood [nats an item]",
    "cosine": "Centred cosine [1]",
}


def support_chart(
    families: pl.DataFrame, null: pl.DataFrame, width: int, *, suspect: str, score: str
) -> alt.LayerChart:
    """The suspect's score for each family beside those of left-out models of other families.

    Parameters
    ----------
    families : family, score; of the suspect
    null : family, score; one row for each left-out model of another family
    """
    ordered = families.sort("score", descending=True, nulls_last=True, maintain_order=True)["family"].to_list()
    y = alt.Y("family:N", sort=ordered, title="Family", scale=alt.Scale(paddingInner=0.3))
    x = alt.X("score:Q", title=AXES[score])
    others = alt.Chart(null).mark_tick(style=style("baseline-bar"), thickness=2, size=12).encode(x=x, y=y)
    own = alt.Chart(families).mark_point(style=style("estimate"), size=90).encode(x=x, y=y)
    best = ordered[0]
    beaten = null.filter(
        _family(null, best) & (null["score"] >= families.filter(_family(families, best))["score"][0])
    ).height
    return _layered(others, own).properties(
        width=width - LABEL - 20,
        height=44 * len(ordered),
        title=alt.TitleParams(
            f"{_cut(suspect)} is nearest to {_cut(best)}",
            subtitle=_wrapped(
                "Point: the suspect. Ticks: models known to be of another family, left out in turn", width
            ),
        ),
        description=f"For each of {len(ordered)} families the score of {_cut(suspect)} beside those of other models. "
        f"For {_cut(best)}, its largest, {beaten} of {null.filter(_family(null, best)).height} reach as much.",
    )


def contraction_chart(curves: pl.DataFrame, width: int, *, suspect: str, named: str) -> alt.LayerChart:
    """Gain of the suspect as each family's error space is drawn around its weightiest items: family, size, gain."""
    axis = alt.Axis(
        titleAnchor="end", tickCount=6 if width > NARROW else 3
    )  # the scale runs backwards: its end stands at the left
    x = alt.X(
        "size:Q", title="Items in the error space", scale=alt.Scale(reverse=True, nice=False, zero=False), axis=axis
    )
    y = alt.Y("gain:Q", title="Gain [1]", scale=alt.Scale(zero=False))
    layers: list[Any] = []
    for mine in (False, True):
        part = curves.filter(_family(curves, named) if mine else ~_family(curves, named))
        if part.height:
            look = style("ours" if mine else "baseline")
            layers.append(alt.Chart(part).mark_line(style=look).encode(x=x, y=y, detail="family:N"))
    ends = curves.group_by("family", maintain_order=True).last()
    layers.append(alt.Chart(ends).mark_text(style=style("note"), align="left", dx=5).encode(x=x, y=y, text="family:N"))
    own = curves.filter(_family(curves, named))
    rise = own["gain"][-1] - own["gain"][0] if own.height else 0.0
    verb = "rises" if rise > 0 else "falls"
    return _layered(*layers).properties(
        width=width - 40 - 90,
        height=220,
        title=alt.TitleParams(
            f"Toward the core of {_cut(named)}, {_cut(suspect)} {verb} by {abs(rise):.3f}",
            subtitle=_wrapped("Errors above the suspect's own rate, as each family's space shrinks to its core", width),
        ),
        description=f"Gain of {_cut(suspect)} in {curves['family'].n_unique()} shrinking error spaces; in that of "
        f"{_cut(named)} it {verb} by {abs(rise):.3f}.",
    )


def similarity_chart(pairs: pl.DataFrame, models: int, width: int) -> alt.LayerChart:
    """Correlation of errors between models, sorted by family: first, second, similarity; the suspect stands last.

    models : how many there are; fewer may be shown
    """
    names = list(dict.fromkeys(pairs["first"]))
    suspect = names[-1]
    inner = width - LABEL - 30
    most = max(pairs.filter(pairs["first"] != pairs["second"])["similarity"].abs().to_list(), default=0.0) or 0.01
    x = alt.X("second:N", sort=names, title=None, axis=None)
    y = alt.Y("first:N", sort=names, title=None, axis=alt.Axis(labelLimit=LABEL - 10, labelOverlap=True))
    cells = (
        alt.Chart(pairs)
        .mark_rect()
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "similarity:Q",
                scale=alt.Scale(**steps("signed", round_edges(-most, most))),
                legend=alt.Legend(
                    title="Correlation of errors [1]",
                    orient="bottom",
                    titleOrient="top",
                    gradientLength=min(inner, 260),
                ),
            ),
        )
    )
    mine = pairs.filter((pairs["first"] == suspect) & (pairs["second"] != suspect)).sort("similarity", descending=True)
    near = mine["second"][0] if mine.height else suspect
    height = max(160.0, min(inner, 15 * len(names)))
    fewer = f". The {len(names) - 1} most like it of {models - 1}" if len(names) < models else ""
    return _layered(cells).properties(
        width=inner,
        height=height,
        title=alt.TitleParams(
            f"{_cut(suspect)} errs most like {_cut(near)}",
            subtitle=_wrapped(
                f"Correlation of errors, less what all models share; families together, the suspect last{fewer}", width
            ),
        ),
        description=f"Heat map of {len(names)} by {len(names)} models. {_cut(suspect)} stands last "
        f"and is most like {_cut(near)}.",
    )


def attack_chart(attack: pl.DataFrame, width: int, *, suspect: str, family: str) -> alt.LayerChart:
    """Lead of a family over the best other as the suspect's answers are repaired: changed, score, lead (own units)."""
    scaled = attack.with_columns(
        (attack["lead"] / attack.group_by("score").agg(most=_largest()).join(attack, on="score", how="right")["most"])
        .alias("share")
    )  # fmt: skip
    names = list(dict.fromkeys(scaled["score"]))
    shown = scaled.with_columns(scaled["score"].replace_strict(SCORE_NAMES).alias("score_name"))
    colours = alt.Scale(
        domain=[SCORE_NAMES[name] for name in names], range=[colour("ours"), colour("cat2"), colour("cat3")]
    )
    x = alt.X("changed:Q", title="Answers repaired", scale=alt.Scale(nice=False))
    y = alt.Y("share:Q", title="Lead [1]")
    lines = (
        alt.Chart(shown)
        .mark_line(style=style("ours"), point=True)
        .encode(
            x=x, y=y, color=alt.Color("score_name:N", scale=colours, legend=alt.Legend(title=None, orient="bottom"))
        )
    )
    zero = alt.Chart(alt.InlineData(values=[{"line": 0}])).mark_rule(style=style("threshold")).encode(y="line:Q")
    lost = scaled.filter(scaled["lead"] < 0).sort("changed")
    if lost.height:
        finding = (
            f"{lost['changed'][0]} repaired answers hide {_cut(suspect)} from the {SCORE_NAMES[lost['score'][0]]} score"
        )
    else:
        finding = f"{max(scaled['changed'].to_list())} repaired answers hide {_cut(suspect)} from no score"
    return _layered(lines, zero).properties(
        width=width - 70,
        height=200,
        title=alt.TitleParams(
            finding,
            subtitle=_wrapped(
                "Lead over the next family, as a share of its largest; below the line another is nearer", width
            ),
        ),
        description=f"Lead of {_cut(family)} over the next family by number of repaired answers, for {len(names)} "
        f"scores. {finding}.",
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, int((width - 20) / SUBTITLE_PX))


def _layered(*charts: Any) -> Any:
    return alt.layer(*charts)


def _largest() -> Any:
    import polars as pl

    return pl.col("lead").abs().max().clip(lower_bound=1e-12)


def _family(frame: pl.DataFrame, name: str) -> Any:
    return frame["family"] == name


def _cut(text: str) -> str:
    return text if len(text) <= 28 else f"{text[:27]}…"
