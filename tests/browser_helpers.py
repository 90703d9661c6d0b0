"""The page in a real browser: Chromium, driven through playwright; skipped, saying so, where either is missing."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: no browser sees the page")


@contextmanager
def launched() -> Iterator["Browser"]:
    """A browser that is closed at the end; skips the test where playwright is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def open_page(browser: "Browser", address: str, *, unfolded: bool = True, **options: Any) -> "Page":
    """A page in a context of its own; what the browser complains about fails the test in `close_page`."""
    page = browser.new_context(**options).new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: problems.append(request.url) if not request.url.startswith("file:") else None)
    page.problems = problems
    page.goto(address)
    if unfolded:
        page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    return page


def close_page(page: "Page") -> None:
    page.context.close()
    assert page.problems == [], page.problems
