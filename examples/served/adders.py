"""Writes adders.csv: 24 programs of three families that add badly, each family in its own way.

python examples/served/adders.py
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

ITEMS, MEMBERS = 40, 8
FAMILIES = {
    "forgets the carry": lambda a, b, c: c == a // 10 * 10 + b // 10 * 10 + (a + b) % 10,
    "miscounts by one": lambda a, b, c: abs(c - a - b) == 1,
    "reads last digits": lambda a, b, c: c % 10 == (a + b) % 10,
}
OFFS = (0, -10, 10, 1, -1)  # how the sum that is asked of differs from the right one


def rows() -> list[tuple[str, ...]]:
    """One answer each: model, family, item, answer, right answer, question."""
    chance = random.Random(0)
    asked = []
    for number in range(ITEMS):
        a, b = chance.randint(15, 49), chance.randint(15, 49)
        asked.append((a, b, a + b + OFFS[number % len(OFFS)]))
    found = []
    for family, rule in FAMILIES.items():
        for member in range(1, MEMBERS + 1):
            keeps_to_it = chance.uniform(0.6, 0.95)
            for number, (a, b, c) in enumerate(asked):
                right = c == a + b
                said = rule(a, b, c) if chance.random() < keeps_to_it else right
                yes_or_no = ("no", "yes")
                found.append(
                    (f"{family} {member}", family, str(number), yes_or_no[said], yes_or_no[right],
                     f"Is {a} + {b} equal to {c}?")
                )  # fmt: skip
    return found


if __name__ == "__main__":
    with open(Path(__file__).with_name("adders.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("model", "family", "item_id", "answer", "gold", "text"))
        writer.writerows(rows())
