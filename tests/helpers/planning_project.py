"""This project with its work elsewhere."""

from pathlib import Path

from real_project import real_project

from pipeline.papers.project import Project


def project_at(work: Path, scale: str = "smoke", **config) -> Project:
    settings = {"scale": scale, "work": str(work), "mirror": None, "licensed": {}, "seeds": 1}
    return real_project(settings | config)
