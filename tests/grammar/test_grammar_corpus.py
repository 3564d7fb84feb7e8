"""The generated corpus is reproducible, split without overlap, aligned, and has the declared sizes."""

import json
import re
from collections import Counter
from itertools import accumulate, chain, islice
from pathlib import Path
from random import Random

import pytest
import yaml
from grammar_sentences import generate

from pipeline.__main__ import main
from pipeline.core.digests import digest_of
from pipeline.core.errors import UserError
from pipeline.core.yaml_file import load_yaml
from pipeline.data.dataset import load_dataset
from pipeline.grammar import new_items
from pipeline.grammar.corpus import LANGUAGES, LONGEST, PUNCTUATION, SHORTEST
from pipeline.grammar.english import tokens
from pipeline.grammar.lexicon import ADJECTIVES, NOUNS, VERBS
from pipeline.grammar.splits import endless_chains, write_splits

DATASETS = Path(__file__).parents[2] / "workflow/datasets"
SIZES = {"train": 600, "dev": 100, "test": 200}


@pytest.fixture(scope="module")
def film():
    return generate("film", 1800, seed=7, held_out=True)


@pytest.fixture(scope="module")
def search():
    return generate("search", 1200, seed=7, held_out=True)


@pytest.fixture(scope="module")
def chains():
    every = (islice(endless_chains(domain, Random(7), True, 50), 100) for domain in ("film", "search"))
    return list(chain.from_iterable(every))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_splits(folder, LANGUAGES, SIZES, "film", seed=3)
    return folder


def lines(path):
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


DIGESTS = {
    "film": "48887be7ebf6153938f04367fe4544b47ab15c037b18aa4fd65ecb0ebde52c4e",
    "search": "b835e433e8fc9aeeeae3bfa6306f4cd063905f385a0dc97614cee521f3c83a4e",
}
"""If the grammar changes on purpose, measure docs/measured/demo again and update the digests.

Each run of the tests has another seed of Python's hashes, so that sentences that depend on them have other digests.
"""


@pytest.mark.parametrize("domain", DIGESTS)
def test_corpus_of_a_seed_is_the_one_that_was_measured(tmp_path, domain):
    sizes = {"train": 700, "dev": 50, "test": 200, "test2": 20}
    write_splits(tmp_path, LANGUAGES, sizes, domain, seed=3, chained={"test2": 45})
    assert digest_of(tmp_path) == DIGESTS[domain]


@pytest.mark.parametrize("domain", ["film", "search"])
def test_no_sentence_recurs_in_any_language(domain, request):
    sentences = request.getfixturevalue(domain)
    for language in LANGUAGES:
        assert len({sentence.text(language) for sentence in sentences}) == len(sentences)


def test_tree_is_balanced_and_yields_the_english_tokens(film, search, chains):
    for sentence in [*film, *search, *chains]:
        depths = list(accumulate({"(": 1, ")": -1}.get(character, 0) for character in sentence.tree))
        assert min(depths[:-1]) > 0 and depths[-1] == 0
        assert sentence.tree.startswith("(TOP (") and not re.search(r"\(\)|\( |\([^ ()]*\)|  ", sentence.tree)
        assert tokens(sentence.tree) == re.findall(r"[^\s.,?]+|[.,?]", sentence.en)


def test_lengths_range_from_three_to_forty_words(film):
    lengths = [sum(word not in PUNCTUATION for word in tokens(sentence.tree)) for sentence in film]
    assert SHORTEST <= min(lengths) <= 4 and 30 <= max(lengths) <= LONGEST
    assert 10 < sum(lengths) / len(lengths) < 16


def test_names_are_copied_into_every_language(film, search, chains):
    for sentence in [*film, *search, *chains]:
        for name in sentence.phenomena["names"]:
            for language in LANGUAGES:
                assert name["text"] in sentence.text(language)


def test_idioms_and_senses_stand_in_the_translations(film):
    for sentence in film:
        for idiom in sentence.phenomena["idioms"]:
            assert idiom["de"] in sentence.de
            assert idiom["fr"].replace(" ", "") in sentence.fr.replace(" ", "")
            assert all(piece in sentence.zh for piece in idiom["zh"])


def test_german_verb_final_clauses_end_with_their_verb(film):
    """Punctuation, a conjunction, another clause or the frame's own verb follows a clause-final verb."""
    for sentence in film:
        for words in sentence.phenomena["verb_final"]:
            assert re.search(rf"(^|\s){re.escape(words)}[,.?]", sentence.de), (words, sentence.de)


def test_query_and_film_domains_look_different(film, search):
    assert all(sentence.en == sentence.en.lower() and not re.search(r"[.,?]", sentence.en) for sentence in search)
    assert all(sentence.en[0].isupper() and sentence.en[-1] in ".?" for sentence in film)
    assert all(sentence.de[-1] in ".?" and sentence.zh[-1] in "。？" for sentence in film)


def test_chinese_words_are_a_segmentation_of_the_text(film, search, chains):
    for sentence in [*film, *search, *chains]:
        assert "".join(sentence.zh_words).replace(" ", "") == sentence.zh.replace(" ", "")
        assert len(sentence.zh_words) > 1


def test_every_phenomenon_is_frequent_enough_to_be_tested(film):
    counts = Counter(kind for sentence in film for kind in sentence.phenomena["kinds"])
    kinds = "name unseen_name idiom sense verb_final relative_clause adjective negation coreference question modal "
    kinds += "infinitive complement_clause coordination genitive unseen_combination"
    assert {kind: counts[kind] for kind in kinds.split() if counts[kind] < 15} == {}


