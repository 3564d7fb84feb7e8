"""Means over test sets, gains and the chosen example, from made-up scores."""

from types import SimpleNamespace

import numpy as np
import pytest
from fabricated import SENTENCES, bleu_statistics, folder_of, table_rows, touch, write_score
from made_reports import make_report
from real_project import real_project

from pipeline.analysis.cells.cell import CellContext, PrintedTable
from pipeline.analysis.cells.scores import DomainGapCell, GainCell, ScoreCell
from pipeline.analysis.evidence import training_sample
from pipeline.core.json_csv import write_json
from pipeline.data.sequence_store import write_tokens
from pipeline.metrics.bleu import bleu
from pipeline.metrics.metric import resampled

PAPER, DATA = "multichannel", "nist-zh-en"
SPLITS = ["test", "test2", "test3", "test4", "test5"]
EXAMPLE = ("RNN", "NTM", "NTM-RNN", "RNN-EMB", "NTM-EMB", "NTM-RNN-EMB")


def rows_of(system, split):
    """Return statistics that differ between systems and test sets."""
    return bleu_statistics(0.5 + 0.01 * len(system) + 0.02 * SPLITS.index(split), seed=SPLITS.index(split))


def put_scores(project, systems, rows=rows_of):
    for system in systems:
        for run in project.runs_of(PAPER, system, DATA):
            for split in SPLITS:
                for metric in ("bleu_paper", "bleu_closest", "sacrebleu"):
                    write_score(project, run, metric, "beam10", split, rows(system, split))


def put_lengths(project, lengths):
    corpus = project.layout.corpus(project.stand_in(DATA))
    write_json(corpus / "encoded/corpus.json", {})
    for split, words in lengths.items():
        with write_tokens(corpus / f"encoded/{split}.src", 100) as store:
            store.append(np.full(int(words.sum()), 5), words)


def rows_by_model(project):
    return {row["model"]: row for row in table_rows(project, PAPER, "table1")}


def test_mean_over_test_sets_has_the_interval_of_the_mean(project):
    put_scores(project, ["RNN", "DL4MT"])
    row = rows_by_model(project)["RNN"]
    values = [float(bleu(rows_of("RNN", split).sum(axis=0))) for split in SPLITS]
    draws = np.mean([resampled(rows_of("RNN", split), bleu, seed=n) for n, split in enumerate(SPLITS, 1)], axis=0)
    expected = [values[3], np.mean(values), *np.percentile(draws, [2.5, 97.5])]
    found = [float(row[name]) for name in ("nist08_ours", "avg_ours", "avg_low", "avg_high")]
    assert found == pytest.approx(expected, abs=0.006)
    assert row["avg_printed"] == "33.67" and row["avg_test_set"].count("toy (200 lines") == 5


def test_the_gain_is_over_the_named_row_and_empty_without_it(project):
    put_scores(project, ["RNN"])
    alone = rows_by_model(project)["RNN"]
    assert (alone["gain_ours"], alone["gain_printed"]) == ("", "+4.94")
    put_scores(project, ["DL4MT"])
    rows = rows_by_model(project)
    low, gain, high = (float(rows["RNN"][f"gain_{name}"]) for name in ("low", "ours", "high"))
    assert gain == pytest.approx(float(rows["RNN"]["avg_ours"]) - float(rows["DL4MT"]["avg_ours"]), abs=0.011)
    assert low <= gain <= high and rows["DL4MT"]["gain_ours"] == ""
    shown = project.table("multichannel", "table1").cells["gain"].shown
    assert shown({"printed": "", "ours": "-1.16", "low": "-2.30", "high": "-0.01"})["95 %"] == "-2.30 to -0.01"


def test_interval_of_a_gain_covers_seeds_as_its_note_says(tmp_path):
    """Seeds that differ by 5 BLEU leave the interval over sentences as it is."""
    widths = []
    for number, apart in enumerate((0.0, 0.05)):
        project = real_project({"work": str(tmp_path / str(number)), "scale": "demo", "seeds": 3})
        for system in ("RNN", "DL4MT"):
            for run in project.runs_of(PAPER, system, DATA):
                for split in SPLITS:
                    rows = bleu_statistics(0.5 + apart * run.seed, seed=SPLITS.index(split))
                    for metric in ("bleu_paper", "bleu_closest"):
                        write_score(project, run, metric, "beam10", split, rows)
        row = rows_by_model(project)["RNN"]
        widths.append(float(row["gain_high"] or 0) - float(row["gain_low"] or 0))
    assert widths[1] > widths[0] + 5
    note = project.table(PAPER, "table1").cells["gain"].note([], "")
    assert note.endswith("95 %: over the sentences and, if both rows have several, over the seeds.")


def test_both_sides_of_a_gain_have_their_own_decoding():
    score = ScoreCell(metric="bleu_paper", dataset=DATA, split="test", decoding_column="decoding")
    gain = GainCell(kind="gain", cell="bleu", over="B")
    asked = []

    def sample(runs, decodings, scored):
        asked.append((runs, decodings))
        return training_sample([1.0, 2.0], runs[0])

    folders = SimpleNamespace(measurement=lambda *side: True, sample=sample)
    rows = [{"source": "ours-to-run", "system": name, "decoding": f"beam{name}"} for name in "AB"]
    view = SimpleNamespace(runs=lambda system, dataset: [system])
    table = PrintedTable(view, rows, {"bleu": score, "gain": gain}, folders)
    gain.fill(CellContext(table, 0, ""))
    assert asked == [(["A"], ["beamA"]), (["B"], ["beamB"])]


