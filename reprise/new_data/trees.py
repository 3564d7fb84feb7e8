"""A treebank of a user, in Penn bracketing."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.data.text.checks import comparison_key
from pipeline.data.trees.linearisation import linearise
from pipeline.data.trees.trees import bracketings, clean, parse_tree, words
from pipeline.models.settings import EOS
from reprise.new_data import by_split, warn_of_same_file
from reprise.new_data.text import LARGEST_VOCABULARY, SAMPLE_LINES, fitting_vocabulary, flow, indented, subwords
from reprise.user_files import checked_path, lines_of, new_file, source_name


def sentences_and_trees(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the words of each tree and its bracketing on one line; leave out trees without words.

    Raises:
        UserError: The file cannot be read, or a line is no tree.
    """
    for number, text in bracketings(lines_of(path), str(path)):
        if found := words(clean(parse_tree(text, f"{path}: line {number}"))):
            yield " ".join(found), text


def split_trees(path: Path, shares: Sequence[float], folder: Path) -> dict[str, Path]:
    """Write `<folder>/<split>.trees`, one tree per line; no sentence is in two splits.

    Args:
        path: The treebank.
        shares: Shares of train, dev and test; they sum to 1.
        folder: Folder of the files.

    Returns:
        The file of each split.
    """
    by_sentence: dict[str, list[str]] = defaultdict(list)
    for sentence, tree in sentences_and_trees(path):
        by_sentence[comparison_key(sentence)].append(tree)
    files: dict[str, Path] = {}
    for split, chosen in by_split(by_sentence, shares, "sentences").items():
        files[split] = folder / f"{split}.trees"
        with new_file(files[split]) as new, atomic_write(new) as file:
            file.writelines(f"{tree}\n" for sentence in chosen for tree in by_sentence[sentence])
    return files


def template_values(name: str, splits: dict[str, Path], free: bool) -> dict[str, Any]:
    """Collect the values that the template of a treebank needs.

    Args:
        name: Name of the dataset.
        splits: File of each split.
        free: Anyone may redistribute the files.

    Returns:
        YAML of each field of the template.

    Raises:
        UserError: A file has no tree.
    """
    named = {split: source_name(name, split, path) for split, path in splits.items()}
    digests = {split: sha256_file(path) for split, path in splits.items()}
    sources = {
        named[split]: {"path": checked_path(path), "sha256": digests[split], "redistributable": free}
        for split, path in splits.items()
    }
    lines = {split: sum(1 for _ in sentences_and_trees(path)) for split, path in splits.items()}
    if empty := [split for split, count in lines.items() if not count]:
        raise UserError(f"{splits[empty[0]]}: has no trees")
    warn_of_same_file(digests)
    looked_at = [*islice(sentences_and_trees(splits["train"]), SAMPLE_LINES)]
    where = str(splits["train"])
    symbols = [symbol for _, text in looked_at for symbol in linearise(clean(parse_tree(text, where)), where)]
    return {
        "sources": indented(sources),
        "splits": indented({split: {"parts": [{"source": named[split]}]} for split in splits}),
        "vocab_size": min(LARGEST_VOCABULARY[0], fitting_vocabulary((sentence, "") for sentence, _ in looked_at)),
        "size": flow(
            pairs=[*lines.values()],
            src_subwords=subwords(sum(len(sentence.encode()) for sentence, _ in looked_at), len(looked_at)),
            tgt_subwords=round(len(symbols) / len(looked_at), 1),
            tgt_vocab=EOS + 1 + len({*symbols}),
            raw_bytes=sum(path.stat().st_size for path in splits.values()),
        ),
    }
