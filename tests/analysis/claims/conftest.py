import json

import pytest
import yaml
from real_project import real_project

from pipeline.analysis.claims import load_claims
from pipeline.papers.project import Project


@pytest.fixture
def project_with(tmp_path, monkeypatch):
    """A project of the real papers with claims of the test's own instead of the paper `weighted`'s."""

    monkeypatch.setattr(Project, "noise_of", lambda project, family: None)

    def build(claims, seeds=1, **settings):
        project = real_project({"work": tmp_path, "scale": "demo", "seeds": seeds, **settings})
        path = tmp_path / "claims.yaml"
        path.write_text(yaml.safe_dump(json.loads(json.dumps(claims))), encoding="utf-8")
        project.claims["weighted"] = load_claims(path)
        return project

    return build
