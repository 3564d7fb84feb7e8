"""Stage `prepare`: cleaned and tokenised splits of parallel text."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path

from pipeline.core.digests import require_digest
from pipeline.core.disk import require_space
from pipeline.core.errors import UserError, count_of
from pipeline.core.files import atomic_write, read_errors
from pipeline.core.records.corpus import PairsReport, PreparedPairs
from pipeline.data.dataset import CorpusRecord, Expected, load_one_of
from pipeline.data.processes import ProgressLog, chunks, map_in_order
from pipeline.data.text.checks import check_script, shared_sentences
from pipeline.data.text.cleaning import BadPairError, PreparedChunk, RawPair, decode, prepare_chunk, tokenise_line
from pipeline.data.text.text_files import count_lines, lines_of
from pipeline.data.text.tokenisation import Tokenisation, round_trip

log = logging.getLogger(__name__)

PAIRS_PER_CHUNK = 2000
EXAMPLES = 5
MISSING = "run the stage `download` or `generate` first"
WRITTEN_OVER_READ = 2.1
"""Bytes written for each byte read: cleaned text, and the same with spaces between tokens."""


def prepare_corpus(*, dataset: Path, corpus: Path, processes: int = 1) -> None:
    """Clean and tokenise the raw splits of a dataset.

        python -m pipeline prepare --dataset workflow/datasets/multi30k-en-de.yaml --corpus work/corpora/multi30k-en-de

    reads   <corpus>/raw/{train,dev,test}.<lang>
    writes  <corpus>/prepared/<split>.<lang>       cleaned text
            <corpus>/prepared/<split>.tok.<lang>   tokens of Moses or of the Chinese segmenter, or the text
            <corpus>/prepared/<split>.<lang>2 …    further references of a dev or test set
            <corpus>/prepared/report.json          numbers of pairs read, kept, left out and repaired, by reason

    Only training pairs are left out; a faulty dev or test line is an error. Only line feeds end lines.

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
        processes: Number of processes that share the work.
    """
    prepare(load_one_of(dataset, CorpusRecord, "parallel text"), corpus, processes)


def prepare(dataset: CorpusRecord, corpus: Path, processes: int) -> PreparedPairs:
    """Return the report in `prepared/report.json`, after writing `prepared/`; see `prepare_corpus`.

    Raises:
        UserError: Files are missing or misaligned, a split is not as expected, or a dev or test line is faulty.
    """
    for split, expected in dataset.expected.items():
        check_expected(expected, split_files(dataset, corpus, split))
    splits = dataset.split_names
    raw = (path for split in splits for path in split_files(dataset, corpus, split) if path.exists())
    require_space(corpus, WRITTEN_OVER_READ * sum(path.stat().st_size for path in raw), "prepared text")
    counts: dict[str, PairsReport] = {split: prepare_split(dataset, corpus, split, processes) for split in splits}

    def text(language: str) -> dict[str, Path]:
        return {split: corpus / f"prepared/{split}.{language}" for split in splits}

    report = PreparedPairs(
        dataset=dataset.name,
        tokeniser=f"sacremoses {version('sacremoses')}" if dataset.tokeniser == "moses" else dataset.tokeniser,
        unit=Tokenisation.of(dataset).unit,
        splits=counts,
        shared=shared_sentences(f"{dataset.name} {dataset.src}", text(dataset.src)),
        shared_targets=shared_sentences(f"{dataset.name} {dataset.tgt}", text(dataset.tgt)),
    )
    for split in splits:
        for reference in dataset.references(split)[1:]:
            prepare_reference(dataset, corpus, f"{split}.{reference}", f"{split}.tok.{reference}")
    report.write(corpus / "prepared/report.json")
    return report


def prepare_reference(dataset: CorpusRecord, corpus: Path, raw: str, tokens: str) -> None:
    """Write a further reference of the `dataset` in a `corpus`: file `raw` cleaned, and its file of `tokens`.

    Raises:
        UserError: A line is empty or not UTF-8.
    """
    texts, tokenised_texts = (atomic_write(corpus / "prepared" / name) for name in (raw, tokens))
    with open(corpus / "raw" / raw, "rb") as lines, texts as text_file, tokenised_texts as token_file:
        for number, line in enumerate(lines, start=1):
            try:
                text = decode(line)
                words = tokenise_line(text, dataset.tgt, Tokenisation.of(dataset))
            except BadPairError as fault:
                raise UserError(
                    f"{corpus / 'raw' / raw}: line {number}: {fault}; correct it, as references must be complete"
                ) from fault
            text_file.write(f"{text}\n")
            token_file.write(f"{words}\n")


def split_files(dataset: CorpusRecord, corpus: Path, split: str) -> tuple[Path, Path]:
    """Return the raw source and target file of a `split` of a `dataset` in a `corpus`."""
    return corpus / f"raw/{split}.{dataset.src}", corpus / f"raw/{split}.{dataset.tgt}"


def prepare_split(dataset: CorpusRecord, corpus: Path, split: str, processes: int) -> PairsReport:
    """Write cleaned text and tokens of both sides of a split; see `prepare_corpus`.

    Returns:
        The split's part of the report; for dev and test sets with the round-trip ceiling.

    Raises:
        UserError: A dev or test line is faulty, no pair is kept, or `raw_pairs` or `with_ceiling` fails.
    """
    raw = split_files(dataset, corpus, split)
    work = partial(prepare_chunk, dataset=dataset, drop_outliers=split == "train")
    counts = SplitCounts()
    progress = ProgressLog(log, f"{dataset.name} {split}: tokenised", "pairs")
    with ExitStack() as stack:
        paths = [corpus / f"prepared/{split}.{kind}{side}" for kind in ("", "tok.") for side in dataset.languages]
        files = [stack.enter_context(atomic_write(path)) for path in paths]
        for chunk in map_in_order(work, chunks(raw_pairs(*raw), PAIRS_PER_CHUNK), processes):
            if chunk.rejected and split != "train":
                place, reason = chunk.rejected[0]
                line = counts.read + place + 1
                raise UserError(f"{raw[0]}, {raw[1].name}: line {line}: {reason}; only training lines may be left out")
            for file, lines in zip(files, (*chunk.text, *chunk.tokens), strict=True):
                file.write(lines)
            counts.add(chunk)
            progress.advance(chunk.pairs)
    progress.finish()
    if not counts.kept:
        raise UserError(f"{raw[0]}, {raw[1].name}: cleaning leaves no pair; relax `cleaning` of {dataset.name}")
    if counts.rejected:
        why = ", ".join(f"{count} {reason}" for reason, count in counts.rejected.items())
        log.info("%s %s: left out %s", dataset.name, split, why)
    record = counts.report()
    return record if split == "train" else with_ceiling(record, dataset, corpus, split)


def with_ceiling(record: PairsReport, dataset: CorpusRecord, corpus: Path, split: str) -> PairsReport:
    """Return the `record` of a split with the score of a perfect translation, in sacreBLEU points.

    Raises:
        UserError: The references have no spaces between words, but the dataset's language does.
    """
    text, tokens = (list(lines_of(corpus / f"prepared/{split}.{kind}{dataset.tgt}", MISSING)) for kind in ("", "tok."))
    check_script(text, dataset.tgt, f"{corpus}/raw/{split}.{dataset.tgt}")
    found = round_trip(Tokenisation.of(dataset), dataset.tgt, text, tokens)
    if found.is_lossy:
        log.warning(
            "%s %s: a perfect translation reaches sacreBLEU %.1f, since detokenising changes %d of %d references, "
            "the first on line %d; `tokeniser: none` loses nothing",
            *(dataset.name, split, found.ceiling, len(found.changed), len(text), found.changed[0]),
        )
    return record.model_copy(update={"ceiling": found.ceiling, "changed": len(found.changed)})


class SplitCounts:
    """Counts of a split for the report."""

    def __init__(self):
        self.read = 0
        self.rejected: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.examples: dict[str, list[int]] = defaultdict(list)
        self.words = [0, 0]

    @property
    def kept(self) -> int:
        """Number of pairs kept."""
        return self.read - self.rejected.total()

    def add(self, chunk: PreparedChunk) -> None:
        """Add the counts of a chunk."""
        for place, reason in chunk.rejected:
            self.rejected[reason] += 1
            if len(self.examples[reason]) < EXAMPLES:
                self.examples[reason].append(self.read + place + 1)
        self.repaired += chunk.repaired
        self.words = [total + more for total, more in zip(self.words, chunk.words, strict=True)]
        self.read += chunk.pairs

    def report(self) -> PairsReport:
        """Return the counts as a record."""
        return PairsReport(
            read=self.read,
            kept=self.kept,
            rejected=dict(self.rejected),
            rejected_lines=dict(self.examples),
            repaired=dict(self.repaired),
            src_words=self.words[0],
            tgt_words=self.words[1],
        )


def raw_pairs(src: Path, tgt: Path) -> Iterator[RawPair]:
    """Yield the lines of the raw files `src` and `tgt` side by side, without line feeds.

    Raises:
        UserError: A file is missing, or has more lines than the other.
    """
    try:
        with read_errors(MISSING), open(src, "rb") as src_lines, open(tgt, "rb") as tgt_lines:
            for src_line, tgt_line in zip(src_lines, tgt_lines, strict=True):
                yield src_line.removesuffix(b"\n"), tgt_line.removesuffix(b"\n")
    except ValueError as error:  # one file has more lines
        counts = [count_lines(path, MISSING) for path in (src, tgt)]
        raise UserError(
            f"{src} has {count_of(counts[0], 'line')} but {tgt.name} has {counts[1]}: they are not translated line "
            "by line; remove both and fetch them again"
        ) from error


def check_expected(expected: Expected, files: tuple[Path, Path]) -> None:
    """Check the number of lines and the digests of `files`, source and target, against those `expected`.

    Raises:
        UserError: The split is not the one that the dataset file describes.
    """
    for path, digest in zip(files, (expected.src_sha256, expected.tgt_sha256), strict=True):
        found = count_lines(path, MISSING)
        if found != expected.lines:
            raise UserError(
                f"{path}: {count_of(found, 'line')}, expected {expected.lines}; remove it and fetch it again"
            )
        require_digest(path, digest, "remove it and fetch it again")
