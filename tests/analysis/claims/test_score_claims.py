"""Claims about scores: made-up ones bring out every verdict of every kind."""

import numpy as np
import pytest
from fabricated import SENTENCES, bleu_statistics, folder_of, perplexity_statistics, write_score, write_training
from made_claims import (
    CONTRADICTED,
    DATA,
    NOT_RUN,
    SCORES,
    UNCLEAR,
    UPHELD,
    claim_rows,
    claims_of,
    direction,
    order,
    put_bleu,
    put_late_losses,
    put_perplexities,
    row_of,
    runs,
)
from made_records import measured_noise

from pipeline.analysis.claims import load_claims
from pipeline.core.artifacts import Score
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.core.records.outputs import ScoreFile
from pipeline.data.sequence_store import write_tokens
from pipeline.metrics import metric_named
from pipeline.metrics.bleu import gleu_statistics
from pipeline.papers.project import Project


@pytest.mark.parametrize(("second", "expected"), [(1.2, UPHELD), (0.8, CONTRADICTED), (1.005, UNCLEAR)])
def test_a_metric_rises_from_one_system_to_the_next_or_not(project_with, second, expected):
    project = project_with(order())
    put_perplexities(project, A=1.0, C=second)
    row = row_of(project)
    assert direction(row) == expected
    assert row["ours"].startswith(f"A {np.exp(1.0):.2f}")
    assert "paired bootstrap over sentences" in row["test"]
    assert (float(row["p_value"]) < 0.05) == (expected != UNCLEAR)


def test_every_link_of_a_chain_is_judged_alone(project_with):
    project = project_with(claims_of(kind="order", score="ppl", ascending=["A", "N4", "C"]))
    put_perplexities(project, A=1.0, N4=1.5, C=1.2)
    rows = claim_rows(project, "weighted")
    assert [(row["claim"], direction(row)) for row in rows] == [("one-1", UPHELD), ("one-2", CONTRADICTED)]


def test_claim_without_one_of_its_runs_shows_no_number(project_with):
    project = project_with(order())
    put_perplexities(project, A=1.0)
    row = row_of(project)
    assert (row["verdict"], row["ours"], row["p_value"]) == (NOT_RUN, "", "")
    assert "weighted/C/" in row["evidence"]


NO_WORSE, CLOSE = order("bleu", margin=5), claims_of(kind="close", score="bleu", terms=["A", "C"], margin=5)


@pytest.mark.parametrize(
    ("claim", "second", "expected"),
    [
        *((NO_WORSE, 0.599, UPHELD), (NO_WORSE, 0.605, UPHELD), (NO_WORSE, 0.45, CONTRADICTED)),
        *((CLOSE, 0.601, UPHELD), (CLOSE, 0.45, CONTRADICTED), (CLOSE, 0.66, UNCLEAR)),
    ],
)
def test_a_margin_makes_equal_systems_no_worse_and_close(project_with, claim, second, expected):
    """A margin of 5 BLEU: values are close if the whole interval is within it."""
    project = project_with(claim)
    put_bleu(project, A=0.6, C=second, seed=2)
    assert direction(row_of(project)) == expected


@pytest.mark.parametrize("side", ["at_least", "at_most"])
@pytest.mark.parametrize(("bound", "expected"), [(2.5, UPHELD), (2.9, CONTRADICTED), (float(np.e), UNCLEAR)])
def test_a_level_is_reached_or_kept_below_or_not(project_with, side, bound, expected):
    project = project_with(claims_of(kind="level", score="ppl", term="A", **{side: bound}))
    put_perplexities(project, A=1.0)
    other = {UPHELD: CONTRADICTED, CONTRADICTED: UPHELD, UNCLEAR: UNCLEAR}
    assert direction(row_of(project)) == (expected if side == "at_least" else other[expected])


