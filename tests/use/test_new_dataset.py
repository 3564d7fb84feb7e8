"""Files of `reprise new dataset`: splits and their shares, a vocabulary that fits, and records that stages read."""

import gzip
import os
import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from pipeline.__main__ import main
from pipeline.core.errors import UserError
from pipeline.data.text.subwords import train
from pipeline.data.text.tokenisation import tokenise
from reprise.__main__ import main as reprise
from reprise.cli import new
from reprise.new_data import SPLITS, by_weight, read_shares
from reprise.new_data.recordings import read_table, warn_of_shares
from reprise.new_data.text import fitting_vocabulary, read_columns, read_pairs, split_pairs
from reprise.user_files import lines_of

SENTENCES = ["--src", "train.en", "--tgt", "train.uk"]
SPLIT_FILES = [*SENTENCES, "--dev", "dev.en", "dev.uk", "--test", "test.en", "test.uk"]
LETTERS = "abcdefghijklmnopqrstuvwxyząćęłńóśźżабвгдежзйклмн'.,-"


def sentences(count: int, seed: int, words: int = 300) -> list[str]:
    draw = random.Random(seed)
    lexicon = ["".join(draw.choices(LETTERS, k=draw.randint(1, 9))) for _ in range(words)]
    return [" ".join(draw.choices(lexicon, k=draw.randint(1, 12))) for _ in range(count)]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("option", ["src", "tgt", "pairs", "trees", "recordings", "dev", "test"])
def test_device_or_pipe_is_no_data(tmp_path, option):
    os.mkfifo(pipe := tmp_path / "pipe")
    for path in (pipe, Path("/dev/zero")):
        given = new.DataOptions(**{option: (path, path) if option in ("dev", "test") else path})
        with pytest.raises(UserError, match=f"{path}: is a pipe or device"):
            new.write_dataset("mine", given, tmp_path)
    table = write(tmp_path / "table.tsv", ["audio\ttext", "pipe\tone"])
    with pytest.raises(UserError, match=f"{pipe}: is a pipe or device"):
        read_table(table, "mine")


def test_sides_without_a_visible_character_are_empty(tmp_path):
    """Such a line of a dev or test set would be refused by `prepare`."""
    pairs = tmp_path / "a.tsv"
    pairs.write_text("one\t\u00ad\u2060\n\u200b\tzwei\n", encoding="utf-8")
    assert [*read_columns(pairs)] == [("one", ""), ("", "zwei")]


def test_pairs_of_a_spreadsheet_lose_its_quotation_marks(tmp_path, caplog):
    path = write(tmp_path / "sheet.tsv", ['"He said ""no""."\t"Er sagte ""nein""."\r', '"Two."\t"Zwei."\r'])
    assert [*read_columns(path)] == [('He said "no".', 'Er sagte "nein".'), ("Two.", "Zwei.")]
    assert "sheet.tsv: removed the quotation marks of a spreadsheet" in caplog.text


@pytest.mark.parametrize(
    ("first", "is_header"), [("English\tDeutsch", True), ("go.\tgeh.", False), ("a dog\tHund", False)]
)
def test_first_pair_that_names_columns_gets_a_warning(tmp_path, caplog, first, is_header):
    path = write(tmp_path / "a.tsv", [first, "two\tzwei"])
    assert len([*read_columns(path)]) == 2
    warned = "a.tsv: line 1 is taken as a pair; if 'English' and 'Deutsch' name the columns, remove it"
    assert [message.endswith(warned) for message in caplog.messages] == [True] * is_header


@pytest.mark.parametrize("seed", range(5))
def test_every_pair_falls_to_one_split_and_no_source_to_two(tmp_path, seed):
    src, tgt = sentences(400, seed, words=30), sentences(400, seed + 100)
    src[50:60] = src[:10]  # the same sentence with another translation
    src[7] = tgt[9] = ""
    pairs = list(zip(src, tgt, strict=True))
    files, empty = split_pairs(iter(pairs), (0.8, 0.1, 0.1), tmp_path, ("en", "pl"))
    found = {split: list(read_pairs(sides)) for split, sides in files.items()}
    assert empty == 2
    assert sorted(pair for lines in found.values() for pair in lines) == sorted(filter(all, pairs))
    sources = {split: {source for source, _ in lines} for split, lines in found.items()}
    assert not any(sources[a] & sources[b] for a, b in (("train", "dev"), ("train", "test"), ("dev", "test")))
    shares = np.array([len(sources[split]) for split in ("train", "dev", "test")]) / len(set(src) - {""})
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.01)
    shuffled = random.Random(1).sample(pairs, len(pairs))
    again, _ = split_pairs(iter(shuffled), (0.8, 0.1, 0.1), tmp_path / "again", ("en", "pl"))
    assert all(set(read_pairs(sides)) == set(found[split]) for split, sides in again.items())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("words", [2, 20, 2000])
