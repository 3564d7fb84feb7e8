"""Verdicts follow from scores: made-up ones bring out every verdict of every kind of claim."""

import csv
import itertools

import numpy as np
import pytest
import yaml
from fabricated import (
    bleu_statistics,
    folder_of,
    perplexity_statistics,
    write_branches,
    write_score,
    write_training,
)
from made_records import data_loss, layer_costs, start_cost, training_cost, validation_line

from pipeline.__main__ import main
from pipeline.config import load_run
from pipeline.data.token_store import write_tokens
from pipeline.errors import UserError
from pipeline.evaluation.gleu import gleu_statistics
from pipeline.probes.layer_cost import KERNEL, WINDOW
from pipeline.reporting.claims import claim_rows

UPHELD, UNCLEAR, CONTRADICTED, NOT_RUN = "upheld", "not distinguishable", "contradicted", "not run"
DATA = "wmt14-en-de"
SCORES = {
    "ppl": {"metric": "perplexity", "dataset": DATA, "split": "dev", "decoding": "final"},
    "bleu": {"metric": "bleu_paper", "dataset": DATA, "split": "dev", "decoding": "final"},
    "gleu": {"metric": "gleu", "dataset": DATA, "split": "dev", "decoding": "final"},
}


def claims_of(**claim):
    return {"scores": SCORES, "claims": {"one": {"statement": "It is so.", "printed": "Table 9", **claim}}}


def runs(project, system):
    return project.runs_of("weighted", system, DATA)


def row_of(project):
    (row,) = claim_rows(project, "weighted")
    return row


def put_perplexities(project, **nll):
    for system, value in nll.items():
        for run in runs(project, system):
            write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(value, run.seed))


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1.0, 1.2, 1.5), UPHELD), ((1.0, 1.5, 1.2), CONTRADICTED), ((1.0, 1.2, 1.205), UNCLEAR)],
)
def test_a_chain_holds_when_every_step_does(project_with, values, expected):
    project = project_with(claims_of(kind="order", score="ppl", ascending=["A", "N4", "C"]))
    put_perplexities(project, **dict(zip(("A", "N4", "C"), values, strict=True)))
    row = row_of(project)
    assert row["verdict"] == expected
    assert row["ours"].startswith(f"A {np.exp(1.0):.2f}")
    assert "paired bootstrap over batches" in row["test"]
    assert (float(row["p_value"]) < 0.025) == (expected == UPHELD)


def test_without_one_of_its_runs_a_claim_is_not_run_and_shows_no_number(project_with):
    project = project_with(claims_of(kind="order", score="ppl", ascending=["A", "C"]))
    put_perplexities(project, A=1.0)
    row = row_of(project)
    assert (row["verdict"], row["ours"], row["p_value"]) == (NOT_RUN, "", "")
    assert "weighted/C/" in row["evidence"]


def test_a_claim_for_other_scales_is_not_run(project_with):
    project = project_with(claims_of(kind="order", score="ppl", ascending=["A", "C"], scales=["paper"]))
    put_perplexities(project, A=1.0, C=2.0)
    assert row_of(project)["verdict"] == NOT_RUN
    assert project.claim_files("weighted") == []


@pytest.mark.parametrize(("second", "expected"), [(0.6, UPHELD), (0.605, UPHELD), (0.5, CONTRADICTED)])
def test_no_worse_by_a_margin_is_less_than_better(project_with, second, expected):
    """A margin of 4 BLEU: equal systems are told to be no worse, though none is better."""
    project = project_with(claims_of(kind="order", score="bleu", ascending=["A", "C"], margin=4))
    for system, precision in (("A", 0.6), ("C", second)):
        write_score(project, runs(project, system)[0], "bleu_paper", "final", "dev", bleu_statistics(precision, 1))
    assert row_of(project)["verdict"] == expected


@pytest.mark.parametrize(("second", "expected"), [(0.601, UPHELD), (0.45, CONTRADICTED), (0.64, UNCLEAR)])
def test_values_are_close_when_the_interval_lies_within_the_margin(project_with, second, expected):
    project = project_with(claims_of(kind="close", score="bleu", terms=["A", "C"], margin=4))
    for system, precision in (("A", 0.6), ("C", second)):
        write_score(project, runs(project, system)[0], "bleu_paper", "final", "dev", bleu_statistics(precision, 2))
    assert row_of(project)["verdict"] == expected


