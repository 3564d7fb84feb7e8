"""Score files of lines of text: translations, transcripts, and phenomena of the embedded grammar.

Each has every metric that `pipeline/metrics` defines for the test set, with 95 % intervals, and beside it a `.npz` with
the statistics of each sentence, for paired tests. The test set must be the one that the dataset file describes.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.core.digests import sha256_file, sha256_json
from pipeline.core.errors import UserError
from pipeline.core.records.corpus import PreparedPairs, PreparedSpeech
from pipeline.core.records.outputs import Decoded, Scored
from pipeline.data.dataset import AnyDataset, CorpusRecord, GrammarDataset, SplitName, load_dataset, load_one_of
from pipeline.data.encoded_files import require_whole, token_files
from pipeline.data.sequence_store import TokenStore
from pipeline.data.text import checks
from pipeline.data.text.text_files import read_lines
from pipeline.data.text.tokenisation import LOSSLESS, Tokenisation
from pipeline.data.text.vocabulary import load_vocabularies, vocabularies
from pipeline.data.trees.trees import parse_tree
from pipeline.metrics import write_score
from pipeline.metrics.error_rates import Transcripts
from pipeline.metrics.metric import Texts, Translations
from pipeline.metrics.phenomena import GrammarSentence, GrammarTranslations

log = logging.getLogger(__name__)


def score_text(
    *, dataset: Path, prepared: Path, split: SplitName = "test", tokenised: Path, text: Path, out: Path
) -> None:
    r"""Score translations: every BLEU, chrF and GLEU, with intervals.

        python -m pipeline score-text --dataset workflow/datasets/multi30k-en-de.yaml \
            --prepared work/corpora/multi30k-en-de/prepared --tokenised test.tok --text test.txt --out test.json

    Read the references, raw (`<split>.<tgt>`) and tokenised (`<split>.tok.<tgt>`), further ones in `<split>.<tgt>2`, ….
    The ceiling comes from report.json; without it the score has none.

    Args:
        dataset: Dataset file, with the test set and the recipe of the paper's BLEU.
        prepared: Folder prepared/ of the corpus.
        split: Split that was translated.
        tokenised: Translation, tokenised, one line per sentence.
        text: The same translation, detokenised.
        out: JSON file to write, with a .npz file beside it.

    Raises:
        UserError: A file has other lines than the test set, or raw text looks tokenised.
    """
    record = load_one_of(dataset, CorpusRecord, "parallel text")
    suffixes = record.references(split)
    raw_references = [prepared / f"{split}.{suffix}" for suffix in suffixes]
    tokenised_references = [prepared / f"{split}.tok.{suffix}" for suffix in suffixes]
    lines = checks.check_references(record, split, prepared)
    raw = read_texts(text, raw_references, lines)
    tokens = read_texts(tokenised, tokenised_references, lines)
    how = Tokenisation.of(record)
    translations = Translations(
        raw=raw,
        tokenised=scored_tokens(how, record.tgt, raw, tokens),
        compound_split=record.compound_split,
        nist=record.bleu == "nist",
        tgt=record.tgt,
        tokeniser=how.scored_as(record.tgt),
        case="lc" if record.lowercase else "mixed",
    )
    report = PreparedPairs.read_if_there(prepared / "report.json")
    ceiling = report.splits[split].ceiling if report else None
    if ceiling is not None and ceiling < LOSSLESS:
        log.warning("a perfect translation reaches sacreBLEU %.1f: the tokeniser loses the rest", ceiling)
    to_check = [*zip(raw_references, raw.references, strict=True)]
    if how.tokeniser != "none" or Decoded.read_if_there(tokenised.with_suffix(".json")) is None:
        to_check.append((text, raw.hypotheses))  # else a model wrote the raw text itself, perhaps with such spaces
    for path, lines_of_file in to_check:
        checks.check_untokenised(path, lines_of_file)
    read = [tokenised, text, *raw_references, *tokenised_references]
    scored = scored_split(record, split, lines, digest_of(raw_references), read, ceiling=ceiling)
    write_score(out, translations, scored)


def scored_tokens(how: Tokenisation, language: str, raw: Texts, tokens: Texts) -> Texts:
    """Return tokenised hypotheses and references in the form that metrics of tokenised text compare."""

    def both(texts: list[str], lines: list[str]) -> list[str]:
        return [how.scored(*pair, language) for pair in zip(texts, lines, strict=True)]

    references = zip(raw.references, tokens.references, strict=True)
    return Texts(both(raw.hypotheses, tokens.hypotheses), [both(*pair) for pair in references])


def digest_of(references: list[Path]) -> str:
    """Return the digest of the references; of a single one, that of its file."""
    digests = [sha256_file(path) for path in references]
    return digests[0] if len(digests) == 1 else sha256_json(digests)


def read_texts(hypotheses: Path, references: list[Path], lines: int) -> Texts:
    """Return the lines of all files of hypotheses and references.

    Args:
        hypotheses: File of a system's output, one sentence per line.
        references: Files of the references.
        lines: Number of sentences of the test set.

    Raises:
        UserError: A file has another number of lines.
    """
    return Texts(read_lines(hypotheses, lines), [read_lines(path, lines) for path in references])


def score_transcripts(*, dataset: Path, corpus: Path, split: SplitName = "test", transcripts: Path, out: Path) -> None:
    r"""Score transcripts: character and word error rate.

        python -m pipeline score-speech --dataset workflow/datasets/grammar-speech-target.yaml \
            --corpus work/corpora/grammar-speech-target/encoded --transcripts test.txt --out test.json

    Args:
        dataset: Dataset file of the speech.
        corpus: Folder encoded/ of its corpus, which has the references.
        split: Split that was transcribed.
        transcripts: One line per utterance.
        out: JSON file to write, with a .npz file beside it.

    Raises:
        UserError: The transcripts have other lines than the split, or the corpus is damaged.
    """
    record = load_dataset(dataset)
    require_whole(corpus)
    stem = corpus / f"{split}.tgt"
    store = TokenStore(stem)
    references = vocabularies(corpus)[1].decode([*store])
    hypotheses = [line.removesuffix("\r").lower() for line in read_lines(transcripts, len(references))]
    digest = sha256_json([sha256_file(path) for path in token_files(stem)])
    report = PreparedSpeech.read_if_there(corpus.parent / "prepared/report.json")
    left_out = sum(report.splits[split].rejected.values()) if report else 0
    scored = scored_split(record, split, len(references), digest, [transcripts], left_out=left_out)
    write_score(out, Transcripts(references, hypotheses), scored)


def score_phenomena(*, dataset: Path, corpus: Path, split: SplitName, tokenised: Path, out: Path) -> None:
    """Count correctly translated names, idioms and word order, on the grammar.

    Read `<corpus>/<split>.phenomena.jsonl`, which the grammar wrote. A paraphrase counts as wrong.

    Args:
        dataset: Dataset file of the grammar, into English.
        corpus: Folder of the corpus.
        split: Split that was translated.
        tokenised: Translation, tokenised, one line per sentence.
        out: JSON file to write, with a .npz file beside it.

    Raises:
        UserError: The dataset is not the grammar's into English, or a file has other lines than the test set.
    """
    record = load_dataset(dataset)
    if not isinstance(record, GrammarDataset) or record.tgt != "en":
        raise UserError(f"{dataset}: is not written by the grammar into English, so it has no phenomena to count")
    facts = corpus / f"{split}.phenomena.jsonl"
    lines = checks.check_references(record, split, corpus / "prepared")
    recorded = [json.loads(line) for line in read_lines(facts, lines)]
    sentences = [
        GrammarSentence(hypothesis.split(" "), sentence, parse_tree(sentence["tree"], "phenomena"))
        for sentence, hypothesis in zip(recorded, read_lines(tokenised, lines), strict=True)
    ]
    src, tgt = (vocabulary.words or [] for vocabulary in load_vocabularies(corpus))
    scored = scored_split(record, split, lines, sha256_file(facts), [tokenised, facts])
    write_score(out, GrammarTranslations(sentences, src, tgt, record.lowercase), scored)


def scored_split(
    dataset: AnyDataset, split: SplitName, lines: int, references: str, inputs: Sequence[Path], **others: Any
) -> Scored:
    """Describe what is scored, for the score file.

    Args:
        dataset: Dataset of the split.
        split: Split that is scored.
        lines: Its number of sentences, utterances or trees.
        references: Digest of the references.
        inputs: Files that were read, first the one that a system wrote.
        others: Further fields of `Scored`.

    Returns:
        Record of the test set, with the digests of all files that were read.
    """
    return Scored(
        dataset=dataset.name,
        split=split,
        test_set=dataset.name_of_split(split),
        lines=lines,
        references=references,
        inputs={str(path): sha256_file(path) for path in inputs},
        training=training_digest(inputs[0]),
        **others,
    )


def training_digest(text: Path) -> str | None:
    """Return the digest of the weights that decoded a text; None for any other text."""
    report = Decoded.read_if_there(text.with_suffix(".json"))
    return report.training if report else None
