"""Text that is read aloud, or that a character language model learns from."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from pipeline.core.files import atomic_write
from pipeline.data.dataset import FetchedText, OwnText, SplitName, WrittenDataset, load_one_of
from pipeline.data.fetch.download import fetch_all
from pipeline.data.fetch.packages import Packages, own_files
from pipeline.data.fetch.raw_mark import write_raw_mark
from pipeline.data.speech.text_lines import fetched_lines, grammar_lines
from pipeline.data.text.text_files import lines_of

log = logging.getLogger(__name__)


def write_raw_text(
    *, dataset: Path, downloads: Path, corpus: Path, mirror: str | None = None, package: Packages = ()
) -> None:
    """Write or fetch the text of a corpus of speech or of a language model.

        python -m pipeline collect-text --dataset workflow/datasets/grammar-speech-source.yaml \\
            --downloads work/downloads --corpus work/corpora/grammar-speech-source

    reads   the mirror, <downloads>/<file>, or the addresses of the dataset file; <split>.txt in a folder of your own;
            nothing if the grammar writes the text
    writes  <corpus>/raw/{train,dev,test}.en   one sentence per line, as it was written

    Args:
        dataset: Dataset file.
        downloads: Folder of fetched files.
        corpus: Folder of the corpus.
        mirror: Folder or URL that is tried first.
        package: Folder of a licensed package, or of your own corpus. May be given several times.
    """
    record = load_one_of(dataset, WrittenDataset, "text")
    collect_text(record, downloads, corpus, mirror, package)
    write_raw_mark(corpus)


def collect_text(
    dataset: WrittenDataset, downloads: Path, corpus: Path, mirror: str | None, packages: Sequence[str] = ()
) -> None:
    """Write raw/<split>.en, whole or not at all.

    Raises:
        UserError: a file can't be had, is damaged, or holds less than the dataset file says.
    """
    lines: Iterator[tuple[SplitName, str]]
    if isinstance(dataset, OwnText):
        own = own_files(dataset, packages).items()
        lines = ((split, line) for split, path in own for line in lines_of(path, "complete the folder"))
    elif isinstance(dataset.text, FetchedText):
        lines = fetched_lines(dataset.text, fetch_all(dataset, downloads, mirror))
    else:
        lines = grammar_lines(dataset.text)
    counts: Counter[SplitName] = Counter()
    with ExitStack() as stack:
        names = dataset.split_names
        files = {split: stack.enter_context(atomic_write(corpus / f"raw/{split}.en")) for split in names}
        for split, line in lines:
            files[split].write(f"{line}\n")
            counts[split] += 1
    log.info("%s: %s", dataset.name, ", ".join(f"{split} {counts[split]:,} sentences" for split in names))
