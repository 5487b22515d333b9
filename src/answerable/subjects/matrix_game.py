"""Games as matrices: Gambit's ``.nfg``, GAMUT's ``.game`` and numpy's ``.npz``, in and out. Pickles are refused."""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.atomic import write_bytes
from answerable.errors import BadInput, CannotRead
from answerable.subjects.address import locate
from answerable.subjects.arrays import read_arrays
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle

Floats = npt.NDArray[np.float64]

MOST_BYTES = 2_000_000_000
MOST_CELLS = 50_000_000


class Matrices(NamedTuple):
    """A game of two players.

    Parameters
    ----------
    defender, attacker : (m, n) payoffs of the player who chooses the row and of the one who chooses the column
    title : of the game
    rows, columns : names of the actions; empty where the file has none
    """

    defender: Floats
    attacker: Floats
    title: str = ""
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def read_matrix_game(subject: Any) -> Matrices:
    """A game of two matrices.

    Parameters
    ----------
    subject : path of an ``.nfg`` file (payoffs or outcomes, numbers or fractions), a ``.game`` file or an ``.npz``
        file with the arrays ``defender`` and ``attacker`` (without the second: a zero-sum game); told by content. Or a
        mapping of these arrays, a pair of arrays, one array, or ``Matrices``

    Raises
    ------
    BadInput : payoffs that are no finite numbers, not two players, or matrices of different shapes
    CannotRead, Refused : a missing or damaged file, or a pickle
    """
    where = str(subject) if isinstance(subject, (str, Path)) else "matrix"
    if isinstance(subject, Matrices):
        return _checked(subject, where)
    if isinstance(subject, (str, Path)):
        path = locate(subject, what="an .nfg, .game or .npz file")
        kind = kind_of(path)
        refuse_pickle(path, kind)
        if kind in ("text", "json"):  # a GAMUT file without comments begins with a bracket
            return _checked(_from_text(path, where), where)
        subject = read_arrays(path)
    if isinstance(subject, (list, tuple)) and len(subject) == 2 and np.ndim(subject[0]) == 2:
        subject = {"defender": subject[0], "attacker": subject[1]}
    arrays = read_arrays(subject)
    if "array" in arrays and "defender" not in arrays:
        arrays = {"defender": arrays["array"]}
    if "defender" not in arrays:
        raise BadInput("there is no array 'defender'", where=where, mend="name the payoffs defender and attacker")
    own = arrays["defender"]
    if own.dtype.kind not in "fiub":
        raise BadInput(f"the payoffs are of type {own.dtype}", where=where, mend="give numbers")
    attacker = arrays.get("attacker", -own.astype(np.float64))
    if attacker.dtype.kind not in "fiub":
        raise BadInput(f"the payoffs are of type {attacker.dtype}", where=where, mend="give numbers")
    rows, columns = (tuple(map(str, arrays[name].ravel())) if name in arrays else () for name in ("rows", "columns"))
    return _checked(Matrices(own.astype(np.float64), attacker.astype(np.float64), "", rows, columns), where)


def digest(value: object) -> str | None:
    """SHA-256 of a file's bytes, or of the payoffs."""
    if isinstance(value, (str, Path)):
        return file_digest(locate(value, what="an .nfg, .game or .npz file"))
    game = read_matrix_game(value)
    told = hashlib.sha256(str(game.defender.shape).encode())
    for matrix in (game.defender, game.attacker):
        told.update(np.ascontiguousarray(matrix).tobytes())
    return told.hexdigest()


def write_nfg(game: Matrices, path: str | Path) -> Path:
    """Write Gambit's strategic form: payoffs in pairs, the first player's action varying fastest.

    Raises
    ------
    CannotWrite : there is no room or no right
    """
    m, n = game.defender.shape
    title = game.title.replace("\\", "\\\\").replace('"', '\\"')
    lines = [f'NFG 1 R "{title}" {{ "Defender" "Attacker" }} {{ {m} {n} }}', ""]
    pairs = np.stack([game.defender.T, game.attacker.T], axis=-1).reshape(-1, 2)
    lines += [f"{own!r} {other!r}" for own, other in pairs.tolist()]
    return _written(path, lines)


