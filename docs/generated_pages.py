"""MkDocs hook for pages that are generated from the code, or whose source is in the project's root folder."""

import inspect
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

import reprise
from pipeline.core.program import Program
from pipeline.stages import PIPELINE
from reprise.cli import REPRISE

ROOT = Path(__file__).resolve().parents[1]
ROOT_PAGES = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


MERMAID = "assets/mermaid.min.js"


def on_config(config: Any) -> Any:
    """Use Mermaid as `make docs` packed it, and link to the results site that is published beside the documentation."""
    if (Path(config.docs_dir) / MERMAID).exists():  # else the theme loads it from elsewhere
        config.extra_javascript.append(MERMAID)
    if config.site_url:
        config.nav.append({"Example of a results site": f"{config.site_url}example/index.html"})
    return config


def on_files(files: Any, config: Any) -> Any:
    pages = {name: of_root(ROOT / source) for name, source in ROOT_PAGES.items()}
    listed = [name for name in REPRISE.commands if name not in REPRISE.unlisted]
    pages["reference/commands.md"] = commands(REPRISE, listed)
    pages["reference/stages.md"] = commands(PIPELINE, list(PIPELINE.commands))
    pages["reference/python.md"] = "\n".join(python())
    pages["reference/settings.md"] = "\n".join(settings())
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files in the root lead to their pages; links to what is no page of the site become plain paths."""
    names = {source: name for name, source in ROOT_PAGES.items()}

    def plain(link: re.Match) -> str:
        target, mark, anchor = link[2].partition("#")
        folder = posixpath.dirname(page.file.src_uri)
        if root_page := names.get(posixpath.normpath(posixpath.join("docs", folder, target))):
            return f"[{link[1]}]({posixpath.relpath(root_page, folder or '.')}{mark}{anchor})"
        known = target.startswith("http") or not target or is_page(page, target, files)
        if known or link[1].startswith("`"):
            return link[0] if known else link[1]
        before = markdown[: link.start()].rpartition("\n\n")[2]
        inside = before.count("(") > before.count(")")
        return f"{link[1]} in `{target}`" if inside else f"{link[1]} (`{target}`)"

    linked = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)]+)\)", plain, markdown)
    return re.sub(r"(?<=\d) ± (?=\d)", "\u00a0±\u00a0", linked)  # a number and its spread stay on one line


def is_page(page: Any, target: str, files: Any) -> bool:
    folder = Path(page.file.src_uri).parent
    parts: list[str] = []
    for part in (folder / target).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    file = files.get_file_from_path("/".join(parts))
    return file is not None and not file.inclusion.is_excluded()


def of_root(path: Path) -> str:
    """A page that lies beside docs/, with links as they are from inside."""
    names = {source: name for name, source in ROOT_PAGES.items()}

    def inside(link: re.Match) -> str:
        return f"]({names.get(link[1], link[1].removeprefix('docs/'))})"

    return re.sub(r"\]\(([^)]+)\)", inside, path.read_text(encoding="utf-8"))


def commands(program: Program, names: list[str]) -> str:
    """Return a page with a table of some commands of a program, and the help of each."""
    _, by_name = program.parsers(names)
    head = f"# `{program.name}`\n\n{program.about} This page has what `{program.name} COMMAND --help` prints."
    table = [f"| [{name}](#{name}) | {program.commands[name].summary} |" for name in names]
    helps = [f"## {name}\n\n```text\n{by_name[name].format_help()}```" for name in names]
    return "\n\n".join([head, "\n".join(["| command | effect |", "|---|---|", *table]), *helps])


def python() -> Iterator[str]:
    yield "# Python\n\n`import reprise`, from the project's folder or for packed models anywhere.\n"
    from reprise.model import Model

    for owner, names in (("reprise", reprise.__all__), ("model", ("translate", "parse", "transcribe"))):
        for name in names:
            function = getattr(reprise if owner == "reprise" else Model, name)
            yield f"## {owner}.{name}\n\n```python\n{name}{inspect.signature(function)}\n```\n"
            yield f"```text\n{inspect.getdoc(function)}\n```\n"


SETTINGS_FILES = {
    "config": "config.yaml",
    "site": "slurm/site.yaml",
    "claims": "workflow/papers/PAPER/claims.yaml",
    "dataset": "workflow/datasets/NAME.yaml",
    "devices": "workflow/devices.yaml",
    "files": "workflow/files/NAME.yaml",
    "floors": "workflow/floors.yaml",
    "paper": "workflow/papers/PAPER/paper.yaml",
    "run": "run.yaml of a run folder",
    "scale": "workflow/scales/NAME.yaml",
}
"""File of each schema."""


def settings() -> Iterator[str]:
    """Each record of each settings file, with its keys; `config.yaml` first."""
    yield "# Settings files\n"
    yield "This page lists every key of every settings file, with its meaning and default.\n"
    for path in sorted((ROOT / "workflow/schemas").glob("*.json"), key=lambda path: (path.stem != "config", path.stem)):
        schema = json.loads(path.read_text(encoding="utf-8"))
        records = {path.stem: schema, **schema.get("$defs", {})}
        for name, record in records.items():
            if properties := record.get("properties"):
                title = f"## {SETTINGS_FILES[name]}" if name == path.stem else f"### {name}"
                yield f"{title}\n\n{record.get('description', '')}\n"
                yield "| key | meaning |\n|---|---|"
                yield from (f"| `{key}` | {cell(value)} |" for key, value in properties.items())
                yield ""


def cell(value: dict[str, Any]) -> str:
    if "const" in value:
        return f"`{value['const']}`"
    default = f" (default: `{json.dumps(value['default'])}`)" if "default" in value else ""
    record = f"`{value['$ref'].rpartition('/')[2]}`" if "$ref" in value else ""
    return (value.get("description", record) + default).replace("|", "\\|").replace("\n", " ")