def test_domain_gap_pairs_the_seeds_of_its_three_systems():
    """Seed 1: (40 - 20) / (60 - 20) = 50 %; seed 2: (34 - 10) / (90 - 10) = 30 %."""
    names = {"source_trained": "source", "target_trained": "target"}
    scored = {"metric": "wer", "dataset": "wsj", "split": "test", "decoding": "final", "ends_decoding": "final"}
    cell = DomainGapCell(kind="domain_gap", **names, **scored)
    rates = {"CF4": {1: 40, 2: 34}, "source": {1: 60, 2: 90}, "target": {1: 20, 2: 10}}
    view = SimpleNamespace(runs=lambda name, dataset: [SimpleNamespace(system=name, seed=seed) for seed in (1, 2)])
    folders = SimpleNamespace(measurement=lambda runs, *how: SimpleNamespace(mean=rates[runs[0].system][runs[0].seed]))
    row = {"source": "ours-to-run", "system": "CF4"}
    context = SimpleNamespace(table=SimpleNamespace(view=view, folders=folders), row=row)
    assert cell.gaps(context) == [pytest.approx(50), pytest.approx(30)]


def test_a_gain_of_which_no_noise_is_known_has_no_interval(project):
    """Single trainings get nothing right, so every resample has a difference of zero."""
    put_scores(project, ["RNN", "DL4MT"], lambda system, split: rows_of(system, split) * 0)
    row = rows_by_model(project)["RNN"]
    assert (row["gain_ours"], row["gain_low"], row["gain_high"]) == ("+0.00", "", "")


def test_the_figure_scores_what_is_longer_of_one_sample(project, tmp_path):
    systems = project.figure(PAPER, "figure3").systems
    lengths = {split: np.random.default_rng(number).integers(1, 40, SENTENCES) for number, split in enumerate(SPLITS)}
    put_lengths(project, lengths)
    put_scores(project, systems)
    rows = make_report("figure", PAPER, "figure3", tmp_path / "figure3.svg")
    every = np.concatenate(list(lengths.values()))
    assert [int(row["longer_than"]) for row in rows if row["system"] == "RNN"] == [0, 10, 20, 30]
    for row in rows:
        longer = every > int(row["longer_than"])  # all thousand sentences are in the sample
        assert int(row["sentences"]) == longer.sum()
        expected = bleu(np.concatenate([rows_of(row["system"], split) for split in SPLITS])[longer].sum(axis=0))
        assert float(row["bleu"]) == pytest.approx(float(expected))
    caption = (tmp_path / "figure3.md").read_text(encoding="utf-8")
    assert "1000 of 1000 sentences drawn at random" in caption and "0 longer than 40" in caption


def test_example_is_the_allowed_sentence_with_most_spread(project, tmp_path):
    lengths = {split: np.full(SENTENCES, 12) for split in SPLITS}
    lengths["test"][:] = 30  # too long: what divides the systems there does not count
    put_lengths(project, lengths)

    def rows(system, split):
        plain = bleu_statistics(0.6, seed=SPLITS.index(split))
        if divided := {"test": 5, "test3": 77}.get(split):
            plain[divided, 2:6] = plain[divided, 6:] if "EMB" in system else 0
        return plain

    put_scores(project, EXAMPLE, rows)
    corpus = project.layout.corpus(project.stand_in(DATA))
    (corpus / "prepared").mkdir(parents=True)
    for split in SPLITS:
        for language in ("zh", "en"):
            text = "".join(f"{split} {language} {line}\n" for line in range(SENTENCES))
            (corpus / f"prepared/{split}.{language}").write_text(text, encoding="utf-8")
        for system in EXAMPLE:
            (run,) = project.runs_of(PAPER, system, DATA)
            path = folder_of(project, run) / f"translations/beam10/{split}.txt"
            lines = [f"{split} {system} {line}" for line in range(SENTENCES)]
            lines[77] *= system != EXAMPLE[0]  # the system with an empty output
            touch(path, "".join(f"{line}\n" for line in lines))
    rows = make_report("example-table", PAPER, "table3", tmp_path / "table3.csv")
    assert [row["ours"] for row in rows] == [f"test3 {kind} 77" for kind in ("zh", "en")] + [
        "",
        *(f"test3 {kind} 77" for kind in EXAMPLE[1:]),
    ]
    assert {row["item"]: row["bleu"] for row in rows if "EMB" in row["item"]}["RNN-EMB"] == "100.0"
    assert rows[0]["printed"].startswith("Hua Ren Zhi Ye")
    assert rows[0]["line"] == "78"
    text = (tmp_path / "table3.md").read_text(encoding="utf-8")
    assert text.count("(nothing)") == 1
    least, most = project.examples(PAPER, "table3").words
    assert least < 12 < most < 30 and f"the sentence of {least} to {most} words" in text
    assert "line 78 of grammar-film-test3, 12 words" in text