def test_several_decodings_are_averaged(project_with):
    terms = [{"system": "C", "decodings": ["random-1", "random-2"]}, {"system": "C", "decodings": ["uniform"]}, "C"]
    project = project_with(claims_of(kind="order", score="bleu", ascending=terms))
    for name, precision in (("random-1", 0.3), ("random-2", 0.5), ("uniform", 0.6), ("final", 0.7)):
        put_bleu(project, C=precision, decoding=name)
    rows = claim_rows(project, "weighted")
    assert [direction(row) for row in rows] == [UPHELD, UPHELD]
    assert rows[0]["ours"].count("random-1") == 1


@pytest.mark.parametrize(("spread", "expected"), [(0.01, UPHELD), (0.2, UNCLEAR)])
def test_noise_between_seeds_counts(project_with, spread, expected):
    """The spread of the seeds decides if the same mean difference is significant."""
    project = project_with(order(), seeds=3)
    put_perplexities(project, A=1.0)
    for run, shift in zip(runs(project, "C"), (-spread, 0, spread), strict=True):
        write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(1.15 + shift, run.seed))
    row = row_of(project)
    assert direction(row) == expected
    assert row["test"].endswith("run-to-run variance pooled over 2 systems (transformer, 4 degrees of freedom)")


@pytest.mark.parametrize(("seeds", "verdict"), [(3, UNCLEAR), (1, "provisional upheld")])
def test_own_seeds_take_precedence_over_measured_noise(project_with, monkeypatch, seeds, verdict):
    """Scored under its own decoding alone: 45 to 65 BLEU are no 50, though trainings measured once lay 0.2 apart."""
    term = {"system": "C", "decodings": ["uniform"]}
    project = project_with(claims_of(kind="level", score="bleu", term=term, at_least=50.0), seeds=seeds)
    values = (50 + 0.1 * np.array([-1.0, 1.0] * 10)).tolist()
    monkeypatch.setattr(Project, "noise_of", lambda project, family: measured_noise(bleu_paper=values))
    for run, precision in zip(runs(project, "C"), (0.65, 0.55, 0.45), strict=False):
        write_score(project, run, "bleu_paper", "uniform", "dev", bleu_statistics(precision, 1))
    row = row_of(project)
    assert row["verdict"] == verdict
    noise = "pooled over 1 system (transformer, 2 degrees of freedom)"
    assert row["test"].endswith(noise if seeds > 1 else "trainings of toy/system at scale demo")


@pytest.mark.parametrize(("values", "expected"), [((0.6, 0.5), UPHELD), ((0.5, 0.6), CONTRADICTED)])
@pytest.mark.parametrize(("gain", "shown"), [((0.6, 0.5), True), ((0.55, 0.55), False), ((0.5, 0.6), False)])
def test_two_metrics_agree_on_gains_alone(project_with, values, expected, gain, shown):
    """If BLEU shows no gain, or a loss, GLEU has nothing to confirm, whichever system it prefers.

    Of equal precisions, the first system matches one word more, in a sentence that a resample may leave out.
    """
    project = project_with(claims_of(kind="agreement", scores=["bleu", "gleu"], pairs=[["A", "C"]]))
    for system, precision, other in (("A", gain[0], values[0]), ("C", gain[1], values[1])):
        (run,) = runs(project, system)
        statistics = bleu_statistics(precision, 5)
        statistics[statistics[:, 2].argmax(), 2] -= system == "C" and gain[0] == gain[1]
        write_score(project, run, "bleu_paper", "final", "dev", statistics)
        write_score(project, run, "gleu", "final", "dev", gleu_statistics(bleu_statistics(other, 5)))
    assert direction(row_of(project)) == (expected if shown else UNCLEAR)


def test_equal_bleu_in_every_seed_is_no_gain(project_with):
    """The interval of the difference is then exactly 0."""
    project = project_with(claims_of(kind="agreement", scores=["bleu", "gleu"], pairs=[["A", "C"]]), seeds=2)
    for system, precision in (("A", 0.6), ("C", 0.5)):
        for run in runs(project, system):
            write_score(project, run, "bleu_paper", "final", "dev", bleu_statistics(0.55, 5))
            write_score(project, run, "gleu", "final", "dev", gleu_statistics(bleu_statistics(precision, 5)))
    row = row_of(project)
    assert direction(row) == UNCLEAR and row["ours"].endswith("(no gain)")


