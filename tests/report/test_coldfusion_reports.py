"""Kinds of columns, claims, figures and tables that only Cold Fusion has, on made-up scores and transcripts."""

import json
import re

import numpy as np
import pytest
from fabricated import folder_of, table_rows, touch, write_score, write_training
from made_claims import claim_rows
from made_reports import make_report
from real_project import real_project
from scipy import stats

from pipeline.analysis.figures.attention import panels
from pipeline.core.records.outputs import AlignmentMaps
from pipeline.data.sequence_store import write_tokens
from pipeline.data.text.vocabulary import Alphabet
from pipeline.metrics.error_rates import domain_gap
from pipeline.papers.reports import transcripts
from pipeline.report.filled_table import fill
from pipeline.report.table import render

SAID = ["the dog barks at the small cat", "we go home", "many bakers try to visit a hotel", "they sing one song a day"]


def put_wer(project, system: str, rate: float, on: str) -> None:
    """Return edits in 200 utterances of ten words, of about this rate."""
    (run,) = project.runs_of("coldfusion", system, "source")
    rng = np.random.default_rng([7, round(1000 * rate)])
    hard = np.random.default_rng(8).uniform(0.5, 1.5, 200)
    errors = rng.binomial(40, np.clip(rate * hard, 0, 1)).astype(np.int64)
    statistics = np.stack([errors, np.full(200, 40)], axis=1)
    split = f"test@{project.stand_in(on)}"
    for metric in ("wer", "cer"):
        write_score(project, run, metric, "final", split, statistics)


def put_all(project, **rates: float) -> None:
    for system, rate in rates.items():
        put_wer(project, system.replace("_", "-"), rate, "target")


def test_domain_gap_lies_between_both_attention_models(project):
    put_all(project, attention_source=0.6, attention_target=0.1, CF4=0.3)
    rows = table_rows(project, "coldfusion", "table3")
    ends = [float(row["target_wer_ours"]) for row in rows if row["model"] == "Baseline Attention Model"]
    (cold,) = (row for row in rows if row["model"] == "Cold Fusion + Probability Projection")
    (deep, *_) = (row for row in rows if row["model"] == "Baseline + Deep Fusion")
    assert float(cold["gap_ours"]) == pytest.approx(domain_gap(float(cold["target_wer_ours"]), *ends), abs=0.05)
    assert (cold["gap_printed"], cold["runs"].count(";")) == ("38.17", 0)
    assert (deep["gap_ours"], deep["status"]) == ("", "not run")


def test_notes_name_the_domain_that_was_scored(project):
    """Every column is of models trained on the source domain, and its name begins with the domain that it scores."""
    for table, metrics in (("table2", ["perplexity"]), ("table3", ["cer", "wer"])):
        text = render(project, "coldfusion", table, fill(project, "coldfusion", table))
        found = re.findall(rf"^- (\w+): ({'|'.join(metrics)}) of ([\w-]+) \(", text, re.MULTILINE)
        assert len(found) == 2 * len(metrics)
        assert all(of.removesuffix("-text") in name.split("_") for name, _, of in found)


def test_there_is_no_way_to_go_between_two_ends_that_are_as_good(project):
    put_all(project, attention_source=0.6, attention_target=0.6, CF4=0.3)
    rows = {row["model"]: row for row in table_rows(project, "coldfusion", "table3")}
    assert {row["gap_ours"] for row in rows.values()} == {""}
    assert float(rows["Cold Fusion + Probability Projection"]["target_wer_ours"]) > 0


def verdict_of(project, name: str) -> tuple[str, str]:
    row = next(row for row in claim_rows(project, "coldfusion") if row["claim"] == name)
    return row["verdict"].removeprefix("provisional "), row["ours"]


@pytest.mark.parametrize(
    ("shrunk", "expected"), [(0.2, "upheld"), (0.45, "not distinguishable"), (0.8, "contradicted")]
)
def test_growth_by_a_smaller_factor(project, shrunk, expected):
    for system, rate in (("CF3", 0.1), ("CF3-64", shrunk), ("attention-source", 0.11), ("attention-64", 0.5)):
        put_wer(project, system, rate, "source")
    verdict, ours = verdict_of(project, "decoder-size")
    assert verdict == expected and ours.startswith("CF3 to CF3-64 x ")


def put_alignments(project, system: str, entropies: list[float]) -> None:
    for run in project.runs_of("coldfusion", system, "source"):
        put_alignment(project, run, [entropy + 0.02 * (run.seed - 1) for entropy in entropies])


def put_alignment(project, run, entropies: list[float], split: str = "dev") -> None:
    """Write a training of 50 steps an entropy, and a map of attention at each."""
    write_training(project, run, entropies, entropies, 50)
    maps = np.random.default_rng(0).dirichlet(np.ones(6), (len(entropies), 4)).tolist()
    record = {"split": split, "utterances": 9, "utterance": 3, "text": "a day", "maps": maps, "entropy": entropies}
    record |= {"steps": [50 * (i + 1) for i in range(len(entropies))], "weights_digest": "abc"}
    AlignmentMaps.model_validate(record).write(folder_of(project, run) / f"alignments/{split}.json")