@pytest.mark.parametrize(("bound", "expected"), [(2.5, UPHELD), (2.9, CONTRADICTED), (np.e, UNCLEAR)])
def test_a_level_is_reached_or_not(project_with, bound, expected):
    project = project_with(claims_of(kind="level", score="ppl", term="A", at_least=float(bound)))
    put_perplexities(project, A=1.0)
    assert row_of(project)["verdict"] == expected


def test_several_decodings_are_averaged(project_with):
    terms = [{"system": "C", "decodings": ["random-1", "random-2"]}, {"system": "C", "decodings": ["uniform"]}, "C"]
    project = project_with(claims_of(kind="order", score="bleu", ascending=terms))
    (run,) = runs(project, "C")
    for name, precision in (("random-1", 0.3), ("random-2", 0.5), ("uniform", 0.6), ("final", 0.7)):
        write_score(project, run, "bleu_paper", name, "dev", bleu_statistics(precision))
    row = row_of(project)
    assert row["verdict"] == UPHELD
    assert row["ours"].count("random-1") == 1


@pytest.mark.parametrize(("spread", "expected"), [(0.01, UPHELD), (0.2, UNCLEAR)])
def test_noise_between_seeds_counts(project_with, spread, expected):
    """The same mean difference is or is not told apart by how much the seeds differ."""
    project = project_with(claims_of(kind="order", score="ppl", ascending=["A", "C"]), seeds=3)
    for system, mean in (("A", 1.0), ("C", 1.15)):
        for run, shift in zip(runs(project, system), (-spread, 0, spread), strict=True):
            shift = shift if system == "C" else 0
            write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(mean + shift, run.seed))
    row = row_of(project)
    assert row["verdict"] == expected
    assert row["test"].endswith("t over 3 seeds")


@pytest.mark.parametrize(
    ("values", "expected"),
    [((0.6, 0.5), UPHELD), ((0.55, 0.5499), UNCLEAR), ((0.5, 0.6), CONTRADICTED)],
)
def test_two_metrics_agree_where_the_first_tells_systems_apart(project_with, values, expected):
    """GLEU is made to prefer the first system; BLEU to prefer it, to be undecided, and to prefer the second."""
    project = project_with(claims_of(kind="agreement", scores=["bleu", "gleu"], pairs=[["A", "C"]]))
    for system, precision, other in (("A", values[0], 0.6), ("C", values[1], 0.5)):
        (run,) = runs(project, system)
        write_score(project, run, "bleu_paper", "final", "dev", bleu_statistics(precision, 5))
        write_score(project, run, "gleu", "final", "dev", gleu_statistics(bleu_statistics(other, 5)))
    assert row_of(project)["verdict"] == expected


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize(("losses", "expected"), [((1.0, 1.2), UPHELD), ((1.2, 1.0), CONTRADICTED)])
def test_training_losses_are_compared_by_seed(project_with, losses, expected, seeds):
    project = project_with(claims_of(kind="training_loss", dataset=DATA, ascending=["A", "C"]), seeds=seeds)
    for system, loss in zip(("A", "C"), losses, strict=True):
        for run in runs(project, system):
            write_training(project, run, [2.0], [loss + 0.01 * run.seed])
    assert row_of(project)["verdict"] == expected


def test_trainings_whose_fit_was_not_measured_do_not_count_as_run(project_with):
    project = project_with(claims_of(kind="training_loss", dataset=DATA, ascending=["A", "C"]))
    for system in ("A", "C"):
        write_training(project, runs(project, system)[0], [2.0], [1.0])
    log = folder_of(project, runs(project, "C")[0]) / "progress.jsonl"
    log.write_text(validation_line(step=100, dev=data_loss(2.0)).line())
    row = row_of(project)
    assert (row["verdict"], "--restart" in row["evidence"]) == (NOT_RUN, True)