@pytest.mark.parametrize(("nats", "expected"), [((1.0, 1.5), UPHELD), ((1.5, 1.0), CONTRADICTED)])
@pytest.mark.parametrize("decides", ["bleu", "ppl"])
def test_perplexity_pair_is_won_by_the_lower_value(project_with, decides, nats, expected):
    """If BLEU decides, perplexity has to be lower where BLEU is higher; if perplexity decides, the reverse."""
    follows = "ppl" if decides == "bleu" else "bleu"
    project = project_with(claims_of(kind="agreement", scores=[decides, follows], pairs=[["A", "C"]]))
    better = (0.6, 0.5) if decides == "bleu" or expected == UPHELD else (0.5, 0.6)
    for system, precision, nll in zip(("A", "C"), better, nats if decides == "bleu" else (1.0, 1.5), strict=True):
        (run,) = runs(project, system)
        write_score(project, run, "bleu_paper", "final", "dev", bleu_statistics(precision, 5))
        write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(nll))
    row = row_of(project)
    assert direction(row) == expected
    assert "no gain" not in row["ours"]


def test_a_system_below_the_floor_upholds_nothing(project_with):
    """One is enough, and the numbers are shown all the same."""
    project = project_with(order("bleu"))
    put_bleu(project, A=-1.0, C=0.6)
    row = row_of(project)
    assert (row["verdict"], row["ours"].startswith("A 0.00, C ")) == ("not trained", True)
    assert row["evidence"].startswith("A: bleu_paper of 0 is not better than 5: outputs below share")


def test_a_baseline_that_still_learns_decides_nothing(project_with):
    """Only the system that the claim calls worse; 0.5 % over the last fifth of its steps is the bound."""
    project = project_with(order())
    put_late_losses(project, A=2.0, C=1.988)
    put_perplexities(project, A=1.0, C=1.5)
    row = row_of(project)
    assert row["verdict"] == "not trained far enough"
    assert row["evidence"].startswith("C: its dev loss fell by 0.6% over the last fifth of its steps; C − A")


@pytest.mark.parametrize(("precision", "verdict"), [(0.7, "provisional upheld"), (0.4, "not trained far enough")])
def test_unconverged_winner_upholds_but_contradicts_nothing(project_with, precision, verdict):
    """More training could only have helped it: what it has not reached yet is no evidence that it can't."""
    project = project_with(order("bleu"))
    put_late_losses(project, A=2.0, C=1.98)
    put_bleu(project, A=0.55, C=precision)
    row = row_of(project)
    assert row["verdict"] == verdict
    assert row["evidence"].startswith("C: its dev loss fell by 1.0%") == (verdict == "not trained far enough")


@pytest.mark.parametrize(
    ("learns", "longer", "expected"),
    [("C", 0.7, CONTRADICTED), ("C", 0.4, UPHELD), ("C-long", 0.7, "not trained far enough")],
)
def test_training_that_more_steps_help_was_not_long_enough(project_with, learns, longer, expected):
    """The paper's own claim: that C still learns when it stops is what contradicts it."""
    paper = load_claims(ROOT / "workflow/papers/weighted/claims.yaml")
    claim = paper.claims["longer-training"].model_dump(mode="json") | {"score": "bleu"}
    project = project_with({"scores": SCORES, "claims": {"one": claim}})
    put_late_losses(project, **{"C": 2.0, "C-long": 2.0} | {learns: 1.98})
    put_bleu(project, **{"C": 0.55, "C-long": longer})
    assert direction(row_of(project)) == expected


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({"A": 2.0, "C": 2.08}, "C − A"),
        ({"A": 2.0, "C": 2.12}, "C: its dev loss ended 6% above its lowest; C − A"),
        ({"A": 2.3, "C": 2.0}, "A: its dev loss ended 15% above its lowest; C − A"),
    ],
)
@pytest.mark.parametrize(("loss", "verdict"), [(1.5, "upheld"), (1.02, "not distinguishable"), (0.5, "contradicted")])
def test_over_fitted_system_is_named_and_keeps_its_verdict(project_with, ends, said, loss, verdict):
    project = project_with(order(), seeds=3)
    for system, mean in (("A", 1.0), ("C", loss)):
        for run, own in zip(runs(project, system), (-0.03, 0.0, 0.03), strict=True):
            write_training(project, run, [2.5, *[2.0] * 7, ends[system], ends[system]], [1.0] * 10)
            write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(mean + own))
    row = row_of(project)
    assert (row["verdict"], row["evidence"].startswith(said)) == (verdict, True)


