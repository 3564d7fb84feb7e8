"""Published recordings become manifests; only needed members are unpacked, and none outside the folder."""

import gzip
import io
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from made_archives import entry, hard_link, pack, symbolic_link, tar
from own_speech import RATE, record

from pipeline.core import disk
from pipeline.core.errors import UserError
from pipeline.core.schema import validate
from pipeline.data.dataset import Dataset, RecordedDataset, TextPart
from pipeline.data.fetch import archives
from pipeline.data.speech.collect_recordings import LAYOUTS, collect, unpack
from pipeline.data.speech.collect_text import joined_clitics, part_content
from pipeline.data.speech.manifest import manifest_path, read_manifest


def audio(seconds: float, kind: str = "FLAC") -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.random.default_rng(1).normal(0, 0.1, int(RATE * seconds)), RATE, format=kind)
    return buffer.getvalue()


SPLITS = ("train", "dev", "test")


def archive(path: Path, members: dict[str, bytes | str]) -> Path:
    files = {name: content.encode() if isinstance(content, str) else content for name, content in members.items()}
    path.write_bytes(pack(files.items(), "gz"))
    return path


def collected(folder: Path, layout: str, parts: dict[str, list[dict]], files: dict[str, Path]) -> dict[str, list]:
    """Collect recordings, and return the utterances of each split."""
    collect(dataset(layout, parts), files, folder / "corpus")
    return {split: list(read_manifest(manifest_path(folder / "corpus", split))) for split in parts}


def dataset(layout: str, parts: dict[str, list[dict]]) -> RecordedDataset:
    named = {value for split in parts.values() for part in split for key, value in part.items() if key != "members"}
    sources = {name: {"sha256": "0" * 64} for name in named}
    settings = {"kind": "recordings", "layout": layout, "sources": sources, "splits": parts}
    settings |= {"sample_rate": RATE, "high_hz": 3800, "max_seconds": 9, "max_characters": 99}
    return validate(Dataset, record(**settings), "test")


def transcribed(split: str, reader: int, count: int) -> dict[str, bytes]:
    """Return recordings of a reader in LibriSpeech's layout, from half a second on, and their transcripts."""
    names = [f"{reader}-1-000{number}" for number in range(count)]
    files = {f"Set/{split}/{name}.flac": audio(0.5 + number / 4) for number, name in enumerate(names)}
    return files | {f"Set/{split}/{reader}-1.trans.txt": "".join(f"{name} WORD\n" for name in names).encode()}


def test_librispeech_is_listed_by_its_transcripts(tmp_path):
    members = {"Set/README.TXT": b"read me"}
    for reader, split in enumerate(SPLITS, start=7):
        members |= transcribed(split, reader, 2)
    members["Set/dev/8-1.trans.txt"] = b"8-1-0000 FIRST\tLINE\n8-1-0001 SECOND\n"
    path = archive(tmp_path / "libri.tar.gz", members)
    parts = {split: [{"source": "libri.tar.gz", "members": f"Set/{split}/*"}] for split in SPLITS}
    listed = collected(tmp_path, "librispeech", parts, {"libri.tar.gz": path})["dev"]
    assert [(one.text, one.speaker, one.seconds) for one in listed] == [("FIRST LINE", "8", 0.5), ("SECOND", "8", 0.75)]
    assert all(utterance.audio.is_file() for utterance in listed)
    assert len([path for path in (tmp_path / "corpus/audio").rglob("*") if path.is_file()]) == 9


