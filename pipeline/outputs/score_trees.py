"""Score files of parses: trees are rebuilt from the sequences that a model wrote and compared with the gold trees."""

import logging
from collections import Counter
from itertools import islice
from pathlib import Path

from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.data.dataset import SplitName, TreebankRecord, load_one_of
from pipeline.data.text.checks import check_pairs, read_lines
from pipeline.data.text.text_files import lines_of
from pipeline.data.trees.linearisation import TagLexicon, align_tags, rebuild
from pipeline.data.trees.trees import Tree, parse_tree, words
from pipeline.metrics import write_score
from pipeline.metrics.brackets import Parses, precision, recall
from pipeline.outputs.score_text import scored_split

log = logging.getLogger(__name__)
EXAMPLES = 100_000
"""Training trees that show which words bear which tags; gold trees come first."""


def score_parses(
    *,
    dataset: Path,
    prepared: Path,
    split: SplitName = "test",
    sequences: Path,
    trees: Path,
    aligned_trees: Path,
    out: Path,
) -> None:
    r"""Score parses: labelled bracketing F1, with intervals.

        python -m pipeline score-trees --dataset workflow/datasets/craft.yaml --prepared work/corpora/craft/prepared \
            --sequences test.tok --trees test.trees --aligned-trees test.aligned.trees --out test.json

    Read the words and gold trees of the split, and the training trees, which show which words bear which tags.

    Args:
        dataset: Dataset file of the treebank.
        prepared: Folder prepared/ of the corpus.
        split: Split that was parsed.
        sequences: Linearised trees as decoded, one per line.
        trees: Parses to write, in brackets, with the words set on tags in order.
        aligned_trees: The same, with the words set on tags by alignment.
        out: JSON file to write, with a .npz file beside it.

    Raises:
        UserError: A file has other lines or other words than the test set.
    """
    record = load_one_of(dataset, TreebankRecord, "a treebank")
    gold_path, words_path = prepared / f"{split}.trees", prepared / f"{split}.tok.{record.src}"
    gold = [
        parse_tree(line, f"{gold_path}: line {number}") for number, line in enumerate(read_lines(gold_path), start=1)
    ]
    check_pairs(record, split, len(gold), str(gold_path))
    sentences = read_lines(words_path, len(gold))
    check_words(gold, sentences, words_path)
    training = [prepared / f"train.tok.{side}" for side in record.languages]
    inputs = rebuild_parses(gold, sentences, read_lines(sequences, len(gold)), tag_lexicon(training))
    for path, parses in ((trees, inputs.parses), (aligned_trees, inputs.aligned)):
        with atomic_write(path) as output:
            output.writelines(f"{tree}\n" for tree in parses)
    totals = inputs.counts.sum(axis=0)
    repairs = dict(sum((Counter(vars(repair)) for repair in inputs.repairs), Counter()))
    facts = {"recall": float(recall(totals)), "precision": float(precision(totals)), "repairs": repairs}
    read = [sequences, words_path, gold_path, *training]
    write_score(out, inputs, scored_split(record, split, len(gold), sha256_file(gold_path), read, **facts))
    log.info("repairs: %s", ", ".join(f"{count} {kind}" for kind, count in repairs.items()) or "none")


def rebuild_parses(gold: list[Tree], sentences: list[str], sequences: list[str], lexicon: TagLexicon) -> Parses:
    """Rebuild the parse of each sentence from the sequence that a model wrote, in order and by alignment.

    Args:
        gold: Gold trees.
        sentences: Words of each sentence, separated by spaces.
        sequences: Symbols that the model wrote, separated by spaces.
        lexicon: Words that each tag is seen with in training, for the alignment.

    Returns:
        The gold trees with the parses of both kinds and the repairs that each sequence needed.
    """
    outputs = [(symbols.split(), line.split(" ")) for symbols, line in zip(sequences, sentences, strict=True)]
    rebuilt = [rebuild(*output) for output in outputs]
    by_alignment = [rebuild(align_tags(symbols, sentence, lexicon), sentence)[0] for symbols, sentence in outputs]
    return Parses(gold, [tree for tree, _ in rebuilt], [repairs for _, repairs in rebuilt], by_alignment)


def tag_lexicon(training: list[Path]) -> TagLexicon:
    """Read which words bear which tags from the first training trees.

    Args:
        training: Files of the sentences and of their linearised trees.

    Returns:
        Counts of words and tags in the first `EXAMPLES` trees.
    """
    texts = (lines_of(path, "delete `report.json` in its folder and rerun") for path in training)
    examples = islice(zip(*texts, strict=True), EXAMPLES)
    return TagLexicon((sentence.split(" "), tree.split(" ")) for sentence, tree in examples)


def check_words(gold: list[Tree], sentences: list[str], path: Path) -> None:
    """Check that the words are those of the gold trees.

    Args:
        gold: Gold trees.
        sentences: Words of each sentence, separated by spaces.
        path: File of the sentences, for the message.

    Raises:
        UserError: A sentence has other words.
    """
    for number, (tree, sentence) in enumerate(zip(gold, sentences, strict=True), start=1):
        if words(tree) != sentence.split(" "):
            raise UserError(f"{path}: line {number} is not the sentence of the gold tree; run `prepare-trees` again")
