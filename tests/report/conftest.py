"""A headless Chromium for the tests that look at the page; nothing is installed, and without one they are skipped."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Chrome]":
    """One browser with a new, empty profile."""
    program, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("no chromium with its chromedriver on this machine (Debian: apt-get install chromium chromium-driver)")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium: "Chrome") -> "Chrome":
    """The browser at the size of a desk, light."""
    look(chromium, width=1280, dark=False)
    return chromium


def look(browser: "Chrome", *, width: int, dark: bool) -> None:
    """Set the width of the page and the reader's light or dark setting."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [scheme]})
