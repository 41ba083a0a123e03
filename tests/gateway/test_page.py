"""The map page in a real browser: what is drawn is asked, what matches is seen, nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.gateway.browser import browser
from tests.gateway.running import Running, until
from tests.gateway.test_requests import publish

pytestmark = pytest.mark.slow
_PATIENCE_MS = 60_000  # kernels may have to be compiled first
_WIDE, _HIGH = 1200, 800


@pytest.fixture
def page(service: Running) -> Iterator[Page]:
    """The page, when its map is there."""
    with browser() as found:
        shown = found.new_page(viewport={"width": _WIDE, "height": _HIGH})
        errors: list[str] = []
        elsewhere: list[str] = []
        shown.on("pageerror", lambda error: errors.append(str(error)))
        shown.on(
            "request",
            lambda r: None if r.url.startswith((service.server.url, "blob:", "data:"))
            else elsewhere.append(r.url),
        )  # fmt: skip
        shown.goto(service.server.url)
        shown.wait_for_function("window.nearcast && window.nearcast.ready", timeout=_PATIENCE_MS)
        yield shown
        assert errors == []
        assert elsewhere == []  # the page makes no request to any other host


def test_a_box_is_drawn_and_its_match_is_seen(service: Running, page: Page) -> None:
    page.fill("#words", "ramen")
    page.click("[data-tool=box]")
    _drag(page, (500, 200), (1000, 600))
    question = page.locator("#watched li")
    expect(question).to_contain_text("ramen")
    until(lambda: service.http.get("/v1/subscriptions?kind=range").json()["subscriptions"])
    (known,) = service.http.get("/v1/subscriptions?kind=range").json()["subscriptions"]
    west, south, east, north = known["query"]["region"]["bbox"]
    middle = [(west + east) / 2, (south + north) / 2]
    post = {"id": "seen", "at": middle, "text": "Ramen at midnight"}
    publish(service, post, {"id": "other", "at": middle, "text": "sushi"})
    expect(question.locator(".n")).to_have_text("1", timeout=_PATIENCE_MS)
    expect(question.locator("p")).to_have_text("Ramen at midnight", timeout=_PATIENCE_MS)
    tint = page.evaluate("window.nearcast.city.posts.get('seen').tint")
    assert tint is not None
    assert page.evaluate("window.nearcast.city.posts.get('other').tint ?? null") is None

    service.server.stop()  # the gateway goes, posts arrive by another one, and it comes back
    port = int(service.server.url.rsplit(":", 1)[1])
    other = service.another()
    answer = other.http.post(
        "/v1/events",
        json=[post | {"op": "publish", "id": f"late{i}"} for i in range(3)],
    )
    assert answer.status_code == 202
    service.server = type(service.server)(service.service, port, service.patience)
    expect(question.locator(".n")).to_have_text("4", timeout=_PATIENCE_MS)

    page.get_by_role("button", name="End: ramen").click()
    until(lambda: not service.http.get("/v1/subscriptions?kind=range").json()["subscriptions"])


def test_keys_choose_a_place_and_tabs_ask_the_past(service: Running, page: Page) -> None:
    page.locator("#map canvas").focus()
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    until(lambda: service.http.get("/v1/subscriptions?kind=knn").json()["subscriptions"])
    (known,) = service.http.get("/v1/subscriptions?kind=knn").json()["subscriptions"]
    publish(service, {"id": "near", "at": known["query"]["at"], "text": "Here"})
    expect(page.locator("#watched li p")).to_contain_text("0 m · Here", timeout=_PATIENCE_MS)
    page.click("#tab-past")
    page.click("#ask")
    expect(page.locator("#answer")).to_contain_text("posts, in", timeout=_PATIENCE_MS)
    expect(page.locator("#answers li").first).to_contain_text("Here")
    page.click("#tab-run")
    expect(page.locator("#shards .shard")).to_have_count(2, timeout=_PATIENCE_MS)


def test_what_the_page_needs_is_built() -> None:
    import nearcast.gateway

    vendor = Path(nearcast.gateway.__file__).parent / "page" / "vendor"
    names = {"maplibre-gl.mjs", "maplibre-gl-worker.mjs", "maplibre-gl.css", "land.json"}
    assert names <= {path.name for path in vendor.iterdir()}


def _drag(page: Page, start: tuple[int, int], end: tuple[int, int]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=5)
    page.mouse.up()
