"""Two domains of speech are compared before anything is trained: hand-made ones fail each gate by its own fault."""

import math
import random
import re

import pytest
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError
from pipeline.data.dataset import DomainGap
from pipeline.data.speech.collect_text import keywords
from pipeline.data.text.vocabulary import IDS, Alphabet
from pipeline.models.language_model.model import Ngram
from pipeline.models.settings import BOS, EOS
from pipeline.planning.check_data import check_gaps
from pipeline.planning.domain_gap import (
    ORDER,
    encoded,
    evenly_spaced,
    faults_of_positions,
    faults_of_text,
    perplexity,
    unknown_words,
)

GAP = DomainGap(source="source", unknown_words=0.05, perplexity_ratio=(1.5, 2), characters_a_position=0.7)
SUBJECTS = ["the king", "a tall nurse", "every baker", "his uncle", "some women", "the old captain", "my sister"]
VERBS = ["will never sell", "had found", "wants to keep", "often paints", "may have lost", "is looking for"]
OBJECTS = ["the green car", "an apple", "those letters", "her best coat", "two horses", "this expensive lamp"]


def told(rng):
    return f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)}"


def listed(rng):
    return keywords(told(rng), rng)


def foreign(rng):
    return told(rng).translate(str.maketrans("aeioudnrst", "ioueatsdnr"))


def domain(*kinds, lines=600, seed=1):
    """Lines of several kinds in turn."""
    rng = random.Random(f"{kinds[0].__name__}/{seed}")
    return {
        split: [kinds[i % len(kinds)](rng) for i in range(size)] for split, size in (("train", lines), ("test", 60))
    }


def test_ngram_perplexity_is_the_inverse_geometric_mean():
    model = Ngram(ORDER, len(Alphabet()), encoded(["abc", "abd"]))
    symbols = [BOS] * (ORDER - 1) + [IDS[character] for character in "abd"] + [EOS]
    found = [math.exp(model.log_probs(tuple(symbols[i : i + ORDER - 1]))[symbols[i + ORDER - 1]]) for i in range(4)]
    assert perplexity(model, encoded(["abd"])) == pytest.approx(math.prod(found) ** (-1 / 4))


def test_unknown_words_are_counted_by_token():
    assert unknown_words(["a cat", "the dog"], ["a cow", "a cow the dog"]) == 2 / 6


def test_the_same_words_in_no_order_pass():
    said, faults = faults_of_text(GAP, domain(listed, foreign), domain(told))
    assert not faults and said.startswith("0.0% of its words unknown to source, perplexity 1.")


def times(source, target):
    """Return the logged factor by which the perplexity is higher, and the faults."""
    said, faults = faults_of_text(GAP, source, target)
    (found,) = re.findall(r"[\d.]+ times", said)
    return found, faults


def test_domain_gap_fails_on_unknown_words_and_on_perplexity():
    _, faults = faults_of_text(GAP, domain(foreign), domain(told))
    assert len(faults) == 2 and "are unknown to source, more than 5%" in faults[0]


def test_one_domain_twice_fails_by_its_perplexity_alone():
    found, (fault,) = times(domain(told, seed=2), domain(told))
    assert f"{found} as high under source's model as under its own, not 1.5 to 2 times" in fault


def test_both_models_learn_from_as_many_lines_from_all_over_each():
    many, target = domain(listed, foreign, lines=3000), domain(told, lines=300)
    every_tenth = many | {"train": many["train"][::10]}
    assert times(many, target)[0] == times(every_tenth, target)[0]
    assert evenly_spaced("abcdef", 3) == ["a", "c", "e"] and evenly_spaced("abc", 3) == ["a", "b", "c"]


def toy_project(tmp_path, scale="demo"):
    return real_project({"scale": scale, "work": str(tmp_path), "mirror": None})


@pytest.mark.parametrize("dataset", ["grammar-speech-source", "grammar-speech-target"])
def test_too_many_characters_a_position_is_a_fault(tmp_path, dataset):
    project = toy_project(tmp_path)
    run = RunId("coldfusion", "attention-source", dataset, 1)
    assert not faults_of_positions(project, GAP, [run])
    strict = GAP.model_copy(update={"characters_a_position": 0.3})
    (fault,) = faults_of_positions(project, strict, [run, run])
    assert fault.startswith(f"{dataset} has 0.") and "per encoder position of 40 ms, more than 0.3" in fault


def test_other_models_have_no_encoder_positions_to_count(tmp_path):
    run = RunId("coldfusion", "ctc", "grammar-speech-source", 1)
    assert not faults_of_positions(toy_project(tmp_path), GAP.model_copy(update={"characters_a_position": 0.01}), [run])


def with_record(project, name, **changes):
    """Change a dataset of a project."""
    record = project.dataset_records[name].model_copy(update=changes)
    project.__dict__["dataset_records"] = project.dataset_records | {name: record}


def test_a_source_that_is_no_dataset_is_named(tmp_path):
    project, name = toy_project(tmp_path), "grammar-speech-target"
    gap = project.dataset_records[name].gap.model_copy(update={"source": "grammar-speach-source"})
    with_record(project, name, gap=gap)
    with pytest.raises(UserError, match=r"grammar-speech-target\.yaml: gap\.source: .*'grammar-speach-source'"):
        check_gaps(project, [name], [])


def test_a_gap_whose_files_are_not_here_is_not_measured(tmp_path, caplog):
    caplog.set_level("INFO")
    project = toy_project(tmp_path, "small")
    records = project.dataset_records.items()
    name = next(name for name, record in records if getattr(record, "gap", None) and record.sources)
    check_gaps(project, [name], [])
    assert "can be compared with" in caplog.text


@pytest.mark.slow
def test_domain_gap_passes_the_demo_and_fails_queries_alone(tmp_path):
    project, name = toy_project(tmp_path), "grammar-speech-source"
    check_gaps(project, ["grammar-speech-target"], [RunId("coldfusion", "CF4", name, 1)])
    with_record(project, name, text=project.dataset_records[name].text.model_copy(update={"domains": ["search"]}))
    with pytest.raises(UserError, match=r"`gap` does not hold: 5\d\.\d% of its words are unknown"):
        check_gaps(project, ["grammar-speech-target"], [])