def write_game(game: Matrices, path: str | Path) -> Path:
    """Write GAMUT's simple form: ``[i j] :`` and both payoffs, or one where the game is zero-sum."""
    m, n = game.defender.shape
    zero_sum = bool((game.defender == -game.attacker).all())
    lines = [f"# {' '.join(game.title.split())}", "# Players:\t2", f"# Actions:\t{m} {n}"]
    for i in range(m):
        for j in range(n):
            payoff = f"{float(game.defender[i, j])!r}" + ("" if zero_sum else f" {float(game.attacker[i, j])!r}")
            lines.append(f"[{i + 1} {j + 1}] :\t[{payoff}]")
    return _written(path, lines)


def write_npz(game: Matrices, path: str | Path) -> Path:
    """Write both matrices, and the names of actions where there are any, as ``.npz`` without objects."""
    arrays: dict[str, Any] = {"defender": game.defender, "attacker": game.attacker}
    arrays |= {name: np.array(names) for name, names in (("rows", game.rows), ("columns", game.columns)) if names}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_bytes(Path(path), buffer.getvalue())
    return Path(path)


def _written(path: str | Path, lines: Iterable[str]) -> Path:
    write_bytes(Path(path), ("\n".join(lines) + "\n").encode())
    return Path(path)


def _checked(game: Matrices, where: str) -> Matrices:
    own, other = game.defender, game.attacker
    if own.ndim != 2 or not own.size:
        raise BadInput(f"payoffs of shape {own.shape}", where=where, mend="give at least one row and one column")
    if own.shape != other.shape:
        raise BadInput(f"shapes {own.shape} and {other.shape}", where=where, mend="give a payoff of each player")
    for name, matrix in (("defender", own), ("attacker", other)):
        bad = np.argwhere(~np.isfinite(matrix))
        if len(bad):
            place = f"{where}, {name}, row {bad[0][0] + 1}, column {bad[0][1] + 1}"
            raise BadInput(f"{matrix[tuple(bad[0])]} is no finite number", where=place, mend="mend the payoff")
    return game


def _from_text(path: Path, where: str) -> Matrices:
    if path.stat().st_size > MOST_BYTES:
        raise CannotRead(f"longer than {MOST_BYTES} bytes", where=where, mend="save it as .npz")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CannotRead("it is not UTF-8", where=where, mend="save it again") from None
    if text.lstrip().startswith("NFG"):
        return _from_nfg(text, where)
    if re.search(r"^\s*\[\s*\d+\s+\d+\s*\]\s*:", text, re.MULTILINE):
        return _from_game(text, where)
    raise CannotRead("this is neither .nfg nor .game", where=where, mend="begin with 'NFG 1 R', or '[1 1] : [ ... ]'")


