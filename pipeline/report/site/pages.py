"""Writing pages: templates filled in, data beside them as scripts, and what an earlier site left removed."""

import hashlib
import importlib.metadata
import json
import math
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.report.site.present import Present, run_page

MARK = "assets/site.css"
"""A folder that has it is a site, and may be written over."""


class Pages:
    """The folder of a site. Every page lies at its top, so that links are names."""

    def __init__(self, out: Path, present: Present):
        self.out, self.present, self.written = out, present, set[Path]()
        if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
            raise UserError(f"{out}: holds something else than a site; name an empty folder")

    @cached_property
    def templates(self) -> Environment:
        loader = PackageLoader("pipeline.report.site")
        found = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        found.filters["json"] = as_json
        found.globals |= {
            "run_page": run_page,
            "scale": self.present.project.config.scale,
            "status": self.present.status,
        }
        found.globals |= {"papers": self.present.project.papers, "vega": vega_file(), "private": self.present.private}
        return found

    def page(self, name: str, template: str, **content: Any) -> None:
        self.write(name, (self.templates.get_template(template).render(page=name, **content) + "\n").encode())

    def script(self, name: str, variable: str, content: Any) -> None:
        """Data of a page: a script, as a page that is opened from disk may not fetch."""
        self.write(f"data/{name}.js", f"window.{variable}={as_json(content)};\n".encode())

    def write(self, name: str, content: bytes) -> None:
        path = self.out / name
        self.written.add(path)
        if not path.exists() or path.read_bytes() != content:
            with atomic_write(path, "wb") as file:
                file.write(content)

    def copy(self, source: Path, name: str) -> str:
        self.write(name, source.read_bytes())
        return name

    def assets(self) -> None:
        """Our own style and scripts, and Vega's, which altair's companion package carries."""
        for asset in (resources.files("pipeline.report.site") / "assets").iterdir():
            self.write(f"assets/{asset.name}", asset.read_bytes())
        vega = self.out / "assets" / vega_file()
        self.written.add(vega)
        if not vega.exists():
            self.write(f"assets/{vega.name}", vega_script().encode())

    def remove_others(self) -> None:
        """What an earlier site had and this one has not."""
        for path in sorted(self.out.rglob("*"), reverse=True):
            if path.is_file() and path not in self.written:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def as_json(value: Any) -> str:
    """JSON that ends no script, whatever texts are in it, and that a browser reads, whatever numbers."""
    dumped = json.dumps(finite(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return dumped.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def finite(value: Any) -> Any:
    """The same with null in the place of numbers that JSON has not, such as infinite losses; charts leave them out."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def digest(text: str) -> str:
    """A few digits that tell names of files apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def vega_file() -> str:
    return f"vega-{importlib.metadata.version('vl-convert-python')}.js"


def vega_script() -> str:
    import vl_convert  # takes seconds to write it out

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version="6.4")
