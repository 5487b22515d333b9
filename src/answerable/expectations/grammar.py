"""The grammar of expectations, parsed by recursive descent: bounded in length, in depth and in the size of its numbers.

::

    any         = all {"or" all}                                      Kleene's three-valued logic
    all         = negation {"and" negation}
    negation    = "not" negation | comparison
    comparison  = sum ["not"] "in" (list | "limits" | sum)
                | sum {("==" | "!=" | "<" | "<=" | ">" | ">=") sum ["±" sum]}
    sum         = product {("+" | "-") product}
    product     = unary {("*" | "/") unary}
    unary       = "-" unary | atom
    atom        = literal | path | ("abs" | "min" | "max") "(" sum {"," sum} ")" | "(" any ")"
    path        = "metrics" "." name ["." ("value" | "low" | "high")]
                | "tables" "." name "." ("height" | "width")
                | "tables" "." name "." name "." statistic
                | "tables" "." name "." "row" "(" (whole number | name "=" literal {"," name "=" literal}) ")" "." name
                | "limits" "." "height" | "verdict" ["." "reason"]
    list        = "[" sum {"," sum} "]"
    literal     = number ["%"] | "inf" | text in single or double quotes | "true" | "false" | "null"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from answerable.errors import BadDossier, UnknownName, unknown
from answerable.expectations.spelling import at_character, quoted, shown
from answerable.expectations.tree import (
    FLIPPED,
    STATISTICS,
    AllOf,
    AnyOf,
    Call,
    CellPath,
    Chain,
    ColumnPath,
    Comparison,
    Flag,
    Items,
    LimitsPath,
    Membership,
    MetricPath,
    Negative,
    Node,
    Not,
    Null,
    Number,
    SizePath,
    Text,
    Truth,
    VerdictPath,
    has_percent,
    names_something,
)

LONGEST_TEXT = 2000  # characters
DEEPEST_NESTING = 32  # brackets, calls, signs and "not" inside one another
MOST_DIGITS = 40  # of a number as it is written
_ROOTS = ("metrics", "tables", "limits", "verdict")
_FUNCTIONS = ("abs", "min", "max")
_CONSTANTS = ("inf", "true", "false", "null")
_WORDS = ("and", "or", "not", "in")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # "number", "name", "text", "sign" or "end"
    text: str
    at: int


_TOKEN = re.compile(
    r"""
      (?P<space> \s+ )
    | (?P<number> [0-9]+ (?: \.[0-9]+ )? (?: [eE][+-]?[0-9]+ )? )
    | (?P<name> [^\W\d]\w* )
    | (?P<text> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
    | (?P<sign> \+/- | \+- | ± | <= | >= | == | != | [≤≥≠−] | [-+*/%(),.\[\]<>=] )
    """,
    re.VERBOSE | re.DOTALL,
)


_SAME_SIGN = {"≤": "<=", "≥": ">=", "≠": "!=", "−": "-", "+-": "±", "+/-": "±"}


_ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "t": "\t"}


def _tokens(text: str) -> list[_Token]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            _refuse_character(text[position], position)
        kind, position = str(match.lastgroup), match.end()
        if kind == "number" and re.match(r"\w", text[position:]):
            mend = "put a name that begins with a digit in quotes"
            raise BadDossier(
                f"{quoted(match[0] + text[position])} is neither a number nor a name",
                where=at_character(match.start()),
                mend=mend,
            )
        if kind != "space":
            tokens.append(_Token(kind, _SAME_SIGN.get(match[0], match[0]), match.start()))
    return [*tokens, _Token("end", "", len(text))]


def _refuse_character(character: str, position: int) -> NoReturn:
    if character in "\"'":
        raise BadDossier(
            "a text begins here and does not end", where=at_character(position), mend=f"close it with {character}"
        )
    mends = {"!": "write != or not", "&": "write and", "|": "write or"}
    raise BadDossier(
        f"{quoted(character)} has no meaning", where=at_character(position), mend=mends.get(character, "take it out")
    )


def _unescaped(token: _Token) -> str:
    def plain(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            mend = f"write \\\\ for a backslash; known: {', '.join(chr(92) + letter for letter in _ESCAPES)}"
            raise BadDossier(
                f"{quoted(match[0])} is no escape", where=at_character(token.at + 1 + match.start()), mend=mend
            )
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", plain, token.text[1:-1], flags=re.DOTALL)


_Parsed = TypeVar("_Parsed")


class _Parser:
    """Recursive descent, one method for each line of the grammar."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens, self._next, self._depth = tokens, 0, 0

    def whole(self) -> Truth:
        if self._peek.kind == "end":
            raise BadDossier("the expectation is empty", mend='write one, such as "metrics.gap == 0"')
        tree = self._any()
        if self._peek.kind != "end":
            self._refuse("an operator or the end")
        if not isinstance(tree, Truth):
            raise BadDossier("nothing is compared", mend="add a comparison, such as > 0")
        if not names_something(tree):
            raise BadDossier("it says nothing about the answer", mend=f"name a part of it: {', '.join(_ROOTS)}")
        return tree

    def _any(self) -> Node:
        return self._joined("or", self._all, AnyOf)

    def _all(self) -> Node:
        return self._joined("and", self._negation, AllOf)

    def _joined(self, word: str, part: Callable[[], Node], join: type[AnyOf] | type[AllOf]) -> Node:
        starts, operands = [self._peek.at], [part()]
        while self._takes(word):
            starts.append(self._peek.at)
            operands.append(part())
        if len(operands) == 1:
            return operands[0]
        return join(tuple(_as_truth(operand, at) for operand, at in zip(operands, starts, strict=True)))

    def _negation(self) -> Node:
        if not self._takes("not"):
            return self._comparison()
        at = self._peek.at
        return Not(_as_truth(self._nested(self._negation), at))

    def _comparison(self) -> Node:
        at, first = self._peek.at, self._sum()
        if self._peek.kind == "name" and self._peek.text in ("in", "not"):
            return self._membership(_as_value(first, at))
        rest: list[tuple[str, Node, Node | None]] = []
        while self._peek.kind == "sign" and self._peek.text in FLIPPED:
            sign = self._advance().text
            right = self._value(self._sum)
            rest.append((sign, right, self._tolerance(sign, right)))
        if self._peek.kind == "sign" and self._peek.text == "=":
            raise BadDossier("a single = compares nothing here", where=at_character(self._peek.at), mend="write ==")
        return Comparison(_as_value(first, at), tuple(rest)) if rest else first

    def _tolerance(self, sign: str, centre: Node) -> Node | None:
        at = self._peek.at
        if not self._takes("±"):
            return None
        if sign not in ("==", "!="):
            raise BadDossier(f"± has no meaning after {sign}", where=at_character(at), mend="use ± after == or !=")
        tolerance = self._value(self._sum)
        if has_percent(tolerance) and not has_percent(centre):
            mend = "write the tolerance as a plain number"
            raise BadDossier(
                "± with % beside a number without % could mean two things", where=at_character(at), mend=mend
            )
        return tolerance

    def _membership(self, item: Node) -> Node:
        negated = self._takes("not")
        self._expect("in")
        at = self._peek.at
        if self._takes("["):
            collection: Node = Items(self._nested(lambda: self._values("]")))
        else:
            collection = self._sum()
            texts = isinstance(collection, VerdictPath | CellPath | ColumnPath | Text)
            if not texts and collection != LimitsPath():
                raise BadDossier(
                    "in looks into a list, the limits or a text",
                    where=at_character(at),
                    mend="write in [a, b], or use < and >",
                )
        if isinstance(item, Null) or (isinstance(collection, Items) and Null() in collection.items):
            raise BadDossier("null is not looked for with in", where=at_character(at), mend="write == null")
        return Membership(item, negated, collection)

    def _sum(self) -> Node:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._chain(("*", "/"), self._unary)

    def _chain(self, signs: tuple[str, str], part: Callable[[], Node]) -> Node:
        at, first = self._peek.at, part()
        rest = []
        while self._peek.kind == "sign" and self._peek.text in signs:
            rest.append((self._advance().text, self._value(part)))
        return Chain(_as_value(first, at), tuple(rest)) if rest else first

    def _unary(self) -> Node:
        if self._takes("-"):
            return Negative(self._nested(lambda: self._value(self._unary)))
        return self._atom()

    def _atom(self) -> Node:
        token = self._peek
        if token.kind in ("number", "text") or (token.kind == "name" and token.text in _CONSTANTS):
            return self._literal()
        if self._takes("("):
            inner = self._nested(self._any)
            self._expect(")")
            return inner
        if token.kind != "name" or token.text in _WORDS:
            self._refuse("a value")
        self._advance()
        if token.text in _ROOTS:
            return self._path(token)
        if self._takes("("):
            return self._call(token)
        self._refuse_hyphen(token)
        raise unknown("name", token.text, (*_ROOTS, *_FUNCTIONS, *_CONSTANTS), where=at_character(token.at))

    def _refuse_hyphen(self, word: _Token) -> None:
        before, hyphen = self._tokens[max(self._next - 3, 0)], self._tokens[max(self._next - 2, 0)]
        touching = before.at + len(before.text) == hyphen.at and hyphen.at + 1 == word.at
        if hyphen.text == "-" and before.kind == "name" and touching:
            mend = f'put a name that holds - in quotes, as in "{shown(before.text)}-{shown(word.text)}"'
            raise UnknownName(f"there is no name {quoted(word.text, 80)}", where=at_character(word.at), mend=mend)

    def _literal(self) -> Node:
        token = self._peek
        if token.kind not in ("number", "text") and not (token.kind == "name" and token.text in _CONSTANTS):
            self._refuse("a number, text, true, false or null")
        self._advance()
        if token.kind == "number":
            return Number(_number(token), self._takes("%"))
        if token.kind == "text":
            return Text(_unescaped(token))
        constants: dict[str, Node] = {
            "inf": Number(math.inf),
            "true": Flag(True),
            "false": Flag(False),
            "null": Null(),
        }
        return constants[token.text]

    def _call(self, function: _Token) -> Node:
        if function.text not in _FUNCTIONS:
            raise unknown("function", function.text, _FUNCTIONS, where=at_character(function.at))
        arguments = self._nested(lambda: self._values(")"))
        if function.text == "abs" and len(arguments) != 1:
            raise BadDossier(
                f"abs has {len(arguments)} numbers", where=at_character(function.at), mend="give it one number"
            )
        return Call(function.text, arguments)

    def _values(self, close: str) -> tuple[Node, ...]:
        values = [self._value(self._sum)]
        while self._takes(","):
            values.append(self._value(self._sum))
        self._expect(close)
        return tuple(values)

    def _path(self, root: _Token) -> Node:
        match root.text:
            case "limits":
                return LimitsPath(self._part("part of the limits", ("height",)) == "height")
            case "verdict":
                return VerdictPath(self._part("part of the verdict", ("reason",)) == "reason")
        self._expect(".")
        name = self._name()
        if root.text == "metrics":
            return MetricPath(name, self._part("part of a metric", ("value", "low", "high")), root.at)
        self._expect(".")
        return self._inside_table(name, root.at)

    def _inside_table(self, table: str, at: int) -> Node:
        token, name = self._peek, self._name()
        if token.text == "row" and self._takes("("):
            row = self._row()
            self._expect(")")
            self._expect(".")
            return CellPath(table, row, self._name(), at)
        if self._peek.text == "." and self._peek.kind == "sign":
            return ColumnPath(table, name, self._part("statistic of a column", tuple(STATISTICS)), at)
        if name not in ("height", "width"):
            mend = f"write .height or .width for the table, or after a column .{', .'.join(STATISTICS)}"
            raise UnknownName(f"a table has no size {quoted(name)}", where=at_character(token.at), mend=mend)
        return SizePath(table, name, at)

    def _row(self) -> int | tuple[tuple[str, Node], ...]:
        start = self._peek
        if start.kind == "number" or (start.kind == "sign" and start.text == "-"):
            number = self._signed_literal()
            sign, number = (-1, number.operand) if isinstance(number, Negative) else (1, number)
            if not isinstance(number, Number) or number.percent or not isinstance(number.value, int):
                raise BadDossier(
                    "a row is a whole number",
                    where=at_character(start.at),
                    mend="count rows from 0, or name a column and its value",
                )
            return sign * number.value
        conditions = [self._condition()]
        while self._takes(","):
            conditions.append(self._condition())
        return tuple(conditions)

    def _condition(self) -> tuple[str, Node]:
        name = self._name()
        if not self._takes("=="):
            self._expect("=")
        return name, self._signed_literal()

    def _signed_literal(self) -> Node:
        at = self._peek.at
        if not self._takes("-"):
            return self._literal()
        literal = self._literal()
        if not isinstance(literal, Number):
            raise BadDossier("only a number can be negative", where=at_character(at), mend="take out the -")
        return Negative(literal)

    def _part(self, kind: str, known: tuple[str, ...]) -> str:
        if not self._takes("."):
            return ""
        at, part = self._peek.at, self._name()
        if part not in known:
            raise unknown(kind, part, known, where=at_character(at))
        return part

    def _name(self) -> str:
        token = self._peek
        if token.kind not in ("name", "text"):
            self._refuse("a name", mend="put names that hold more than letters, digits and _ in quotes")
        self._advance()
        return _unescaped(token) if token.kind == "text" else token.text

    def _value(self, parse_part: Callable[[], Node]) -> Node:
        at = self._peek.at
        return _as_value(parse_part(), at)

    def _nested(self, parse_part: Callable[[], _Parsed]) -> _Parsed:
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            mend = "split it into several expectations"
            raise BadDossier(
                f"it is nested more than {DEEPEST_NESTING} deep", where=at_character(self._peek.at), mend=mend
            )
        parsed = parse_part()
        self._depth -= 1
        return parsed

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _advance(self) -> _Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _takes(self, text: str) -> bool:
        found = self._peek.text == text and self._peek.kind in ("name", "sign")
        self._next += found
        return found

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            self._refuse(text)

    def _refuse(self, wanted: str, *, mend: str = "") -> NoReturn:
        found = quoted(self._peek.text, 40) if self._peek.kind != "end" else "the end"
        raise BadDossier(f"expected {wanted}, found {found}", where=at_character(self._peek.at), mend=mend)


def _as_value(node: Node, at: int) -> Node:
    if isinstance(node, Truth):
        raise BadDossier(
            "a comparison stands where a value belongs",
            where=at_character(at),
            mend="join comparisons with and, or, not",
        )
    if node == LimitsPath():
        raise BadDossier(
            "the limits are a list, not a value", where=at_character(at), mend='write "..." in limits, or limits.height'
        )
    return node


def _as_truth(node: Node, at: int) -> Truth:
    if not isinstance(node, Truth):
        raise BadDossier(
            "and, or, not join comparisons, and this is a value",
            where=at_character(at),
            mend="compare it, as in > 0 or == true",
        )
    return node


def _number(token: _Token) -> float:
    if len(token.text) > MOST_DIGITS:
        raise BadDossier(
            f"a number has {len(token.text)} characters, more than {MOST_DIGITS}",
            where=at_character(token.at),
            mend="round it",
        )
    if token.text.isdigit():
        return int(token.text)
    value = float(token.text)
    if math.isinf(value):
        raise BadDossier(
            f"{token.text} is too large for a float", where=at_character(token.at), mend="write inf or a smaller number"
        )
    if value == 0 and re.match("[0.]*[1-9]", token.text):
        raise BadDossier(
            f"{token.text} is too small for a float", where=at_character(token.at), mend="write 0 or a larger number"
        )
    return value


def parsed(text: str) -> Truth:
    """The tree of one expectation; raises as :func:`answerable.expectations.parse` does."""
    if len(text) > LONGEST_TEXT:
        raise BadDossier(
            f"{len(text)} characters are more than {LONGEST_TEXT}", mend="split it into several expectations"
        )
    return _Parser(_tokens(text)).whole()