def test_the_vocabulary_that_is_asked_for_can_be_learnt(seed, words):
    lines = sentences(200, seed, words)
    size = fitting_vocabulary(iter([(line, line) for line in lines]))
    train("bpe", (tokenise(line, "pl") for line in lines * 2), size, "toy")  # raises where it does not fit


def test_text_in_any_language_is_prepared_as_the_file_says(root):
    for split, seed, count in (("train", 1, 300), ("dev", 2, 20), ("test", 3, 20)):
        write(root / f"{split}.en", sentences(count, seed))
        write(root / f"{split}.uk", sentences(count, seed + 10))
    terms = ["--licence", 'Mine: "all" of it', "--citation", "Me, 2026", "--redistributable"]
    assert reprise(["new", "dataset", "mine", *SPLIT_FILES, *terms]) == 0
    path = root / "workflow/datasets/mine.yaml"
    record = yaml.safe_load(path.read_text())
    assert (record["licence"], record["citation"], record["tgt"]) == ('Mine: "all" of it', "Me, 2026", "uk")
    assert all(source["redistributable"] for source in record["sources"].values())
    stage = ["--dataset", str(path), "--corpus", "corpus"]
    assert main(["download", *stage, "--downloads", "downloads"]) == 0
    assert (root / "corpus/raw/train.uk").read_bytes() == (root / "train.uk").read_bytes()
    write(root / "train.uk", sentences(300, 99))  # edited since
    assert main(["download", "--dataset", str(path), "--corpus", "other", "--downloads", "elsewhere"]) == 1


def test_files_of_one_name_in_two_folders_are_both_read(root):
    for number, folder in enumerate(("en", "uk")):
        (root / folder).mkdir()
        for split, count in (("train", 60), ("dev", 4), ("test", 4)):
            write(root / folder / f"{split}.txt", sentences(count, number))
    files = {split: [f"en/{split}.txt", f"uk/{split}.txt"] for split in ("train", "dev", "test")}
    given = ["--src", files["train"][0], "--tgt", files["train"][1], "--dev", *files["dev"], "--test", *files["test"]]
    assert reprise(["new", "dataset", "mine", *given, "--languages", "en", "uk"]) == 0
    stage = ["--dataset", "workflow/datasets/mine.yaml", "--corpus", "corpus", "--downloads", "downloads"]
    assert main(["download", *stage]) == 0
    for split, sides in files.items():
        for side in sides:
            raw = root / f"corpus/raw/{split}.{Path(side).parent}"
            assert raw.read_bytes() == (root / side).read_bytes()


def test_splits_that_are_one_file_are_named(root, caplog):
    for seed, language in enumerate(("en", "uk")):
        text = sentences(60, seed)
        write(root / f"train.{language}", text)
        write(root / f"copy.{language}", text)
        write(root / f"other.{language}", sentences(4, seed + 2))
    copied, other = (["copy.en", "copy.uk"], ["other.en", "other.uk"])
    for name, dev, test in (("one", copied, other), ("two", other, copied), ("three", other, other)):
        assert reprise(["new", "dataset", name, *SENTENCES, "--dev", *dev, "--test", *test]) == 0
    found = [record.getMessage() for record in caplog.records if "same file" in record.getMessage()]
    assert [line.partition(" are the same file")[0] for line in found] == [
        "train and dev",
        "train and test",
        "dev and test",
    ]


