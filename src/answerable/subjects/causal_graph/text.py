"""Graphs as text: DOT (``digraph { A -> B }``), dagitty (``dag { A <-> B }``), or the bare statements of either.

One small grammar reads both. Statements are nodes or chains of ``->``, ``<-`` and ``<->``, whose members may be groups
in braces; attributes stand in brackets. What it does not know, it refuses by line. A bidirected arc is ``A <-> B``, in
DOT also ``A -> B [dir=both]``; nodes marked ``latent``, ``unobserved`` or ``observed=no`` are hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from answerable.errors import BadInput
from answerable.subjects.causal_graph.graph import MOST_EDGES, Edge

DEEPEST_GROUP = 50

_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]+|//[^\n]*|^[ \t]*\#[^\n]*|/\*(?s:.*?)\*/)
      | (?P<arrow><->|->|<-|--|@-@|@->|<-@|@--|--@)
      | "(?P<quoted>(?:[^"\\]|\\.)*)"
      | (?P<word>[\w.%']+|-?(?:\.\d+|\d+(?:\.\d*)?))
      | (?P<mark>[{}\[\]=;,:])
    """,
    re.VERBOSE | re.MULTILINE,
)
_HEADS = re.compile(r"\s*(?:(?:strict\s+)?(?:di)?graph|dag|pdag|mag|pag)\b", re.IGNORECASE)
_HIDDEN = {"latent", "unobserved"}
_CLAUSES = {"graph", "node", "edge"}


class Statements(NamedTuple):
    """What a text says.

    Parameters
    ----------
    nodes : in the order they are named
    directed, bidirected : pairs of names
    hidden : nodes that are marked as hidden
    """

    nodes: list[str]
    directed: list[Edge]
    bidirected: list[Edge]
    hidden: list[str]


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def begins_graph(text: str) -> bool:
    """Whether a text begins as DOT or dagitty do."""
    return _HEADS.match(_uncommented(text)) is not None


def has_arrow(text: str) -> bool:
    """Whether a text holds an arrow at all."""
    return re.search(r"->|<-", text) is not None


def read_statements(text: str, where: str) -> Statements:
    """Nodes and edges of a text.

    Raises
    ------
    BadInput : syntax it does not know, an undirected graph or edge, a port, a loop; names the line
    """
    return _Parser(text, where).graph()


def _uncommented(text: str) -> str:
    return re.sub(r"\A(?:[\s\ufeff]+|//[^\n]*|#[^\n]*|/\*(?s:.*?)\*/)+", "", text)


