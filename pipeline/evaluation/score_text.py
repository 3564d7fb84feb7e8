"""Score the translation of a split by every metric of translations, with 95 % intervals.

    python -m pipeline score-text --dataset workflow/datasets/multi30k-en-de.yaml \\
        --prepared work/corpora/multi30k-en-de/prepared --split test \\
        --tokenised translations/final/test.tok --text translations/final/test.txt --out scores/final/test.json

reads   <prepared>/<split>.<tgt>, <prepared>/<split>.tok.<tgt>: the references, raw and tokenised; further ones in
        <split>.<tgt>2 …
writes  scores/final/test.json: {dataset, split, test_set, lines, metrics: {bleu_paper, sacrebleu, chrf, …: {value,
        low, high, signature}}, statistics, references, inputs, training}: all that pipeline/metrics has for this set
        scores/final/test.npz: the statistics of each sentence, for paired tests

The test set has to be the one that the dataset file describes, by line count and digest.
"""

import argparse
import logging
from pathlib import Path

from pipeline.core.sha256 import sha256_file, sha256_json
from pipeline.data.dataset import CorpusRecord, SplitName, load_one_of
from pipeline.data.text.checked_lines import check_references, check_untokenised, read_lines
from pipeline.data.text.tokenisation import Tokenisation, round_trip
from pipeline.evaluation.scored import scored, scoring_arguments
from pipeline.metrics.metric import Texts, Translations
from pipeline.metrics.score_file import write_score

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    scoring_arguments(parser, "with the test set and the recipe of the paper's BLEU")
    parser.add_argument("--prepared", type=Path, required=True, help="folder prepared/ of the corpus")
    parser.add_argument("--tokenised", type=Path, required=True, help="translation, tokenised, one line a sentence")
    parser.add_argument("--text", type=Path, required=True, help="the same translation, detokenised")


def run(args: argparse.Namespace) -> None:
    score_text(args.dataset, args.prepared, args.split, args.tokenised, args.text, args.out)


def score_text(
    dataset_file: Path, prepared: Path, split: SplitName, hypotheses: Path, detokenised: Path, out: Path
) -> None:
    """Score a translation of a split and write `out`.

    Args:
        hypotheses: Tokenised translation.
        detokenised: The same translation as raw text.

    Raises:
        UserError: A file has other lines than the test set, or looks tokenised where raw text is meant.
    """
    dataset = load_one_of(dataset_file, CorpusRecord, "parallel text")
    suffixes = dataset.references(split)
    raw_references = [prepared / f"{split}.{suffix}" for suffix in suffixes]
    tokenised_references = [prepared / f"{split}.tok.{suffix}" for suffix in suffixes]
    lines = check_references(dataset, split, prepared)
    raw = read_texts(detokenised, raw_references, lines)
    tokens = read_texts(hypotheses, tokenised_references, lines)
    how = Tokenisation.of(dataset)
    translations = Translations(
        raw=raw,
        tokenised=scored_tokens(how, dataset.tgt, raw, tokens),
        compound_split=dataset.compound_split,
        nist=dataset.bleu == "nist",
        tgt=dataset.tgt,
        tokeniser=how.scored_as(dataset.tgt),
        case="lc" if dataset.lowercase else "mixed",
    )
    returned = round_trip(how, dataset.tgt, raw.references[0], tokens.references[0])
    if returned.is_lossy:
        log.warning("a perfect translation reaches sacreBLEU %.1f: the tokeniser loses the rest", returned.ceiling)
    for path, text in zip([detokenised, *raw_references], [raw.hypotheses, *raw.references], strict=True):
        check_untokenised(path, text)
    read = [hypotheses, detokenised, *raw_references, *tokenised_references]
    record = scored(dataset, split, lines, digest_of(raw_references), read, ceiling=returned.ceiling)
    write_score(out, translations, record)


def scored_tokens(how: Tokenisation, language: str, raw: Texts, tokens: Texts) -> Texts:
    """Return hypotheses and references as metrics of tokenised text compare them."""

    def both(texts: list[str], lines: list[str]) -> list[str]:
        return [how.scored(*pair, language) for pair in zip(texts, lines, strict=True)]

    references = zip(raw.references, tokens.references, strict=True)
    return Texts(both(raw.hypotheses, tokens.hypotheses), [both(*pair) for pair in references])


def digest_of(references: list[Path]) -> str:
    """Of one reference its file's own."""
    digests = [sha256_file(path) for path in references]
    return digests[0] if len(digests) == 1 else sha256_json(digests)


def read_texts(hypotheses: Path, references: list[Path], lines: int) -> Texts:
    """Raises UserError unless all files have `lines` lines."""
    return Texts(read_lines(hypotheses, lines), [read_lines(path, lines) for path in references])
