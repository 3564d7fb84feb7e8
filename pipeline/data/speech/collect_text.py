"""Stage `collect-text`: text to read aloud or to train a character language model on.

Text comes from the grammar, from lines of fetched files, or from a folder of the user's own.
"""

import logging
import re
import shutil
from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from fnmatch import fnmatch
from itertools import chain, islice, zip_longest
from pathlib import Path
from random import Random
from typing import IO

from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.data import dataset as datasets
from pipeline.data.fetch import archives, download, raw_text, untrusted
from pipeline.data.fetch.packages import Packages, own_files
from pipeline.data.text.text_files import lines_of, read_rows

log = logging.getLogger(__name__)


def write_raw_text(
    *, dataset: Path, downloads: Path, corpus: Path, mirror: str | None = None, package: Packages = ()
) -> None:
    r"""Write or fetch the text of a corpus of speech or of a language model.

        python -m pipeline collect-text --dataset workflow/datasets/grammar-speech-source.yaml \
            --downloads work/downloads --corpus work/corpora/grammar-speech-source

    reads   the mirror, <downloads>/<file>, or the addresses of the dataset file; <split>.txt in a folder of your own;
            nothing if the grammar writes the text
    writes  <corpus>/raw/{train,dev,test}.en   one sentence per line, as written

    Args:
        dataset: Dataset file.
        downloads: Folder of fetched files.
        corpus: Folder of the corpus.
        mirror: Folder or URL that is tried first; variables such as `$MIRROR` are expanded.
        package: Folder of a licensed package, or of your own corpus. May be given several times.
    """
    record = datasets.load_one_of(dataset, datasets.WrittenDataset, "text")
    collect_text(record, downloads, corpus, download.expand_variables(mirror), package)
    raw_text.write_raw_mark(corpus)


def collect_text(
    dataset: datasets.WrittenDataset, downloads: Path, corpus: Path, mirror: str | None, packages: Sequence[str] = ()
) -> None:
    """Write raw/<split>.en, all splits or none; see `write_raw_text`.

    Raises:
        UserError: A file is missing or damaged, or holds less than the dataset file says.
    """
    counts: Counter[datasets.SplitName] = Counter()
    with ExitStack() as stack:
        lines: Iterator[tuple[datasets.SplitName, str]]
        if isinstance(dataset, datasets.OwnText):
            own = own_files(dataset, packages).items()
            lines = ((split, line) for split, path in own for line in lines_of(path, "complete the folder"))
        elif isinstance(dataset.text, datasets.FetchedText):
            folder = stack.enter_context(archives.folder_of_copies(corpus))
            lines = fetched_lines(dataset.text, download.fetch_all(dataset, downloads, mirror), folder)
        else:
            lines = grammar_lines(dataset.text, f"workflow/datasets/{dataset.name}.yaml: text.sizes")
        names = dataset.split_names
        files = {split: stack.enter_context(atomic_write(corpus / f"raw/{split}.en")) for split in names}
        for split, line in lines:
            files[split].write(f"{line}\n")
            counts[split] += 1
    log.info("%s: %s", dataset.name, ", ".join(f"{split} {counts[split]:,} sentences" for split in names))


CLITIC = re.compile(r" '(?=(?:d|ll|m|re|s|t|ve)\b)")
NOT_SPOKEN = re.compile(r"\([^ ()]*\)|\{[^ {}]*\}|<sil>")
"""Pronunciation variants, noises and silence in TED-LIUM's transcripts."""
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
UNTRANSCRIBED = "ignore_time_segment_in_scoring"


def grammar_lines(text: datasets.GrammarText, where: str) -> Iterator[tuple[datasets.SplitName, str]]:
    """Yield split and sentence of each domain, first test, then dev, then train, without repeats.

    Args:
        text: Domains and their sizes.
        where: File and key of the sizes, for errors.

    Raises:
        UserError: A domain has not that many different sentences.
    """
    from pipeline.grammar.new_items import new_items  # only if the grammar writes the text, as below

    tests = [split for split in text.sizes if split not in ("dev", "train")]
    for domain in text.domains:
        seen: set[Hashable] = set()
        for split in (*tests, "dev", "train"):
            rng = Random(f"grammar/{domain}/{text.seed}/{split}")
            lines, asked = domain_lines(domain, rng, held_out=split in tests), text.sizes[split]
            yield from (
                (split, line) for line in new_items(lines, asked, lambda line: {line}, seen, f"{where}.{split}")
            )


