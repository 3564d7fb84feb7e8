"""Trees survive linearisation; any symbols become a tree over exactly the words, with a tag for each."""

import math
from itertools import combinations, product
from random import Random

import pytest
from random_trees import LABELS, TAGS, random_tree
from time_limit import within

from pipeline.core.errors import UserError
from pipeline.data.trees.linearisation import (
    UNALIGNED,
    Repairs,
    TagLexicon,
    align_tags,
    align_words,
    is_tag,
    linearise,
    rebuild,
)
from pipeline.data.trees.trees import TOP, Tree, parse_tree, words


def test_the_symbols_of_the_paper_s_form():
    tree = parse_tree("(TOP (S (NP (PRP We)) (VP (VBP agree)) (. .)))", "here")
    assert " ".join(linearise(tree)) == "(S (NP PRP /NP (VP VBP /VP . /S"


def test_any_symbols_rebuild_to_a_tree_over_exactly_the_words(seed):
    rng = Random(seed)
    alphabet = [f"({label}" for label in LABELS] + [f"/{label}" for label in LABELS] + list(TAGS)
    alphabet += ["<unk>", "(", "/", "", "()", "(S)", "a b", "/TOP", "(TOP"]
    for _ in range(500):
        symbols = rng.choices(alphabet, k=rng.randrange(60))
        sentence = [f"w{number}" for number in range(rng.randrange(20))]
        tree, repairs = rebuild(symbols, sentence)
        assert words(tree) == sentence
        assert tree.label == TOP
        if sentence:
            assert parse_tree(str(tree), "here") == tree  # brackets match, and every phrase holds a word
            assert rebuild(linearise(tree), sentence) == (tree, Repairs())
        assert repairs.any == (linearise(tree) != symbols)


@pytest.mark.parametrize(
    ("symbols", "sentence", "tree", "repairs"),
    [
        ("(S (NP NN /NP", "a", "(TOP (S (NP (NN a))))", {"missing_closers": 1}),
        # /S closes the NP inside it
        ("(S (NP NN /S", "a", "(TOP (S (NP (NN a))))", {"missing_closers": 1}),
        # nothing open is a VP
        ("(S NN /VP NN /S", "a b", "(TOP (S (NN a) (NN b)))", {"surplus_closers": 1}),
        ("(S NN /S /S", "a", "(TOP (S (NN a)))", {"surplus_closers": 1}),
        # a word too many for the tags goes to the end of the last phrase, whatever that is
        ("(S (NP NN /NP . /S", "a b c", "(TOP (S (NP (NN a)) (. b) (XX c)))", {"missing_tags": 1}),
        ("NN", "a b", "(TOP (NN a) (XX b))", {"missing_tags": 1}),
        ("", "a", "(TOP (XX a))", {"missing_tags": 1}),
        # a tag too many is left out, and with it the phrase that it leaves empty
        ("(S NN (NP NN /NP /S", "a", "(TOP (S (NN a)))", {"surplus_tags": 1, "empty_phrases": 1}),
        ("(S (NP /NP NN /S", "a", "(TOP (S (NN a)))", {"empty_phrases": 1}),
        ("(S NN (NP (VP", "a", "(TOP (S (NN a)))", {"missing_closers": 3, "empty_phrases": 2}),
        ("( (S NN () /S /", "a", "(TOP (S (NN a)))", {"foreign_symbols": 3}),
    ],
)
def test_each_repair_by_hand(symbols, sentence, tree, repairs):
    found, made = rebuild(symbols.split(), sentence.split())
    assert (str(found), made) == (tree, Repairs(**repairs))


@pytest.mark.parametrize("tag", ["(", "/X"])
def test_a_tag_that_reads_as_a_bracket_is_refused(tag):
    with pytest.raises(UserError, match="looks like a bracket"):
        linearise(Tree(TOP, (Tree(tag, word="a"),)))


def test_closers_without_an_opener_take_linear_time():
    depth = 100_000
    with within(5):
        tree, repairs = rebuild(["(A"] * depth + ["/B"] * depth, ["word"])
    assert repairs.surplus_closers == repairs.missing_closers == depth and words(tree) == ["word"]


WORDS = {"the": "DT", "cat": "NN", "bird": "NN", "saw": "VBD", "a": "DT", "old": "JJ", ".": "."}
SENTENCE = ["the", "old", "cat", "saw", "a", "bird", "."]
TREE = "(S (NP DT JJ NN /NP (VP VBD (NP DT NN /NP /VP . /S"


@pytest.fixture
def lexicon():
    """Return a lexicon in which each word occurs ten times, always with one tag."""
    return TagLexicon([(list(WORDS), list(WORDS.values()))] * 10)


