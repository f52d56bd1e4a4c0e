"""The whole journey in a real browser, from a table to answers for readers: by mouse, by keyboard alone, and wide."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.studio.browser import CHROMIUM, DESKTOP, DRIVER, PHONE, chromium, running, sized
from tests.studio.house import survey

from dpbayes.base.display import rounded_down
from dpbayes.ledger.ledger import Ledger
from dpbayes.release.format import Release

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="Chromium is not installed: no page was seen"),
    pytest.mark.xdist_group("browser"),
]

AXE = Path(__file__).parents[1] / "files" / "studio" / "axe.min.js"
SERIOUS = ("serious", "critical")


class Window:
    """A browser window that looks at every page it comes to: for people who cannot see it, and for small screens."""

    def __init__(self, driver, address: str) -> None:
        self.driver, self.address = driver, address
        self.home = address.split("/?", maxsplit=1)[0]
        self.axe = AXE.read_text(encoding="utf-8")

    def js(self, script: str, *args: object) -> object:
        return self.driver.execute_script(script, *args)

    def until(self, true: Callable[[], object], seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if true():
                    return
            except Exception:
                pass
            time.sleep(0.05)
        pytest.fail(f"waited in vain on {self.driver.current_url}: {self.text()[:1500]}")

    def text(self) -> str:
        return str(self.js("return document.body.innerText"))

    def look(self) -> None:
        """What a page must be like."""
        title = self.driver.title
        wide = self.js("return document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"{title} is {wide} pixels too wide"
        self.js(self.axe)
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations'], iframes: false}).then(r => "
            "done(r.violations.map(v => [v.impact, v.id, v.nodes.slice(0, 3).map(n => n.html)])))"
        )
        assert not [each for each in found if each[0] in SERIOUS], f"{title}: {found}"

    def leave(self, act: Callable[[], object]) -> None:
        """Do something that leads to another page, and look at it."""
        self.js("window.leaving = true")
        act()
        self.until(lambda: not self.js("return window.leaving") and self.js("return document.readyState") == "complete")
        self.look()

    def click(self, label: str) -> None:
        script = (
            "for (const e of document.querySelectorAll('button, a.button, summary')) "
            "if (e.tabIndex >= 0 && e.innerText.includes(arguments[0])) { e.click(); return true } return false"
        )
        assert self.js(script, label), f"no button {label!r} on {self.driver.title}"

    def press(self, label: str) -> None:
        self.leave(lambda: self.click(label))

    def quiet(self) -> None:
        """Nothing was refused by the policy of the pages, and nothing failed to load."""
        loud = [each["message"] for each in self.driver.get_log("browser") if each["level"] == "SEVERE"]
        assert not [each for each in loud if "htmx:" not in each], loud


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


def enter(window: Window) -> None:
    window.driver.get(window.address)
    window.look()
    assert "token" not in window.driver.current_url


def test_the_journey_of_the_survey(browser, tmp_path):
    with running(survey(tmp_path)) as address:
        window = Window(driver := sized(browser, DESKTOP), address)
        enter(window)
        window.press("Plan a release")
        window.press("Save and declare")
        window.press("Save and choose")
        window.press("Set the limit")
        for cell in ("2-2", "4-0"):
            window.js("document.querySelector(arguments[0]).click()", f"input[value='{cell}']")
        window.until(lambda: "income × sex" in window.js("return document.querySelector('#forecast').innerHTML"))
        window.until(
            lambda: window.js("return !document.querySelector('.htmx-settling, .htmx-swapping, .htmx-request')")
        )
        window.js(
            "const s = document.querySelector('select[name=form]'); s.value = 'income|sex';"
            "s.dispatchEvent(new Event('change', {bubbles: true}))"
        )
        window.until(lambda: "groups below" in window.js("return document.querySelector('#forecast').innerText"))
        window.press("Save and look")
        assert "The best attacker" in window.text()
        window.press("Preview")
        window.press("Review and release")
        window.js("document.querySelector('#confirm').value = 'example-survey'")
        window.js("const b = [...document.querySelectorAll('button')].find(b => b.innerText.startsWith('Charge'));"
                  "b.click(); b.click()")  # fmt: skip
        window.until(lambda: "Open the release" in window.text())
        window.press("Open the release")
        assert "verified" in window.text()
        window.press("Ask it a question")
        window.js("document.querySelector('#a').value = \"region='North'\"")
        window.press("Answer")
        assert "with 95 % confidence" in window.text()
        driver.get(window.home + "/models")
        window.look()
        driver.get(window.home + "/")
        assert "drawn" in window.text()
        window.quiet()
    account = Ledger(tmp_path / "example-survey.ledger").account("example-survey")
    assert len(account.charges) == 1
    made = Release.load(tmp_path / "published" / "example-survey-1")
    assert [str(table.marginal) for table in made.tables if str(table.marginal) in ("region", "income|sex")]
    assert made.verify(ledger=tmp_path / "example-survey.ledger").ok


def test_the_journey_by_keyboard_on_a_small_screen(browser, tmp_path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    with running(survey(tmp_path)) as address:
        window = Window(driver := sized(browser, PHONE), address)

        def keys(*pressed: str) -> None:
            ActionChains(driver).send_keys(*pressed).perform()

        def tab_to(selector: str, most: int = 90) -> None:
            """Until the focus is where it should be; it is always seen."""
            for _ in range(most):
                keys(Keys.TAB)
                if window.js("return document.activeElement.matches(arguments[0])", selector):
                    outline = window.js("return getComputedStyle(document.activeElement).outlineStyle")
                    assert outline != "none", f"{selector} does not show that it has the focus"
                    return
            pytest.fail(f"{selector} cannot be reached by Tab on {driver.title}")

        def enter_on(selector: str) -> None:
            tab_to(selector)
            window.leave(lambda: keys(Keys.ENTER))

        enter(window)
        enter_on("article form button")
        enter_on("form.stack > button")
        enter_on(".actions button")
        enter_on("button[value=budget]")
        for cell in ("0-0", "4-1"):
            tab_to(f"input[value='{cell}']")
            keys(Keys.SPACE)
        window.until(lambda: "income × age" in window.js("return document.querySelector('#forecast').innerHTML"))
        enter_on("button[value=next]")
        enter_on(".actions a.button")
        enter_on(".actions a.button")
        tab_to("#confirm")
        keys("example-survey", Keys.ENTER)
        window.until(lambda: "Open the release" in window.text())
        enter_on(".actions a.button")
        enter_on(".actions a.button")
        tab_to("#a")
        keys(Keys.ARROW_DOWN)
        enter_on(".actions button")
        assert "with 95 % confidence" in window.text()
        window.quiet()
    assert len(Ledger(tmp_path / "example-survey.ledger").account("example-survey").charges) == 1


def test_two_hundred_columns_stay_usable(browser, tmp_path):
    (tmp_path / "data").mkdir()
    names = [f"item_{number:03d}" for number in range(200)]
    rows = [",".join("yes" if (row * place) % 3 else "no" for place in range(200)) for row in range(300)]
    (tmp_path / "data" / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    with running(tmp_path) as address:
        window = Window(sized(browser, DESKTOP), address)
        enter(window)
        window.js("document.querySelector('#new-table').value = 'data/wide.csv'")
        window.press("Look at its header")
        window.js("document.querySelector('[name=size][value=public]').click();"
                  "document.querySelector('[name=records]').value = '300'")  # fmt: skip
        window.press("Save and declare")
        lists = "\n".join(f"{name}: yes, no" for name in names)
        window.js("document.querySelector('#lists').value = arguments[0]", lists)
        window.press("Save and choose")
        nodes = window.js("return document.querySelectorAll('*').length")
        assert nodes < 2_500, nodes  # of 20,100 pairs
        window.js("document.querySelector('#next-focus').value = 'item_150'")
        window.press("Show")
        for cell in ("150-7", "199-150", "150-150"):
            window.js("document.querySelector(arguments[0]).click()", f"input[value='{cell}']")
        window.until(lambda: "item_199" in window.js("return document.querySelector('#forecast').innerHTML"))
        window.js("document.querySelector('#next-focus').value = 'item_003'")
        window.press("Show")
        assert "item_199" in window.js("return document.querySelector('#forecast').innerHTML")  # it was kept
        window.press("Set the limit")
        window.press("Save and look")
        window.press("Preview")
        window.press("Review and release")
        window.js("document.querySelector('#confirm').value = 'wide'")
        window.press("Charge")
        window.until(lambda: "Open the release" in window.text())
        window.quiet()
    assert len(Ledger(tmp_path / "wide.ledger").account("wide").charges) == 1


def test_what_is_typed_is_what_is_released_and_enter_presses_the_button_beside_it(browser, tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    with running(survey(tmp_path)) as address:
        window = Window(driver := sized(browser, DESKTOP), address)

        def box(name: str, text: str, *then: str) -> None:
            found = driver.find_element(By.ID, name)
            found.clear()
            found.send_keys(text, *then)

        def forecast() -> str:
            return str(window.js("return document.querySelector('#forecast').innerText"))

        enter(window)
        window.press("Plan a release")
        window.press("Save and declare")
        window.press("Save and choose")
        window.leave(lambda: box("limit-epsilon", "1,5", Keys.ENTER))
        assert "Write 1.5." in window.text()
        assert not (tmp_path / "example-survey.ledger").exists()
        window.leave(lambda: box("limit-epsilon", "1.5", Keys.ENTER))
        assert "of ε = 1.5" in window.text()
        window.js("document.querySelector(\"input[value='2-2']\").click()")
        window.until(lambda: "region" in forecast())
        box("epsilon", "0.7")
        asked = tmp_path / "example-survey.request.toml"
        window.until(lambda: "epsilon = 0.7" in asked.read_text() and "fits the limit" in forecast())
        box("epsilon", "0,7")
        window.until(lambda: "Write 0.7." in forecast())
        assert "fits the limit" not in forecast()
        window.leave(lambda: driver.find_element(By.LINK_TEXT, "Declare").click())
        window.leave(lambda: driver.find_element(By.LINK_TEXT, "Ask").click())
        assert window.js("return document.querySelector(\"input[value='2-2']\").checked")
        assert window.js("return document.querySelector('#epsilon').value") == "0.7"
        window.leave(lambda: box("within", "40", Keys.ENTER))
        assert float(str(window.js("return document.querySelector('#epsilon').value"))) < 0.7
        window.leave(lambda: box("epsilon", "0.5", Keys.ENTER))
        assert window.js("return document.querySelector('#epsilon').value") == "0.5"
        driver.get(window.home + "/d/example-survey/review")
        before = str(window.js("return document.querySelector('#strip').innerText"))
        assert "ε = 1.5 still fits" in before
        box("title", "Regions", Keys.ENTER)  # the browser asks for the name of the data set first
        assert "Review" in driver.title
        box("author", "A. Nyman")
        box("purpose", "To plan the tables")
        box("confirm", "example-survey", Keys.ENTER)
        window.until(lambda: "Open the release" in window.text())
        after = str(window.js("return document.querySelector('#strip').innerText"))
        assert after != before
        assert "Content Security" not in str(driver.get_log("browser"))
    left = Ledger(tmp_path / "example-survey.ledger").account("example-survey").left()
    assert f"ε = {rounded_down(left, 3)} still fits" in after
    about = Release.load(tmp_path / "published" / "example-survey-1").about
    assert (about["title"], about["author"], about["purpose"]) == ("Regions", "A. Nyman", "To plan the tables")