def test_entropies_of_each_split_are_judged_by_their_own_noise(tmp_path):
    """Trainings differ much on dev and little on test; the order of evaluation changes nothing."""
    project = real_project({"work": str(tmp_path), "scale": "demo", "seeds": 3})
    for system, mean in (("attention-source", 1.2), ("CF4", 1.0)):
        for run in project.runs_of("coldfusion", system, "source"):
            for split, spread in (("dev", 0.5), ("test", 0.01)):
                put_alignment(project, run, [mean + spread * (run.seed - 2)] * 3, split)
    claims = project.claims["coldfusion"]
    on_dev = claims.claims["alignment"].model_copy(update={"extra": True})
    on_test = on_dev.model_copy(update={"split": "test"})
    p_values = []
    for judged in ({"test": on_test}, {"dev": on_dev, "test": on_test}):
        project.claims["coldfusion"] = claims.model_copy(update={"claims": judged, "primary": []})
        p_values.append({row["claim"]: float(row["p_value"]) for row in claim_rows(project, "coldfusion")}["test"])
    seeds = np.array([-0.01, 0, 0.01])
    expected = stats.ttest_ind(1.2 + seeds, 1.0 + seeds).pvalue
    assert p_values == pytest.approx([expected] * 2, rel=0.01)


@pytest.mark.parametrize(
    ("fused", "expected"), [([2.0, 0.5, 0.4], "upheld"), ([2.9, 2.8, 2.5], "contradicted"), ([2.5, 1.5, 0.7], None)]
)
def test_sharper_attention_over_the_training(tmp_path, fused, expected):
    project = real_project({"work": str(tmp_path), "scale": "demo", "seeds": 3})
    put_alignments(project, "attention-source", [2.5, 1.5, 0.7])
    put_alignments(project, "CF4", fused)
    said = f"{np.mean(fused) + 0.02:.2f} and 1.59 nats"
    assert verdict_of(project, "alignment") == (expected or "not distinguishable", said)


@pytest.mark.parametrize(
    ("fused", "said"),
    [
        ([1.2, 0.4, 0.3], "probability projection after 150 steps"),  # 1.2 at 100, 0.4 at 200
        ([1.2, 0.9, 0.81], "not by Cold Fusion"),
    ],
)
def test_dev_curves_say_when_the_first_systems_level_is_reached(project, tmp_path, fused, said):
    losses = {"attention-source": [2.0, 1.0, 0.8], "CF4": fused}
    for system, dev in losses.items():
        write_training(project, project.runs_of("coldfusion", system, "source")[0], dev, dev)
    rows = make_report("figure", "coldfusion", "figure2", tmp_path / "figure2.svg")
    assert [float(row["dev_loss"]) for row in rows] == [*losses["attention-source"], *fused]
    caption = (tmp_path / "figure2.md").read_text()
    assert "0.800 nats" in caption and said in caption
    assert "Attention model, trained on source after 300 steps" in caption


def test_alignments_are_drawn_for_each_system_with_their_entropy(project, tmp_path):
    put_alignments(project, "attention-source", [2.5, 1.5, 0.7])
    put_alignments(project, "CF4", [2.0, 0.5, 0.4])
    rows = make_report("figure", "coldfusion", "figure3", tmp_path / "figure3.svg")
    assert [float(row["entropy"]) for row in rows] == [2.5, 1.5, 0.7, 2.0, 0.5, 0.4]
    caption = (tmp_path / "figure3.md").read_text()
    assert '"a day"' in caption and "9 utterances" in caption


def test_largest_weight_of_an_alignment_is_drawn_dark(project):
    runs = [project.runs_of("coldfusion", system, "source")[0] for system in ("attention-source", "CF4")]
    for run in runs:
        put_alignment(project, run, [2.5, 1.5])
    records = [AlignmentMaps.read(folder_of(project, run) / "alignments/dev.json") for run in runs]
    faint = [record.model_copy(update={"maps": (0.1 * np.array(record.maps)).tolist()}) for record in records]
    drawn = [axes.images[0] for axes in panels(["a", "b"], faint).axes if axes.images]
    largest = max(float(image.get_array().max()) for image in drawn)
    assert {image.get_clim() for image in drawn} == {(0.0, largest)}


def test_long_utterances_with_most_word_errors_are_shown(project, tmp_path):
    entry = project.transcript_table("coldfusion", "table1")
    stem = project.layout.corpus(project.stand_in("target")) / "encoded/test.tgt"
    with write_tokens(stem, len(Alphabet())) as store:
        store.append(*Alphabet().flat(SAID))
    written_down = ["the dog <b>parks add the small cat", "no no no no", SAID[2], "they sing one song today"]
    for system, artifact in transcripts(project, "coldfusion", "table1").items():
        if system != "tuned-9-5":
            lines = {entry.chosen_by: written_down, "CF4": ["  ", *SAID[1:]]}.get(system, SAID)
            touch(project.layout.path(artifact), "".join(f"{line}\n" for line in lines))
    rows = make_report("transcript-table", "coldfusion", "table1", tmp_path / "table1.csv")
    assert [row["utterance"] for row in rows if row["model"] == "Ground Truth"] == ["1", "3", "4"]
    plain = [(row["ours"], row["word_errors"]) for row in rows if row["model"] == "Plain Seq2Seq"]
    assert plain == [(written_down[0], "2"), (written_down[2], "0"), (written_down[3], "2")]
    assert {row["ours"] for row in rows if row["model"] == "Cold Fusion (Fine-tuned)"} == {""}
    text = (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert r"- ours: the dog \<b>parks add" in text
    assert text.count("- ours: not run") == 3 and text.count("- ours: (nothing) (7 word errors)") == 1
    assert json.dumps(SAID[0]).strip('"') in text
