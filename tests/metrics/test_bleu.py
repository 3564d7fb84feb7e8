"""BLEU and chrF equal their definitions and the reference implementations."""

import math
import random
from collections import Counter

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from pipeline.metrics import metric_named, metrics_of
from pipeline.metrics.bleu import bleu, split_compounds
from pipeline.metrics.metric import Texts, Translations

WORDS = [*"abcdefgh", "A", "x-y"]
FEW_WORDS = ["a", "b", "c", "A", "x-y", "rich-text", "a-b-c"]
PERL = {
    (False, 1, 9): "BLEU = 3.63, 44.0/9.2/2.0/0.6 (BP=0.757, ratio=0.782, hyp_len=309, ref_len=395)",
    (False, 1, 20): "BLEU = 3.35, 33.1/9.9/1.8/0.2 (BP=1.000, ratio=1.582, hyp_len=625, ref_len=395)",
    (False, 3, 9): "BLEU = 10.58, 81.6/27.3/5.6/1.9 (BP=0.851, ratio=0.861, hyp_len=309, ref_len=359)",
    (False, 3, 20): "BLEU = 10.61, 64.8/27.8/6.5/1.1 (BP=1.000, ratio=1.258, hyp_len=625, ref_len=497)",
    (True, 1, 9): "BLEU = 14.44, 48.4/26.3/16.2/5.5 (BP=0.788, ratio=0.808, hyp_len=589, ref_len=729)",
    (True, 1, 20): "BLEU = 15.65, 37.0/21.8/13.3/5.6 (BP=1.000, ratio=1.609, hyp_len=1173, ref_len=729)",
    (True, 3, 9): "BLEU = 35.94, 85.6/59.2/38.6/17.3 (BP=0.838, ratio=0.850, hyp_len=589, ref_len=693)",
    (True, 3, 20): "BLEU = 37.61, 68.6/49.2/32.7/18.1 (BP=1.000, ratio=1.224, hyp_len=1173, ref_len=958)",
}
"""Output of Moses' `multi-bleu.perl` for `corpus` of FEW_WORDS, by whether compounds are split as in `get_ende_bleu.sh`
(its rule run by perl), the number of references, and the longest hypothesis."""


def corpus(lines: int, seed: int, longest: int = 14, words: list[str] = WORDS) -> list[str]:
    generator = random.Random()
    generator.seed(seed)  # which REPRISE_TEST_SEED does not shift: PERL was printed for these texts
    return [" ".join(generator.choices(words, k=generator.randint(1, longest))) for _ in range(lines)]


def ngrams(line: str, order: int) -> Counter:
    words = line.split()
    return Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))


def translations(hypotheses: list[str], *references: list[str], **facts) -> Translations:
    """The same text as tokenised and as raw."""
    texts = Texts(hypotheses, list(references))
    return Translations(texts, texts, **facts)


def score(name: str, *lines: list[str], **facts) -> float:
    metric = metric_named(name)
    return float(metric.total(metric.statistics(translations(*lines, **facts)).sum(axis=0)))


@pytest.mark.parametrize("case", PERL)
def test_bleu_of_tokens_prints_what_multi_bleu_perl_printed(case):
    compound_split, references, longest = case
    texts = [corpus(60, seed, longest if seed == 0 else 14, FEW_WORDS) for seed in range(1 + references)]
    found = translations(*texts, compound_split=compound_split)
    for metric in map(metric_named, ["bleu_paper"] if compound_split else ["bleu_paper", "bleu_tok"]):
        counts = metric.statistics(found).sum(axis=0)
        length, expected, (matching, every) = *map(int, counts[:2]), counts[2:].reshape(2, 4)
        precisions = "/".join(f"{share:.1f}" for share in 100 * matching / every)
        penalty = min(1, math.exp(1 - expected / length))
        assert PERL[case] == (
            f"BLEU = {metric.total(counts):.2f}, {precisions} "
            f"(BP={penalty:.3f}, ratio={length / expected:.3f}, hyp_len={length}, ref_len={expected})"
        )


