"""Command `collect-ldc`: sentence pairs of training packages of the Linguistic Data Consortium, as two text files.

A package has a folder for each language, in which files of the same name and subfolder hold the same documents, and
perhaps one with the alignment of sentences (LDC2004T08, LDC2005T10). The formats are those of the LDC's documentation:

    <DOC docid=...>  <seg id=1> ... </seg>                          sentences of a document, in SGML
    <s id=1> ...                                                    numbered sentences without documents
    <SentPair EnglishSegId= "1,2" ChineseSegId= "1">                in <ALIGNMENT docid=...>; ids may be none or several
"""

import codecs
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError, shown
from pipeline.core.files import atomic_write
from pipeline.data.fetch.segments import Key, Keys, attribute, sgml_segments
from pipeline.data.fetch.untrusted import opened, parsing

log = logging.getLogger(__name__)

# No possessive `(…|…)*+`: Python before 3.11.5 matches too much with it (python/cpython#106052).
SENTENCE = re.compile(r"<(doc|s)\b([^<>]*)>([^<]*(?:<(?!/?[a-z][^<>]*>)[^<]*)*)", re.IGNORECASE)
LINK = re.compile(r"<(alignment|sentpair)\b([^<>]*)>", re.IGNORECASE)

KINDS = {"alignment": "alignment", "chinese": "zh", "english": "en", "source": "zh", "translation": "en"}
"""Kind of a file by the name of a folder above it, in lower case; the first name that occurs counts."""
LANGUAGE_ENDING = re.compile(r"[._-](?:c|e|ch|en|zh|chinese|english|sgml?|txt|utf8|align)$", re.IGNORECASE)

Sentences = dict[Key, str]
Packages = Annotated[tuple[str, ...], Argument(metavar="ENCODING=FOLDER", repeated=True)]


class Document(NamedTuple):
    """Name of a file without endings, and the folders above it besides those in `KINDS`, in lower case."""

    stem: str
    folders: frozenset[str]


def collect_ldc(*, out: Path, package: Packages = ()) -> None:
    r"""Write the sentence pairs of LDC training packages as plain text.

        python -m pipeline collect-ldc --package big5hkscs=/ldc/LDC2005T10 --package gb18030=/ldc/LDC2005T06 \
            --out /ldc/ldc-zh-en

    writes  <out>/train.zh, <out>/train.en   one sentence per line, UTF-8

    A package holds folders `Chinese` (or `source`) and `English` (or `translation`), anywhere below it. Files are
    paired by name and subfolder. Further subfolders of the English side hold further translations. Sentences are
    paired by a folder `alignment` if there is one, else by document and number. Files without a partner, and pairs with
    an empty side, a missing sentence or undecodable characters are left out and counted. Packages that align only
    documents must go through a sentence aligner first.

    Args:
        out: Folder to write.
        package: Encoding of the Chinese text, such as big5hkscs, gb18030 or utf-8, and folder of a package. English
            text is read as UTF-8, else as Windows-1252.

    Raises:
        UserError: A package has no such folders, no pair of files or no sentence, its files cannot be assigned to
            each other, or none or an unknown encoding is given.
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
    """Return the name of the encoding that a `setting` calls `name`.

    Raises:
        UserError: There is no such encoding.
    """
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise UserError(f"--package {setting}: unknown encoding; write big5hkscs=FOLDER or gb18030=FOLDER") from None


def package_pairs(package: Path, encoding: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a `package` that belong together: Chinese, in `encoding`, and English.

    Raises:
        UserError: A language has no folder, no file of one has a partner, or files cannot be assigned to each other.
    """
    files = package_files(package)
    for side in ("zh", "en"):
        if not files[side]:
            names = " or ".join(name for name, kind in KINDS.items() if kind == side)
            raise UserError(f"{package}: has no folder {names} with files; correct --package")
    translations, alignments = (files_by_source(files[kind], files["zh"]) for kind in ("en", "alignment"))
    if not translations:
        raise UserError(
            f"{package}: no Chinese and English file have the same name and subfolder; correct --package, or give a "
            "copy of the package with the same subfolders on both sides"
        )
    unpaired = [sum(map(len, files[side].values())) for side in ("zh", "en")]
    unpaired[0] -= sum(len(files["zh"][source]) for source in translations)
    unpaired[1] -= sum(map(len, translations.values()))
    log.info("%s: no partner for %d Chinese and %d English files", package, *unpaired)
    for source in sorted(translations, key=lambda source: (source.stem, sorted(source.folders))):
        chinese_file = only_file(files["zh"][source], "Chinese", package, source.stem)
        chinese = sentences(decoded(chinese_file, encoding), chinese_file)
        links = None
        if files["alignment"]:
            links = only_file(alignments.get(source, []), "alignment", package, source.stem)
        for english_file in translations[source]:
            english = sentences(decoded(english_file), english_file)
            yield from linked(chinese, english, decoded(links)) if links else paired(chinese, english)


