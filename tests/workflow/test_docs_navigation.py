"""The navigation of the documentation site names every page once."""

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
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def test_navigation_names_every_page_once():
    found = pages(settings()["nav"])
    docs = ROOT / "docs"
    written = {str(page.relative_to(docs)) for page in docs.glob("**/*.md") if len(page.relative_to(docs).parts) < 3}
    assert sorted(found) == sorted(written | GENERATED)


def test_generated_pages_are_those_of_the_hook():
    source = (ROOT / "docs/generated_pages.py").read_text(encoding="utf-8")
    assert all(f'"{page}"' in source for page in GENERATED)
    assert settings()["hooks"] == ["docs/generated_pages.py"]
