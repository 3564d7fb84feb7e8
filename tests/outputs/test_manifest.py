"""A manifest keeps unchanged outputs, records failures, and has another name until it is complete."""

import random
from pathlib import Path

import pytest
from fabricated import touch

from pipeline.core.digests import write_note
from pipeline.core.errors import UserError
from pipeline.core.files import note_path
from pipeline.core.records.outputs import Manifest
from pipeline.outputs.manifest import ManifestWriter, entries_of, part_of, reopen

NAMES = [f"kind{number}/final/test.txt" for number in range(6)]


class Maker:
    """Writes one file of random text an output, counts, and fails where a test asks for it."""

    def __init__(self, run: Path):
        self.run, self.calls, self.broken = run, [], {}

    def __call__(self, name: str) -> list[Path]:
        self.calls.append(name)
        if name in self.broken:
            raise self.broken[name]
        return [touch(self.run / name, str(random.random()))]


@pytest.fixture
def maker(tmp_path):
    return Maker(tmp_path)


def keys_of(names=NAMES, **changed: str) -> dict[str, str]:
    return {name: f"key of {name}" for name in names} | changed


def make(maker: Maker, keys: dict[str, str]) -> list[str]:
    """Make what is missing of a manifest; return what was made."""
    maker.calls = []
    manifest = ManifestWriter(maker.run, maker.run / "final/outputs.json")
    manifest.make({name: keys[name] for name in manifest.lacks(keys)}, maker)
    manifest.finish(keys)
    return maker.calls


def test_unchanged_outputs_of_a_manifest_are_kept(maker):
    assert make(maker, keys_of()) == NAMES
    texts = [(maker.run / name).read_text() for name in NAMES]
    assert make(maker, keys_of()) == []
    assert [(maker.run / name).read_text() for name in NAMES] == texts


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_text("other")], ids=["lost", "altered"])
def test_an_output_whose_file_is_lost_or_altered_is_redone_alone(maker, harm):
    make(maker, keys_of())
    harmed = random.sample(NAMES, 2)
    for name in harmed:
        harm(maker.run / name)
    assert make(maker, keys_of()) == sorted(harmed)


def test_a_changed_key_redoes_only_its_output(maker):
    make(maker, keys_of())
    changed = random.choice(NAMES)
    assert make(maker, keys_of(**{changed: "another key"})) == [changed]


@pytest.mark.parametrize("error", [UserError("no memory"), ZeroDivisionError("a bug")], ids=["foreseen", "bug"])
def test_a_failure_is_recorded_and_the_others_are_made(maker, error):
    broken = random.choice(NAMES)
    maker.broken = {broken: error}
    with pytest.raises(UserError, match=rf"1 of {len(NAMES)} outputs failed; {broken}"):
        make(maker, keys_of())
    path = maker.run / "final/outputs.json"
    assert not path.exists()
    recorded = Manifest.read(part_of(path)).entries
    assert {name for name, entry in recorded.items() if entry.error} == {broken}
    assert str(error) in recorded[broken].error
    assert all((maker.run / name).exists() for name in NAMES if name != broken)
    maker.broken = {}
    assert make(maker, keys_of()) == [broken]
    assert path.exists() and not part_of(path).exists()


def test_a_process_killed_between_two_outputs_loses_none(maker):
    maker.broken = {NAMES[3]: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        make(maker, keys_of())
    maker.broken = {}
    assert make(maker, keys_of()) == NAMES[3:]


def test_reopened_manifest_keeps_its_good_outputs(maker):
    make(maker, keys_of())
    path = maker.run / "final/outputs.json"
    assert reopen(path) == part_of(path) and not path.exists()
    (maker.run / NAMES[2]).unlink()
    assert make(maker, keys_of()) == [NAMES[2]]
    assert set(entries_of(path)) == set(NAMES)
    assert path.exists() and not part_of(path).exists()


def test_complete_manifest_leaves_no_note_of_the_incomplete_one(maker):
    path = maker.run / "final/outputs.json"
    ManifestWriter(maker.run, path).make(keys_of(), maker)
    write_note(part_of(path))
    note = note_path(part_of(path))
    content = note.read_bytes()
    for _ in range(2):  # the second time, the incomplete one is gone
        note.write_bytes(content)
        assert make(maker, keys_of()) == []
        assert not note.exists()


def test_outputs_that_nobody_wants_any_more_leave_the_manifest(maker):
    make(maker, keys_of())
    assert make(maker, keys_of(NAMES[:2])) == []
    assert set(Manifest.read(maker.run / "final/outputs.json").entries) == set(NAMES[:2])
