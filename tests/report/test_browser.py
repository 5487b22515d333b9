"""The report in a browser: nothing runs, nothing is loaded, everybody can read it.

Drives the installed chromium; where there is none, these tests say so and are skipped.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from answerable.answer import Metric, Table
from answerable.dossier import Dossier, Result
from answerable.report import fragment, write
from tests.report import sample
from tests.report.hostile import CORPUS
from tests.report.test_report import hostile

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"),
]
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@dataclass
class Watch:
    """What a page did that it should not."""

    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return not (self.dialogs or self.requests or self.console)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """Opens a file in a context of its own, in which every request is refused and noted."""
    contexts = []

    def open_page(path: Path, *, width: int = 1280, **options: Any) -> tuple[Any, Watch]:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page, watch = context.new_page(), Watch()

        def refuse(route: Any) -> None:
            if route.request.url == path.as_uri():
                route.continue_()
            else:
                watch.requests.append(route.request.url)
                route.abort()

        context.route("**/*", refuse)
        page.on("dialog", lambda dialog: (watch.dialogs.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda message: watch.console.append(message.text))
        page.on("pageerror", lambda error: watch.console.append(str(error)))
        page.goto(path.as_uri())
        return page, watch

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(sample.result(), tmp_path_factory.mktemp("report") / "r.html")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answers = [hostile(text) for text in CORPUS]
    return write(answers, tmp_path_factory.mktemp("report") / "h.html", title="".join(CORPUS[:9]))


def test_hostile_strings_do_nothing(opened: Any, attacked: Path) -> None:
    page, watch = opened(attacked)
    for text in ("<script>alert(1)</script>", "{{ 7 * 7 }}", r"\x1b[2J", r"\u202egnp.exe"):
        assert page.get_by_text(text).first.is_visible(), text
    for button in page.locator("th button").all()[:3]:
        button.click()
    page.mouse.move(300, 300)
    assert watch.nothing, watch
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_hostile_fragment_does_nothing(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "notebook.html"
    path.write_text("<!doctype html><meta charset=utf-8>" + "".join(fragment(hostile(text)) for text in CORPUS[:12]))
    page, watch = opened(path)
    assert page.get_by_text("<script>alert(1)</script>").first.is_visible()
    assert watch.nothing, watch


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_never_scrolls_sideways(opened: Any, report: Path, attacked: Path, width: int) -> None:
    for path in (report, attacked):
        page, _ = opened(path, width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("figure .narrow svg").first.is_visible()
        assert not page.locator("figure .wide svg").first.is_visible()


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_a_long_unit_breaks_its_line_and_no_verdict(opened: Any, tmp_path: Path, width: int) -> None:
    loss = Metric(0.518744, 0.518743, 0.518744, unit="share of the largest possible loss", kind="bounds", method="both")
    answer = replace(sample.held(), metrics={"loss": loss})
    asked = sample.asked(sample.Flow(text="When Mary"), answer, ("metrics.loss < 0.6", "The plan holds the loss down"))
    page, _ = opened(write(Result(Dossier(title="t", asks=(asked.ask,)), [asked]), tmp_path / "r.html"), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".exp .v").first.bounding_box()["height"] < 25


@pytest.mark.parametrize("width", [1280, 390])
def test_a_table_of_many_columns_scrolls_and_breaks_no_word_but_an_endless_one(
    opened: Any, tmp_path: Path, width: int
) -> None:
    words = pl.DataFrame({f"column {k}": ["checking_account", "a" * 5000 if k == 3 else "moderate"] for k in range(12)})
    answer = replace(sample.held(), tables={"words": Table(words, dict.fromkeys(words.columns, "a word"))})
    asked = sample.asked(sample.Flow(text="When Mary"), answer)
    page, _ = opened(write(Result(Dossier(title="t", asks=(asked.ask,)), [asked]), tmp_path / "r.html"), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    lines = (
        "row => [...row.cells].map(cell => { const all = document.createRange(); all.selectNodeContents(cell);"
        " return all.getClientRects().length; })"
    )
    assert page.locator(".data tbody tr").first.evaluate(lines) == [1] * 12
    endless = page.locator(".data tbody tr").nth(1).locator("td").nth(3).bounding_box()
    assert endless["width"] < 600


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious(opened: Any, report: Path, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # The policy lets no script in but the page's own, so axe comes in around it.
    page, _ = opened(report, width=width, color_scheme=scheme, bypass_csp=True)
    found = Axe().run(page).response["violations"]
    serious = {
        one["id"]: [node["target"] for node in one["nodes"]]
        for one in found
        if one["impact"] in ("serious", "critical")
    }
    assert serious == {}


def colour(page: Any, selector: str, what: str) -> str:
    return str(page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{what}"))


PAPER = {"light": "rgb(252, 251, 248)", "dark": "rgb(22, 25, 28)"}


def test_the_switch_overrides_the_system(opened: Any, report: Path) -> None:
    page, watch = opened(report, color_scheme="dark")
    assert colour(page, "body", "backgroundColor") == PAPER["dark"]
    dark = colour(page, "figure svg text", "fill")
    page.get_by_label("Light").check()
    assert colour(page, "body", "backgroundColor") == PAPER["light"]
    assert colour(page, "figure svg text", "fill") != dark  # pictures follow
    page.get_by_label("Dark").check()
    assert colour(page, "body", "backgroundColor") == PAPER["dark"]
    assert watch.nothing, watch


def test_it_reads_without_a_script(opened: Any, report: Path) -> None:
    page, _ = opened(report, java_script_enabled=False, color_scheme="dark")
    assert page.get_by_role("heading", name="Harbour Mutual: three systems in service").is_visible()
    assert page.get_by_role("img", name="Attention flow of 14 tokens").first.is_visible()
    page.get_by_text("Provenance and how to run it again").first.click()
    assert page.get_by_text("5d1c08e2…77ab").first.is_visible()
    page.get_by_label("Light").check()
    assert page.locator("th button").count() == 0


def test_a_table_is_sorted_by_keyboard_and_says_so(opened: Any, report: Path) -> None:
    page, watch = opened(report)
    table = page.locator("table.sortable").first
    head = table.locator("th", has_text="flow").first
    tokens = table.locator("tbody td:nth-child(2)")
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert tokens.first.inner_text() == "a"  # 1.9 %
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    assert tokens.first.inner_text() == "Mary"  # 31.2 %, not the text that sorts last
    assert page.locator("#live").inner_text() == "Sorted by flow, descending."
    assert table.locator("th[aria-sort=descending]").count() == 1
    assert watch.nothing, watch


def test_a_download_holds_the_whole_table(opened: Any, report: Path) -> None:
    page, _ = opened(report, accept_downloads=True)
    with page.expect_download() as started:
        page.get_by_role("link", name="Download as CSV").first.click()
    assert started.value.suggested_filename == "attention-flow-tokens.csv"
    lines = Path(started.value.path()).read_text().splitlines()
    assert lines[0] == "position,token,flow,low,high"
    assert lines[2].startswith("2,Mary,31.2,")
    assert len(lines) == 15


def test_paper_is_light_and_unfolded(opened: Any, report: Path) -> None:
    for script in (True, False):
        page, _ = opened(report, color_scheme="dark", java_script_enabled=script)
        page.get_by_label("Dark").check()
        page.emulate_media(media="print")
        assert page.get_by_text("5d1c08e2…77ab").first.is_visible()
        assert not page.locator(".scheme").is_visible()
        assert page.locator("figure .wide svg").first.is_visible()
        if script:
            assert colour(page, "h1", "color") == "rgb(27, 30, 34)"
            assert colour(page, "body", "backgroundColor") == "rgb(255, 255, 255)"


def test_the_keyboard_reaches_everything_in_order(opened: Any, report: Path) -> None:
    page, _ = opened(report)
    seen = []
    for _ in range(4):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent || document.activeElement.id"))
    assert seen[0] == "Skip to the questions"
    assert seen[1] == "s-auto"
    assert seen[2].startswith("Three facts alone settle")  # the worst answer first
