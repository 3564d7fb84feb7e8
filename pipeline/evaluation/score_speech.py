"""Score the transcripts of a split by every metric of transcripts, with 95 % intervals.

    python -m pipeline score-speech --dataset workflow/datasets/grammar-speech-target.yaml \\
        --corpus work/corpora/grammar-speech-target/encoded --split test --transcripts transcripts/test.txt \\
        --out scores/test.json

Writes scores/test.json: {dataset, split, test_set, lines, left_out, metrics: {cer, wer: {value, low, high, signature}},
statistics, references, inputs, training}, and test.npz: edits and lengths of each utterance, for paired tests.
"""

import argparse
from pathlib import Path

from pipeline.core.records.preparation import PreparedSpeech
from pipeline.core.sha256 import sha256_file, sha256_json
from pipeline.data.dataset import SplitName, load_dataset
from pipeline.data.store.encoded_files import require_whole
from pipeline.data.store.sequence_store import TokenStore, token_files
from pipeline.data.text.checked_lines import read_lines
from pipeline.data.text.vocabulary import vocabularies
from pipeline.evaluation.scored import scored, scoring_arguments
from pipeline.metrics.error_rates import Transcripts
from pipeline.metrics.score_file import write_score


def add_arguments(parser: argparse.ArgumentParser) -> None:
    scoring_arguments(parser, "of the speech that was written down")
    parser.add_argument("--corpus", type=Path, required=True, help="its folder encoded/, which has the references")
    parser.add_argument("--transcripts", type=Path, required=True, help="one line an utterance")


def run(args: argparse.Namespace) -> None:
    score_transcripts(args.dataset, args.corpus, args.split, args.transcripts, args.out)


def score_transcripts(dataset_file: Path, corpus: Path, split: SplitName, transcripts: Path, out: Path) -> None:
    """Score the transcripts of a split of an encoded corpus and write `out`. Raises UserError for other lines."""
    dataset = load_dataset(dataset_file)
    require_whole(corpus)
    stem = corpus / f"{split}.tgt"
    store = TokenStore(stem)
    references = vocabularies(corpus)[1].decode([store[index] for index in range(len(store))])
    hypotheses = [line.removesuffix("\r") for line in read_lines(transcripts, len(references))]
    digest = sha256_json([sha256_file(path) for path in token_files(stem)])
    report = PreparedSpeech.read_if_there(corpus.parent / "prepared/report.json")
    left_out = sum(report.splits[split].rejected.values()) if report else 0
    record = scored(dataset, split, len(references), digest, [transcripts], left_out=left_out)
    write_score(out, Transcripts(references, hypotheses), record)
