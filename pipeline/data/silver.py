"""Trees with the errors of a parser, for data that needs no network: gold trees, some phrases of them wrong."""

from random import Random

from pipeline.data.trees import Tree


def with_errors(tree: Tree, share: float, rng: Random) -> Tree:
    """`tree` with `share` of its phrases of several parts losing the last one to the phrase around them.

    A part set too high is what real parsers get wrong most often. Each such error is one wrong bracket and one missing.
    Recursive: for trees of a grammar, which are shallow.
    """
    parts: list[Tree] = []
    for child in tree.children:
        child = child if child.is_tag else with_errors(child, share, rng)
        if len(child.children) > 1 and rng.random() < share:
            parts += [Tree(child.label, child.children[:-1]), child.children[-1]]
        else:
            parts.append(child)
    return Tree(tree.label, tuple(parts))
