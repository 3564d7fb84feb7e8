"""Command `collect-ldc`: sentence pairs of training packages of the Linguistic Data Consortium, as two text files.

A package has a folder for each language, in which files of the same name hold the same documents, and perhaps one with
the alignment of sentences (LDC2004T08, LDC2005T10). The formats are those of the LDC's documentation:

    <DOC docid=...>  <seg id=1> ... </seg>                          sentences of a document, in SGML
    <s id=1> ...                                                    numbered sentences without documents
    <SentPair EnglishSegId= "1,2" ChineseSegId= "1">                in <ALIGNMENT docid=...>; ids may be none or several
"""

import codecs
import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.data.fetch.untrusted import opened, parsing

log = logging.getLogger(__name__)

SENTENCE = re.compile(r"<(doc|seg|s)\b([^<>]*)>([^<]*)", re.IGNORECASE)
LINK = re.compile(r"<(alignment|sentpair)\b([^<>]*)>", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")

FOLDERS = {"zh": ("chinese", "source"), "en": ("english", "translation"), "alignment": ("alignment",)}
"""Names of the folders of a package, in lower case."""
OF_A_LANGUAGE = re.compile(r"[._-](?:c|e|ch|en|zh|chinese|english|sgml?|txt|utf8|align)$", re.IGNORECASE)

Key = tuple[str, ...]
Sentences = dict[Key, str]
Packages = Annotated[tuple[str, ...], Argument(metavar="ENCODING=FOLDER", repeated=True)]


def collect_ldc(*, out: Path, package: Packages = ()) -> None:
    r"""Write the sentence pairs of LDC training packages as plain text.

        python -m pipeline collect-ldc --package big5hkscs=/ldc/LDC2005T10 --package gb18030=/ldc/LDC2005T06 \
            --out /ldc/ldc-zh-en

    writes  <out>/train.zh, <out>/train.en   one sentence per line, UTF-8

    A package holds folders `Chinese` (or `source`) and `English` (or `translation`), anywhere below it. Sentences are
    paired by a folder `alignment` if there is one, else by document and number. Pairs with an empty side or undecodable
    characters are left out and counted. Packages that align documents only need a sentence aligner first.

    Args:
        out: Folder to write.
        package: Encoding of the Chinese text, such as big5hkscs, gb18030 or utf-8, and folder of a package. English
            text is read as UTF-8, else as Windows-1252.

    Raises:
        UserError: A package has no such folders, no pair of files or no sentence, or none or an unknown encoding is
            given.
    """
    if not package:
        raise UserError("--package: name at least one, such as --package gb18030=/ldc/LDC2005T06")
    with ExitStack() as stack:
        outputs = {side: stack.enter_context(atomic_write(out / f"train.{side}")) for side in ("zh", "en")}
        for setting in package:
            encoding, _, folder = setting.partition("=")
            kept = left_out = 0
            for zh, en in package_pairs(Path(folder), known_encoding(encoding, setting)):
                if zh and en and "\ufffd" not in zh + en:
                    kept += 1
                    outputs["zh"].write(f"{zh}\n")
                    outputs["en"].write(f"{en}\n")
                else:
                    left_out += 1
            if not kept:
                raise UserError(
                    f"{folder}: has no pair of sentences <seg> or <s>; align its sentences first, or correct --package"
                )
            log.info("%s: %d pairs, %d left out", folder, kept, left_out)


def known_encoding(name: str, setting: str) -> str:
    """Return the name of an encoding.

    Args:
        name: Encoding as the user wrote it.
        setting: Value of `--package`, for the message.

    Raises:
        UserError: There is no such encoding.
    """
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise UserError(f"--package {setting}: unknown encoding; write big5hkscs=FOLDER or gb18030=FOLDER") from None


def package_pairs(package: Path, encoding: str) -> Iterator[tuple[str, str]]:
    """Yield the Chinese and English sentences of a package that belong together.

    Args:
        package: Folder of the package.
        encoding: Encoding of the Chinese text.

    Raises:
        UserError: A language has no folder, or no file of one has a partner.
    """
    files = {side: files_by_stem(package, names) for side, names in FOLDERS.items()}
    for side in ("zh", "en"):
        if not files[side]:
            raise UserError(f"{package}: has no folder {' or '.join(FOLDERS[side])} with files; correct --package")
    shared = sorted(files["zh"].keys() & files["en"].keys())
    if not shared:
        raise UserError(f"{package}: no Chinese and English file have the same name; correct --package")
    for stem in shared:
        chinese = sentences(decoded(files["zh"][stem][0], encoding))
        links = files["alignment"].get(stem)
        for english_file in files["en"][stem]:
            english = sentences(decoded(english_file))
            yield from linked(chinese, english, decoded(links[0])) if links else paired(chinese, english)


def files_by_stem(package: Path, names: tuple[str, ...]) -> dict[str, list[Path]]:
    """Return the files below the folders of one language, by their names without endings.

    Args:
        package: Folder of the package.
        names: Accepted names of the folder, in lower case.

    Returns:
        Files of each name, sorted; several where a text was translated several times.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*")):
        if path.is_file() and any(part.lower() in names for part in path.relative_to(package).parts[:-1]):
            found.setdefault(stem(path.name), []).append(path)
    return found


def stem(name: str) -> str:
    """Return a file name in lower case without the endings that name its language or format."""
    while shorter := OF_A_LANGUAGE.sub("", name):
        if shorter == name:
            break
        name = shorter
    return name.lower()


def decoded(path: Path, encoding: str | None = None) -> str:
    """Return the text of a file; undecodable bytes become U+FFFD.

    Args:
        path: File of a package.
        encoding: Its encoding; None reads UTF-8, else Windows-1252.
    """
    with opened(path) as file, parsing(path, "copy it from the package again"):
        content = file.read()
    if encoding is None:
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            encoding = "cp1252"
    return content.decode(encoding, "replace").removeprefix("\ufeff")


def sentences(text: str) -> Sentences:
    """Return the sentences of a file by document and number, with collapsed white space.

    Args:
        text: A file with tags <seg> or <s>, whose text ends at the next tag.
    """
    found, document = Sentences(), ""
    for tag in SENTENCE.finditer(text):
        values = attributes(tag[2])
        if tag[1].lower() == "doc":
            document = values.get("docid") or values.get("id") or ""
        else:
            found[document, *(value for _, value in sorted(values.items()))] = " ".join(tag[3].split())
    return found


def attributes(text: str) -> dict[str, str]:
    """Return the attributes of a tag, with names in lower case and stripped values."""
    return {name.lower(): (a or b or c).strip() for name, a, b, c in ATTRIBUTE.findall(text)}


def paired(chinese: Sentences, english: Sentences) -> Iterator[tuple[str, str]]:
    """Yield the sentences of equal document and number; one that its partner lacks has an empty partner."""
    for key in dict.fromkeys([*chinese, *english]):
        yield chinese.get(key, ""), english.get(key, "")


def linked(chinese: Sentences, english: Sentences, alignment: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences that a file of alignments links; several of one side are joined by spaces.

    Args:
        chinese: Sentences by document and number.
        english: The same of the translation.
        alignment: Text of the file.
    """
    document = ""
    for tag in LINK.finditer(alignment):
        values = attributes(tag[2])
        if tag[1].lower() == "alignment":
            document = values.get("docid", "")
            continue
        sides = ((chinese, "chinesesegid"), (english, "englishsegid"))
        zh, en = (
            " ".join(side.get((document, number.strip()), "") for number in values.get(name, "").split(","))
            for side, name in sides
        )
        yield zh.strip(), en.strip()