def test_dataset_file_holds_in_a_project_that_moved(root, tmp_path_factory, monkeypatch):
    """Its test set lies outside of the project, and stays there."""
    outside = tmp_path_factory.mktemp("outside")
    for split, count in (("train", 60), ("dev", 4), ("test", 4)):
        for seed, language in enumerate(("en", "uk")):
            write((outside if split == "test" else root) / f"{split}.{language}", sentences(count, seed))
    tests = [f"{outside}/test.en", f"{outside}/test.uk"]
    assert reprise(["new", "dataset", "mine", *SENTENCES, "--dev", "dev.en", "dev.uk", "--test", *tests]) == 0
    moved = outside / "moved"
    for name in ("train.en", "train.uk", "dev.en", "dev.uk", "workflow/datasets/mine.yaml"):
        (moved / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).rename(moved / name)
    monkeypatch.chdir(moved)
    stage = ["--dataset", "workflow/datasets/mine.yaml", "--corpus", "corpus", "--downloads", "downloads"]
    assert main(["download", *stage]) == 0
    assert Path("corpus/raw/dev.uk").read_bytes() == Path("dev.uk").read_bytes()


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("dev.uk", ["one", ""], "dev.uk: line 2 is empty"),
        ("dev.uk", ["one", "\u200b\u00ad"], "dev.uk: line 2 is empty"),
        ("dev.uk", ["one"], "dev.uk: ends before line 2, but "),
        ("train.en", [], "train.en: is empty, but "),
    ],
)
def test_a_fault_of_the_text_is_named_with_file_and_line(root, refused, name, lines, message):
    for split in ("train", "dev", "test"):
        for language in ("en", "uk"):
            write(root / f"{split}.{language}", ["one", "two"])
    write(root / name, lines)
    assert message in refused("new", "dataset", "mine", *SPLIT_FILES)
    assert not (root / "workflow/datasets/mine.yaml").exists()


@pytest.mark.parametrize(
    ("target", "languages", "message"),
    [
        ("train.en", [], "--src and --tgt: are both train.en; name the file of the translations as --tgt"),
        ("train.en", ["--languages", "en", "uk"], "--src and --tgt: are both train.en; name the file"),
        ("train.uk", ["--languages", "uk", "en"], "train.en: ends in en, but --languages says uk; swap the languages"),
        ("train.ukr", ["--languages", "uk", "en"], "train.en: ends in en, but --languages says uk"),
        ("a.ukr", ["--languages", "en", "uk", "--dev", "b.ukr", "a"], "b.ukr: ends in ukr, but --languages says en;"),
        ("a.uk", ["--dev", "b.en", "b.uk", "--test", "b.uk", "b.en"], "b.uk: ends in uk, but --src and --tgt say en; "),
        ("a.pt-BR", ["--languages", "en", "uk", "--dev", "a", "./a"], "files of --dev: are both a; name the file of "),
        ("linked.uk", [], "--src and --tgt: are both train.en; name the file"),
        ("utf16.uk", [], "utf16.uk: line 1: not UTF-8; convert it: `iconv -f UTF-16 -t UTF-8 utf16.uk > NEW`"),
        ("a.SGM", ["--languages", "en", "uk"], "a.SGM: has markup; write its sentences to a file of plain text"),
        ("gzip.uk", [], "gzip.uk: is compressed or an archive; unpack it first"),
        ("zip.uk", [], "zip.uk: is compressed or an archive; unpack it first"),
        ("latin.uk", [], "latin.uk: line 2: not UTF-8; convert it from its encoding, such as `iconv -f "),
    ],
)
def test_wrong_file_as_translation_is_refused(root, refused, target, languages, message):
    write(root / "train.en", ["one", "two"])
    write(root / "train.uk", ["a", "b"])
    (root / "linked.uk").hardlink_to(root / "train.en")
    (root / "utf16.uk").write_text("a\nb\n", encoding="utf-16")
    (root / "latin.uk").write_bytes(b"a\n\xe9\n")
    (root / "gzip.uk").write_bytes(gzip.compress(b"a\n"))
    (root / "zip.uk").write_bytes(b"PK\x03\x04\n\0\0\0\x08\0\xe9")  # version 1.0 of zip makes the first line text
    assert message in refused("new", "dataset", "mine", "--src", "train.en", "--tgt", target, *languages)


def test_endings_of_one_language_are_swapped_only_if_equal():
    brazil, portugal = Path("train.pt-br"), Path("train.pt-PT")
    for endings in ((brazil, portugal), (Path("a.pt"), Path("b.por"))):
        assert new.languages_of(new.DataOptions(src=endings[0], tgt=endings[1], languages=("pt-BR", "pt-PT")))
    with pytest.raises(UserError, match=r"train\.pt-PT: ends in pt-PT, but --languages says pt-BR; swap the languages"):
        new.languages_of(new.DataOptions(src=portugal, tgt=brazil, languages=("pt-BR", "pt-PT")))


