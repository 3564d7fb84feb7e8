"""The package declares its licence and pins all imports; `make clean` keeps expensive files."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipeline.core.provenance import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

WITH_TORCH = {"triton"}
"""Modules that torch's builds for GPUs bring with them, and that are imported only on a GPU."""


def named(requirements) -> dict[str, Requirement]:
    """Return requirements by the canonical names of their distributions."""
    return {canonicalize_name(each.name): each for each in map(Requirement, requirements)}


def imported() -> set[str]:
    """Modules that `pipeline` imports from elsewhere."""
    names = set()
    for path in (ROOT / "pipeline").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"pipeline", *WITH_TORCH}


def test_imports_of_pipeline_are_declared_dependencies():
    distributions = packages_distributions()
    declared = named([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["tensorboard"]])
    undeclared = [
        module for module in imported() if not set(map(canonicalize_name, distributions[module])) & {*declared}
    ]
    assert undeclared == []


def test_mypy_and_import_hooks_cover_every_package():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = {hook["id"]: hook for hook in repository["hooks"]}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["packages"]
    assert len(packages) > 1
    for hook in (hooks["mypy"], hooks["imports"]):
        assert all(re.search(hook["files"], f"{package}/module.py") for package in packages)


def test_declared_dependencies_are_pinned_except_torch():
    lines = (ROOT / "requirements.txt").read_text().split("\n")
    pinned = named(line.removesuffix("\\") for line in lines if line and not line.startswith(" "))
    declared = named([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]])
    assert declared.keys() - pinned.keys() == {"torch"}
    for name in declared.keys() & pinned.keys():
        (pin,) = pinned[name].specifier
        assert pin.operator == "==" and declared[name].specifier.contains(pin.version)


def test_the_makefile_pins_a_torch_that_is_allowed():
    (pin,) = re.findall(r"^TORCH := (\S+)$", (ROOT / "Makefile").read_text(), re.M)
    (version,) = Requirement(pin).specifier
    assert version.operator == "==" and named(PROJECT["dependencies"])["torch"].specifier.contains(version.version)


def test_dependencies_have_lower_bounds_and_only_extras_others():
    extras = [name for names in PROJECT["optional-dependencies"].values() for name in names]
    for requirement in map(Requirement, PROJECT["dependencies"]):
        assert {bound.operator for bound in requirement.specifier} == {">="}, requirement
    for requirement in map(Requirement, extras):
        assert {bound.operator for bound in requirement.specifier} & {">=", "=="}, requirement


def test_every_pin_has_checksums_and_no_address():
    text = (ROOT / "requirements.txt").read_text()
    blocks = [block.split("\n") for block in re.split(r"\n(?=\S)", text.strip())]
    assert len(blocks) > 100 and "://" not in text
    for first, *hashes in blocks:
        assert "==" in first and hashes
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes)


def test_the_licence_is_there_and_named():
    text = (ROOT / "LICENSE").read_text()
    assert PROJECT["license"] == "Apache-2.0" and PROJECT["license-files"] == ["LICENSE"]
    assert "Apache License" in text and "Version 2.0" in text and "the Reprise authors" in text


def test_help_of_make_names_every_target_once():
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    named = [word for line in done.stdout.splitlines() for word in line.partition("  ")[0].split()[1:]]
    declared = subprocess.run(["make", "-prRn", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    (targets,) = re.findall(r"^\.PHONY: (.+)$", declared, re.MULTILINE)
    assert sorted(named) == sorted({*targets.split()} - {"help"})


def test_clean_removes_views_and_nothing_that_took_time(tmp_path):
    kept = [tmp_path / name for name in ("work/model.safetensors", "results/README.md", "results/demo/toy/table1.csv")]
    views = [tmp_path / name for name in ("results/table1.csv", "results/claims.md")]
    for path in (*kept, *views):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    subprocess.run(["make", "-f", ROOT / "Makefile", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert all(path.exists() for path in kept) and not any(path.exists() for path in views)


def test_the_wheel_holds_every_file_of_the_package(tmp_path):
    """Modules and the tables that they read, whatever git tracks below pipeline/."""
    tracked = subprocess.run(["git", "ls-files", "pipeline"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = tracked.stdout.split()
    for name in (*files, "pyproject.toml", "README.md", "LICENSE"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    program = "from setuptools.build_meta import build_wheel; print(build_wheel('.'))"
    built = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True)
    with zipfile.ZipFile(tmp_path / built.stdout.split("\n")[-2]) as wheel:
        assert set(files) <= set(wheel.namelist())


def test_extras_are_installed_without_a_copy_of_the_code():
    """Without -e, pip copies the project, and `reprise` runs that copy even after the clone has changed."""
    search = ["git", "grep", "-hIE", r"pip install.* '\.\[", "--", ":!CHANGELOG.md"]
    lines = subprocess.run(search, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) > 5 and all(re.search(r" -e '?\.\[", line) for line in lines)
