"""d-separation in graphs with bidirected arcs, by a walk over (node, how it was entered)."""

from __future__ import annotations

from collections.abc import Collection


def connected_to(
    starts: Collection[int],
    held: Collection[int],
    children: list[list[int]],
    parents: list[list[int]],
    siblings: list[list[int]],
) -> set[int]:
    """The nodes outside ``held`` that an open walk leads to from ``starts``.

    A walk is open when each node between its ends lets it through: where two arrowheads meet, the node or a descendant
    of it is held; everywhere else it is not held (Richardson 2003).
    """
    held = set(held)
    open_colliders = set(held)  # held nodes and their ancestors
    todo = list(held)
    while todo:
        fresh = [parent for parent in parents[todo.pop()] if parent not in open_colliders]
        open_colliders.update(fresh)
        todo += fresh
    seen = {(start, False) for start in starts}  # as if entered through a tail
    walk = list(seen)
    while walk:
        here, by_head = walk.pop()
        steps: list[tuple[int, bool]] = []
        if here not in held:
            steps += [(child, True) for child in children[here]]
        # Leaving through an arrowhead at ``here`` makes it a collider where it was entered through one.
        if here in open_colliders if by_head else here not in held:
            steps += [(parent, False) for parent in parents[here]]
            steps += [(sibling, True) for sibling in siblings[here]]
        fresh_steps = [step for step in steps if step not in seen]
        seen.update(fresh_steps)
        walk += fresh_steps
    return {node for node, _ in seen} - held