def test_chain_has_no_more_sentences_than_its_length_needs(chains):
    for sentence in chains:
        length = sum(word not in PUNCTUATION for word in tokens(sentence.tree))
        assert sentence.phenomena["length"] == length
        assert 50 <= length < 50 + LONGEST + 1
        joints = {"en": " and ", "de": " und ", "fr": " et ", "zh": "和"}
        if sentence.phenomena["domain"] == "search":
            assert all(joint in sentence.text(language) for language, joint in joints.items())


@pytest.mark.parametrize("name", ["grammar-en-de", "grammar-smoke-en-de"])
def test_chained_split_is_longer_than_training_sentences(tmp_path, name):
    wanted, seed = load_dataset(DATASETS / f"{name}.yaml").generator, Random(11).randrange(1 << 30)
    sizes = {"train": 700, "test2": 20}
    write_splits(tmp_path, ["en", "de"], sizes, wanted.domain, seed, wanted.chained)
    lengths = {
        split: [json.loads(line)["length"] for line in lines(tmp_path / f"{split}.phenomena.jsonl")] for split in sizes
    }
    assert len(lengths["test2"]) == 20
    assert min(lengths["test2"]) >= wanted.chained["test2"] > max(lengths["train"])


def test_splits_are_aligned_and_disjoint_in_every_language(corpus):
    for language in LANGUAGES:
        texts = {split: lines(corpus / "raw" / f"{split}.{language}") for split in SIZES}
        assert {split: len(text) for split, text in texts.items()} == SIZES
        assert len(set().union(*texts.values())) == sum(SIZES.values())
    for split, size in SIZES.items():
        trees = lines(corpus / f"{split}.trees")
        records = [json.loads(line) for line in lines(corpus / f"{split}.phenomena.jsonl")]
        assert [record["line"] for record in records] == list(range(size))
        assert [record["tree"] for record in records] == trees


def test_unseen_names_and_combinations_are_only_in_test(corpus):
    known = {split: set(re.findall(r"\w+", (corpus / f"raw/{split}.en").read_text())) for split in ("train", "dev")}
    records = [json.loads(line) for line in lines(corpus / "test.phenomena.jsonl")]
    unseen = [name["text"] for record in records for name in record["names"] if name["unseen"]]
    assert unseen and all(not set(name.split()) <= known["train"] | known["dev"] for name in unseen)
    for split in known:
        for record in map(json.loads, lines(corpus / f"{split}.phenomena.jsonl")):
            assert not record["combinations"] and not any(name["unseen"] for name in record["names"])


def test_sentences_are_independent_of_languages_and_other_splits(corpus, tmp_path):
    sizes = SIZES | {"train": 10}
    write_splits(tmp_path, ["de"], sizes | {"test2": 30}, "film", 3, {"test2": 45})
    for split, size in sizes.items():
        assert lines(tmp_path / f"raw/{split}.de") == lines(corpus / f"raw/{split}.de")[:size]
    assert len(set(lines(tmp_path / "raw/test2.de"))) == 30
    assert sorted(path.name for path in (tmp_path / "raw").iterdir()) == ["dev.de", "test.de", "test2.de", "train.de"]


@pytest.mark.parametrize(("split", "size"), [("dev", 10**9), ("train", 5000)])
def test_more_sentences_than_exist_end_in_one_error(tmp_path, monkeypatch, capsys, split, size):
    """The grammar counts as exhausted at its first repeat here. What the error allows can be written."""
    monkeypatch.setattr(new_items, "MOST_REPEATS", 1)
    record = load_yaml(DATASETS / "grammar-smoke-zh-en.yaml")
    sizes = dict.fromkeys(record["generator"]["sizes"], 1)

    def generated(size: int) -> int:
        record["generator"] = {"domain": "search", "sizes": sizes | {split: size}, "seed": 1}
        (tmp_path / "toy.yaml").write_text(yaml.safe_dump(record))
        return main(["generate", "--dataset", str(tmp_path / "toy.yaml"), "--corpus", str(tmp_path)])

    assert generated(size) == 1
    asked = (
        f"error: {tmp_path}/toy.yaml: generator.sizes.{split}: asks for {size}, but the grammar has hardly more than "
    )
    rest = capsys.readouterr().err.removeprefix(asked)
    allowed = int(re.fullmatch(r"(\d+) sentences for it; write at most \1\n", rest)[1])
    assert generated(allowed) == 0
    for language in ("zh", "en"):
        assert len(lines(tmp_path / f"raw/{split}.{language}")) == allowed > 1
    assert generated(allowed + 1) == 1


@pytest.mark.parametrize("frame", ["subjects", "objects"])
def test_every_verb_has_nouns_to_go_with(frame):
    known = set().union(*(noun.classes for noun in NOUNS))
    assert [verb.key for verb in VERBS if not set(getattr(verb, frame)) <= known] == []
    assert len(NOUNS) + len(ADJECTIVES) + len(VERBS) > 350


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tgt": "xx"}, r"tgt: .*'en', 'de', 'fr' or 'zh'"),
        ({"generator": {"sizes": {"valid": 1}}}, r"generator\.sizes\.valid"),
        ({"generator": {"sizes": {"train": 0}}}, r"generator\.sizes\.train: .*greater than or equal to 1"),
        ({"generator": {"domain": "news"}}, r"generator\.domain: .*'film' or 'search'"),
        ({"generator": {"chained": {"test3": 50}}}, "chained: split test3 has no size"),
    ],
)
def test_dataset_with_unknown_grammar_parts_is_refused(tmp_path, change, message):
    record = load_yaml(DATASETS / "grammar-en-de.yaml")
    record |= change | {"generator": record["generator"] | change.get("generator", {})}
    path = tmp_path / "grammar-en-de.yaml"
    path.write_text(json.dumps(record))
    with pytest.raises(UserError, match=message):
        load_dataset(path)
