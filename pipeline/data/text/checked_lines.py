"""Reading what is scored, and refusing what can't be right: a wrong score looks as plausible as a right one."""

import re
from pathlib import Path

from pipeline.core.digests import require_digest
from pipeline.core.errors import UserError
from pipeline.core.records.outputs import Decoded
from pipeline.core.records.preparation import PreparedPairs
from pipeline.data.dataset import CorpusRecord, DatasetRecord, SplitName, TreebankRecord
from pipeline.data.languages import is_unspaced
from pipeline.data.text.segmentation import lacks_spaces
from pipeline.data.text.text_files import lines_of

# Marks that only Moses' tokeniser leaves: escaped characters, joined hyphens, a full stop on its own.
ESCAPED = re.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124);|@-@")
TOKENISED_SHARE, OF_ALL_LINES = 0.1, 0.01
APART = re.compile(r"(?<!\.) \.\s*$")
"""A stop at the end of a line; dots with spaces between them (. . .) are written so."""


def read_lines(path: Path, expected: int | None = None) -> list[str]:
    """Lines of a UTF-8 text, split on the line feed alone.

    Raises:
        UserError: it is missing or not UTF-8, or has not as many lines as are `expected` of the test set.
    """
    lines = list(lines_of(path, "make it again"))
    if expected not in (None, len(lines)):
        raise UserError(
            f"{path}: {len(lines)} lines, but the test set has {expected}; a part is missing or it is another set"
        )
    return lines


def training_behind(text: Path) -> str | None:
    """Digest of the weights that the training ended in, of what a decoding wrote; None of any other text."""
    report = Decoded.read_if_there(text.with_suffix(".json"))
    return report.training if report else None


def check_untokenised(path: Path, lines: list[str]) -> None:
    """Raises UserError when text meant to be raw was tokenised: scored by sacreBLEU it would be tokenised twice.

    Taken as signs: escaped characters, or full stops that stand apart, in more than a tenth of the lines they could
    occur in; of all lines in one of a hundred, as where few end in a stop, those may be names of folders or slips.
    """
    escaped = sum(bool(ESCAPED.search(line)) for line in lines)
    stops = [line for line in lines if line.rstrip().endswith(".")]
    apart = sum(bool(APART.search(line)) for line in stops)
    fewest = max(1, TOKENISED_SHARE * len(stops), OF_ALL_LINES * len(lines))
    if escaped > TOKENISED_SHARE * len(lines) or apart > fewest:
        raise UserError(
            f"{path}: looks tokenised ({apart} of {len(stops)} final stops stand apart, {escaped} lines hold escaped "
            "characters), but sacreBLEU wants raw text; give the raw file"
        )


def check_script(text: list[str], language: str, where: str) -> None:
    """Raise UserError if text has no spaces between words, but the language is said to have."""
    if lacks_spaces(text) and not is_unspaced(language):
        raise UserError(
            f"{where}: is in a script without spaces between words, which {language} has; name its language, "
            "e.g. zh, ja or th: translations are scored by it"
        )


def name_of_split(dataset: DatasetRecord, split: SplitName) -> str:
    """As it stands beside every score."""
    return dataset.dev_set if split == "dev" else dataset.test_sets.get(split, f"{dataset.name} {split}")


def check_references(dataset: CorpusRecord, split: SplitName, prepared: Path) -> int:
    """The number of lines the split has to have.

    Raises:
        UserError: the raw references, in raw/ beside the folder `prepared`, are not those of the dataset file.
    """
    expected = dataset.expected.get(split)
    if expected is None:
        return PreparedPairs.read(prepared / "report.json").splits[split].kept
    path = prepared.parent / "raw" / f"{split}.{dataset.tgt}"
    require_digest(path, expected.tgt_sha256, "this is not the test set, prepare it again")
    return expected.lines


def check_pairs(dataset: CorpusRecord | TreebankRecord, split: SplitName, pairs: int, where: str) -> None:
    """Raises UserError unless the encoded split `where` has as many pairs as the dataset file says."""
    expected = dataset.expected.get(split)
    if split != "train" and expected is not None and pairs != expected.lines:
        raise UserError(f"{where} has {pairs} pairs, but {dataset.name} {split} has {expected.lines}; prepare it again")