@dataclass
class _Parser:
    text: str
    where: str
    nodes: dict[str, None] = field(default_factory=dict)
    directed: list[Edge] = field(default_factory=list)
    bidirected: list[Edge] = field(default_factory=list)
    hidden: dict[str, None] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tokens = self._scan()
        self.next = next(self.tokens)

    def graph(self) -> Statements:
        braced = self._head()
        if braced:
            self._take("{")
        self._statements(0)
        if braced:
            self._take("}")
        if self.next.kind != "end":
            raise self._unknown()
        return Statements(list(self.nodes), self.directed, self.bidirected, list(self.hidden))

    # Tokens

    def _scan(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None or match.lastgroup is None:
                raise self._error(at, f"{self.text[at : at + 20].split(chr(10))[0]!r} is no part of a graph")
            if match.lastgroup != "space":
                text = match[match.lastgroup]
                if match.lastgroup == "quoted":
                    text = re.sub(r"\\(.)", r"\1", text)
                yield _Token(match.lastgroup, text, at)
            at = match.end()
        yield _Token("end", "the end", at)

    def _advance(self) -> _Token:
        token = self.next
        if token.kind != "end":
            self.next = next(self.tokens)
        return token

    def _is(self, text: str) -> bool:
        return self.next.kind in ("mark", "arrow") and self.next.text == text

    def _take(self, text: str) -> None:
        if not self._is(text):
            raise self._error(self.next.at, f"{text!r} is missing before {self.next.text[:20]!r}")
        self._advance()

    def _name(self) -> str:
        if self.next.kind not in ("word", "quoted"):
            raise self._unknown()
        return self._advance().text

    def _unknown(self) -> BadInput:
        return self._error(self.next.at, f"{self.next.text[:20]!r} is not understood here")

    def _error(self, at: int, problem: str, mend: str = "") -> BadInput:
        line = self.text.count("\n", 0, at) + 1
        mend = mend or 'write statements such as "A -> B; A <-> C"'
        return BadInput(problem, where=f"{self.where}, line {line}", mend=mend)

    # Grammar

    def _head(self) -> bool:
        words: list[str] = []
        if _HEADS.match(_uncommented(self.text)):
            while self.next.kind in ("word", "quoted") and len(words) < 3:
                words.append(self._advance().text)
        kind = next((word.lower() for word in words if word.lower() != "strict"), "")
        if kind in ("graph", "pdag", "mag", "pag"):
            mend = "give a directed graph: digraph { ... } or dag { ... }"
            raise self._error(self.next.at, f"a {kind} leaves directions open", mend)
        return bool(words)

    def _statements(self, depth: int) -> list[str]:
        """All statements up to a closing brace; the nodes they name."""
        named: dict[str, None] = {}
        while self.next.kind != "end" and not self._is("}"):
            if self._is(";") or self._is(","):
                self._advance()
            else:
                named.update(dict.fromkeys(self._statement(depth)))
        return list(named)

    def _statement(self, depth: int) -> list[str]:
        members, plain = self._members(depth)
        if not members and plain:  # a setting, or the attributes of a clause
            return []
        chain, arrows = [members], []
        while self.next.kind == "arrow":
            at, arrow = self.next.at, self._advance().text
            if arrow not in ("->", "<-", "<->"):
                raise self._error(at, f"{arrow!r} says no direction", "write ->, <- or <->")
            arrows.append(arrow)
            chain.append(self._members(depth)[0])
        at, attributes = self.next.at, self._attributes()
        if arrows:
            for left, arrow, right in zip(chain, arrows, chain[1:]):
                self._join(left, arrow, right, attributes, at)
        elif attributes:
            self._mark(members, attributes)
        return [name for group in chain for name in group]

    def _members(self, depth: int) -> tuple[list[str], bool]:
        """A node or a group of nodes; nothing, and True, for a setting."""
        if depth > DEEPEST_GROUP:
            raise self._error(self.next.at, f"groups lie more than {DEEPEST_GROUP} deep")
        if self.next.kind == "word" and self.next.text.lower() == "subgraph":
            self._advance()
            if not self._is("{"):
                self._name()
            if not self._is("{"):
                raise self._unknown()
        if self._is("{"):
            self._advance()
            members = self._statements(depth + 1)
            self._take("}")
            return members, False
        quoted, name = self.next.kind == "quoted", self._name()
        if self._is("="):
            self._advance()
            self._name()
            return [], True
        if not quoted and name.lower() in _CLAUSES and self._is("["):
            self._attributes()
            return [], True
        if self._is(":"):
            raise self._error(self.next.at, f"ports such as {name[:20]}: are not read", "leave the port out")
        self.nodes[name] = None
        return [name], False

    def _attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self._is("["):
            self._advance()
            while not self._is("]"):
                name = self._name()
                found[name.lower()] = ""
                if self._is("="):
                    self._advance()
                    found[name.lower()] = self._name()
                if self._is(",") or self._is(";"):
                    self._advance()
            self._advance()
        return found

    def _join(self, left: list[str], arrow: str, right: list[str], attributes: dict[str, str], at: int) -> None:
        direction = attributes.get("dir", "forward").lower()
        if direction not in ("forward", "back", "both"):
            raise self._error(at, f"dir={direction[:20]} says no direction", "give dir=forward, back or both")
        if arrow == "<->" or direction == "both":
            into = self.bidirected
        else:
            into = self.directed
            if (arrow == "<-") != (direction == "back"):
                left, right = right, left
        if len(self.directed) + len(self.bidirected) + len(left) * len(right) > MOST_EDGES:
            raise self._error(at, f"there are more than {MOST_EDGES} edges", "leave out what does not matter")
        into += [(a, b) for a in left for b in right]

    def _mark(self, members: list[str], attributes: dict[str, str]) -> None:
        if _HIDDEN & attributes.keys() or attributes.get("observed", "").lower() in ("no", "false", "0"):
            self.hidden.update(dict.fromkeys(members))
