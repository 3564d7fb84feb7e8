"""Random trees in Penn bracketing, with every construct that treebanks use."""

from random import Random

from pipeline.data.trees.trees import TOP, Tree

LABELS = ("S", "NP", "VP", "PP", "SBAR", "NML", "PRT", "ADVP", "PRN")
TAGS = ("NN", "VBZ", "PRP$", ",", ".", "``", "''", ":", "-LRB-", "HYPH", "$")
WORDS = ("mice", "†XP", "café", "-LRB-", "1\\/2", "a\N{NO-BREAK SPACE}b", "'s", "%", "NP", "/S")


def random_tree(rng: Random, depth: int = 6) -> Tree:
    """Return a cleaned tree: TOP over one or more parts, some of them unary chains."""
    return Tree(TOP, tuple(random_part(rng, depth) for _ in range(rng.choice((1, 1, 1, 2)))))


def random_part(rng: Random, depth: int) -> Tree:
    if depth == 0 or rng.random() < 0.3:
        return Tree(rng.choice(TAGS), word=rng.choice(WORDS))
    return Tree(rng.choice(LABELS), tuple(random_part(rng, depth - 1) for _ in range(rng.choice((1, 1, 2, 3)))))


def annotated(tree: Tree, rng: Random) -> str:
    """Return a bracketing over several lines, without a label at the top, that cleans to `tree`.

    Function tags, indices, traces, phrases of nothing but traces, and white space as in the WSJ files are added.
    """
    parts = []
    for child in tree.children:
        parts.append(annotated_part(child, rng))
        if rng.random() < 0.2:
            parts.append(
                rng.choice(("(NP-SBJ (-NONE- *))", "(-NONE- *T*-1)", "(SBAR (WHNP-1 (-NONE- 0)) (S (-NONE- *)))"))
            )
    return f"({rng.choice(('', ' '))}{rng.choice((' ', chr(10) + '  ')).join(parts)} )"


def annotated_part(tree: Tree, rng: Random) -> str:
    if tree.is_tag:
        return f"({tree.label} {tree.word})"
    label = tree.label + rng.choice(("", "", "-SBJ", "-SBJ-1", "=2", "-1=2", "-LOC-PRD-3"))
    return f"({label}{rng.choice((' ', chr(10)))}{annotated(Tree('', tree.children), rng)[1:-1].strip()})"
