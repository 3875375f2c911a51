"""The documentation's site: it builds without a warning, every link in it leads somewhere, and nothing is missing."""

import os
import re
import subprocess
import sys
import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import feddyn
import feddyn.flower
from tests.reports.conftest import browser  # noqa: F401

ROOT = Path(__file__).parents[1]
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser fetches without being asked."""


@dataclass
class Html(HTMLParser):
    """The anchors and links of a page."""

    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    fetched: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        if tag == "a" and values.get("href"):
            self.links.add(values["href"])
        address = values.get(FETCHED.get(tag, ""), "")
        if address and not address.startswith("data:") and values.get("rel") not in ("prev", "next"):
            self.fetched.add(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it."""
    pytest.importorskip("material", reason="there is no MkDocs: pip install 'feddyn[docs]'")
    pytest.importorskip("mkdocstrings", reason="there is no mkdocstrings: pip install 'feddyn[docs]'")
    home = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(home)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return home


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    found = {}
    for path in site.rglob("*.html"):
        found[path] = Html()
        found[path].feed(path.read_text())
    assert site / "index.html" in found
    return found


def test_every_link_leads_somewhere(pages: dict[Path, Html]) -> None:
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin with the site's root
            continue
        for link in page.links | page.fetched:
            if link.startswith(("https://", "mailto:")):
                continue
            address, _, anchor = unquote(link).partition("#")
            target = (path.parent / address.split("?")[0]).resolve() if address else path
            there = target.is_file() and (not anchor or target not in pages or anchor in pages[target].anchors)
            if not there and link != "#":
                broken.append(f"{path.name}: {link}")
    assert not broken


def test_nothing_is_fetched_from_elsewhere(site: Path, pages: dict[Path, Html]) -> None:
    assert not {address for page in pages.values() for address in page.fetched if "//" in address}
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text().replace('"', "").replace("'", "")


def test_formulas_are_shown_as_such(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}
    assert not [name for name, text in pages.items() if "$$" in text or "\\theta" in text or "arithmatex" in text]
    for name in ("notebooks/feddyn-in-15-minutes.html", "short-paper.html"):
        assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in pages[name], name


def test_pages_in_the_navigation_have_names_of_their_own(site: Path) -> None:
    text = (site / "results" / "tables.html").read_text()
    entries = re.findall(
        r'<a href="([^"#]+)" class="md-nav__link">\s*<span class="md-ellipsis">\s*(.+?)\s*</span>', text
    )
    places = {title: {place for place, other in entries if other == title} for _, title in entries}
    assert len(places) > 10
    assert not {title: found for title, found in places.items() if len(found) > 1}


def test_the_search_finds_pages_that_are_opened_from_the_disk(site: Path, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue("browser").new_page()
    page.set_default_timeout(0)
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("requestfailed", lambda request: faults.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").click()
    page.keyboard.type("compressed uploads")
    page.locator(".md-search-result__item a").first.wait_for()
    assert "compress" in page.locator(".md-search-result__item a").first.get_attribute("href")
    assert not faults


def test_every_public_name_has_an_entry(site: Path, pages: dict[Path, Html]) -> None:
    """The inventory is what says where a name is explained, to other sites too; the entry must be there, with text."""
    lines = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    places = {name: place.replace("$", name) for name, _, _, place, *_ in (line.split(" ") for line in lines)}
    names = [*feddyn.__all__, *(f"flower.{name}" for name in feddyn.flower.__all__)]
    for name in names:
        address, _, anchor = places[f"feddyn.{name}"].partition("#")
        assert anchor in pages[site / address].anchors, name
        assert anchor.rpartition(".")[2] == name.rpartition(".")[2]


def test_the_index_says_what_every_name_is(site: Path) -> None:
    """A first sentence of a word or two, or about inheritance, says nothing."""
    text = (site / "api" / "index.html").read_text()
    said = [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td>([^\n]*)</td>\s*</tr>", text)]
    assert len(said) > 60
    assert not [words for words in said if len(words.split()) < 3 or words.startswith("Final classes")]
