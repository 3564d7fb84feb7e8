"""The navigation of the documentation site names every page once."""

import re

import yaml
from copied_project import ROOT

GENERATED = {"index.md", "contributing.md", "changelog.md"}
GENERATED |= {f"reference/{name}.md" for name in ("settings", "commands", "stages", "python")}
"""Pages that docs/generated_pages.py writes."""


def pages(entries) -> list[str]:
    """Return the paths in a navigation, which nests lists of one-entry mappings."""
    if isinstance(entries, str):
        return [entries]
    return [path for entry in entries for value in entry.values() for path in pages(value)]


def settings() -> dict:
    """Read mkdocs.yml without the meaning of MkDocs' own tags (`!ENV`, `!!python/name`): their values stay text."""
    return yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)


def test_diagrams_are_drawn_not_shown_as_code():
    """Material turns a block of class `mermaid` into a picture, which a fence without that class does not become."""
    (fences,) = [extension["pymdownx.superfences"]["custom_fences"] for extension in settings()["markdown_extensions"]]
    assert {"mermaid"} == {fence["name"] for fence in fences} == {fence["class"] for fence in fences}
    used = {
        name for page in (ROOT / "docs").rglob("*.md") for name in re.findall(r"^```(mermaid)", page.read_text(), re.M)
    }
    assert used == {"mermaid"}


def test_navigation_names_every_page_once():
    found = pages(settings()["nav"])
    docs = ROOT / "docs"
    written = {str(page.relative_to(docs)) for page in docs.glob("**/*.md") if len(page.relative_to(docs).parts) < 3}
    assert sorted(found) == sorted(written | GENERATED)


def test_generated_pages_are_those_of_the_hook():
    source = (ROOT / "docs/generated_pages.py").read_text(encoding="utf-8")
    assert all(f'"{page}"' in source for page in GENERATED)
    assert settings()["hooks"] == ["docs/generated_pages.py"]
