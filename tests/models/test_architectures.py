"""A folder of pipeline/models is an architecture if it has all parts; a missing part is reported."""

import shutil
from pathlib import Path

import pytest

import pipeline.models
from pipeline.core.errors import UserError
from pipeline.models.architectures import architectures

TOY = Path(__file__).resolve().parents[1] / "helpers/architectures/bag_of_words"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The folder of an architecture beside the others; its name is new, for modules are imported once."""
    folder = tmp_path / f"toy_{tmp_path.name}"
    shutil.copytree(TOY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    replace(folder / "settings.py", "bag_of_words", folder.name)
    monkeypatch.setattr(pipeline.models, "__path__", [*pipeline.models.__path__, str(tmp_path)])
    return folder


def replace(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def test_only_a_folder_with_all_its_parts_is_an_architecture(toy):
    assert set(architectures()) > {"transformer", "ctc", toy.name}
    assert {"fusion", "kernels", "layers"}.isdisjoint(architectures())


def test_a_model_file_that_is_missing_or_lacks_build_is_named(toy):
    path = toy / "model.py"
    for spoil in (lambda: replace(path, "def build", "def other"), path.unlink):
        spoil()
        with pytest.raises(UserError, match=rf"{toy.name}/model.py: .*`build`"):
            architectures()


@pytest.mark.parametrize("method", ["schedule_width", "forward_macs"])
def test_settings_that_lack_a_method_are_refused(toy, method):
    replace(toy / "settings.py", method, "other")
    with pytest.raises(UserError, match=rf"settings\.py: BagOfWordsConfig has no {method}"):
        architectures()


def test_an_architecture_is_named_as_its_folder(toy):
    replace(toy / "settings.py", toy.name, "another")
    with pytest.raises(UserError, match=rf"needs `architecture: Literal\['{toy.name}'\]`.*another"):
        architectures()


def test_settings_without_a_literal_name_are_refused(toy):
    replace(toy / "settings.py", f'Literal["{toy.name}"] = Field(', f'str = Field(default="{toy.name}", ')
    with pytest.raises(UserError, match=rf"{toy.name}/settings.py: .*Literal\['{toy.name}'\].*got \[\]"):
        architectures()


@pytest.mark.parametrize("part", ["__init__.py", "settings.py"])
def test_a_model_folder_that_lacks_another_part_is_refused(toy, part):
    (toy / part).unlink()
    with pytest.raises(UserError, match=f"{toy.name}/{part}: no such file; an architecture needs it"):
        architectures()
