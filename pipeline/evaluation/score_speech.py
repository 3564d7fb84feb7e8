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
from pipeline.data.batches.corpus_batches import vocabularies
from pipeline.data.dataset import load_dataset
from pipeline.data.store.encoded_files import require_whole
from pipeline.data.store.token_store import TokenStore, token_files
from pipeline.data.text.checked_lines import read_lines
from pipeline.evaluation.scored import scored, scoring_arguments
from pipeline.metrics.error_rates import Transcripts
from pipeline.metrics.score_file import write_score


def add_arguments(parser: argparse.ArgumentParser) -> None:
    scoring_arguments(parser, "of the speech that was written down")
    parser.add_argument("--corpus", type=Path, required=True, help="its folder encoded/, which has the references")
    parser.add_argument("--transcripts", type=Path, required=True, help="one line an utterance")


def run(args: argparse.Namespace) -> None:
    dataset = load_dataset(args.dataset)
    require_whole(args.corpus)
    stem = args.corpus / f"{args.split}.tgt"
    store = TokenStore(stem)
    references = vocabularies(args.corpus)[1].decode([store[index] for index in range(len(store))])
    hypotheses = [line.removesuffix("\r") for line in read_lines(args.transcripts, len(references))]
    digest = sha256_json([sha256_file(path) for path in token_files(stem)])
    report = PreparedSpeech.read_if_there(args.corpus.parent / "prepared/report.json")
    left_out = sum(report.splits[args.split].rejected.values()) if report else 0
    record = scored(dataset, args.split, len(references), digest, [args.transcripts], left_out=left_out)
    write_score(args.out, Transcripts(references, hypotheses), record)