def test_tedlium_segments_exclude_test_talks_from_training(tmp_path):
    lines = [("0.25", "1.50", "it 's the <sil> end{SMACK} of(2) it"), ("1.5", "1.9", "<unk> word")]
    lines.append(("1.9", "2.0", "ignore_time_segment_in_scoring"))
    members = {}
    for folder, talks in (("data", "AB"), ("legacy/dev", "C"), ("legacy/test", "B")):
        for talk in talks:
            text = "".join(f"{talk} 1 {talk} {start} {end} <o,f0,male> {words}\n" for start, end, words in lines)
            members[f"T/{folder}/stm/{talk}.stm"] = f";; the second listener on day 3 of it\n;;\n{text}"
            members[f"T/{folder}/sph/{talk}.sph"] = audio(2, "NIST")
    path = archive(tmp_path / "ted.tgz", members)
    folders = {"train": "T/data/*", "dev": "T/legacy/dev/*", "test": "T/legacy/test/*"}
    parts = {split: [{"source": "ted.tgz", "members": members}] for split, members in folders.items()}
    train = collected(tmp_path, "tedlium", parts, {"ted.tgz": path})["train"]
    assert [(one.speaker, one.start, one.seconds, one.text.split()) for one in train] == [
        ("A", 0.25, 1.25, ["it's", "the", "end", "of", "it"]),
        ("A", 1.5, 0.4, ["<unk>", "word"]),
    ]


HEADER = "path\tspeaker\ttranscript\n"


def test_a_table_names_files_and_a_pattern_chooses_among_them(tmp_path):
    names = [(who, n, f"a/{who}/{n}.flac") for who in "xyz" for n in range(2)]
    path, table = archive(tmp_path / "a.tar", {name: audio(0.5) for *_, name in names}), tmp_path / "a.tsv"
    table.write_text(HEADER + "".join(f"{name}\t{who}\tWORD {n}\n" for who, n, name in names))
    parts = {
        split: [{"source": "a.tar", "table": "a.tsv", "members": f"a/{who}/*"}]
        for split, who in zip(SPLITS, ("[!yz]", "y", "z"), strict=True)
    }
    files = {"a.tar": path, "a.tsv": table}
    listed = collected(tmp_path, "table", parts, files)["train"]
    assert [(one.speaker, one.text, one.seconds) for one in listed] == [("x", "WORD 0", 0.5), ("x", "WORD 1", 0.5)]
    parts["dev"][0]["members"] = "a/none/*"
    with pytest.raises(UserError, match="split dev has no utterance"):
        collect(dataset("table", parts), files, tmp_path / "corpus")


@pytest.mark.parametrize("named", ["a/../../../../other.flac", "{outside}"])
def test_table_with_audio_outside_its_archive_is_refused(tmp_path, named):
    outside, table = tmp_path / "other.flac", tmp_path / "t.tsv"
    outside.write_bytes(audio(0.5))
    table.write_text(f"{HEADER}{named.format(outside=outside)}\tx\tWORD\n")
    files = {"a.tar": archive(tmp_path / "a.tar", {"a/1.flac": audio(0.5)}), "t.tsv": table}
    parts = {split: [{"source": "a.tar", "table": "t.tsv", "members": "*"}] for split in SPLITS}
    with pytest.raises(UserError, match=r"t\.tsv: names '\.\./\.\./\.\./other\.flac', which is not in a\.tar"):
        collect(dataset("table", parts), files, tmp_path / "corpus")


@pytest.mark.parametrize("spelling", ["a/cafe\u0301-{}.flac", "./a/caf\u00e9-{}.flac", "a\\caf\u00e9-{}.flac"])
@pytest.mark.parametrize("member", ["a/cafe\u0301-{}.flac", "./a/caf\u00e9-{}.flac"])
def test_a_table_may_spell_a_member_in_another_way(tmp_path, member, spelling):
    """macOS decomposes accents, Windows writes backslashes, and `find .` begins names with a dot."""
    path, table = (
        archive(tmp_path / "a.tar", {member.format(split): audio(0.5) for split in SPLITS}),
        tmp_path / "t.tsv",
    )
    table.write_text(HEADER + "".join(f"{spelling.format(split)}\tx\tWORD\n" for split in SPLITS), encoding="utf-8")
    parts = {split: [{"source": "a.tar", "table": "t.tsv", "members": f"a/*{split}*"}] for split in SPLITS}
    for (heard,) in collected(tmp_path, "table", parts, {"a.tar": path, "t.tsv": table}).values():
        assert (heard.seconds, heard.audio.is_file()) == (0.5, True)


