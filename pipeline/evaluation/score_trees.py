"""Score the parses of a split: make trees of the sequences a model wrote, and set them against the gold trees.

    python -m pipeline score-trees --dataset workflow/datasets/craft.yaml --prepared work/corpora/craft/prepared \\
        --split test --sequences translations/parsing/test.tok --trees parses/test.trees --aligned-trees \\
        parses/test.aligned.trees --out scores/parsing/test.json

reads   <prepared>/<split>.tok.en, <prepared>/<split>.trees: the words, and the gold trees over them
        <prepared>/train.tok.en, train.tok.brackets: which words bear which tags, to align them in outputs
writes  parses/test.trees: the parses, in brackets, each over exactly the words of its sentence, set on tags in order
        parses/test.aligned.trees: the same, words set on tags by alignment (data/tag_alignment.py)
        scores/parsing/test.json: {dataset, split, test_set, lines, metrics: {f1, f1_40, f1_aligned, well_formed, …:
        {value, low, high, signature}}, recall, precision, repairs, statistics, references, inputs, training}
        scores/parsing/test.npz: the statistics of each sentence, for paired tests
"""

import argparse
import logging
from collections import Counter
from itertools import islice
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.sha256 import sha256_file
from pipeline.data.dataset import SplitName, TreebankRecord, load_one_of
from pipeline.data.text.checked_lines import check_pairs, read_lines
from pipeline.data.text.text_files import lines_of
from pipeline.data.trees.linearisation import rebuild
from pipeline.data.trees.tag_alignment import TagLexicon, aligned
from pipeline.data.trees.trees import Tree, parse_tree, words
from pipeline.evaluation.scored import scored, scoring_arguments
from pipeline.metrics.brackets import Parses, precision, recall
from pipeline.metrics.score_file import write_score

log = logging.getLogger(__name__)
EXAMPLES = 100_000  # training trees that say which words bear which tags, gold ones first


def add_arguments(parser: argparse.ArgumentParser) -> None:
    scoring_arguments(parser, "of the treebank")
    parser.add_argument("--prepared", type=Path, required=True, help="folder prepared/ of the corpus")
    parser.add_argument("--sequences", type=Path, required=True, help="linearised trees as decoded, one a line")
    parser.add_argument("--trees", type=Path, required=True, help="parses to write, in brackets")
    parser.add_argument("--aligned-trees", type=Path, required=True, help="the same, words set on tags by alignment")


def run(args: argparse.Namespace) -> None:
    score_parses(args.dataset, args.prepared, args.split, args.sequences, args.trees, args.aligned_trees, args.out)


def score_parses(
    dataset_file: Path,
    prepared: Path,
    split: SplitName,
    sequences_file: Path,
    trees_file: Path,
    aligned_file: Path,
    out: Path,
) -> None:
    """Score the parses of a split, write the trees they were scored as, and write `out`.

    Args:
        trees_file: Trees with the words set on tags in order.
        aligned_file: Trees with the words set on tags by alignment.

    Raises:
        UserError: A file has other lines than the test set, or other words.
    """
    dataset = load_one_of(dataset_file, TreebankRecord, "a treebank")
    gold_path, words_path = prepared / f"{split}.trees", prepared / f"{split}.tok.{dataset.src}"
    numbered = enumerate(read_lines(gold_path), start=1)
    gold = [parse_tree(line, f"{gold_path}: line {number}") for number, line in numbered]
    check_pairs(dataset, split, len(gold), str(gold_path))
    sentences, sequences = (read_lines(path, len(gold)) for path in (words_path, sequences_file))
    check_words(gold, sentences, words_path)
    outputs = [(symbols.split(), line.split(" ")) for symbols, line in zip(sequences, sentences, strict=True)]
    pairs = [rebuild(*output) for output in outputs]
    parses, repairs = [tree for tree, _ in pairs], [repairs for _, repairs in pairs]
    training = [prepared / f"train.tok.{side}" for side in dataset.languages]
    texts = (lines_of(path, "remove `report.json` there, and make it anew") for path in training)
    examples = islice(zip(*texts, strict=True), EXAMPLES)
    lexicon = TagLexicon((sentence.split(" "), tree.split(" ")) for sentence, tree in examples)
    by_alignment = [rebuild(aligned(symbols, sentence, lexicon), sentence)[0] for symbols, sentence in outputs]
    for path, trees in ((trees_file, parses), (aligned_file, by_alignment)):
        with atomic_write(path) as output:
            output.writelines(f"{tree}\n" for tree in trees)
    inputs = Parses(gold, parses, repairs, by_alignment)
    totals = inputs.counts.sum(axis=0)
    found = dict(sum((Counter(vars(repair)) for repair in repairs), Counter()))
    facts = {"recall": float(recall(totals)), "precision": float(precision(totals)), "repairs": found}
    read = [sequences_file, words_path, gold_path, *training]
    record = scored(dataset, split, len(gold), sha256_file(gold_path), read, **facts)
    write_score(out, inputs, record)
    log.info("repairs: %s", ", ".join(f"{count} {kind}" for kind, count in found.items()) or "none")


def check_words(gold: list[Tree], sentences: list[str], path: Path) -> None:
    """Raises UserError unless the words are those of the gold trees."""
    for number, (tree, sentence) in enumerate(zip(gold, sentences, strict=True), start=1):
        if words(tree) != sentence.split(" "):
            raise UserError(f"{path}: line {number} is not the sentence of the gold tree; run `prepare-trees` again")
