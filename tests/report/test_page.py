"""The report says what the release says, to everyone who can read, and nothing in a release can take it over."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.releases import KINDS, LEVELS, REPLACE, a_release, charged, levels_of, release_of

from dpbayes import ApproxDP, Attribute, Dirichlet, Gaussian, Release, Schema, Unit
from dpbayes.base.display import style, tag
from dpbayes.ledger.ledger import Ledger
from dpbayes.plot.canvas import SHADES, WIDTH, Bar, Scale
from dpbayes.release.products import complete
from dpbayes.report.page import report_html

VOID = {"meta"}
STYLE = style()


class Page(HTMLParser):
    """Elements with their attributes, and the text outside the style sheet; tags must balance."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, text: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(text)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def named(self, name: str, css: str | None = None) -> list[dict[str, str | None]]:
        return [of for one, of in self.elements if one == name and (css is None or of.get("class") == css)]


@pytest.fixture(params=KINDS)
def html(request: pytest.FixtureRequest) -> str:
    return report_html(a_release(request.param))


def test_a_page_needs_nothing_but_itself(html: str) -> None:
    page = Page(html)
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "header",
        "section",
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
    }
    allowed |= {"li", "div", "small", "nav", "a", "code", "pre", "svg", "rect", "path", "title", "text"}
    allowed |= {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"}
    assert {name for name, _ in page.elements} <= allowed
    loading = {"src", "xlink:href", "action", "data", "srcset", "background", "style"}
    places = {of["id"] for _, of in page.elements if "id" in of}
    for _, attributes in page.elements:
        assert not loading & set(attributes)
        assert "href" not in attributes or str(attributes["href"]).removeprefix("#") in places
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\(|@import|https?:", STYLE)
    assert "default-src 'none'" in html


def test_a_page_can_be_read_aloud(html: str) -> None:
    page = Page(html)
    assert page.named("html")[0]["lang"] == "en"
    assert len(page.named("h1")) == len(page.named("main")) == len(page.named("title")) == 1
    assert all(of.get("scope") in ("row", "col", "rowgroup", "colgroup") for of in page.named("th"))
    assert len(page.named("table")) == len(page.named("caption"))
    assert all(of.get("aria-label") for of in [*page.named("nav"), *page.named("div", "scroll")])
    for svg in page.named("svg"):
        assert svg.get("aria-hidden") == "true" or (svg.get("role") == "img" and svg.get("aria-label"))


def test_only_a_seeded_release_is_called_not_private(html: str) -> None:
    seeded = html == report_html(a_release("seeded"))
    assert len(Page(html).named("p", "danger")) == seeded
    assert ("Not private." in html) == seeded
    assert ("The promise: " in html) != seeded


def test_text_of_a_release_stays_text() -> None:
    page = Page(report_html(a_release("hostile")))
    for level in LEVELS["<b>bold</b>"]:
        assert level in page.text
    assert "<img src=x onerror=alert(3)>" in page.texts
    assert "</td><script>" in page.texts


@given(st.text(), st.text())
def test_no_text_breaks_out_of_its_element(text: str, value: str) -> None:
    page = Page(f"<main>{tag('p', text, title=value)}</main>".replace("\r", ""))
    assert [name for name, _ in page.elements] == ["main", "p"]
    assert "".join(page.texts) == text.replace("\r", "")


def test_everything_that_prices_the_release_is_on_the_page() -> None:
    text = Page(report_html(a_release("gammas"))).text
    for fact in (
        "Rényi ε=0.5 at order 5",
        "replace-one",
        "at most 1",
        "weight r",
        "concentration α 20,",
        "0.0625",  # the grid
    ):
        assert fact in text
    for name in ("sex", "income"):
        assert f"levels of {name}" in text
        assert f"{len(levels_of(name))}: {', '.join(levels_of(name))}" in text
    assert "dpbayes verify release.json" in text
    assert '"mechanism": "dirichlet-2"' in text


def test_equal_mechanisms_are_listed_once_with_their_number() -> None:
    text = Page(report_html(a_release("add-remove"))).text
    assert text.count('"mechanism": "laplace-1"') == 1
    assert '"times": 2' in text
    assert "Tables 1–2" in text


def test_a_private_number_of_records_is_not_claimed_public() -> None:
    assert "private, not published" in report_html(a_release("add-remove"))
    assert "the number of records" not in report_html(a_release("add-remove"))
    assert f"{a_release('joint').records:,}, public" in report_html(a_release("joint"))


def one_way() -> Release:
    return release_of("income", mechanism=Gaussian(sigma=8, unit=REPLACE), promise=ApproxDP(epsilon=1, delta=1e-6))


def test_bars_and_whiskers_are_as_long_as_their_numbers() -> None:
    product = one_way().tables[0].products["empirical"]
    assert product.upper is not None
    assert product.lower is not None
    end = Scale.over([Bar(labels=(), value=v, upper=u) for v, u in zip(product.values, product.upper, strict=True)]).end
    page = Page(report_html(one_way()))
    widths = [int(str(of["width"])) for of in page.named("rect", "bar")]
    assert widths == pytest.approx([WIDTH * value / end for value in product.values], abs=0.51)
    ends = [re.findall(r"M(\d+) ", str(of["d"]))[:2] for of in page.named("path", "whisker")]
    for (low, high), lower, upper in zip(ends, product.lower, product.upper, strict=True):
        assert [int(low), int(high)] == pytest.approx([WIDTH * lower / end, WIDTH * upper / end], abs=0.51)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_an_axis_holds_all_bars_in_a_few_round_steps(shares: list[float]) -> None:
    scale = Scale.over([Bar(labels=(), value=share) for share in shares])
    assert scale.end >= max(shares) * (1 - 1e-9)
    assert 1 <= scale.steps <= 6
    assert scale.end - scale.step < max(shares) or max(shares) < 1e-12
    assert [scale.at(mark) for mark in scale.marks][:: scale.steps] == [0, WIDTH]


def test_a_large_table_shows_its_largest_cells_and_counts_the_rest() -> None:
    release = a_release("large")
    page = Page(report_html(release))
    assert len(page.named("rect", "bar")) == 60
    assert "140 cells of 200 are left out" in page.text
    shares = release.tables[0].products["empirical"].values
    best, worst = LEVELS["code"][int(np.argmax(shares))], LEVELS["code"][int(np.argmin(shares))]
    body = page.text[: page.text.index("How it was made")]
    assert f"\n{best}\n" in body
    assert f"\n{worst}\n" not in body


def test_small_groups_are_named_in_a_warning() -> None:
    mild = Dirichlet(weight=4.0, concentration=3.0, unit=REPLACE)
    page = Page(report_html(release_of("income|region", mechanism=mild, promise=ApproxDP(epsilon=30, delta=1e-6))))
    assert "Small groups: other." in page.text
    assert len(page.named("p", "warning")) == 3  # the others: no ledger remembers it, and much is "other"


def test_a_group_that_noise_swallows_shows_no_shares() -> None:
    page = Page(report_html(a_release("conditional")))
    assert page.texts.count("†") == 4 + 1  # its shares, and its number of records
    assert "noise leaves half of all shares open" in page.text


def test_a_cross_table_has_the_first_attribute_down_and_the_last_across() -> None:
    page = Page(report_html(a_release("joint")))
    assert len(page.named("table", "cross")) == 1
    heads = [of["scope"] for of in page.named("th")]
    assert heads.count("colgroup") == 1
    at = page.texts.index("female")
    assert page.texts.index("low") < page.texts.index("middle") < at < page.texts.index("male", at)


def test_three_attributes_are_grouped_by_the_first() -> None:
    noise = Gaussian(sigma=8, unit=REPLACE)
    release = release_of("sex,region,income", mechanism=noise, promise=ApproxDP(epsilon=1, delta=1e-6))
    page = Page(report_html(release))
    groups = [of for of in page.named("th") if of["scope"] == "rowgroup"]
    assert len(groups) == len([level for level in levels_of("sex") if f"sex: {level}" in page.texts])
    assert "sex: female" in page.texts


def test_an_empty_other_is_folded_into_one_line_and_a_full_one_is_shown() -> None:
    page = Page(report_html(_drawn([3000, 4000, 5000, 2])))
    assert "Not shown, since none or too few to say: income “other”." in page.text
    assert len(page.named("rect", "bar")) == 3
    full = Page(report_html(_drawn([3000, 4000, 5000, 900])))
    assert "Not shown" not in full.text
    assert len(full.named("rect", "bar")) == 4


def _drawn(values: list[int]) -> Release:
    bare = one_way().drawn()
    table = replace(bare.tables[0], values=np.array(values, dtype=float))
    return complete(replace(bare, tables=(table,), records=sum(values)))


def test_what_noise_swallows_is_a_bound_with_a_footnote() -> None:
    page = Page(report_html(_drawn([3000, 4, 5000, 900])))
    assert any(re.fullmatch(r"< [\d.]+†", text) for text in page.texts)
    assert "† Too few to say" in page.text
    assert "1 of 4 cells hold too few records" in page.text


def test_bins_read_as_people_say_them() -> None:
    ages = Attribute(name="income", edges=(float("-inf"), 18, 65, float("inf")), missing="other")
    schema = Schema(id="survey", unit=REPLACE, attributes=(ages,))
    page = Page(report_html(replace(one_way(), schema=schema)))
    body = page.text[: page.text.index("How it was made")]
    for label in ("under 18", "18 to under 65", "65 and over"):
        assert f"\n{label}\n" in body
    assert "inf" not in body


def test_a_thousand_tables_stay_a_page_that_opens() -> None:
    release = a_release("large")
    (source,) = release.tables
    many = replace(
        release, tables=tuple(replace(source) for _ in range(1000)), paid=(replace(release.paid[0], times=1000),)
    )
    html = report_html(many)
    assert len(html) < 2_000_000
    assert html.count('class="table"') < 100
    assert "Table 1000. code: in the file 1000-code" in html


def test_a_draw_that_is_mostly_prior_is_said_to_be() -> None:
    unit = Unit(adjacency="replace-one")
    heavy = Dirichlet(weight=0.01, concentration=30.0, unit=unit)
    release = release_of("income|region", mechanism=heavy, promise=ApproxDP(epsilon=1, delta=1e-6))
    assert "more than half of the draw is prior" in report_html(release)


def test_a_table_without_estimates_shows_what_was_released() -> None:
    joint = a_release("joint")
    page = Page(report_html(joint.drawn()))
    assert page.named("rect", "bar") == []
    assert f"{int(joint.tables[0].values[0]):,}" in page.texts
    assert "carries no estimate" in page.text


def test_the_gauge_shows_what_is_spent(tmp_path: Path) -> None:
    release = charged(a_release("joint"), Ledger(tmp_path / "survey.ledger"))
    assert release.spending is not None
    page = Page(report_html(release))
    (spent,) = page.named("rect", "spent")
    assert float(str(spent["width"]).rstrip("%")) == pytest.approx(100 * release.spending.spent / 5, abs=1e-3)
    assert release.spending.hash in page.texts
    assert "So nobody adds up" in report_html(a_release("joint"))


# -- colours ----------------------------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


THEMES = [
    dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", STYLE, re.S)
]


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark", "print"])
def test_text_and_drawings_stand_out_from_what_is_behind_them(theme: dict[str, str]) -> None:
    for text, ground in [
        *(("ink", f"s{step}") for step in range(1, SHADES + 1)),
        ("link", "paper"),
        ("faint", "panel"),
        ("second", "paper"),
        ("ink", "paper"),
        ("faint", "paper"),
        ("ink", "panel"),
        ("ink", "warn-panel"),
        ("warn", "paper"),
    ]:
        assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)
    assert contrast("#ffffff", theme["danger"]) >= 4.5
    for shape, ground in [("edge", "paper"), ("whisker", "bar"), ("whisker", "paper")]:
        assert contrast(theme[shape], theme[ground]) >= 3, (shape, ground)


# -- a real browser ---------------------------------------------------------------------------------------------------

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed to render the report")
@pytest.mark.parametrize("kind", ["conditional", "hostile"])
def test_a_browser_draws_the_page_without_complaint_or_network(kind: str, tmp_path: Path) -> None:
    from matplotlib.image import imread

    page, shot, log = tmp_path / "report.html", tmp_path / "shot.png", tmp_path / "net.json"
    page.write_text(report_html(a_release(kind)), encoding="utf-8")
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    done = subprocess.run(
        [
            str(BROWSER),
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"),
            *(*quiet, "--host-resolver-rules=MAP * ~NOTFOUND"),
            *(f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}"),
            *(f"--screenshot={shot}", "--window-size=1000,2400", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in done.stderr
    pixels = np.rint(255 * imread(shot)[..., :3]).astype(int)
    colour = {"hostile": "56b4e9", "conditional": "8ac5eb"}[kind]  # a bar, the darkest cell
    drawn = np.array([int(colour[i : i + 2], 16) for i in (0, 2, 4)])
    assert (pixels == drawn).all(axis=-1).sum() > 500
    # the browser's own housekeeping has no origin; what a page asks for has the page's
    assert set(re.findall(r'"initiator":"([^"]*)"', log.read_text(encoding="utf-8"))) <= {"not an origin"}


def test_readers_are_told_what_intervals_and_shares_mean() -> None:
    page = report_html(a_release("joint"))
    assert "about 95 of 100 such releases, whatever that number is" in page
    assert "may differ from the sum of printed cells" in page
    assert "± is the longer side of an interval" in page
    assert "How to read the numbers" not in report_html(a_release("pseudo-records"))
