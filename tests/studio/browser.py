"""A real studio in a process of its own, and a real browser without a screen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")

DESKTOP, PHONE = (1280, 900), (390, 844)


@contextmanager
def running(folder: Path, *options: str) -> Iterator[str]:
    """The address that the command prints."""
    command = [sys.executable, "-c", "from dpbayes.cli.main import run; run()", "studio", str(folder)]
    made = subprocess.Popen(
        [*command, "--port", "0", "--no-browser", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert made.stdout is not None
        line = made.stdout.readline()
        assert "http://" in line, line + (made.stderr.read() if made.stderr else "")
        yield line.split()[-1]
    finally:
        made.terminate()
        made.communicate(timeout=20)


@contextmanager
def chromium(size: tuple[int, int] = DESKTOP, *, dark: bool = False):
    """A browser window."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(each)
    options.add_argument(f"--window-size={size[0]},{size[1]}")
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1")  # no network
    if dark:
        options.add_argument("--force-dark-mode")
    made = webdriver.Chrome(options=options, service=Service(DRIVER))
    sized(made, size)
    if dark:
        made.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        )
    try:
        yield made
    finally:
        made.quit()


def sized(driver, size: tuple[int, int]):
    """The browser in a window of this size, without what an earlier page left in it."""
    driver.get("about:blank")
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    driver.get_log("browser")
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE},
    )
    return driver
