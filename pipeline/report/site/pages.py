"""The folder of a site: templates filled in, data beside them as scripts, files of earlier sites removed."""

import json
import re
import shlex
from collections.abc import Mapping
from functools import cached_property, partial
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.core.errors import UserError, count_of, in_hours
from pipeline.core.files import atomic_write
from pipeline.core.json_csv import finite
from pipeline.report.labels import METRICS, metric_title, report_title, run_title, short_title
from pipeline.report.site.site_data import SiteData, paper_page, run_page
from pipeline.workflow.targets import snakemake_command

MARK = "assets/site.css"
"""A folder that has this file is a site, and may be overwritten."""
BETWEEN_BACKTICKS = re.compile("`([^`\n]+)`")


class Pages:
    """The folder of a site. All pages are at its top, so that links are names.

    Attributes:
        out: The folder.
        written: Files of this site so far.

    Raises:
        UserError: The folder is neither empty nor a site.
    """

    def __init__(self, out: Path, site: SiteData):
        self.out, self.site, self.written = out, site, set[Path]()
        if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
            raise UserError(f"{out}: is not empty and not a site; choose an empty folder")

    @cached_property
    def templates(self) -> Environment:
        """Return the templates, which escape every text."""
        loader = PackageLoader("pipeline.report.site")
        found = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        found.filters |= {
            "code": with_code,
            "plain": without_code,
            "quoted": shlex.quote,
            "titled": report_title,
            "short": short_title,
            "breaking": breaking,
        }
        found.globals |= {
            "count_of": count_of,
            "in_hours": in_hours,
            "run_page": run_page,
            "paper_page": paper_page,
            "scale": self.site.project.config.scale,
            "plan": snakemake_command(self.site.project, "plan"),
            "status": self.site.status,
            "metric_title": metric_title,
            "run_title": partial(run_title, self.site.project),
        }
        found.globals |= {"papers": self.site.project.papers, "private": self.site.private}
        return found

    def page(self, name: str, template: str, **content: Any) -> None:
        """Fill in a `template` with `content` as the page `name`."""
        self.write(name, (self.templates.get_template(template).render(page=name, **content) + "\n").encode())

    def script(self, name: str, variable: str, content: Any) -> None:
        """Write data of a page as a script, because a page that is opened from disk may not fetch.

        Args:
            name: Name of the file in `data`, without its ending.
            variable: Name of the variable of `window`.
            content: Values of JSON types; infinite numbers become null.
        """
        self.write(f"data/{name}.js", f"window.{variable}={as_json(content)};\n".encode())

    def write(self, name: str, content: bytes) -> None:
        """Write a file `name` of the site unless it has this `content` already."""
        path = self.out / name
        self.written.add(path)
        if not path.exists() or path.read_bytes() != content:
            with atomic_write(path, "wb") as file:
                file.write(content)

    def copy(self, source: Path, name: str) -> str:
        """Copy a file `source` to the path `name` of the site, and return that path, for links."""
        self.write(name, source.read_bytes())
        return name

    def assets(self) -> None:
        """Write the style sheet and scripts."""
        for asset in (resources.files("pipeline.report.site") / "assets").iterdir():
            self.write(f"assets/{asset.name}", asset.read_bytes())

    def remove_others(self) -> None:
        """Remove the files of an earlier site that this one does not have, but nothing hidden, such as a `.git`."""
        for path in sorted(self.out.rglob("*"), reverse=True):
            if any(part.startswith(".") for part in path.relative_to(self.out).parts):
                continue
            if path.is_file() and path not in self.written:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def as_json(value: Any) -> str:
    """Return JSON that no text in it can end as a script, and that a browser can read."""
    dumped = json.dumps(finite(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return dumped.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def breaking(text: str, after: str = "._/") -> Markup:
    """Escape a `text` as HTML, and let a line end after the characters `after`, but not within a number."""
    return Markup(re.sub(rf"([{re.escape(after)}])(?!\d)", r"\1<wbr>", str(escape(text))))


def with_code(text: str, names: Mapping[str, str] = METRICS) -> Markup:
    """Escape a `text`, with what is between backticks as code, or by the reader's one of the `names` of columns."""
    known = {str(escape(name)): escape(title) for name, title in (METRICS | {**names}).items()}
    return Markup(
        BETWEEN_BACKTICKS.sub(lambda found: known.get(found[1], f"<code>{found[1]}</code>"), str(escape(text)))
    )


def without_code(text: str, names: Mapping[str, str] = METRICS) -> str:
    """Remove the backticks of a `text`, for attributes, which cannot show code; see `with_code`."""
    known = METRICS | {**names}
    return BETWEEN_BACKTICKS.sub(lambda found: known.get(found[1], found[1]), text)
