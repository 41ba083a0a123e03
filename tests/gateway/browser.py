"""A real Chromium for tests of the page: the system's, which apt installs where it may."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",  # as root there is no other way
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",  # no GPU here
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic",
]  # fmt: skip


def chromium() -> str:
    """The path of a Chromium."""
    for attempt in (False, True):
        if attempt and os.geteuid() == 0 and shutil.which("apt-get"):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            install = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
            subprocess.run(["apt-get", "update"], check=False, **quiet)  # type: ignore[call-overload]
            subprocess.run(install, check=False, **quiet)  # type: ignore[call-overload]
        for name in NAMES:
            if path := shutil.which(name):
                return path
    raise AssertionError(f"no browser: install one of {', '.join(NAMES)}")


@contextmanager
def browser() -> Iterator[Browser]:
    """One that draws without a screen."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        try:
            yield found
        finally:
            found.close()
