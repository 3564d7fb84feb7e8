"""A site of made-up results, and a project without any."""

from pathlib import Path

import pytest
from made_site import make_results
from real_project import real_project

from pipeline.papers.project import Project
from pipeline.report.site.build import build
from pipeline.report.site.pages import Pages
from pipeline.report.site.site_data import SiteData


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> tuple[Project, Path]:
    """Return a project with made-up results, and the folder of its site."""
    folder = tmp_path_factory.mktemp("site")
    project = real_project({"work": str(folder / "work")})
    make_results(project)
    build(Pages(folder / "site", SiteData(project, False)))
    return project, folder / "site"


@pytest.fixture
def project(tmp_path) -> Project:
    return real_project({"work": str(tmp_path / "work"), "scale": "demo"})