@pytest.mark.parametrize("smoothing", ["none", "exp"])
def test_vectorised_bleu_is_that_of_sacrebleu(smoothing):
    generator = np.random.default_rng(0)
    possible = generator.integers(0, 4, size=(300, 4)).cumsum(axis=1)[:, ::-1]
    matches = (possible * generator.random((300, 4)) ** 2).astype(int)
    lengths = np.stack([possible[:, 0], generator.integers(1, 15, size=300)], axis=1)
    ours = bleu(np.concatenate([lengths, matches, possible], axis=1), smoothing)
    theirs = [
        sacrebleu.BLEU.compute_bleu(m.tolist(), p.tolist(), int(c), int(r), smooth_method=smoothing).score
        for m, p, (c, r) in zip(matches, possible, lengths, strict=True)
    ]
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("name", ["sacrebleu", "bleu_paper", "bleu_closest"])
def test_sacrebleu_and_nist_with_one_reference_are_sacrebleu(name):
    hypotheses, reference, is_nist = corpus(50, 0), corpus(50, 1), name != "sacrebleu"
    recipe = {"lowercase": True, "smooth_method": "none"} if is_nist else {}
    theirs = sacrebleu.corpus_bleu(hypotheses, [reference], **recipe).score
    assert score(name, hypotheses, reference, nist=is_nist) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("a-b-c-d", "a ##AT##-##AT## b-c ##AT##-##AT## d"),  # matches don't overlap, as in the original
        ("die E-Mail- und", "die E ##AT##-##AT## Mail- und"),
        ("a - b -c d-", "a - b -c d-"),
        ("über-ängstlich", "über ##AT##-##AT## ängstlich"),
        ("10-€-Schein", "10 ##AT##-##AT## € ##AT##-##AT## Schein"),  # as perl prints, which reads bytes
        ("a\xa0-b", "a\xa0 ##AT##-##AT## b"),
        ("a--b", "a ##AT##-##AT## -b"),
    ],
)
def test_compounds_are_split_as_in_the_papers_script(line, expected):
    assert split_compounds(line) == expected


def test_the_shortest_reference_length_is_that_of_nist():
    primary, closest = map(metric_named, ("bleu_paper", "bleu_closest"))
    texts = translations(["a B c d e"], ["a b c d e f"], ["A b"], nist=True)
    assert primary.statistics(texts)[0, :3].tolist() == [5, 2, 5]
    assert closest.statistics(texts)[0, :3].tolist() == [5, 6, 5]
    assert "reflen:shortest" in primary.signature(texts) and "reflen" not in closest.signature(texts)


def test_a_hand_computed_case_of_nist():
    """Four references of 7, 5, 9 and 9 words, and six words to score, in another case and with the stop attached:

    the OOV cat sat down . | 1-grams: the cat sat down . (5 of 6); 2-grams: cat sat, sat down, down . (3 of 5);
    3-grams: cat sat down, sat down . (2 of 4); 4-grams: cat sat down . (1 of 3).
    The shortest reference has 5 words, so there is no penalty. Without it the shortest has 7: e^(1 - 7/6), and the
    matches are the cat sat down . (5), sat down, down . (2), sat down . (1).
    """
    hypothesis, references = "the <unk> cat sat down.", ["The big cat has sat down.", "The cat sat down."]
    references += ["A cat, big, sat on it.", "He said the cat was sitting over there."]
    metric, texts = metric_named("bleu_paper"), translations([hypothesis], *([line] for line in references), nist=True)
    counts = metric.statistics(texts)
    assert counts.tolist() == [[6, 5, 5, 3, 2, 1, 6, 5, 4, 3]]
    assert bleu(counts.sum(axis=0)) == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 / 3) ** 0.25)
    counts = metric.statistics(translations([hypothesis], [references[0]], [references[2]], nist=True))
    assert counts.tolist() == [[6, 7, 5, 2, 1, 0, 6, 5, 4, 3]]
    for part in ("nrefs:4", "case:lc", "tok:13a"):
        assert part in metric.signature(texts)
    shorter = np.array([6, 7, 5, 3, 2, 1, 6, 5, 4, 3])
    assert bleu(shorter) == pytest.approx(100 * math.exp(-1 / 6) * (5 / 6 * 3 / 5 * 2 / 4 / 3) ** 0.25)