def test_a_row_that_is_cut_off_has_no_text(tmp_path):
    (tmp_path / "a.tsv").write_text(f"{HEADER}a.flac\tx\n")
    (cut,) = LAYOUTS["table"].utterances(tmp_path, "*", "read", tmp_path / "a.tsv")
    assert (cut.speaker, cut.text) == ("x", "")


@pytest.mark.parametrize(("start", "end"), [("0.1", "x.y"), ("nan", "1"), ("0", "inf"), ("-1", "1"), ("2", "1")])
def test_a_segment_whose_times_are_none_is_named(tmp_path, start, end):
    (tmp_path / "stm").mkdir()
    (tmp_path / "stm/A.stm").write_text(f"A 1 A 0 1 <o,f0,male> word\nA 1 A {start} {end} <o,f0,male> word\n")
    with pytest.raises(UserError, match=r"A\.stm: line 2: (.* is not a number of seconds|ends before)"):
        list(LAYOUTS["tedlium"].utterances(tmp_path, "*", "talks", None))


def texts(path: Path, member: str, layout: str = "plain") -> list[str]:
    """Return the sentences in matching members of an archive."""
    part = TextPart(source=path.name, member=member, layout=layout)
    return list(part_content(part, path, path.with_name("copies")))


def test_text_of_archives_is_read_by_its_layout(tmp_path):
    lines = "it 's a test </s>\nwe don 't know </s>\n"
    path = archive(tmp_path / "t.tgz", {"T/LM/a.en.gz": gzip.compress(lines.encode()), "T/other": "no"})
    found = texts(path, "T/LM/*.en.gz", "tedlium")
    assert [line.strip() for line in found] == ["it's a test", "we don't know"]
    assert joined_clitics("you 'll see 'em") == "you'll see 'em"
    segments = [
        ";; a comment of six words and more",
        "T 1 S 0.1 0.9 <o> what 's up",
        "T 1 S 1 2 <o>",
        "T 1 S 2 3 <o> ignore_time_segment_in_scoring",
    ]
    stm = archive(tmp_path / "s.tgz", {"a.stm": "".join(f"{line}\n" for line in segments)})
    assert texts(stm, "*.stm", "stm") == ["what's up"]
    spoken = archive(tmp_path / "l.tgz", {"1-2.trans.txt": "1-2-0000 TWO WORDS\n1-2-0001 ONE\n"})
    assert texts(spoken, "*.trans.txt", "transcripts") == ["TWO WORDS", "ONE"]


@pytest.mark.parametrize("kind", ["folder", "hard", "table"])
def test_recordings_under_two_names_count_once(tmp_path, caplog, kind):
    """A link to a folder, or hard links to its files, which the pattern of the split matches too."""
    entries, listing = [], HEADER
    for reader, split in enumerate(SPLITS, start=1):
        files = transcribed(split, reader, 3)
        listing += "".join(f"{name}\tx\tWORD\n" for name in files if name.endswith(".flac"))
        entries += [entry(*file) for file in files.items()]
        if kind == "hard":
            entries += [hard_link(f"{Path(name).parent}/same/{Path(name).name}", name) for name in files]
        elif split == "dev":
            entries.append(symbolic_link("Set/dev/circle", "."))
        else:
            entries.append(symbolic_link(f"Set/{split}-link", split))
    files = {"libri.tar.gz": tmp_path / "libri.tar.gz", "t.tsv": tmp_path / "t.tsv"}
    files["libri.tar.gz"].write_bytes(tar(*entries, kind="gz"))
    files["t.tsv"].write_text(listing)
    table = {"table": "t.tsv"} if kind == "table" else {}
    parts = {split: [{"source": "libri.tar.gz", "members": f"Set/{split}*"} | table] for split in SPLITS}
    for listed in collected(tmp_path, "table" if table else "librispeech", parts, files).values():
        assert [one.seconds for one in listed] == [0.5, 0.75, 1.0]
        assert all(one.audio.is_file() for one in listed)
    said = "3 utterances are in the archives under several names; each counts once"
    assert (said in caplog.text) == (not table)


