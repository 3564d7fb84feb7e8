"""Training packages of the LDC: their layouts yield the sentence pairs that they were written from."""

import logging
import random

import pytest

from pipeline.core.errors import UserError
from pipeline.data.fetch.ldc_text import collect_ldc

CHARACTERS = "中英文新聞香港法律會議記錄"
WORDS = ["news", "law", "hansard", "meeting", "record", "of", "the"]


@pytest.fixture
def draw(seed):
    return random.Random(seed)


def sentence_pair(draw) -> tuple[str, str]:
    chinese = "".join(draw.choices(CHARACTERS, k=draw.randint(1, 9)))
    return chinese, " ".join(draw.choices(WORDS, k=draw.randint(1, 9)))


def documents(draw) -> dict[str, list[tuple[str, str]]]:
    return {f"D{number}": [sentence_pair(draw) for _ in range(draw.randint(1, 5))] for number in range(4)}


def write(path, text: str, encoding: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))


def sgml(texts: dict[str, list[tuple[str, str]]], side: int) -> str:
    lines = []
    for name, pairs in texts.items():
        segments = (f"<seg id={number}> {pair[side]} </seg>" for number, pair in enumerate(pairs, 1))
        lines += [f"<DOC docid={name}>", "<p>", *segments, "</p>", "</DOC>"]
    return "\n".join(lines)


def collected(tmp_path, encoding: str) -> list[tuple[str, str]]:
    """Collect the package in folder `p`, whose Chinese is in some encoding."""
    collect_ldc(package=(f"{encoding}={tmp_path / 'p'}",), out=tmp_path / "out")
    return list(zip(*((tmp_path / f"out/train.{side}").read_text().splitlines() for side in ("zh", "en")), strict=True))


def numbered(pairs, side: int) -> str:
    return "\n".join(f"<s id={number}> {pair[side]}" for number, pair in enumerate(pairs))


@pytest.mark.parametrize("inside", [True, False])
def test_files_of_one_name_meet_in_their_subfolder(tmp_path, draw, caplog, inside):
    """The Chinese file of one subfolder is missing, whose English file translates no other."""
    wanted = []
    for part in (parts := draw.sample(["laws", "news", "talks"], 3)):
        for name in "ab":
            texts = documents(draw)
            for side, language in enumerate(("Chinese", "English")):
                folder = f"{language}/{part}" if inside else f"{part}/{language}"
                if side or (part, name) != (parts[0], "a"):
                    write(tmp_path / f"p/{folder}/{name}.sgm", sgml(texts, side), "gb18030")
            wanted += [pair for pairs in texts.values() for pair in pairs] if (part, name) != (parts[0], "a") else []
    with caplog.at_level(logging.INFO):
        assert sorted(collected(tmp_path, "gb18030")) == sorted(wanted)
    assert "no partner for 0 Chinese and 1 English files" in caplog.text


def test_a_subfolder_without_chinese_files_has_no_translations(tmp_path):
    for path in ("chinese/laws/a", "english/laws/a", "english/news/a"):
        write(tmp_path / "p" / path, f"<s id=1> {path}", "ascii")
    assert collected(tmp_path, "big5") == [("chinese/laws/a", "english/laws/a")]


def test_a_chinese_file_below_translations_is_no_translation(tmp_path):
    for path in ("translation/chinese/a", "translation/english/a", "translation/english/E02/a", "source/english/b"):
        write(tmp_path / "p" / path, f"<s id=1> {path}", "ascii")
    english = ["translation/english/E02/a", "translation/english/a"]
    assert collected(tmp_path, "big5") == [("translation/chinese/a", path) for path in english]


def test_alignments_join_and_leave_out_sentences(tmp_path, draw):
    texts, wanted, lines = documents(draw), [], []
    for name, pairs in texts.items():
        numbers = [*range(1, len(pairs) + 1)]
        split = draw.randint(0, len(pairs))
        groups = [group for group in (numbers[:split], numbers[split:]) if group]
        lines.append(f'<ALIGNMENT docid="{name}">')
        for group in groups:
            ids = ",".join(map(str, group))
            lines.append(f'<SentPair EnglishSegId= "{ids}" ChineseSegId= "{ids}" >')
            wanted.append(tuple(" ".join(pairs[number - 1][side] for number in group) for side in (0, 1)))
        lines += ['<SentPair EnglishSegId= "1" ChineseSegId= "" >', "</ALIGNMENT>"]
    write(tmp_path / "p/data/Chinese/S1.sgm", sgml(texts, 0), "big5")
    write(tmp_path / "p/data/English/S1.sgm", sgml(texts, 1), "cp1252")
    write(tmp_path / "p/data/alignment/S1.align", "\n".join(lines), "ascii")
    assert collected(tmp_path, "big5") == wanted