def test_training_validated_once_is_not_known_to_be_done(project_with):
    project = project_with(claims_of(score="bleu", kind="level", term="C", at_most=50.0))
    write_training(project, *runs(project, "C"), [2.0], [1.0])
    put_bleu(project, C=0.4)
    assert row_of(project)["evidence"].startswith("C: its dev loss was not measured before the last fifth of its ste")


def test_unconverged_winner_is_excluded_from_adjustment(project_with):
    """It is not decided, so that it is none of those by which Benjamini and Hochberg let others be."""
    bleu = float(metric_named("bleu_paper").total(bleu_statistics(0.55).sum(axis=0)))
    levels = {"learning": ("C", 50.0), "near": ("A", bleu - 1.9), "no-more": ("A", bleu - 0.2)}
    facts = claims_of(kind="level", score="bleu")["claims"]["one"]
    claims = {name: facts | {"term": term, "at_least": bound} for name, (term, bound) in levels.items()}
    project = project_with({"scores": SCORES, "claims": claims})
    put_late_losses(project, A=2.0, C=1.98)
    put_bleu(project, A=0.55, C=0.4)
    rows = {row["claim"]: row for row in claim_rows(project, "weighted")}
    assert rows["learning"]["verdict"] == "not trained far enough"
    assert (float(rows["learning"]["p_value"]) < 0.001, rows["learning"]["p_adjusted"]) == (True, "")
    assert float(rows["near"]["p_adjusted"]) == pytest.approx(2 * float(rows["near"]["p_value"]), rel=0.01)


def test_claim_without_loss_curve_is_not_run(project_with):
    project = project_with(claims_of(score="bleu", kind="level", term="C", at_least=50.0))
    put_bleu(project, C=0.4)
    (folder_of(project, runs(project, "C")[0]) / "done.json").unlink()
    assert row_of(project)["verdict"] == NOT_RUN


def test_system_with_zero_score_leaves_the_pool_of_factors(project_with):
    """No logarithm of its scores is a number: others are judged as if it were not there."""
    ratio = claims_of(kind="ratio", score="bleu", smaller=["A", "C"], larger=["N4", "N8"])
    beside = claims_of(kind="order", score="bleu", ascending=["B", "A"])["claims"]["one"]
    project = project_with(ratio | {"claims": ratio["claims"] | {"beside": beside}}, seeds=3)
    for system, precision in (("A", 0.5), ("C", 0.55), ("N4", 0.5), ("N8", 0.7)):
        for run in runs(project, system):
            rows = bleu_statistics(precision + 0.005 * run.seed, 1)
            write_score(project, run, "bleu_paper", "final", "dev", rows)
    _, alone = claim_rows(project, "weighted")
    put_bleu(project, B=-1.0, seed=1)
    _, row = claim_rows(project, "weighted")
    assert (row["verdict"], row["p_value"]) == (alone["verdict"], alone["p_value"]) == (UPHELD, row["p_value"])