def parse(symbols: str, lexicon: TagLexicon, sentence: list[str] = SENTENCE) -> str:
    tree, repairs = rebuild(align_tags(symbols.split(), sentence, lexicon), sentence)
    assert (repairs.missing_tags, repairs.surplus_tags) == (0, 0)
    return str(tree)


def test_skipped_word_does_not_shift_later_tags(lexicon):
    gold, lost = parse(TREE, lexicon), TREE.replace("DT JJ NN", "DT NN")
    assert "(NP (DT a) (NN bird))" in gold
    assert parse(lost, lexicon) == gold
    in_order, _ = rebuild(lost.split(), SENTENCE)
    assert "(NP (NN a) (. bird))" not in gold and str(in_order) != gold


def test_untagged_words_at_the_ends_stay_outside_the_tags(lexicon):
    found = parse("(S (VP VBD (NP DT NN /NP /VP /S", lexicon)
    assert found == "(TOP (S (VP (DT the) (JJ old) (NN cat) (VBD saw) (NP (DT a) (NN bird) (. .)))))"


def test_an_unknown_word_has_the_tags_of_all_words(lexicon):
    sentence = ["the", "dodo", "saw", "a", "bird", "."]
    assert lexicon.likeliest("dodo") == "DT"  # of seven words two are DT and two NN; DT was met first
    probabilities = [math.exp(lexicon.log_probability(tag, "dodo")) for tag in sorted(set(WORDS.values()))]
    assert probabilities == [pytest.approx(share / 76) for share in (11, 21, 11, 21, 11)]  # 70 words, 5 tags, 1 other
    assert "(NN dodo)" in parse("(S (NP DT NN /NP (VP VBD (NP DT NN /NP /VP . /S", lexicon, sentence)


def score(pairs, tags_written, sentence, lexicon) -> float:
    """Return the log-probability of an alignment: of its pairs of tags and words, and of what stays alone."""
    gaps = UNALIGNED * (len(tags_written) + len(sentence) - 2 * len(pairs))
    return gaps + sum(lexicon.log_probability(tag, word) for tag, word in pairs)


def alignments(tags_written: list[str], sentence: list[str]):
    """Yield all alignments, each as pairs of tags and words."""
    for count in range(min(len(tags_written), len(sentence)) + 1):
        for of_tags, of_words in product(combinations(tags_written, count), combinations(sentence, count)):
            yield list(zip(of_tags, of_words, strict=True))


def test_tag_alignment_is_the_likeliest_one(seed):
    rng = Random(seed)
    labels = [*sorted(set(WORDS.values())), "XYZ"]
    lexicon = TagLexicon([([rng.choice(list(WORDS))], [rng.choice(labels[:-1])]) for _ in range(60)])
    for _ in range(60):
        sentence = rng.choices([*WORDS, "dodo"], k=rng.randrange(6))
        written = rng.choices(labels, k=rng.randrange(6))
        places = align_words(written, sentence, lexicon)
        found = [place for place in places if place is not None]
        assert found == sorted(set(found)) and len(places) == len(written)
        pairs = [(tag, sentence[place]) for tag, place in zip(written, places, strict=True) if place is not None]
        best = max(score(alignment, written, sentence, lexicon) for alignment in alignments(written, sentence))
        assert score(pairs, written, sentence, lexicon) == pytest.approx(best)


def test_every_word_of_any_output_gets_a_known_tag(seed):
    rng = Random(seed)
    trees = [random_tree(rng) for _ in range(200)]
    lexicon = TagLexicon((words(tree), linearise(tree)) for tree in trees[:150])
    for tree in trees[150:]:
        symbols = [symbol for symbol in linearise(tree) if rng.random() < 0.8]
        symbols.insert(rng.randrange(len(symbols) + 1), rng.choice(["(S)", "()", "(", "<unk>"]))
        again, repairs = rebuild(align_tags(symbols, words(tree), lexicon), words(tree))
        assert words(again) == words(tree)
        if any(map(is_tag, symbols)):
            assert (repairs.missing_tags, repairs.surplus_tags) == (0, 0)


def test_unfitting_tag_keeps_its_phrase_and_no_tags_no_change():
    lexicon = TagLexicon([(["Methods"], ["(NP", "NNS", "/NP"])] * 2000)
    tree, _ = rebuild(align_tags(["(NP", "NN", "/NP"], ["Methods"], lexicon), ["Methods"])
    assert str(tree) == "(TOP (NP (NN Methods)))"
    assert align_tags(["(S", "/S"], ["Methods"], lexicon) == ["(S", "/S"] and align_tags([], [], lexicon) == []
