"""Published recordings become manifests; only needed members are unpacked, and none outside the folder."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipeline.core.errors import UserError
from pipeline.core.schema import validate
from pipeline.data.dataset import Dataset, RecordedDataset, TextPart
from pipeline.data.speech.collect_recordings import LAYOUTS, collect, unpack
from pipeline.data.speech.collect_text import joined_clitics, part_content
from pipeline.data.speech.manifest import manifest_path, read_manifest

RATE = 8000


def audio(seconds: float, kind: str = "FLAC") -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.random.default_rng(1).normal(0, 0.1, int(RATE * seconds)), RATE, format=kind)
    return buffer.getvalue()


def archive(path: Path, members: dict[str, bytes | str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def dataset(layout: str, parts: dict[str, list[dict]]) -> RecordedDataset:
    record = dict.fromkeys(("name", "title", "licence", "citation", "dev_set", "test_set", "domain"), "x")
    named = {value for split in parts.values() for part in split for key, value in part.items() if key != "members"}
    sources = {name: {"sha256": "0" * 64} for name in named}
    record |= {"kind": "recordings", "layout": layout, "sources": sources, "splits": parts}
    record |= {"sample_rate": RATE, "high_hz": 3800, "max_seconds": 9, "max_characters": 99}
    return validate(Dataset, record, "test")


def unpacked(corpus: Path) -> list[str]:
    return sorted(path.name for path in (corpus / "audio").rglob("*") if path.is_file())


def test_librispeech_is_listed_by_its_transcripts(tmp_path):
    members = {"LibriSpeech/README.TXT": "read me"}
    for split, reader in (("train-clean-100", 7), ("dev-clean", 8), ("test-clean", 9)):
        folder = f"LibriSpeech/{split}/{reader}/1"
        members |= {f"{folder}/{reader}-1-000{number}.flac": audio(0.5 + number / 4) for number in range(2)}
        members[f"{folder}/{reader}-1.trans.txt"] = f"{reader}-1-0000 FIRST LINE\n{reader}-1-0001 SECOND\n"
    path = archive(tmp_path / "libri.tar.gz", members)
    splits = {"train": "train-clean-100", "dev": "dev-clean", "test": "test-clean"}
    parts = {split: [{"source": "libri.tar.gz", "members": f"LibriSpeech/{name}/*"}] for split, name in splits.items()}
    collect(dataset("librispeech", parts), {"libri.tar.gz": path}, tmp_path / "corpus")
    listed = list(read_manifest(manifest_path(tmp_path / "corpus", "dev")))
    assert [(utterance.text, utterance.speaker, utterance.seconds) for utterance in listed] == [
        ("FIRST LINE", "8", 0.5),
        ("SECOND", "8", 0.75),
    ]
    assert all(utterance.audio.is_file() for utterance in listed)
    assert len(unpacked(tmp_path / "corpus")) == 9


def test_tedlium_segments_exclude_test_talks_from_training(tmp_path):
    head = "{talk} 1 {talk} {start} {end} <o,f0,male> {text}\n"
    members = {}
    for folder, talks in (("data", ["A", "B"]), ("legacy/dev", ["C"]), ("legacy/test", ["B"])):
        for talk in talks:
            lines = [("0.25", "1.50", "it 's the <sil> end{SMACK} of(2) it"), ("1.5", "1.9", "<unk> word")]
            lines.append(("1.9", "2.0", "ignore_time_segment_in_scoring"))
            text = ";; the second listener on day 3 of it\n;;\n" + "".join(
                head.format(talk=talk, start=a, end=b, text=t) for a, b, t in lines
            )
            members |= {f"T/{folder}/stm/{talk}.stm": text, f"T/{folder}/sph/{talk}.sph": audio(2, "NIST")}
    path = archive(tmp_path / "ted.tgz", members)
    folders = {"train": "T/data/*", "dev": "T/legacy/dev/*", "test": "T/legacy/test/*"}
    parts = {split: [{"source": "ted.tgz", "members": members}] for split, members in folders.items()}
    collect(dataset("tedlium", parts), {"ted.tgz": path}, tmp_path / "corpus")
    train = list(read_manifest(manifest_path(tmp_path / "corpus", "train")))
    assert [(utterance.speaker, utterance.start, utterance.seconds, utterance.text.split()) for utterance in train] == [
        ("A", 0.25, 1.25, ["it's", "the", "end", "of", "it"]),
        ("A", 1.5, 0.4, ["<unk>", "word"]),
    ]


def test_a_table_names_files_and_a_pattern_chooses_among_them(tmp_path):
    path = archive(tmp_path / "a.tar", {f"a/{who}/{n}.flac": audio(0.5) for who in "xyz" for n in range(2)})
    rows = "".join(f"a/{who}/{n}.flac\t{who}\tWORD {n}\n" for who in "xyz" for n in range(2))
    (tmp_path / "a.tsv").write_text(f"path\tspeaker\ttranscript\n{rows}")
    parts = {
        split: [{"source": "a.tar", "table": "a.tsv", "members": f"a/{who}/*"}]
        for split, who in (("train", "[!yz]"), ("dev", "y"), ("test", "z"))
    }
    files = {"a.tar": path, "a.tsv": tmp_path / "a.tsv"}
    collect(dataset("table", parts), files, tmp_path / "corpus")
    listed = list(read_manifest(manifest_path(tmp_path / "corpus", "train")))
    assert [(utterance.speaker, utterance.text, utterance.seconds) for utterance in listed] == [
        ("x", "WORD 0", 0.5),
        ("x", "WORD 1", 0.5),
    ]
    parts["dev"][0]["members"] = "a/none/*"
    with pytest.raises(UserError, match="split dev has no utterance"):
        collect(dataset("table", parts), files, tmp_path / "corpus")


@pytest.mark.parametrize("named", ["a/../../../../other.flac", "{outside}"])
def test_table_with_audio_outside_its_archive_is_refused(tmp_path, named):
    outside = tmp_path / "other.flac"
    outside.write_bytes(audio(0.5))
    path = archive(tmp_path / "a.tar", {"a/1.flac": audio(0.5)})
    table = tmp_path / "t.tsv"
    table.write_text(f"path\tspeaker\ttranscript\n{named.format(outside=outside)}\tx\tWORD\n")
    parts = {split: [{"source": "a.tar", "table": "t.tsv", "members": "*"}] for split in ("train", "dev", "test")}
    with pytest.raises(UserError, match=r"t\.tsv: names '\.\./\.\./\.\./other\.flac', which is not in a\.tar"):
        collect(dataset("table", parts), {"a.tar": path, "t.tsv": table}, tmp_path / "corpus")


def test_a_row_that_is_cut_off_has_no_text(tmp_path):
    (tmp_path / "a.tsv").write_text("path\tspeaker\ttranscript\na.flac\tx\n")
    (cut,) = LAYOUTS["table"].utterances(tmp_path, "*", "read", tmp_path / "a.tsv")
    assert (cut.speaker, cut.text) == ("x", "")


@pytest.mark.parametrize(("start", "end"), [("0.1", "x.y"), ("nan", "1"), ("0", "inf"), ("-1", "1")])
def test_a_segment_whose_times_are_none_is_named(tmp_path, start, end):
    (tmp_path / "stm").mkdir()
    (tmp_path / "stm/A.stm").write_text(f"A 1 A 0 1 <o,f0,male> word\nA 1 A {start} {end} <o,f0,male> word\n")
    with pytest.raises(UserError, match=r"A\.stm: line 2: .* is not a number of seconds"):
        list(LAYOUTS["tedlium"].utterances(tmp_path, "*", "talks", None))


def test_an_archive_that_escapes_its_folder_is_not_used(tmp_path):
    path = archive(tmp_path / "a.tar", {"../a/x/1.flac": audio(0.5)})
    (tmp_path / "a.tsv").write_text("path\tspeaker\ttranscript\n")
    part = [{"source": "a.tar", "table": "a.tsv", "members": "*"}]
    files = {"a.tar": path, "a.tsv": tmp_path / "a.tsv"}
    with pytest.raises(UserError, match="points outside its folder"):
        collect(dataset("table", {"train": part, "dev": part, "test": part}), files, tmp_path / "corpus")
    assert not (tmp_path / "corpus/audio").exists() and not list(tmp_path.glob("a/*"))


def test_text_of_archives_is_read_by_its_layout(tmp_path):
    lines = "it 's a test </s>\nwe don 't know </s>\n"
    path = archive(tmp_path / "t.tgz", {"T/LM/a.en.gz": gzip.compress(lines.encode()), "T/other": "no"})
    part = TextPart(source="t.tgz", member="T/LM/*.en.gz", layout="tedlium")
    assert [line.strip() for line in part_content(part, path)] == ["it's a test", "we don't know"]
    assert joined_clitics("you 'll see 'em") == "you'll see 'em"
    segments = [
        ";; a comment of six words and more",
        "T 1 S 0.1 0.9 <o> what 's up",
        "T 1 S 1 2 <o>",
        "T 1 S 2 3 <o> ignore_time_segment_in_scoring",
    ]
    stm = archive(tmp_path / "s.tgz", {"a.stm": "".join(f"{line}\n" for line in segments)})
    assert list(part_content(TextPart(source="s", member="*.stm", layout="stm"), stm)) == ["what's up"]


@pytest.mark.parametrize("kind", ["folder", "hard", "table"])
def test_recordings_under_two_names_count_once(tmp_path, caplog, kind):
    """A link to a folder, or hard links to its files, which the pattern of the split matches too."""
    path, listing = tmp_path / "libri.tar.gz", ["path\tspeaker\ttranscript"]
    with tarfile.open(path, "w:gz") as tar:
        for reader, split in enumerate(("train", "dev", "test"), start=1):
            names = [f"{reader}-1-000{n}" for n in range(3)]
            files = {f"Set/{split}/{name}.flac": audio(0.5 + n / 4) for n, name in enumerate(names)}
            listing += [f"{name}\tx\tWORD" for name in files]
            files[f"Set/{split}/{reader}-1.trans.txt"] = "".join(f"{name} WORD\n" for name in names).encode()
            for name, data in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
                if kind == "hard":
                    link = tarfile.TarInfo(f"{Path(name).parent}/same/{Path(name).name}")
                    link.type, link.linkname = tarfile.LNKTYPE, name
                    tar.addfile(link)
            if kind != "hard":
                link = tarfile.TarInfo(f"Set/{split}-link" if split != "dev" else f"Set/{split}/circle")
                link.type, link.linkname = tarfile.SYMTYPE, split if split != "dev" else "."
                tar.addfile(link)
    (tmp_path / "t.tsv").write_text("\n".join(listing) + "\n")
    more = {"table": "t.tsv"} if kind == "table" else {}
    parts = {
        split: [{"source": "libri.tar.gz", "members": f"Set/{split}*"} | more] for split in ("train", "dev", "test")
    }
    layout, files = "table" if more else "librispeech", {"libri.tar.gz": path, "t.tsv": tmp_path / "t.tsv"}
    collect(dataset(layout, parts), files, tmp_path / "corpus")
    for split in parts:
        listed = list(read_manifest(manifest_path(tmp_path / "corpus", split)))
        assert [one.seconds for one in listed] == [0.5, 0.75, 1.0]
        assert all(one.audio.is_file() for one in listed)
    assert ("3 utterances are in the archives under several names; each counts once" in caplog.text) == (not more)


def test_the_last_of_two_recordings_of_one_name_is_kept(tmp_path, caplog):
    """The two have the same size, so that only their order differs."""
    old, new = (np.random.default_rng(number).integers(-9, 9, RATE).astype(np.int16) for number in (1, 2))
    path = tmp_path / "r.tar"
    with tarfile.open(path, "w") as tar:
        for samples in (old, new):
            buffer = io.BytesIO()
            soundfile.write(buffer, samples, RATE, format="WAV", subtype="PCM_16")
            entry = tarfile.TarInfo("R/a.wav")
            entry.size = len(buffer.getvalue())
            tar.addfile(entry, io.BytesIO(buffer.getvalue()))
    unpack(path, ["R/*"], (".wav",), tmp_path / "out")
    assert (soundfile.read(tmp_path / "out/R/a.wav", dtype="int16")[0] == new).all()
    assert "r.tar: has R/a.wav more than once; the last one counts" in caplog.text


def test_the_last_of_two_texts_of_one_name_is_read(tmp_path, caplog):
    path = tmp_path / "t.tar"
    with tarfile.open(path, "w") as tar:
        for name, content in (("a", b"one\n"), ("b", b"b\n"), ("a", b"two\n")):
            entry = tarfile.TarInfo(f"T/{name}.txt")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    assert list(part_content(TextPart(source="t.tar", member="T/*.txt", layout="plain"), path)) == ["b", "two"]
    assert caplog.messages.count("t.tar: has T/a.txt more than once; the last one counts") == 1


@pytest.mark.parametrize("kind", ["hard", "file", "folder"])
def test_text_under_two_names_is_read_once(tmp_path, caplog, kind):
    path = tmp_path / "t.tar"
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo("T/a.txt")
        entry.size = 8
        tar.addfile(entry, io.BytesIO(b"one\ntwo\n"))
        link = tarfile.TarInfo("T/b" if kind == "folder" else "T/b.txt")
        link.type = tarfile.LNKTYPE if kind == "hard" else tarfile.SYMTYPE
        link.linkname = {"hard": "T/a.txt", "file": "a.txt", "folder": "../T"}[kind]
        tar.addfile(link)
    assert list(part_content(TextPart(source="t.tar", member="T/*.txt", layout="plain"), path)) == ["one", "two"]
    assert "is a link to a file that was read under another name" in caplog.text
    alias = "T/b/a.txt" if kind == "folder" else "T/b.txt"
    assert list(part_content(TextPart(source="t.tar", member=alias, layout="plain"), path)) == ["one", "two"]


def test_hard_links_and_apple_double_lose_no_utterance(tmp_path):
    path, sounds, quirks = tmp_path / "libri.tar.gz", [audio(0.5 + n / 4) for n in range(4)], b"\0\5\x16\7\xa3\xff"
    with tarfile.open(path, "w:gz") as tar:
        for reader, split in enumerate(("train", "dev", "test"), start=1):
            folder = f"Set/{split}/{reader}/1"
            names = [f"{reader}-1-000{n}" for n in range(4)]
            transcripts = "".join(f"{name} WORD\n" for name in names).encode()
            files = {f"{folder}/{name}.flac": sound for name, sound in zip(names, sounds, strict=True)}
            for name, data in (files | {f"{folder}/{reader}-1.trans.txt": transcripts}).items():
                quirk = tarfile.TarInfo(f"{folder}/._{Path(name).name}")
                quirk.size = len(quirks)
                tar.addfile(quirk, io.BytesIO(quirks))
                entry = tarfile.TarInfo(name)
                if name.endswith("2.flac"):
                    entry.type, entry.linkname = tarfile.LNKTYPE, f"{folder}/{names[1]}.flac"
                else:
                    entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    parts = {split: [{"source": "libri.tar.gz", "members": f"Set/{split}/*"}] for split in ("train", "dev", "test")}
    collect(dataset("librispeech", parts), {"libri.tar.gz": path}, tmp_path / "corpus")
    for split in parts:
        seconds = [utterance.seconds for utterance in read_manifest(manifest_path(tmp_path / "corpus", split))]
        assert seconds == [0.5, 0.75, 0.75, 1.25]