@pytest.mark.parametrize("system", ["A", "C"])
@pytest.mark.parametrize(("fewest", "verdict"), [(1, "provisional upheld"), (2, "provisional upheld"), (3, "upheld")])
def test_system_with_fewest_trainings_makes_a_claim_provisional(project_with, system, fewest, verdict):
    project = project_with(order(), seeds=fewest)
    seeds = {"/".join(project.locate(system, "weighted")): 4}
    project.scale = project.scale.model_copy(update={"seeds": seeds})
    assert sorted(len(runs(project, name)) for name in "AC") == [fewest, 4]
    for name, mean in (("A", 1.0), ("C", 1.5)):
        for run in runs(project, name):
            rows = perplexity_statistics(mean + 0.01 * run.seed, run.seed)
            write_score(project, run, "perplexity", "final", "dev", rows)
    assert row_of(project)["verdict"] == verdict


UNSEEN = {"metric": "perplexity", "dataset": DATA, "split": ["test", "test2"], "decoding": "final"}


def beyond_training(**changes):
    claim = claims_of(kind="beyond_training", score="unseen", longer="test2", system="A", baseline="C")
    return claim | {"scores": SCORES | {"unseen": UNSEEN | changes}}


def put_corpus(project, **lengths):
    corpus = project.layout.corpus(runs(project, "A")[0].dataset)
    for name, words in lengths.items():
        split, _, side = name.rpartition("_")
        with write_tokens(corpus / f"encoded/{split}.{side}", 100) as store:
            store.append(np.full(sum(words), 5), np.array(words))


@pytest.mark.parametrize(
    ("longer", "expected"), [((2.0, 2.5), UPHELD), ((2.5, 2.0), CONTRADICTED), ((2.0, 2.005), UNCLEAR)]
)
def test_losses_beyond_trained_lengths_are_compared(project_with, longer, expected):
    """Both start from the same perplexity; what counts is by which factor it grows, not how high it is."""
    project = project_with(beyond_training())
    put_corpus(project, train_src=[5, 9, 70], train_tgt=[5, 9, 2], test2_src=[10, 14])  # 70: left out of training
    put_perplexities(project, "test", A=1.0, C=1.4)
    put_perplexities(project, "test2", A=longer[0], C=longer[1] + 0.4)
    row = row_of(project)
    assert direction(row) == expected
    assert row["ours"].startswith(f"A {np.exp(1.0):.2f} to {np.exp(longer[0]):.2f} (x {np.exp(longer[0] - 1):.2f})")
    assert row["ours"].endswith("on 2 sentences of 10 to 14 subwords, trained on at most 9")


def test_untrained_system_upholds_nothing_beyond_training(project_with):
    """Each symbol is as likely as any of 300, on short sentences and on long ones."""
    project = project_with(beyond_training())
    put_corpus(project, train_src=[5, 9], train_tgt=[5, 9], test2_src=[10, 14])
    put_perplexities(project, "test", A=np.log(300), C=1.4)
    put_perplexities(project, "test2", A=np.log(300), C=2.9)
    row = row_of(project)
    assert row["verdict"] == "not trained"
    assert row["evidence"].startswith("A: perplexity of 300 is not better than 100")


def test_beyond_training_counts_sentences_that_are_too_short(project_with):
    project = project_with(beyond_training())
    assert row_of(project)["verdict"] == NOT_RUN
    put_corpus(project, train_src=[5, 9], train_tgt=[5, 9], test2_src=[9, 14, 9])
    for split in ("test", "test2"):
        put_perplexities(project, split, A=1.0, C=1.0)
    row = row_of(project)
    assert (row["verdict"], row["ours"]) == (NOT_RUN, "")
    said = "2 of 3 sentences of test2 are no longer than the longest trained on (9 subwords)"
    assert row["evidence"].startswith(said)


@pytest.mark.parametrize("changes", [{"metric": "bleu_paper"}, {"split": ["test", "test3"]}, {"split": "test2"}])
def test_beyond_training_needs_a_perplexity_of_several_splits(project_with, changes):
    with pytest.raises(UserError, match=r"claims\.one: needs a perplexity of test2 and of other splits"):
        project_with(beyond_training(**changes))