def domain_lines(domain: datasets.GrammarDomain, rng: Random, held_out: bool) -> Iterator[str]:
    """Yield English sentences of a `domain` without end by `rng`; `held_out` allows names of the test split."""
    from pipeline.grammar.corpus import endless, endless_english  # load the lexicon; fetched text does not need it

    searches, films = endless("search", rng, held_out), endless_english(rng, held_out)
    match domain:
        case "film":
            yield from films
        case "search":
            yield from (sentence.en for sentence in searches)
        case "queries":
            while True:
                yield from (next(searches).en, keywords(next(films), rng))


def keywords(line: str, rng: Random) -> str:
    """Shuffle the distinct words of a `line` by `rng` like a search query, which keeps vocabulary but not language."""
    words = sorted(set(WORD.findall(line.lower())))
    return " ".join(rng.sample(words, len(words)))


def fetched_lines(
    text: datasets.FetchedText, files: dict[str, Path], folder: Path
) -> Iterator[tuple[datasets.SplitName, str]]:
    """Yield split and line of a `text` from fetched `files` by source, with parts chained or interleaved.

    The `folder` is for copies of the members of archives.

    Raises:
        UserError: A file is damaged, or lacks a named member or line.
    """
    for split, parts in text.splits.items():
        lines = [part_lines(part, files[part.source], folder / f"{split}-{n}") for n, part in enumerate(parts)]
        in_order = chain.from_iterable(zip_longest(*lines)) if text.in_turn else chain.from_iterable(lines)
        yield from ((split, line) for line in in_order if line is not None)


def part_lines(part: datasets.TextPart, path: Path, folder: Path) -> Iterator[str]:
    """Yield the lines that a `part` takes of the fetched file `path`; `folder` is for copies of members.

    Raises:
        UserError: There are none.
    """
    found = False
    rng = Random(f"keywords/{part.source}")
    with closing(part_content(part, path, folder)) as content:
        for line in islice(islice(content, part.first - 1, None, part.every), part.lines):
            found = True
            yield keywords(line, rng) if part.keywords else line
    if not found:
        raise UserError(
            f"{path}: has no line {part.first} in {part.member or 'it'}; fetch it again, or correct the dataset file"
        )


def part_content(part: datasets.TextPart, path: Path, folder: Path) -> Generator[str]:
    """Yield the sentences of a file, or of all matching members in the order of the archive; see `part_lines`.

    Members are copied in one pass over the archive, the last one of a name, and removed at the end of the part.
    """
    texts, member = {path.name: path}, part.member
    if member is not None:
        texts = archives.copy_members(path, path.name, lambda name: fnmatch(name, member), folder, once=True)
    try:
        for name, text in texts.items():
            with untrusted.opened(text) as stream:
                yield from sentences(part, name, text.stat().st_size, stream, path)
    finally:
        if member is not None:  # otherwise this function did not create the folder
            shutil.rmtree(folder, ignore_errors=True)


def sentences(part: datasets.TextPart, name: str, size: int, stream: IO[bytes], path: Path) -> Iterator[str]:
    """Yield the sentences of the file `name` of `size` bytes in a `stream` of `path`, in the layout of a `part`."""
    lines = untrusted.decoded_lines(untrusted.gunzipped(stream, name, path, size), path)
    match part.layout:
        case "plain":
            yield from lines
        case "transcripts":
            yield from (line.partition(" ")[2] for line in lines)
        case "stm":
            yield from (text for line in lines if not is_comment(line) and (text := segment_text(line)))
        case "tedlium":
            yield from (joined_clitics(line.removesuffix("</s>")) for line in lines)


def table_rows(lines: Iterable[str], wanted: Iterable[str], where: str) -> Iterator[dict[str, str]]:
    """Yield the cells by column of each row in `lines` of a TSV file `where`, whose header has the `wanted` columns.

    A row that is cut has empty cells at its end.

    Raises:
        UserError: A wanted column is missing.
    """
    with untrusted.parsing(Path(where)):
        (_, names), *rows = read_rows(lines, where, logging.DEBUG) or [(1, [""])]
    if missing := set(wanted) - set(names):
        raise UserError(f"{where}: has no column {', '.join(sorted(missing))}; is it the right file?")
    for _, cells in rows:
        if cells != [""]:
            yield dict(zip_longest(names, cells[: len(names)], fillvalue=""))  # a row that is cut has no text


def is_comment(line: str) -> bool:
    """Return whether a line of an .stm file is a comment."""
    return line.lstrip().startswith(";;")


def segment_text(line: str) -> str:
    """Return the transcript of a segment of an .stm file, after its six fields; empty if there is none."""
    text = "".join(line.split(None, 6)[6:]).strip()
    return "" if text == UNTRANSCRIBED else joined_clitics(NOT_SPOKEN.sub(" ", text))


def joined_clitics(text: str) -> str:
    """Join clitics: `it 's` becomes `it's`."""
    return CLITIC.sub("'", text)