_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}])|([^\s{}"]+)')


def _from_nfg(text: str, where: str) -> Matrices:
    """NFG 1 R "title" { "player" ... } { sizes or names } ["comment"] payoffs, or { outcomes } numbers."""
    tokens = iter([(m.group(1), m.group(2) or m.group(3)) for m in _TOKEN.finditer(text)])
    try:
        head = [next(tokens)[1] for _ in range(3)]
        if head[:2] != ["NFG", "1"] or head[2] not in ("R", "D"):
            raise CannotRead("the file does not begin with NFG 1 R", where=where, mend="save it as Gambit's NFG")
        title = next(tokens)[0] or ""
        players = _group(tokens)
        sizes = _group(tokens)
    except StopIteration:
        raise CannotRead("the file ends in its heading", where=where, mend="save it again") from None
    if len(players) != 2 or len(sizes) != 2:
        raise BadInput(f"a game of {len(players)} players", where=where, mend="give a game of two")
    names = [tuple(map(str, size)) if isinstance(size, list) else () for size in sizes]
    m, n = (len(size) if isinstance(size, list) else _count(size, where) for size in sizes)
    if m * n > MOST_CELLS:
        raise BadInput(f"{m} x {n} payoffs", where=where, mend="save it as .npz")
    rest = [word for quoted, word in tokens if word is not None]
    if rest[:1] == ["{"]:
        payoffs = _outcomes(text, where, m * n)
    else:
        payoffs = np.array([_payoff(word, where) for word in rest])
        if len(payoffs) != 2 * m * n:
            raise BadInput(f"{len(payoffs)} payoffs for {m} x {n} cells", where=where, mend="give two for each cell")
        payoffs = payoffs.reshape(-1, 2)
    own, other = (np.ascontiguousarray(payoffs[:, k].reshape(n, m).T) for k in range(2))
    return Matrices(own, other, title.replace('\\"', '"'), *names)


def _group(tokens: Iterator[tuple[str | None, str | None]]) -> list[Any]:
    """What stands between two braces, inner groups as lists."""
    if next(tokens)[1] != "{":
        return []
    stack: list[list[Any]] = [[]]
    while True:
        quoted, word = next(tokens)
        if word == "{":
            stack.append([])
        elif word == "}":
            done = stack.pop()
            if not stack:
                return done
            stack[-1].append(done)
        else:
            stack[-1].append(quoted if quoted is not None else word)


def _outcomes(text: str, where: str, cells: int) -> Floats:
    """Payoffs by numbered outcomes: ``{ { "name" 1, 2 } ... }`` and then one number for each cell, 0 for none."""
    body = text[_end_of_heading(text) :]
    closing = body.rindex("}") if "}" in body else 0
    listed = re.findall(r'\{\s*"(?:[^"\\]|\\.)*"([^{}]*)\}', body[: closing + 1])
    values = [[_payoff(word, where) for word in entry.replace(",", " ").split()] for entry in listed]
    if any(len(entry) != 2 for entry in values):
        raise BadInput("an outcome has not two payoffs", where=where, mend="save the game with payoffs")
    numbers = [_count(word, where) for word in body[closing + 1 :].split()]
    if len(numbers) != cells or any(number > len(values) for number in numbers):
        raise BadInput(f"{len(numbers)} outcomes for {cells} cells", where=where, mend="give one for each cell")
    return np.array([[0.0, 0.0], *values])[numbers]


def _end_of_heading(text: str) -> int:
    """Where the two groups of the heading end."""
    depth, groups = 0, 0
    for match in _TOKEN.finditer(text):
        if match.group(2) == "{":
            depth += 1
        elif match.group(2) == "}":
            depth -= 1
            if depth == 0:
                groups += 1
                if groups == 2:
                    return match.end()
    return len(text)


def _from_game(text: str, where: str) -> Matrices:
    entries: dict[tuple[int, int], tuple[float, float]] = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = re.fullmatch(r"\s*\[\s*(\d+)\s+(\d+)\s*\]\s*:\s*\[([^\]]*)\]\s*", line)
        if not found:
            raise CannotRead(f"{line.strip()[:60]!r} is no cell", where=where, mend="write [1 1] : [ 2 3 ]")
        payoffs = [_payoff(word, where) for word in found.group(3).replace(",", " ").split()]
        if len(payoffs) not in (1, 2):
            raise BadInput(f"cell {found.group(1)} {found.group(2)} has {len(payoffs)} payoffs", where=where)
        entries[int(found.group(1)), int(found.group(2))] = (
            payoffs[0],
            payoffs[-1] if len(payoffs) == 2 else -payoffs[0],
        )
    m, n = (max(place[k] for place in entries) for k in range(2))
    first = 0 if any(0 in place for place in entries) else 1
    m, n = m + 1 - first, n + 1 - first
    if m * n > MOST_CELLS or len(entries) != m * n:
        raise BadInput(f"{len(entries)} cells of {m} x {n}", where=where, mend="give each cell once")
    told = np.empty((m, n, 2))
    for (i, j), payoff in entries.items():
        told[i - first, j - first] = payoff
    return Matrices(told[:, :, 0].copy(), told[:, :, 1].copy())


def _count(word: Any, where: str) -> int:
    text = str(word)
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise BadInput(f"{text[:40]!r} is no number of actions", where=where, mend="give whole numbers")
    return int(text)


def _payoff(word: str, where: str) -> float:
    word = word.strip(",")
    try:
        value = float(Fraction(word)) if "/" in word else float(word)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise BadInput(f"{word[:40]!r} is no payoff", where=where, mend="give numbers or fractions") from None
    if not math.isfinite(value):
        raise BadInput(f"{word[:40]!r} is no finite payoff", where=where, mend="give numbers")
    return value