def test_losses_of_single_trainings_that_hardly_differ_are_not_told_apart(project_with):
    project = project_with(claims_of(kind="training_loss", dataset=DATA, ascending=["A", "C"]))
    for system, loss in (("A", 1.0), ("C", 1.009)):
        write_training(project, runs(project, system)[0], [2.0], [loss])
    assert row_of(project)["verdict"] == UNCLEAR


@pytest.mark.parametrize("claim", [{"kind": "order", "ascending": ["A", "C"]}, {"kind": "close", "terms": ["A", "C"]}])
def test_systems_that_score_nothing_uphold_nothing(project_with, claim):
    project = project_with(claims_of(score="bleu", margin=1, **claim))
    for system in ("A", "C"):
        write_score(project, runs(project, system)[0], "bleu_paper", "final", "dev", bleu_statistics(-1.0))
    row = row_of(project)
    assert (row["verdict"], row["ours"]) == (UNCLEAR, "A 0.00, C 0.00: nothing was learned")


@pytest.mark.parametrize(
    ("dev", "expected", "ours"),
    [
        ([3.0, 2.0, 1.5], UPHELD, "after 20% of its steps"),
        ([4.0, 3.5, 3.0], CONTRADICTED, "not reached"),
        ([4.0, 3.0, 2.0], UNCLEAR, "after 30% of its steps"),
    ],
)
def test_a_loss_is_reached_within_a_share_of_the_steps(project_with, dev, expected, ours):
    """The baseline ends at 2.0 after 1000 updates; 30 % of them are allowed."""
    project = project_with(claims_of(kind="steps", dataset=DATA, system="C", baseline="A", share=0.3))
    write_training(project, runs(project, "A")[0], np.linspace(4.0, 2.0, 10).tolist(), [1.0] * 10)
    write_training(project, runs(project, "C")[0], dev, [1.0] * 3)
    row = row_of(project)
    assert row["verdict"] == expected
    assert ours in row["ours"]


def test_steps_cannot_be_counted_without_a_validation_in_time(project_with):
    project = project_with(claims_of(kind="steps", dataset=DATA, system="C", baseline="A", share=0.3))
    for system in ("A", "C"):
        write_training(project, runs(project, system)[0], [2.0], [1.0])
    assert row_of(project)["verdict"] == NOT_RUN


@pytest.mark.parametrize(("shift", "expected"), [(-0.2, UPHELD), (0.2, CONTRADICTED), (None, UNCLEAR)])
def test_curves_are_compared_at_equal_training_loss(project_with, shift, expected):
    project = project_with(claims_of(kind="curves", dataset=DATA, system="C", baseline="A"))
    train = np.array([5.0, 4.0, 3.0, 2.0])
    write_training(project, runs(project, "A")[0], (0.5 * train + 2).tolist(), train.tolist())
    other = train - 0.5 if shift is not None else train + 10
    write_training(project, runs(project, "C")[0], (0.5 * other + 2 + (shift or 0)).tolist(), other.tolist())
    row = row_of(project)
    assert row["verdict"] == expected
    if shift is not None:
        assert row["ours"] == f"mean gap {-shift:+.3f} nats"


BRANCHES = {
    "spread": [(1.5, UPHELD), (1.05, CONTRADICTED)],
    "changes_of_rank": [(True, UPHELD), (False, CONTRADICTED)],
    "smallest_share": [(0.5, UPHELD), (0.01, CONTRADICTED)],
}
BOUNDS = {"spread": {"at_least": 1.2, "at_most": 2.5}, "changes_of_rank": {"at_least": 0.5}}


@pytest.mark.parametrize(
    ("quantity", "value", "expected"), [(q, *case) for q, cases in BRANCHES.items() for case in cases]
)
def test_branch_weights_are_judged_by_their_course(project_with, monkeypatch, quantity, value, expected):
    bounds = BOUNDS.get(quantity, {"at_least": 0.1})
    claim = claims_of(kind="branches", dataset=DATA, system="C", layer=2, quantity=quantity, **bounds)
    project = project_with(claim)
    (run,) = runs(project, "C")
    match quantity:
        case "spread":
            last = np.array([value, 1.0])
        case "changes_of_rank":
            last = np.array([0.4, 0.6]) if value else np.array([0.6, 0.4])
        case _:
            last = np.array([value / 2, 1 - value / 2])
    first = np.array([0.7, 0.3]) if quantity == "changes_of_rank" else np.array([0.5, 0.5])
    write_branches(project, run, np.linspace(first, last / last.sum(), 400))
    folder_of(project, run).joinpath("run.yaml").write_text(
        yaml.safe_dump(project.run_spec(run).model_dump()), encoding="utf-8"
    )
    assert load_run(folder_of(project, run) / "run.yaml").training.branch_warmup_steps is not None
    assert row_of(project)["verdict"] == expected