WHOLE = {"metric": "bleu_paper", "dataset": DATA, "split": ["dev", "test"], "decoding": "final"}


def long_sentences(project_with, lengths, metric="bleu_paper", **says):
    """A project with sources of some lengths in words."""
    claim = claims_of(kind="long_sentences", score="whole", system="C", baseline="A", longer_than=20, **says)
    project = project_with(claim | {"scores": {"whole": WHOLE | {"metric": metric}}})
    put_corpus(project, dev_src=lengths, test_src=lengths)
    return project


@pytest.mark.parametrize(
    ("metric", "says", "long", "short", "expected"),
    [
        ("bleu_paper", None, (0.5, 0.7), (0.5, 0.5), UPHELD),
        ("bleu_paper", None, (0.5, 0.5), (0.5, 0.7), CONTRADICTED),
        ("bleu_paper", "is better", (0.5, 0.7), (0.5, 0.5), UPHELD),
        ("bleu_paper", "is better", (0.7, 0.5), (0.5, 0.7), CONTRADICTED),
        ("bleu_paper", "both do worse", (0.5, 0.5), (0.7, 0.7), UPHELD),
        ("bleu_paper", "both do worse", (0.7, 0.5), (0.5, 0.7), CONTRADICTED),
        ("perplexity", "is better", (2.0, 1.5), (1.0, 1.0), UPHELD),
        ("perplexity", "is better", (1.5, 2.0), (1.0, 0.5), CONTRADICTED),
        ("perplexity", "advantage is no smaller", (2.0, 1.5), (1.0, 1.0), UPHELD),
        ("perplexity", "advantage is no smaller", (1.5, 1.5), (1.5, 1.0), CONTRADICTED),
        ("perplexity", "both do worse", (1.5, 1.5), (1.0, 1.0), UPHELD),
        ("perplexity", "both do worse", (1.0, 1.0), (1.5, 1.5), CONTRADICTED),
    ],
)
def test_long_sentences_are_judged_as_the_claim_says(project_with, metric, says, long, short, expected):
    """long, short: precision, or nats a symbol, of the baseline and of the system on sentences of either kind."""
    lengths = np.where(np.arange(SENTENCES) % 2, 21, 20)
    project = long_sentences(project_with, lengths, metric, **({"says": says} if says else {}))
    made = bleu_statistics if metric == "bleu_paper" else perplexity_statistics
    for system, far, near in zip(("A", "C"), long, short, strict=True):
        for seed, split in enumerate(WHOLE["split"]):
            rows = np.where((lengths > 20)[:, None], made(far, seed), made(near, seed))
            write_score(project, runs(project, system)[0], metric, "final", split, rows)
    assert direction(row_of(project)) == expected


@pytest.mark.parametrize("says", ["is better", "advantage is no smaller", "both do worse"])
def test_long_sentences_below_the_floor_decide_no_advantage(project_with, says):
    """Perplexities of e^5 and e^5.5 on them are above 100, with e^3 on as many others below."""
    lengths = np.where(np.arange(SENTENCES) % 2, 21, 20)
    project = long_sentences(project_with, lengths, "perplexity", says=says)
    for system, far in [("A", 5.5), ("C", 5.0)]:
        for seed, split in enumerate(WHOLE["split"]):
            nats = [perplexity_statistics(mean, seed) for mean in (far, 3.0)]
            rows = np.where((lengths > 20)[:, None], *nats)
            write_score(project, runs(project, system)[0], "perplexity", "final", split, rows)
    row = row_of(project)
    assert direction(row) == (UPHELD if says == "both do worse" else "not trained")
    assert says == "both do worse" or row["evidence"].startswith("on more than 20 words, C: perplexity of 1")


