"""Valid YAML is read as by PyYAML; faulty YAML is refused at once, in one line."""

import pytest
import yaml
from time_limit import within

from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.core.yaml_file import MAX_BYTES, load_yaml, parse_yaml

FILES = [*ROOT.glob("workflow/**/*.yaml"), ROOT / "config.yaml", *ROOT.glob("slurm/*.yaml")]
FILES = sorted(path for path in FILES if path.parent.name != "scaffold")  # templates, no YAML before they are filled in
BOMB = "a: &a [x, x, x, x]\n" + "".join(
    f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 25)
).replace("*b0", "*a")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_of_the_project_reads_as_with_pyyaml(path):
    assert load_yaml(path) == yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text", ["", "~", "a: &x [1]\nb: *x", "a: 1e-9\nb: 0x1f\nc: 1_000\nd: yes\ne: 2017-01-02", "'3'"]
)
def test_values_are_those_of_pyyaml(text):
    assert parse_yaml(text, "text") == yaml.safe_load(text)


FAULTS = {
    "duplicate key": ("a: 1\nb: 2\na: 3", r"f\.yaml: line 3: the key 'a' is already on line 1"),
    "duplicate in flow": ("a: {b: 1, b: 2}", "line 1: the key 'b' is already on line 1"),
    "bomb of aliases": (BOMB, r"line \d+: more than 100000 values, aliases written out"),
    "alias in itself": ("a: &x [*x]", "line 1: no anchor &x is complete"),
    "unknown alias": ("a: *x", "no anchor &x"),
    "deep flow": ("[" * 51, "more than 50 levels"),
    "deep block": ("- " * 51, "more than 50 levels"),
    "very deep flow": ("[" * 100_000, "more than 50 levels|exceeded maximum nesting depth"),  # PyYAML's own since 6.0.4
    "very deep block": ("- " * 100_000, "more than 50 levels|exceeded maximum nesting depth"),
    "key that is a number": ("1: a", "the key 1 is not a text; put it in quotes"),
    "key that is a list": ("? [a]\n: b", "a key must be a text"),
    "merge key": ("a: &x {k: 1}\nb:\n  <<: *x\n  j: 2", r"line 3: merge keys \(<<\) are not supported"),
    "merge key in flow": ("a: &x {k: 1}\nb: {<<: *x, k: 2}", r"line 2: merge keys \(<<\) are not supported"),
    "tag": ("a: !!python/object:os.system x", "tag 'tag:yaml.org,2002:python/object:os.system' is not understood"),
    "endless number": (f"a: {'9' * 10_000}", "line 1: '9999999.*…"),
    "infinity": ("a: .inf", "'.inf' is not a number below"),
    "not a number": ("a: .nan", "'.nan' is not a number below"),
    "time of Slurm": ("runtime: 12:00:00", "line 1: '12:00:00' would be 43200, a number in base 60; write a plain"),
    "leading zero": ("a: 010", "line 1: '010' would be 8, a number in base 8; write a plain"),
    "large time": (f"a: {'9' * 400}:30", "line 1: '9999999.*… is not a number below"),
    "endless time": (f"a: {'1:' * 200}1.5", "line 1: '1:1:.*… is not a valid float"),
    "no date": ("a: 2017-99-99", "'2017-99-99' is not a valid timestamp"),
    "two documents": ("a: 1\n---\nb: 2", "line 2: a second document"),
    "tab": ("a:\n\tb: 1", "line 2: not valid YAML: .*; indent with spaces, not tabs"),
    "cut off": ("a: [1, 2", "not valid YAML: .*; check the indentation, colons and quotes"),
    "control character": ("a: \x07", "not valid YAML"),
}


def test_a_word_of_a_command_that_is_not_utf_8_is_refused():
    with pytest.raises(UserError, match=r"--set work: not valid YAML: .*surrogates not allowed"):
        parse_yaml("work/\udcff", "--set work")


@pytest.mark.parametrize(("text", "message"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_text_is_refused_in_one_line_at_once(text, message, tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text(text, encoding="utf-8")
    with within(1), pytest.raises(UserError, match=message) as caught:
        load_yaml(path)
    assert str(caught.value).startswith(f"{path}: ") and str(caught.value).isprintable()


def test_yaml_that_is_not_utf8_is_named_with_its_line(tmp_path):
    (tmp_path / "f.yaml").write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(UserError, match=r"f\.yaml: line 2: byte 0xe9 is not UTF-8"):
        load_yaml(tmp_path / "f.yaml")


def test_missing_files_folders_and_large_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        load_yaml(tmp_path / "absent.yaml")
    with pytest.raises(UserError, match="can't be read"):
        load_yaml(tmp_path)
    (tmp_path / "large.yaml").write_text("a: " + "x" * MAX_BYTES)
    with pytest.raises(UserError, match="larger than 1000000 bytes"):
        load_yaml(tmp_path / "large.yaml")
