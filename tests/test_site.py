"""The site of the documentation: light, from one host, and no wider than the screen that shows it."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.studio.browser import CHROMIUM, DESKTOP, DRIVER, PHONE, chromium

ROOT = Path(__file__).resolve().parents[1]
HEAVIEST = 300_000
"""Bytes of a page, and of a picture on it."""

SHOWN = ("index.html", "reference/comparison.html", "reproduction/rdp.html", "reference/schema.html")
"""Pages with the widest tables, that the quick tests open."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder)))
    return folder


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_no_page_and_no_picture_is_heavy(site: Path) -> None:
    assert len(pages(site)) > 80
    parts = [*pages(site), *site.rglob("*.png")]
    heavy = {path.relative_to(site).as_posix(): path.stat().st_size for path in parts}
    assert not {name: size for name, size in heavy.items() if size > HEAVIEST}


LOADED = re.compile(r"""<(?:script|img|iframe|source)[^>]+src=["']?(https?:)?//|<link[^>]+href=["']?(https?:)?//""")
FETCHED = re.compile(r"""url\(["']?(https?:)?//|@import|fetch\(["']https?:""")


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    foreign = [path.name for path in pages(site) if LOADED.search(path.read_text(encoding="utf-8"))]
    foreign += [path.name for path in site.rglob("*.css") if FETCHED.search(path.read_text(encoding="utf-8"))]
    assert not foreign


def opened(browser: object, address: str, pages: tuple[str, ...] | list[str]) -> tuple[list[str], set[str]]:
    """The pages that are wider than the window, and all hosts that were asked."""
    wide, hosts = [], set()
    for page in pages:
        browser.get(f"{address}/{page}")  # type: ignore[attr-defined]
        if not browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"):  # type: ignore[attr-defined]
            wide.append(page)
        entries = browser.execute_script("return performance.getEntriesByType('resource').map(each => each.name)")  # type: ignore[attr-defined]
        hosts |= {"/".join(entry.split("/")[:3]) for entry in entries if not entry.startswith("data:")}
    return wide, hosts


needs_browser = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="Chromium is not installed")


@needs_browser
@pytest.mark.xdist_group("browser")
def test_a_phone_shows_the_widest_pages_whole_and_asks_this_host_alone(served: str) -> None:
    with chromium(PHONE) as browser:
        assert opened(browser, served, SHOWN) == ([], {served})


@needs_browser
@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_page_fits_its_screen(site: Path, served: str, size: tuple[int, int]) -> None:
    names = [path.relative_to(site).as_posix() for path in pages(site)]
    with chromium(size) as browser:
        assert opened(browser, served, names) == ([], {served})


@needs_browser
@pytest.mark.xdist_group("browser")
def test_search_works_from_the_file_system(site: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    with chromium() as browser:
        browser.get((site / "index.html").as_uri())
        field = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
        field.click()
        field.send_keys("pseudo-records")
        hits = (By.CSS_SELECTOR, ".md-search-result__item")
        found = WebDriverWait(browser, 30).until(lambda shown: shown.find_elements(*hits))
        assert "seudo-records" in found[0].text
