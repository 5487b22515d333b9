"""A dossier's outcomes as JUnit XML, which CI servers read: one suite for each ask, one case for each expectation.

A failure is an expectation that does not hold, an error is one that could not be checked, and what only warns is
skipped.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from answerable import atomic, terminal

if TYPE_CHECKING:
    from answerable.dossier import Asked, Result

# What XML 1.0 cannot hold, not even as a reference.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(result: Result, path: Path) -> None:
    """Write the file, whole or not at all."""
    root = ElementTree.Element("testsuites", name=_text(result.dossier.title))
    for one in result.asked:
        root.append(_suite(one, result))
    for count in ("tests", "failures", "errors"):  # most schemas have no count of the skipped here
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ElementTree.indent(root)
    atomic.write_bytes(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _suite(one: Asked, result: Result) -> ElementTree.Element:
    seconds = one.answer.run.seconds if one.answer else 0.0
    suite = ElementTree.Element("testsuite", name=_text(one.ask.name), time=f"{seconds:.3f}")
    judged = list(zip(one.ask.expect, one.outcomes, strict=True))
    for expected, outcome in judged:
        reason = f"{outcome.reason}. {expected.why}" if expected.why else outcome.reason
        case = ElementTree.SubElement(
            suite,
            "testcase",
            name=_text(expected.words or expected.expectation.text),
            classname=_text(one.ask.name),
            time="0.000",
        )
        if outcome.word == "not run":
            ElementTree.SubElement(case, "error", message=_text(reason), type="not run")
        elif outcome.word != "held":
            kind = "failure" if result.counts_against(expected, outcome) else "skipped"
            found = ElementTree.SubElement(case, kind, message=_text(f"{outcome.word}: {reason}"))
            if kind == "failure":  # the schema allows a type here, none on what was skipped
                found.set("type", outcome.word)
    if not judged and one.error:
        case = ElementTree.SubElement(suite, "testcase", name="asked", classname=_text(one.ask.name), time="0.000")
        ElementTree.SubElement(case, "error", message=_text(one.error), type="not run")
    for count, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(len(list(suite.iter(tag)))))
    return suite


def _text(text: str) -> str:
    return _FORBIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", terminal.escaped(text))