def test_transcripts_that_will_be_left_out_are_named(tmp_path, caplog):
    soundfile.write(tmp_path / "a.wav", np.zeros(800), 8000)
    texts = ["Don't, Mr. Café!", "gate 7", "fünf Straßen", "half past six"]
    table = write(tmp_path / "calls.tsv", ["audio\ttext", *(f"a.wav\t{text}" for text in texts)])
    assert len(read_table(table, "calls")) == 4
    assert "2 of 4 transcripts have digits, signs or other letters" in caplog.text and "'gate 7'" in caplog.text


def test_text_that_begins_almost_like_an_archive_is_read(tmp_path):
    assert [*lines_of(write(tmp_path / "a.en", ["BZh9 PK", "\x1f"]))] == ["BZh9 PK\n", "\x1f\n"]


@pytest.mark.parametrize("before", [b"", b"a dog .\n" * 5000])
def test_lines_of_a_pipe_end_before_one_that_is_not_utf8(before):
    read, write = os.pipe()
    os.write(write, before + b"caf\xe9\n")
    os.close(write)
    lines, count = lines_of(Path(f"/dev/fd/{read}")), before.count(b"\n")
    assert [*islice(lines, count)] == ["a dog .\n"] * count
    with pytest.raises(UserError, match=rf"line {count + 1}: not UTF-8; convert it first$"):
        next(lines)
    os.close(read)


@pytest.mark.parametrize(
    ("name", "terms", "fault"),
    [
        ("\U0001f600", [], None),
        ("'$x' {a} #b: |", [], None),
        ("a\nb", [], "a\\nb.en: a dataset file can't have this name"),
        ("a\u00a0b", [], "a\\xa0b.en: a dataset file can't have this name"),
        ("a\udcff", [], "a\\udcff.en: a dataset file can't have this name"),
        ("a", ["--licence", "\x1b[31m"], "has a control character"),
    ],
)
def test_a_file_of_any_name_is_taken_or_refused_and_nothing_left(root, capsys, name, terms, fault):
    files = [str(write(root / f"{name}.{language}", ["one", "two"])) for language in ("en", "uk")]
    words = ["--src", files[0], "--tgt", files[1], "--dev", *files, "--test", *files, *terms]
    assert reprise(["new", "dataset", "mine", *words]) == (1 if fault else 0)
    assert (fault or "") in capsys.readouterr().err
    assert (root / "workflow/datasets/mine.yaml").exists() == (not fault)


@pytest.mark.parametrize(
    ("kind", "name"), [("text", "train.en"), ("text", "test.uk"), ("trees", "train.trees"), ("recordings", "dev.tsv")]
)
def test_a_file_of_ones_own_is_never_written_over_by_a_split(root, refused, kind, name):
    folder = root / "data/mine"
    folder.mkdir(parents=True)
    own = {"train.en": "en", "train.uk": "uk"} if kind == "text" else {name: ""}
    for file, language in {**own, name: name[-2:]}.items():
        write(folder / file, [f"{word} {language}" for word in sentences(40, 1)])
    words = ["--src", "data/mine/train.en", "--tgt", "data/mine/train.uk"]
    if kind == "trees":
        write(folder / name, [f"(S (N a{number}))" for number in range(40)])
        words = ["--trees", f"data/mine/{name}"]
    if kind == "recordings":
        soundfile.write(folder / "a.wav", np.zeros(8000), 8000)
        write(folder / name, ["audio\ttext", *(f"a.wav\tcall {number}" for number in range(40))])
        words = ["--recordings", f"data/mine/{name}"]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "exists with other contents" in refused("new", "dataset", "mine", *words)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not (root / "workflow/datasets/mine.yaml").exists()


def test_dataset_can_be_split_again_after_the_move_that_is_named(root, refused):
    for language in ("en", "uk"):
        write(root / f"all.{language}", sentences(40, 1))
    words = ["new", "dataset", "mine", "--src", "all.en", "--tgt", "all.uk", "--split"]
    assert reprise([*words, "0.5/0.25/0.25"]) == 0
    again = [*words, "0.8/0.1/0.1"]
    assert "or move workflow/datasets/mine.yaml and data/mine away" in refused(*again)
    (root / "workflow/datasets/mine.yaml").rename("mine.yaml")
    (root / "data/mine").rename("old")
    assert reprise(again) == 0