@pytest.mark.parametrize("seeds", [1, 2])
def test_long_sentences_scored_differently_are_not_compared(project_with, seeds):
    """The last run of C was scored after its test set was prepared again."""
    claim = claims_of(kind="long_sentences", score="bleu", system="C", baseline="A", longer_than=20)
    project = project_with(claim, seeds=seeds)
    put_corpus(project, dev_src=np.where(np.arange(SENTENCES) % 2, 21, 20))
    put_bleu(project, A=0.5, C=0.5)
    path = project.layout.path(Score(runs(project, "C")[-1], "scores", "final", "dev"))
    ScoreFile.read(path).model_copy(update={"references": "another"}).write(path)
    said = {1: "can't compare scores on references", 2: "weighted/C: seeds were scored on different references"}
    with pytest.raises(UserError, match=said[seeds]):
        row_of(project)


@pytest.mark.parametrize(("long", "expected"), [(0, UNCLEAR), (1, UNCLEAR), (19, UNCLEAR), (20, UPHELD)])
def test_few_long_sentences_decide_no_advantage(project_with, long, expected):
    """A difference on a single one is zero in the 1/e of the resamples without it, and the same in all others.

    It is therefore 1 / sqrt((1 - 1/e) / e) = 2.07 standard errors, p 0.04, however small it is.
    """
    claim = claims_of(kind="long_sentences", score="bleu", system="C", baseline="A", longer_than=20, says="is better")
    project = project_with(claim)
    put_corpus(project, dev_src=np.where(np.arange(SENTENCES) < long, 21, 20))
    put_bleu(project, A=0.5, C=0.8)
    row = row_of(project)
    assert direction(row) == expected
    assert row["ours"].startswith(f"{long} source") == (long < 20)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("test_set", "newstest", "newstest and toy"),
        ("references", "another", r"references \S+ by toy and references \S+ by toy \(C − A\)"),
        ("metrics", "chr", r"references \S+ by chr and references \S+ by toy"),
    ],
    ids=["another test set", "prepared again between both", "counted in another way"],
)
def test_systems_scored_differently_are_not_compared(project_with, key, value, said):
    project = project_with(order("bleu"))
    put_bleu(project, A=0.5, C=0.5)
    path = project.layout.path(Score(runs(project, "C")[0], "scores", "final", "dev"))
    score = ScoreFile.read(path)
    if key == "metrics":
        value = {"bleu_paper": score.metrics["bleu_paper"].model_copy(update={"signature": value})}
    score.model_copy(update={key: value}).write(path)
    with pytest.raises(UserError, match=f"can't compare scores on {said}"):
        row_of(project)


def test_score_without_the_metric_of_a_claim_is_named(project_with):
    project = project_with(order("gleu"))
    put_bleu(project, A=0.5, C=0.5)
    with pytest.raises(UserError, match=r"dev\.npz: no statistics for 'gleu'"):
        row_of(project)


@pytest.mark.parametrize(
    ("worst", "best", "term", "expected"),
    [(1.8, 1.0, 1.2, UPHELD), (1.8, 1.0, 1.6, CONTRADICTED), (1.0, 1.8, 1.4, CONTRADICTED)],
)
def test_a_gap_is_closed_by_more_than_a_share_or_not(project_with, worst, best, term, expected):
    """The gap left from e^1.8 to e^1 is 18 and 67 %; without a gap a claim is contradicted."""
    project = project_with(claims_of(kind="gap", score="ppl", term="C", worst="A", best="N4", at_most=0.5))
    put_perplexities(project, A=worst, N4=best, C=term)
    row = row_of(project)
    assert direction(row) == expected
    left = (np.exp(term) - np.exp(best)) / (np.exp(worst) - np.exp(best))
    assert worst < best or float(row["ours"].split("%")[0]) == pytest.approx(100 * left, abs=1)


def test_a_gap_of_a_score_that_rises_is_refused(project_with):
    with pytest.raises(UserError, match=r"claims\.one: score 'bleu' is not an error rate"):
        project_with(claims_of(kind="gap", score="bleu", term="C", worst="A", best="N4", at_most=0.5))