def only_file(files: list[Path], kind: str, package: Path, stem: str) -> Path:
    """Return the only one of `files` of a `kind` that a `package` has with this `stem` below the same subfolders.

    Raises:
        UserError: There is none, or more than one.
    """
    if len(files) == 1:
        return files[0]
    found = ", ".join(str(file.relative_to(package)) for file in files) or "none"
    raise UserError(
        f"{package}: needs one {kind} file named {shown(stem)} below the same subfolders, found {found}; "
        "give a copy of the package with one"
    )


def package_files(package: Path) -> dict[str, dict[Document, list[Path]]]:
    """Return the files of each kind in a folder, by document."""
    found: dict[str, dict[Document, list[Path]]] = {kind: {} for kind in KINDS.values()}
    for path in sorted(package.rglob("*")):
        folders = frozenset(part.lower() for part in path.relative_to(package).parts[:-1])
        kind = next((kind for name, kind in KINDS.items() if name in folders), None)
        if kind and path.is_file():
            found[kind].setdefault(Document(stem_of(path.name), folders.difference(KINDS)), []).append(path)
    return found


def files_by_source(files: dict[Document, list[Path]], sources: Iterable[Document]) -> dict[Document, list[Path]]:
    """Return the translations or alignments of each source.

    A file below all folders of a source belongs to it, e.g. in the subfolder of a translator. If it is below the
    folders of several sources, those with the most folders count, even if the file's own source is missing there.
    """
    sources = {*sources}
    places = sorted({source.folders for source in sources}, key=lambda place: (len(place), sorted(place)))
    found: dict[Document, list[Path]] = {}
    for document, paths in files.items():
        enclosing = [place for place in places if place <= document.folders]
        if enclosing and (source := Document(document.stem, enclosing[-1])) in sources:
            found.setdefault(source, []).extend(paths)
    return found


def stem_of(name: str) -> str:
    """Return a file name in lower case without the endings that name its language or format."""
    while shorter := LANGUAGE_ENDING.sub("", name):
        if shorter == name:
            break
        name = shorter
    return name.lower()


def decoded(path: Path, encoding: str | None = None) -> str:
    """Return the text of `path` in an `encoding`, or UTF-8, else Windows-1252; undecodable bytes become U+FFFD."""
    with opened(path) as file, parsing(path, "copy it from the package again"):
        content = file.read()
    if encoding is None:
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            encoding = "cp1252"
    return content.decode(encoding, "replace").removeprefix("\ufeff")


def sentences(text: str, path: Path) -> Sentences:
    """Return the sentences of a file by document and number, with collapsed white space.

    Args:
        text: A file with tags <seg>, or <s> whose text ends at the next tag.
        path: Path of the file, for messages.

    Raises:
        UserError: A <seg> does not end, or two <s> of a document have the same id.
    """
    if segments := sgml_segments(text.encode(), path):
        return {key: segment.decode() for key, segment in segments.items()}
    found, keys = Sentences(), Keys()
    for tag in SENTENCE.finditer(text):
        values = tag[2].encode()
        if tag[1].lower() == "doc":
            keys.begin(attribute(values, b"docid") or attribute(values, b"id"))
            continue
        key = keys.next_key(attribute(values, b"id"))
        if key.nth_segment > 1:
            raise UserError(f"{path}: has two <s> with id {shown(key.segment)}; copy it from the package again")
        found[key] = " ".join(tag[3].split())
    return found


def paired(chinese: Sentences, english: Sentences) -> Iterator[tuple[str, str]]:
    """Yield the sentences of equal document and number; one that its partner lacks has an empty partner."""
    for key in dict.fromkeys([*chinese, *english]):
        yield chinese.get(key, ""), english.get(key, "")


def linked(chinese: Sentences, english: Sentences, alignment: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences that a file of alignments links; several of one side are joined by spaces.

    A side is empty if one of its sentences is missing, or if several have its id.
    """
    sides = ((by_id(chinese), b"chinesesegid"), (by_id(english), b"englishsegid"))
    document = ""
    for tag in LINK.finditer(alignment):
        values = tag[2].encode()
        if tag[1].lower() == "alignment":
            document = attribute(values, b"docid")
            continue
        zh, en = (joined(side, document, attribute(values, name)) for side, name in sides)
        yield zh, en


def by_id(side: Sentences) -> dict[tuple[str, str], list[str]]:
    """Return the sentences of each document and id; links do not distinguish repeated ids."""
    found: dict[tuple[str, str], list[str]] = {}
    for key, text in side.items():
        found.setdefault((key.document, key.segment), []).append(text)
    return found


def joined(side: dict[tuple[str, str], list[str]], document: str, ids: str) -> str:
    """Return the texts of the `ids` of one `side` of a link, joined; empty unless each id names one sentence.

    Ids are separated by commas; `document` is that of the link.
    """
    found = [side.get((document, number.strip()), []) for number in ids.split(",") if ids]
    return " ".join(texts[0] for texts in found) if all(len(texts) == 1 for texts in found) else ""