def test_splits_of_ones_own_are_not_to_be_moved_away(root, refused):
    """The command reads them where they are."""
    (root / "data/mine").mkdir(parents=True)
    files = [
        [str(write(root / f"data/mine/{split}.{language}", sentences(9, seed))) for language in ("en", "uk")]
        for seed, split in enumerate(("train", "dev", "test"))
    ]
    train, dev, test = files
    words = ["new", "dataset", "mine", "--src", train[0], "--tgt", train[1], "--dev", *dev, "--test", *test]
    assert reprise(words) == 0
    assert refused(*words).endswith("exists already; choose another name, or move it away\n")
    (root / "workflow/datasets/mine.yaml").rename("mine.yaml")
    assert reprise(words) == 0


def test_failed_new_dataset_removes_splits_and_keeps_other_files(root, monkeypatch, refused):
    for language in ("en", "uk"):
        write(root / f"all.{language}", sentences(40, 1))

    def faulty(path):
        write(root / "data/mine/notes.txt", ["of one's own"])
        (root / "data/mine/audio").mkdir()
        assert path.exists() and len([*(root / "data/mine").glob("*.en")]) == 3
        raise UserError("a fault")

    monkeypatch.setattr(new, "load_dataset", faulty)
    assert "a fault" in refused("new", "dataset", "mine", "--src", "all.en", "--tgt", "all.uk")
    assert sorted(path.name for path in (root / "data/mine").iterdir()) == ["audio", "notes.txt"]
    assert not (root / "workflow/datasets/mine.yaml").exists()


@pytest.mark.parametrize("text", ["0.8/0.1/0.1", "0.8 / 0.1 / 0.1", ".8/.1/.1", "8e-1/0.1/0.1"])
def test_shares_are_read_as_people_write_them(text):
    assert read_shares(text) == [0.8, 0.1, 0.1]


@pytest.mark.parametrize(
    "text", ["", "0.9/0.1", "0.8/0.1/0.1/", "x0.8/0.1/0.1", "nan/0.1/0.1", "inf/1/1", "1.1/-0.2/0.1"]
)
def test_shares_other_than_three_are_refused(text):
    with pytest.raises(UserError, match="three shares that sum to 1"):
        read_shares(text)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["dataset", "mine", *SENTENCES, "--dev", "a", "b", "--test", "c", "d", "--split", "0.8/0.1/0.1"], "split"),
        (["dataset", "mine", *SENTENCES, "--dataset", "other"], "dataset"),
        (["dataset", "mine", "--recordings", "calls.tsv", "--languages", "en", "uk"], "languages"),
        (["dataset", "mine", "--recordings", "calls.tsv", "--redistributable"], "redistributable"),
        (["paper", "mine", "--dataset", "other", "--trees", "news.mrg"], "trees"),
        (["paper", "mine", "--dataset", "other", "--licence", "CC0"], "licence"),
    ],
)
def test_an_option_without_effect_is_refused(refused, words, option):
    assert f"--{option}: has no effect with the other options" in refused("new", *words)


SHARES = (0.8, 0.1, 0.1)


def found_shares(weights: dict[str, float]) -> list[float]:
    chosen = by_weight(weights, SHARES, "speakers")
    assert sorted(key for keys in chosen.values() for key in keys) == sorted(weights) and all(chosen.values())
    return [sum(weights[key] for key in chosen[split]) / sum(weights.values()) for split in SPLITS]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("speakers", [12, 40, 300])
def test_speakers_of_uneven_length_come_near_the_shares(speakers, seed):
    draw = random.Random(seed)
    weights = {f"s{number}": draw.paretovariate(1.5) for number in range(speakers)}
    largest = max(weights.values()) / sum(weights.values())
    if largest < 0.7:
        assert found_shares(weights) == pytest.approx(SHARES, abs=0.06)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_speakers_does_not_matter(seed):
    draw = random.Random(seed)
    weights = {f"s{number}": float(draw.randint(1, 4)) for number in range(20)}
    shuffled = dict(draw.sample([*weights.items()], 20))
    assert by_weight(weights, SHARES, "speakers") == by_weight(shuffled, SHARES, "speakers")


def test_few_speakers_have_one_split_each_with_a_warning(caplog):
    weights = {"a": 38.0, "b": 22.0, "c": 40.0}
    assert found_shares(weights) == [0.4, 0.38, 0.22]
    warn_of_shares(by_weight(weights, SHARES, "speakers"), weights, SHARES)
    assert "train, dev and test have 40/38/22 % of the audio" in caplog.text