UNSEEN = {"metric": "perplexity", "dataset": DATA, "split": ["test", "test2"], "decoding": "final"}


def beyond_training(**changes):
    claim = claims_of(kind="beyond_training", score="unseen", longer="test2", system="A", baseline="C")
    return claim | {"scores": SCORES | {"unseen": UNSEEN | changes}}


def put_corpus(project, **lengths):
    corpus = project.corpus(runs(project, "A")[0].dataset)
    for name, words in lengths.items():
        split, _, side = name.rpartition("_")
        with write_tokens(corpus / f"encoded/{split}.{side}", 100) as store:
            store.append(np.full(sum(words), 5), np.array(words))


@pytest.mark.parametrize(
    ("longer", "expected"), [((2.0, 2.5), UPHELD), ((2.5, 2.0), CONTRADICTED), ((2.0, 2.005), UNCLEAR)]
)
def test_what_is_lost_beyond_the_lengths_trained_on_is_compared(project_with, longer, expected):
    """Both start from the same perplexity; what counts is by which factor it grows, not how high it is."""
    project = project_with(beyond_training())
    put_corpus(project, train_src=[5, 9, 70], train_tgt=[5, 9, 2], test2_src=[10, 14])  # 70: left out of training
    for system, start, value in (("A", 1.0, longer[0]), ("C", 1.4, longer[1] + 0.4)):
        (run,) = runs(project, system)
        write_score(project, run, "perplexity", "final", "test", perplexity_statistics(start, 1))
        write_score(project, run, "perplexity", "final", "test2", perplexity_statistics(value, 2))
    row = row_of(project)
    assert row["verdict"] == expected
    assert row["ours"].startswith(f"A {np.exp(1.0):.2f} to {np.exp(longer[0]):.2f} (x {np.exp(longer[0] - 1):.2f})")
    assert row["ours"].endswith("on 2 sentences of 10 to 14 subwords, trained on at most 9")


def test_sentences_no_longer_than_those_trained_on_are_counted_and_nothing_is_claimed(project_with):
    project = project_with(beyond_training())
    assert row_of(project)["verdict"] == NOT_RUN
    put_corpus(project, train_src=[5, 9], train_tgt=[5, 9], test2_src=[9, 14, 7])
    for system, split in itertools.product(("A", "C"), ("test", "test2")):
        write_score(project, runs(project, system)[0], "perplexity", "final", split, perplexity_statistics(1.0))
    row = row_of(project)
    assert (row["verdict"], row["ours"]) == (NOT_RUN, "")
    assert row["evidence"].startswith("2 of 3 sentences of test2 have no more than the 9 subwords")


@pytest.mark.parametrize("changes", [{"metric": "bleu_paper"}, {"split": ["test", "test3"]}, {"split": "test2"}])
def test_lengths_beyond_training_are_those_of_one_split_among_several_and_judged_by_perplexity(project_with, changes):
    with pytest.raises(UserError, match=r"claims\.one: needs a perplexity of test2 and of other splits"):
        project_with(beyond_training(**changes))


def put_timed_training(project, system, dev, seconds, device="toy processor"):
    (run,) = runs(project, system)
    write_training(project, run, dev, [1.0] * len(dev))
    training_cost(start_cost(seconds=seconds, device=device)).write(folder_of(project, run) / "cost.json")


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [([3.0, 2.8, 2.6, 1.0], UPHELD), ([2.0, 1.5, 1.2, 1.0], CONTRADICTED), ([3.0, 2.0, 1.5, 1.0], UNCLEAR)],
)
def test_losses_are_compared_at_the_time_at_which_the_shorter_training_ended(project_with, baseline, expected):
    """The system's 20 s are half of the baseline's, which gets lower in the end; at half it had its second loss."""
    project = project_with(claims_of(kind="equal_time", dataset=DATA, system="C", baseline="A"))
    put_timed_training(project, "C", [3.0, 2.0], 20.0)
    assert row_of(project)["verdict"] == NOT_RUN
    put_timed_training(project, "A", baseline, 40.0)
    row = row_of(project)
    assert row["verdict"] == expected
    assert row["ours"] == f"C and A: 2.000 and {baseline[1]:.3f} nats after 20 s (trained for 20 and 40 s)"