def test_signatures_name_the_recipe():
    texts = translations(["a"], ["a"], compound_split=True)
    signatures = {metric.name: metric.signature(texts) for metric in metrics_of(texts) if "bleu" in metric.name}
    assert list(signatures) == ["bleu_paper", "bleu_tok", "bleu_tok_lc", "sacrebleu"]
    assert "compounds:split" in signatures["bleu_paper"]
    assert "case:lc" in signatures["bleu_tok_lc"]
    assert "tok:13a|smooth:exp|version:" in signatures["sacrebleu"]
    assert len(set(signatures.values())) == 4


CHRF = metric_named("chrf")


def lines(count: int, seed: int, longest: int) -> list[str]:
    """Random text, some lines too short for every order, some empty."""
    draw = random.Random(seed)
    words = (["".join(draw.choices("abcdeé我.", k=draw.randint(1, 7))) for _ in range(longest)] for _ in range(count))
    return [" ".join(line[: draw.randint(0, longest)]) for line in words]


@pytest.mark.parametrize("references", [1, 3])
@pytest.mark.parametrize("longest", [1, 12])
def test_chrf_equals_sacrebleu_with_its_signature(references, longest):
    hypotheses, *others = (lines(60, seed, longest) for seed in range(1 + references))
    texts, theirs = translations(hypotheses, *others), sacrebleu.CHRF()
    rows = CHRF.statistics(texts)
    assert rows.shape == (60, 18)
    expected = theirs.corpus_score(hypotheses, others).score
    assert CHRF.total(rows.sum(axis=0)) == pytest.approx(expected, abs=1e-9)
    assert CHRF.signature(texts) == f"text:raw|beta:2|{theirs.get_signature()}"


def test_many_corpora_at_once_have_the_scores_of_each():
    hypotheses, reference = lines(40, 3, 8), lines(40, 4, 8)
    chosen = np.random.default_rng(0).integers(40, size=(25, 10))
    totals = CHRF.statistics(translations(hypotheses, reference))[chosen].sum(axis=1)
    parts = [([hypotheses[i] for i in part], [[reference[i] for i in part]]) for part in chosen]
    expected = [sacrebleu.corpus_chrf(*part).score for part in parts]
    np.testing.assert_allclose(CHRF.total(totals), expected, atol=1e-9)


@pytest.mark.parametrize(("case", "recipes"), [("mixed", 3), ("lc", 2)])
def test_metrics_of_one_recipe_count_ngrams_once(monkeypatch, case, recipes):
    """Tokens in the corpus's case, tokens in lower case unless that is the corpus's case, and raw text."""
    texts, counted, count = translations(corpus(5, 1), corpus(5, 2), case=case), [], BLEU._extract_corpus_statistics
    monkeypatch.setattr(BLEU, "_extract_corpus_statistics", lambda *args: counted.append(args) or count(*args))
    found = {metric.name: metric.statistics(texts) for metric in metrics_of(texts) if metric.name != "chrf"}
    assert len(counted) == recipes and len(found) == 5
    assert (found["bleu_paper"] == found["bleu_tok"]).all()


def test_gleu_agrees_with_its_definition_on_a_random_corpus():
    hypotheses, reference = corpus(60, 0), corpus(60, 1)
    matches = larger = 0
    for hypothesis, other in zip(hypotheses, reference, strict=True):
        ours, theirs = ({n: ngrams(line, n) for n in range(1, 5)} for line in (hypothesis, other))
        matches += sum((ours[n] & theirs[n]).total() for n in ours)
        larger += max(sum(c.total() for c in ours.values()), sum(c.total() for c in theirs.values()))
    assert score("gleu", hypotheses, reference) == pytest.approx(100 * matches / larger)
