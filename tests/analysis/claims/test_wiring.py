"""Systems, splits, decodings and pools that claims read; a swap of two of them has to be noticed.

Every split, decoding and system here has its own score, so that a number shows where it was read.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from fabricated import bleu_statistics, write_score
from made_claims import DATA, SCORES, claims_of, order, runs

from pipeline.analysis.claims import Claims
from pipeline.analysis.claims.measurements import Measurements, NoisePools
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView, Term
from pipeline.core.schema import validate
from pipeline.metrics.bleu import bleu

SPLITS, DECODINGS, SYSTEMS = ("dev", "test"), ("final", "uniform"), ("A", "C", "N4")
CELLS = list(itertools.product(SYSTEMS, SPLITS, DECODINGS))
A, C = ("A", DATA), ("C", DATA)
PAIR = {"dataset": DATA, "system": "A", "baseline": "C"}
SCORED = {"system": "A", "baseline": "C"}
BRANCHES = {"dataset": DATA, "system": "A", "layer": 1, "quantity": "spread", "at_least": 1}
GATES = {"dataset": DATA, "system": "A", "channel": "emb", "words": ["names", "idioms"], "direction": "rising"}
SYSTEMS_OF_KINDS = [
    # kind and fields; systems at their plateau for a fair comparison; and before a contradiction
    ({"kind": "order", "score": "bleu", "ascending": ["C", "A"]}, [C], [A]),
    ({"kind": "order", "score": "ppl", "ascending": ["A", "C"]}, [C], [A]),
    ({"kind": "order", "score": "bleu", "ascending": ["C", "A"], "equal_budgets": True}, [], []),
    ({"kind": "order", "score": "bleu", "ascending": [{"system": "A", "decodings": ["uniform"]}, "A"]}, [], [A]),
    ({"kind": "close", "score": "bleu", "terms": ["A", "C"], "margin": 1}, [A, C], []),
    ({"kind": "level", "score": "bleu", "term": "A", "at_least": 1}, [], [A]),
    ({"kind": "level", "score": "bleu", "term": "A", "at_most": 1}, [A], []),
    ({"kind": "level", "score": "ppl", "term": "A", "at_least": 1}, [A], []),
    ({"kind": "level", "score": "ppl", "term": "A", "at_most": 1}, [], [A]),
    ({"kind": "ratio", "score": "ppl", "smaller": ["A", "C"], "larger": ["C", "A"]}, [A, C, C, A], []),
    ({"kind": "agreement", "scores": ["bleu", "gleu"], "pairs": [["A", "C"]]}, [], []),
    ({"kind": "long_sentences", "score": "bleu", "longer_than": 9, **SCORED}, [C], [A]),
    ({"kind": "curves", **PAIR}, [C], [A]),
    ({"kind": "equal_time", **PAIR}, [], []),
    ({"kind": "alignment", **PAIR}, [], []),
    ({"kind": "steps", "share": 0.5, **PAIR}, [C], []),
    ({"kind": "own_plateaus", "share": 0.5, **PAIR}, [A, C], []),
    ({"kind": "training_loss", "dataset": DATA, "ascending": ["A", "C"]}, [C], [A]),
    ({"kind": "branches", **BRANCHES}, [], [A]),
    ({"kind": "branches", **BRANCHES, "at_most": 2}, [A], [A]),
    ({"kind": "branches", **BRANCHES, "quantity": "smallest_share"}, [A], [A]),
    ({"kind": "gate_values", **GATES}, [], [A]),
]


def precision_of(cell) -> float:
    """A share of matching n-grams that no other cell has."""
    return 0.35 + 0.03 * CELLS.index(cell)


@pytest.fixture
def project(project_with):
    """A project of three seeds in which every system, split and decoding has another BLEU."""
    built = project_with(order("bleu"), seeds=3)
    for system, split, decoding in CELLS:
        for run in runs(built, system):
            rows = bleu_statistics(precision_of((system, split, decoding)), run.seed)
            write_score(built, run, "bleu_paper", decoding, split, rows)
    return built


def expected_score(cell) -> float:
    return float(np.mean([bleu(bleu_statistics(precision_of(cell), seed).sum(axis=0)) for seed in (1, 2, 3)]))


def measured_by(project, systems=()):
    view = PaperView(project, "weighted")
    scores = validate(Claims, {"scores": SCORES, "claims": {}}, "claims").scores
    return Measurements(RunFolders(view), scores, NoisePools(view, systems))


def test_sample_reads_its_own_system_split_and_decoding(project):
    """Its noise is that of the same scores."""
    measured = measured_by(project)
    for cell in CELLS:
        system, split, decoding = cell
        score = measured.scores["bleu"].model_copy(update={"split": split, "decoding": decoding})
        chosen = measured.scores["bleu"].model_copy(update={"split": split})
        term = Term(system=system, decodings=[decoding])
        for sample in (measured.sample(term, chosen), measured.sample(Term(system=system), score)):
            (pool,) = sample.pool
            assert [sample.mean, pool.mean()] == pytest.approx([expected_score(cell)] * 2)


def pool_of(measured):
    """Return the mean of each group of C's pool: all seeds of one system under the claim's split and decoding."""
    pool = measured.sample(Term(system="C"), measured.scores["bleu"]).pool
    return sorted(float(group.mean()) for group in pool)


def test_pool_is_of_the_systems_that_claims_name(project):
    every = sorted(expected_score((system, "dev", "final")) for system in SYSTEMS)
    assert pool_of(measured_by(project, ("A", "N4"))) == pytest.approx(every)
    assert pool_of(measured_by(project)) == pytest.approx([expected_score(("C", "dev", "final"))])


def test_pool_counts_systems_that_continue_one_training_once(project, monkeypatch):
    monkeypatch.setattr(type(project), "origin", lambda self, run: replace(run, system=run.system.replace("N4", "A")))
    others = sorted(expected_score((system, "dev", "final")) for system in ("A", "C"))
    assert pool_of(measured_by(project, SYSTEMS)) == pytest.approx(others)


def test_pool_takes_the_system_with_most_seeds_of_one_training(project, monkeypatch):
    monkeypatch.setattr(type(project), "origin", lambda self, run: replace(run, system=run.system.replace("N4", "A")))
    values = {"A": [1.0, 2.0], "C": [3.0], "N4": [4.0, 5.0, 6.0]}
    groups, _ = measured_by(project, SYSTEMS).pools.pool("C", DATA, "loss", values.__getitem__, "")
    assert sorted(map(list, groups)) == [values["C"], values["N4"]]


@pytest.mark.parametrize("shared", ["family", "corpus"])
def test_pool_leaves_out_other_families_and_other_data(project, monkeypatch, shared):
    real = getattr(NoisePools, shared)
    other = {"A": "another", "N4": "a third"}
    monkeypatch.setattr(NoisePools, shared, lambda pools, system, data: other.get(system) or real(pools, system, data))
    found = pool_of(measured_by(project, SYSTEMS))
    assert found == pytest.approx([expected_score(("C", "dev", "final"))])


@pytest.mark.parametrize(("fields", "baselines", "winners"), SYSTEMS_OF_KINDS)
def test_kind_names_baselines_and_expected_winner(fields, baselines, winners):
    record = validate(Claims, claims_of(**fields), "claims")
    claim = record.claims["one"]
    assert claim.baselines(record.scores) == baselines
    assert claim.expected_winner(record.scores) == winners