def test_times_are_compared_on_equal_hardware_and_after_a_validation(project_with):
    project = project_with(claims_of(kind="equal_time", dataset=DATA, system="C", baseline="A"))
    put_timed_training(project, "C", [3.0, 2.0], 20.0, device="another")
    put_timed_training(project, "A", [3.0, 2.0], 20.0)
    assert row_of(project)["evidence"] == "trained on different hardware: 1 x another, 1 x toy processor"
    put_timed_training(project, "C", [3.0], 2.0)
    row = row_of(project)
    assert (row["verdict"], row["evidence"]) == (NOT_RUN, "not both were validated in the first 2 s of training")


def put_layer_times(project, attention, recurrent):
    """Times of the form c n^p d^q, by layer."""
    sizes = itertools.product((64, 128, 256, 512), repeat=2)
    times = [
        {"layer": name, "n": n, "d": d, "seconds": [c * (1 + 0.01 * i) * n**p * d**q for i in range(5)]}
        for n, d in sizes
        for name, (c, p, q) in (("self-attention", attention), ("recurrent", recurrent))
    ]
    path = folder_of(project, runs(project, "C")[0]).parents[4] / "layer_times.json"
    layer_costs(times, kernel=KERNEL, window=WINDOW).write(path)


@pytest.mark.parametrize(("power", "expected"), [(2.0, UPHELD), (1.0, CONTRADICTED), (3.0, CONTRADICTED)])
def test_exponents_are_judged_by_their_range(project_with, power, expected):
    claim = claims_of(kind="exponent", layer="self-attention", variable="n", at_least=1.6, at_most=2.4)
    project = project_with(claim)
    assert row_of(project)["verdict"] == NOT_RUN
    put_layer_times(project, (1e-9, power, 1), (1e-9, 1, 2))
    row = row_of(project)
    assert row["verdict"] == expected
    assert row["ours"] == f"n^{power:.2f}"


@pytest.mark.parametrize(("constant", "expected"), [(1e-9, UPHELD), (1e-7, CONTRADICTED)])
def test_a_layer_is_cheaper_only_if_it_is_so_at_every_size(project_with, constant, expected):
    project = project_with(claims_of(kind="cheaper_below_width", layer="self-attention", than="recurrent"))
    put_layer_times(project, (constant, 2, 1), (1e-9, 1, 2))
    assert row_of(project)["verdict"] == expected


def test_a_statement_proved_by_a_test_names_it(project_with):
    row = row_of(project_with(claims_of(kind="test", tests=["tests/a.py::test_b"])))
    assert (row["verdict"], row["test"]) == ("tested", "tests/a.py::test_b")


def test_an_unknown_score_or_key_is_one_line(project_with):
    with pytest.raises(UserError, match=r"claims\.one: no score 'ter'; there are bleu, gleu, ppl$"):
        project_with(claims_of(kind="order", score="ter", ascending=["A", "C"]))
    with pytest.raises(UserError, match="ascendign: unknown key; allowed: ascending, kind, margin"):
        project_with(claims_of(kind="order", score="ppl", ascending=["A", "C"], ascendign=1))


def test_the_stage_writes_every_claim_of_a_paper_and_says_not_run_where_nothing_ran(tmp_path):
    out = tmp_path / "claims.csv"
    assert main(["claims", "--paper", "attention", "--set", f"work={tmp_path}", "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert {row["verdict"] for row in rows} == {"not run", "tested"}
    text = out.with_suffix(".md").read_text(encoding="utf-8")
    assert all(f"## {row['claim']}" in text and row["statement"] in text for row in rows)
