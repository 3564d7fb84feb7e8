"""For any name of a work folder, rules work in it, or the fault of its name is reported at once."""

import pytest
from copied_project import ROOT, copy_project

from pipeline.core.errors import UserError
from pipeline.papers.project import load_project
from pipeline.workflow.targets import refuse_odd_folders


@pytest.mark.parametrize("name", ["{scale}", "a{", "a\nb"])
def test_work_folder_with_snakemake_wildcards_is_refused(tmp_path, name):
    with pytest.raises(UserError, match=r"work: '.*: no rule can have a brace or a line break in a path"):
        refuse_odd_folders(load_project(ROOT, {"work": str(tmp_path / name)}))


@pytest.mark.parametrize("name", ["a b", "'\"`id`;&|#!%s", "[a]*?~é😀", "a,b=c:d\\e"])
def test_other_signs_are_as_good_as_any(tmp_path, name):
    refuse_odd_folders(load_project(ROOT, {"work": str(tmp_path / name)}))


def test_project_folder_name_that_is_not_utf8_is_refused(tmp_path):
    root = tmp_path / "a\udcff"
    root.mkdir()
    project = load_project(copy_project(root))
    with pytest.raises(UserError, match=r"a\\udcff: its name has bytes that are not UTF-8; choose another place"):
        refuse_odd_folders(project)
