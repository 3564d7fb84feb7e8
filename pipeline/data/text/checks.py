"""Checks of text before it is scored, and of sentences that splits share: a wrong score looks plausible."""

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pipeline.core.digests import require_digest
from pipeline.core.errors import UserError, count_of
from pipeline.core.records.corpus import PreparedPairs
from pipeline.data.dataset import CorpusRecord, SplitName, TreebankRecord
from pipeline.data.languages import is_unspaced
from pipeline.data.text.segmentation import lacks_spaces
from pipeline.data.text.text_files import lines_of

log = logging.getLogger(__name__)

ALIKE = dict.fromkeys("‘’‚‛ʼ`´′", "'") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‐‑‒–—―−", "-")
"""Plain forms of the shapes of quotes and dashes."""
UNSEEN = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff"
UNSEEN += "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters without a mark of their own, such as direction controls."""
FORM = re.compile(f"[{''.join(ALIKE)}{UNSEEN}]")
ESCAPED = re.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124);|@-@")
"""Marks of Moses' tokeniser: escaped characters and joined hyphens."""
TOKENISED_SHARE, OF_ALL_LINES = 0.1, 0.01
APART = re.compile(r"(?<!\.) \.\s*$")
"""Separate full stop at the end of a line; dots with spaces between them (. . .) are normal text."""


def check_untokenised(path: Path, lines: list[str]) -> None:
    """Check that raw `lines` of the file `path` are not tokenised; sacreBLEU would tokenise them a second time.

    Signs of tokenisation are escaped characters and final full stops with a space before them. Text fails if more than
    a tenth of the lines that could show a sign do. Separate final stops must also occur in more than a hundredth of all
    lines: if few lines end in a stop, these may be names of folders or slips.

    Raises:
        UserError: The text looks tokenised.
    """
    escaped = sum(bool(ESCAPED.search(line)) for line in lines)
    stops = [line for line in lines if line.rstrip().endswith(".")]
    apart = sum(bool(APART.search(line)) for line in stops)
    fewest = max(1, TOKENISED_SHARE * len(stops), OF_ALL_LINES * len(lines))
    if escaped > TOKENISED_SHARE * len(lines) or apart > fewest:
        raise UserError(
            f"{path}: looks tokenised ({apart} of {len(stops)} final stops are separate, "
            f"{count_of(escaped, 'line holds', 'lines hold')} escaped characters), but sacreBLEU needs raw "
            "text; pass the raw file"
        )


def check_script(text: list[str], language: str, where: str) -> None:
    """Check that the lines of `text` at `where` have spaces between words if their declared `language` does.

    Raises:
        UserError: Most letters belong to scripts without spaces, unlike the language's own.
    """
    if lacks_spaces(text) and not is_unspaced(language):
        raise UserError(
            f"{where}: has a script without spaces between words, unlike {language}; set its language, "
            "e.g. zh, ja or th: it decides how translations are scored"
        )


def check_references(dataset: CorpusRecord, split: SplitName, prepared: Path) -> int:
    """Check the digest of the raw references.

    Args:
        dataset: Dataset whose file records the digest; without one nothing is checked.
        split: Name of a dev or test split.
        prepared: Folder of the prepared text; the references are in raw/ beside it.

    Returns:
        Number of lines of the split.

    Raises:
        UserError: The references are not those of the dataset file.
    """
    expected = dataset.expected.get(split)
    if expected is None:
        return PreparedPairs.read(prepared / "report.json").splits[split].kept
    path = prepared.parent / "raw" / f"{split}.{dataset.tgt}"
    require_digest(path, expected.tgt_sha256, "this is not the test set, prepare it again")
    return expected.lines


def check_pairs(dataset: CorpusRecord | TreebankRecord, split: SplitName, pairs: int, where: str) -> None:
    """Check that an encoded `split` at `where` has as many `pairs` as the `dataset` file says; train may have any.

    Raises:
        UserError: The numbers differ.
    """
    expected = dataset.expected.get(split)
    if split != "train" and expected is not None and pairs != expected.lines:
        raise UserError(f"{where} has {pairs} pairs, but {dataset.name} {split} has {expected.lines}; prepare it again")


def comparison_key(sentence: str) -> str:
    """Return a key that is equal for sentences which differ in form alone.

    Form is white space, invisible characters, Unicode form (NFKC), case, and the shape of quotes and dashes.
    """
    key = sentence.lower()
    if not key.isascii():  # NFKC makes a space with an accent of `´`, and two marks of `″`
        key = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain_form(sentence)).casefold())
    return "".join(plain_form(key).split())


def plain_form(text: str) -> str:
    """Return a text with plain quotes and dashes, and without invisible characters."""
    return FORM.sub(lambda found: ALIKE.get(found[0], ""), text)


def shared_sentences(what: str, splits: Mapping[str, Path]) -> dict[str, int]:
    """Count and log the distinct sentences that two splits share, compared by `comparison_key`.

    Held-out sets are kept in memory; training data is streamed.

    Args:
        what: Dataset and side, for the log.
        splits: File of prepared sentences of each split, one per line.

    Returns:
        The number for each pair of splits that share any, under a key such as `dev and train`.
    """
    remedy = "run `prepare` again"
    held_out = {
        split: set(map(comparison_key, lines_of(path, remedy))) for split, path in splits.items() if split != "train"
    }
    shared: Counter[str] = Counter()
    for number, (split, sentences) in enumerate(held_out.items()):
        for other in list(held_out)[:number]:
            shared[f"{other} and {split}"] = len(sentences & held_out[other])
    if "train" in splits:
        unseen = {split: set(sentences) for split, sentences in held_out.items()}
        for line in map(comparison_key, lines_of(splits["train"], remedy)):
            for split, sentences in unseen.items():
                if line in sentences:
                    sentences.remove(line)
                    shared[f"{split} and train"] += 1
    found = {pair: count for pair, count in shared.items() if count}
    for pair, count in found.items():
        log.warning("%s: %s in both %s", what, count_of(count, "sentence is", "sentences are"), pair)
    return found