def test_the_last_of_two_recordings_of_one_name_is_kept(tmp_path, caplog):
    """The two have the same size, so that only their order differs."""
    (tmp_path / "r.tar").write_bytes(pack([("R/a.wav", b"old"), ("R/a.wav", b"new")], "tar"))
    unpack(tmp_path / "r.tar", ["R/*"], (".wav",), tmp_path / "out")
    assert (tmp_path / "out/R/a.wav").read_bytes() == b"new"
    assert "r.tar: has R/a.wav more than once; the last one counts" in caplog.text


def test_recordings_of_an_earlier_archive_are_replaced(tmp_path):
    """The new archive lacks a file, another is longer, and a third has other content of the same size.

    A file that NFS holds for a reader, under a name of its own, stays.
    """
    held = tmp_path / "out/R/.nfs00001"
    held.parent.mkdir(parents=True)
    held.touch()
    old, new = {"R/a.wav": b"old", "R/b.wav": b"short", "R/x/c.wav": b"c"}, {"R/a.wav": b"new", "R/b.wav": b"longer"}
    for number, content in enumerate((old, new, old)):
        (tmp_path / "r.tar").write_bytes(pack(content.items(), "tar"))
        unpack(tmp_path / "r.tar", ["R/*"], (".wav",), tmp_path / "out")
        found = {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
        found.remove(held)
        assert {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in found} == content, number


def test_unpacked_recordings_are_not_written_again(tmp_path):
    (tmp_path / "r.tar").write_bytes(pack([("R/a.wav", b"x" * 90_000)], "tar"))
    unpack(tmp_path / "r.tar", ["R/*"], (".wav",), tmp_path / "out")
    os.utime(tmp_path / "out/R/a.wav", ns=(1, 1))
    unpack(tmp_path / "r.tar", ["R/*"], (".wav",), tmp_path / "out")
    assert (tmp_path / "out/R/a.wav").stat().st_mtime_ns == 1


def test_unpacked_recordings_need_no_space_again(tmp_path, monkeypatch):
    (tmp_path / "r.tar").write_bytes(pack([("R/a.wav", b"x" * 90_000)], "tar"))
    unpack(tmp_path / "r.tar", ["R/*"], (".wav",), tmp_path / "out")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: SimpleNamespace(free=disk.SPARE_BYTES + 20_000))
    unpack(tmp_path / "r.tar", ["R/*"], (".wav",), tmp_path / "out")
    with pytest.raises(UserError, match=r"the recordings of r\.tar will need"):
        unpack(tmp_path / "r.tar", ["R/*"], (".wav",), tmp_path / "another")


@pytest.mark.parametrize("pattern", ["T/*.txt", "T/b.txt"])
def test_text_is_read_in_one_pass_over_its_archive(tmp_path, monkeypatch, pattern):
    passes, tar_entries = [], archives.tar_entries
    monkeypatch.setattr(archives, "tar_entries", lambda path: passes.append(path) or tar_entries(path))
    path = tmp_path / "t.tgz"
    path.write_bytes(tar(entry("T/a.txt", b"one\n"), entry("T/b.txt", b"two\n"), kind="gz"))
    assert texts(path, pattern)[-1] == "two"
    assert passes == [path]


@pytest.mark.parametrize(
    ("link", "alias"),
    [
        (hard_link("T/b.txt", "T/a.txt"), "T/b.txt"),
        (symbolic_link("T/b.txt", "a.txt"), "T/b.txt"),
        (symbolic_link("T/b", "../T"), "T/b/a.txt"),
    ],
    ids=["hard", "file", "folder"],
)
def test_text_under_two_names_is_read_once(tmp_path, caplog, link, alias):
    path = tmp_path / "t.tar"
    path.write_bytes(tar(entry("T/a.txt", b"one\ntwo\n"), link))
    assert texts(path, "T/*.txt") == texts(path, alias) == ["one", "two"]
    assert "is a link to a file that was read under another name" in caplog.text