def test_links_to_missing_or_repeated_sentences_are_left_out(tmp_path, caplog):
    segments = ("<seg id=1> a", "<seg id=2> b", "<seg id=3> c", "<seg id=3> d", "<seg> e")
    text = '<DOC docid="D"> ' + " ".join(f"{segment} </seg>" for segment in segments)
    links = "".join(f'<SentPair EnglishSegId="{ids}" ChineseSegId="1">' for ids in ("2,1", "1,9", "9", "3", ""))
    for folder in ("Chinese", "English"):
        write(tmp_path / f"p/{folder}/S1.sgm", text, "ascii")
        write(tmp_path / f"p/{folder}/{folder}-only.sgm", text, "ascii")
    write(tmp_path / "p/alignment/S1.align", f'<ALIGNMENT docid="D">{links}', "ascii")
    with caplog.at_level(logging.INFO):
        assert collected(tmp_path, "big5") == [("a", "b a")]
    assert "1 pairs, 4 left out" in caplog.text
    assert "no partner for 1 Chinese and 1 English files" in caplog.text


def test_segments_without_or_with_repeated_ids_are_all_kept(tmp_path, draw):
    pairs = [sentence_pair(draw) for _ in range(9)]
    ids = [draw.choice(["", " id=1", " id=2"]) for _ in pairs]
    for side, folder in enumerate(("chinese", "english")):
        language = ("lang=zh", "LANG='en'")[side]
        lines = (f"<seg{id} {language}>\n{pair[side]} < x\n</seg>" for id, pair in zip(ids, pairs, strict=True))
        write(tmp_path / f"p/{folder}/a", "\n".join(["<DOC id=d>", *lines, "</DOC>"]), "gb18030")
    assert collected(tmp_path, "gb18030") == [(f"{zh} < x", f"{en} < x") for zh, en in pairs]


def test_sentences_meet_by_id_beside_other_attributes(tmp_path):
    write(tmp_path / "p/chinese/a", "<s lang=zh id=1> a < b <c </s> <s id=2> d <p> e", "big5")
    write(tmp_path / "p/english/a", '<s id="2"> y\n<s id="1"> x', "ascii")
    assert collected(tmp_path, "big5") == [("a < b <c", "x"), ("d", "y")]


@pytest.mark.parametrize("attribute", ["id", "docid"])
@pytest.mark.parametrize("tag", ["seg", "s"])
def test_named_documents_meet_in_any_order(tmp_path, tag, attribute):
    for folder, names in (("chinese", "ab"), ("english", "ba")):
        documents = "".join(f"<DOC {attribute}={name}><{tag} id=1>{folder}-{name}</{tag}></DOC>" for name in names)
        write(tmp_path / f"p/{folder}/x", documents, "ascii")
    found = collected(tmp_path, "big5")
    assert sorted(found) == [(f"chinese-{name}", f"english-{name}") for name in "ab"]


def test_pairs_with_undecodable_characters_are_left_out(tmp_path, draw):
    pairs, path = [sentence_pair(draw) for _ in range(3)], tmp_path / "p/source/hklaws.01.c"
    write(path, numbered(pairs, 0), "big5")
    write(tmp_path / "p/translation/hklaws.01.e", numbered(pairs, 1), "ascii")
    path.write_bytes(path.read_bytes().replace(b"<s id=1> ", b"<s id=1> \xff\xff"))
    assert collected(tmp_path, "big5") == [pairs[0], pairs[2]]


ONE = "<s id=1> x"
BOTH = {"chinese/a": ONE, "english/a": ONE}
DOUBLED = dict.fromkeys(("chinese/a.sgm", "chinese/a.txt", "english/a"), ONE)
ALIGNED = dict.fromkeys(("chinese/a", "english/a", "alignment/1/a", "alignment/2/a"), "<ALIGNMENT docid=a>")
REFUSED = {
    "no folder chinese or source": {"english/a": ONE},
    "have the same name and subfolder": {"chinese/a": ONE, "english/b": ONE},
    "same name and subfolder; correct": {"chinese/laws/a": ONE, "english/news/a": ONE},
    "no pair of sentences": {"chinese/a": "<DOC> x", "english/a": "<DOC> x"},
    "one Chinese file named 'a' below the same subfolders, found chinese/a.sgm, chinese/a.txt; give a copy": DOUBLED,
    "one alignment file named 'a' below the same subfolders, found none": {
        **BOTH,
        "alignment/b": "<ALIGNMENT docid=a>",
    },
    "one alignment file named 'a' below the same subfolders, found alignment/1/a, alignment/2/a": ALIGNED,
    "chinese/a: has two <s> with id '1'": {"chinese/a": "<s id=1> x <s id=1> y", "english/a": ONE},
    "segment 1 is not closed": {"chinese/a": "<seg id=1> x <seg id=2> y", "english/a": ONE},
    "unknown encoding": BOTH,
}
"""Files of packages, by what is wrong with them."""


@pytest.mark.parametrize("message", REFUSED)
def test_packages_without_pairs_are_refused(tmp_path, message):
    for name, text in REFUSED[message].items():
        write(tmp_path / "p" / name, text, "ascii")
    with pytest.raises(UserError, match=message):
        collected(tmp_path, "big7" if message == "unknown encoding" else "big5")
    assert not list((tmp_path / "out").glob("train.*"))


def test_no_package_is_refused(tmp_path):
    with pytest.raises(UserError, match="name at least one"):
        collect_ldc(out=tmp_path)
