import copy
import functools
import json
from pathlib import Path

import pytest
import yaml

from pipeline.analysis.claims import load_claims
from pipeline.papers.project import Project, load_project

ROOT = Path(__file__).resolve().parents[3]


@functools.cache
def real_papers(settings: str) -> Project:
    """Load and check the project once for all tests of a process that share settings."""
    return load_project(ROOT, json.loads(settings))


@pytest.fixture
def project_with(tmp_path, monkeypatch):
    """A project of the real papers with claims of the test's own in the place of the paper `weighted`'s."""

    monkeypatch.setattr(Project, "noise_of", lambda project, family: None)

    def build(claims, seeds=1, **settings):
        project = copy.copy(real_papers(json.dumps({"scale": "demo", "seeds": seeds, **settings})))
        project.config = project.config.model_copy(update={"work": str(tmp_path)})
        vars(project).pop("layout", None)
        project.clear_caches()
        path = tmp_path / "claims.yaml"
        path.write_text(yaml.safe_dump(json.loads(json.dumps(claims))), encoding="utf-8")
        project.claims = project.claims | {"weighted": load_claims(path)}
        return project

    return build
