"""Score every output of a run under one decoding, and a file of parses. Needs no torch."""

import contextlib
import logging
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pipeline.core import provenance
from pipeline.core.command_line import Argument
from pipeline.core.digests import sha256_file, sha256_json
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.layout import OUTPUTS_FILE, SCORES_FILE
from pipeline.core.schema import parse_json
from pipeline.data.dataset import SplitName, TreebankRecord, load_one_of
from pipeline.data.text.checks import check_pairs
from pipeline.data.text.text_files import lines_of, read_lines
from pipeline.data.trees.linearisation import TagLexicon, align_tags, rebuild
from pipeline.data.trees.trees import Tree, parse_tree, words
from pipeline.metrics import write_score
from pipeline.metrics.brackets import Parses, precision, recall
from pipeline.outputs.manifest import ManifestWriter, entries_of
from pipeline.outputs.plan import PlannedScore, ScoringPlan
from pipeline.outputs.score_text import score_phenomena, score_text, score_transcripts, scored_split

log = logging.getLogger(__name__)
EXAMPLES = 100_000
"""Training trees that show which words bear which tags; gold trees come first."""


def score_run(*, run: Path, plan: Annotated[str, Argument(metavar="JSON")]) -> None:
    r"""Score every output of a run under one decoding.

        python -m pipeline score --run work/demo/runs/attention/base/grammar-en-de/seed1-… \
            --plan '{"name": "final", …}'

    Writes a score file with the statistics of each sentence for every output. Lists them in `{decoding}/scores.json`,
    each with the digest of its inputs and its files. Keeps score files that are unchanged. If an output can't be
    scored, the others are scored, the cause is recorded in `{decoding}/scores.json.part`, and the exit status is 1.
    Needs no GPU.

    Args:
        run: Folder of a decoded run.
        plan: Decoding and its score files.

    Raises:
        UserError: An output could not be scored; the others are.
    """
    wanted = parse_json(ScoringPlan, plan, "--plan")
    manifest, keys, scored = score_outputs(run, wanted, wanted.scores)
    manifest.finish(keys)
    log.info("%s: %d of %d outputs scored", manifest.path, scored, len(keys))


def score_available(run_folder: Path, plan: ScoringPlan) -> None:
    """Score the outputs of an incomplete decoding, for partial reports.

    The scores are listed in `scores.json.part`, from which the rule `score` continues.
    """
    decoded = entries_of(run_folder / plan.name / OUTPUTS_FILE)
    there = {name for name, entry in decoded.items() if not entry.error}
    with contextlib.suppress(UserError):  # recorded in the manifest
        score_outputs(run_folder, plan, [score for score in plan.scores if score.output in there])


def score_outputs(
    run_folder: Path, plan: ScoringPlan, scores: Sequence[PlannedScore]
) -> tuple[ManifestWriter, dict[str, str], int]:
    """Return the manifest, the key of each score file, and how many were missing or out of date, and made.

    Raises:
        UserError: An output could not be scored; the others are.
    """
    planned = {score.file: score for score in scores}
    keys = {name: key_of(run_folder, plan, score) for name, score in planned.items()}
    manifest = ManifestWriter(run_folder, run_folder / plan.name / SCORES_FILE)
    lacking = {name: keys[name] for name in manifest.lacks(keys)}
    manifest.make(lacking, lambda name: make_score(run_folder, planned[name]))
    return manifest, keys, len(lacking)


def key_of(run_folder: Path, plan: ScoringPlan, planned: PlannedScore) -> str:
    """Return the digest of a score's inputs: the output, the references, and the code of the metrics.

    The key of the output holds the digest of the encoded corpus, which may be missing when an output is scored. The
    report beside an output is left out, because it has the time that decoding took.
    """
    decoded = entries_of(run_folder / plan.name / OUTPUTS_FILE).get(planned.output)
    report = Path(planned.corpus) / "prepared/report.json"
    references = sha256_file(report) if report.exists() else None
    output = (
        [decoded.key, {file: digest for file, digest in decoded.files.items() if not file.endswith(".json")}]
        if decoded
        else None
    )
    metrics = provenance.code_digest(provenance.ROOT / "pipeline/metrics")
    return sha256_json([planned.kind, planned.split, output, references, metrics])


def make_score(run_folder: Path, planned: PlannedScore) -> list[Path]:
    """Return the files of one scored output: scores, sentence statistics, and any trees.

    Raises:
        UserError: The output has other lines than the test set.
    """
    corpus = Path(planned.corpus)
    output, out = run_folder / planned.output, run_folder / planned.file
    trees = [run_folder / name for name in planned.trees]
    common: dict[str, Any] = {"dataset": Path(planned.dataset), "split": planned.split, "out": out}
    match planned.kind:
        case "text":
            score_text(prepared=corpus / "prepared", tokenised=output, text=output.with_suffix(".txt"), **common)
        case "trees":
            in_order, aligned = trees
            score_parses(
                prepared=corpus / "prepared", sequences=output, trees=in_order, aligned_trees=aligned, **common
            )
        case "speech":
            score_transcripts(corpus=corpus / "encoded", transcripts=output, **common)
        case "phenomena":
            score_phenomena(corpus=corpus, tokenised=output, **common)
    return [out, out.with_suffix(".npz"), *trees]


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
    """Count words and tags in the first trees of the `training` files, sentences and linearised trees."""
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
