"""Numbers and names as a reader would write them."""

from __future__ import annotations

from answerable.theme import visible

LONGEST_LABEL = 30
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def shown(text: str) -> str:
    """Text of a file as it may be drawn, at most 30 characters."""
    return visible(text, LONGEST_LABEL)


def small(number: float) -> str:
    """A distance in one digit, ``0.02`` or ``9 × 10⁻⁴``; below 10⁻¹² it is nothing but rounding, and called so."""
    if abs(number) < 1e-12:
        return "less than 10⁻¹²"
    if 0.01 <= abs(number) < 1e4:
        return f"{float(f'{number:.1g}'):g}"
    digit, power = f"{number:.0e}".split("e")
    return f"{digit} × 10{str(int(power)).translate(SUPERSCRIPT)}"
