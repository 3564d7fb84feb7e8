"""Cold Fusion as data: systems, table rows, controls, and proportions at each scale."""

from functools import cache, partial
from itertools import chain

import numpy as np
import pytest
from cell_runs import cell_runs
from real_project import real_project

from pipeline.core.provenance import ROOT
from pipeline.data.batches.fixed_size_batches import random_share
from pipeline.data.dataset import load_dataset
from pipeline.models.seq2seq import count_parameters_on_meta
from pipeline.training.run_model import build_run_model

DEEP, COLD = ("DF0", "DF1", "DF2", "DF3"), ("CF1", "CF2", "CF3", "CF4")
TUNED = {"tuned-0-6": 2048, "tuned-1-2": 4096, "tuned-2-4": 8192, "tuned-4-8": 16384, "tuned-9-5": 32768}
TARGET_UTTERANCES = 345_000
"""Section 4.1."""


at = cache(lambda scale: real_project({"scale": scale}))


@pytest.fixture
def project():
    return at("paper")


def spec(project, system, dataset="source"):
    (run,) = project.runs_of("coldfusion", system, dataset)
    return project.run_spec(run)


def test_settings_are_those_that_are_printed(project):
    model, training = spec(project, "attention-source").model, spec(project, "attention-source").training
    assert (model.features, model.encoder_layers, model.encoder_width, model.pooled_layers) == (40, 6, 480, 2)
    assert (model.decoder_width, model.task_state, model.frame_stacking) == (960, "state", 1)
    assert (training.optimiser, training.sentences_per_update, training.sorted_first_epoch) == ("adam", 64, True)
    assert (training.noise_probability, training.noise_snr_db, training.scheduled_sampling) == (0.4, (0, 15), 0.2)
    for name, width in (("lm-source", 512), ("lm-target", 512), ("lm-full", 1024)):
        lm = spec(project, name, "source-text")
        assert (lm.model.num_layers, lm.model.hidden_width, lm.training.sentences_per_update) == (3, width, 512)
    ctc = spec(project, "ctc").model
    assert (ctc.architecture, ctc.channels, ctc.num_layers) == ("ctc", 32, 5)


def test_recognisers_have_beam_128_and_no_length_normalisation(project):
    names = ("final", "shallow", "shallow-ctc", "swapped")
    decodings = [project.decoding("coldfusion", "CF4", name) for name in names]
    assert {(decoding.beam_size, decoding.length_normalisation) for decoding in decodings} == {(128, "none")}


def test_rows_of_a_fusion_differ_by_one_step_each(project):
    fusions = {row: spec(project, row).fusion for row in (*DEEP, *COLD)}
    read = {row: (fusion.gate_reads, fusion.gate, fusion.output, fusion.lm_feature) for row, fusion in fusions.items()}
    assert read == {
        "DF0": ("lm", "scalar", "affine", "state"),
        "DF1": ("task and lm", "scalar", "affine", "state"),
        "DF2": ("task and lm", "fine-grained", "affine", "state"),
        "DF3": ("task and lm", "fine-grained", "hidden", "state"),
        "CF1": ("task and lm", "scalar", "affine", "state"),
        "CF2": ("task and lm", "fine-grained", "affine", "state"),
        "CF3": ("task and lm", "fine-grained", "hidden", "state"),
        "CF4": ("task and lm", "fine-grained", "hidden", "logits"),
    }
    assert {fusion.width for fusion in fusions.values()} == {256}
    baseline, full = spec(project, "attention-source"), project.runs_of("coldfusion", "lm-full", "full-text")[0]
    for row in (*DEEP, *COLD):
        found = spec(project, row)
        assert found.model == baseline.model and found.language_model.run.endswith(full.folder)
        assert found.fusion.kind == ("deep" if row in DEEP else "cold")
    for row in DEEP:
        assert "/attention-source/" in spec(project, row).initial and fusions[row].gate_bias == -1
    for row in COLD:
        assert spec(project, row).initial is None and spec(project, row).training == baseline.training


@pytest.mark.parametrize("scale", ["paper", "small", "demo"])
@pytest.mark.parametrize(("family", "widest"), [("attention", "attention-source"), ("CF3", "CF3")])
def test_decoders_differ_only_in_width_by_printed_factors(scale, family, widest):
    whole = spec(at(scale), widest)
    width = whole.model.decoder_width
    for size in (64, 128, 256):
        found = spec(at(scale), f"{family}-{size}")
        assert found.model.decoder_width == pytest.approx(width * size / 960, abs=0.5)
        assert found.model.model_copy(update={"decoder_width": width}) == whole.model
        assert (found.training, found.fusion) == (whole.training, whole.fusion)


def test_table_4_is_the_relu_row_and_table_5_starts_from_cf4(project):
    printed = project.printed["coldfusion"]
    rows = {row["system"]: row for row in printed["table3"]}
    whole = next(row for row in printed["table4"] if (row["model"], row["decoder_size"]) == ("Cold Fusion", "960"))
    untuned = next(row for row in printed["table5"] if row["target_data_pct"] == "0")
    assert whole["system"] == "CF3" and untuned["system"] == "CF4"
    for name, row, columns in (("CF3", whole, ("source_cer", "source_wer")), ("CF4", untuned, ("target_wer",))):
        assert [float(row[key]) for key in columns] == [float(rows[name][key]) for key in columns]


def test_fine_tuning_trains_only_the_fusion_on_nested_shares(project):
    utterances, before, start = np.arange(TARGET_UTTERANCES), set(), spec(project, "CF4")
    for system, count in TUNED.items():
        found = spec(project, system)
        assert (found.training.trained_part, found.training.lr) == ("fusion", start.training.lr)
        assert (found.model, found.fusion) == (start.model, start.fusion) and "/CF4/" in found.initial
        assert found.dataset == project.stand_in("target")
        kept = set(random_share(utterances, found.training.train_share, seed=1).tolist())
        assert len(kept) == count and kept > before
        before = kept
    printed = {row["system"]: int(row["target_utterances_inferred"]) for row in project.printed["coldfusion"]["table5"]}
    assert TUNED.items() <= printed.items()


def test_controls_are_rows_of_the_ablations(project):
    rows = project.printed["coldfusion"]["ablations"]
    expected = {("attention-source", "final"), ("attention-source", "shallow"), ("ctc", "final")}
    expected |= {("CF4", "final"), ("CF4", "swapped")}
    expected |= {("CF4-source-lm", name) for name in ("swapped-ngrams", "final", "swapped")}
    assert {(row["system"], row["decoding"]) for row in rows} == expected
    assert expected <= {(cell.run.system, *cell.decodings) for cell in cell_runs(project, "coldfusion", "ablations")}
    shallow, swapped = (project.decoding("coldfusion", "CF4", name) for name in ("shallow", "swapped"))
    assert shallow.tuned and 0.0 in shallow.lm_weights
    assert (swapped.language_model, swapped.language_model_use) == ("lm-target@target-text", "instead")
    own, other = spec(project, "CF4"), spec(project, "CF4-source-lm")
    (source_text,) = project.runs_of("coldfusion", "lm-source", "source-text")
    assert other.language_model.run.endswith(source_text.folder)
    assert (other.model, other.fusion, other.training) == (own.model, own.fusion, own.training)


def test_attention_baseline_has_about_the_size_of_cold_fusion(project):
    """Trained parameters, without the language model, differ by less than a twentieth."""
    baseline, fused = (
        count_parameters_on_meta(partial(build_run_model, spec(project, system), (32, 32)))
        for system in ("attention-source", "CF4")
    )
    assert 1 < fused / baseline < 1.05


@pytest.mark.parametrize("scale", ["demo", "small", "smoke"])
def test_both_domains_have_the_same_readers(scale):
    project = at(scale)
    source, target = (project.dataset_records[project.stand_in(name)] for name in ("source", "target"))
    assert source.readers == target.readers and source.domain != target.domain
    assert (source.high_hz, source.max_seconds) == (target.high_hz, target.max_seconds)


@pytest.mark.parametrize("scale", ["paper", "small", "demo"])
def test_beams_are_half_and_twice_those_of_the_tables(scale):
    project = at(scale)
    for row in project.printed["coldfusion"]["beams"]:
        factor = {"half": 0.5, "as elsewhere": 1, "twice": 2}[row["beam"]]
        names = (row["decoding"], "final")
        size, usual = (project.decoding("coldfusion", row["system"], name).beam_size for name in names)
        assert size == factor * usual


def test_full_text_contains_every_line_of_the_single_domains():
    """Table 2: the full text is that of both domains and more. Every n-th line from the first one on is taken."""
    full, *single = (
        load_dataset(ROOT / f"workflow/datasets/{name}-text.yaml").text.splits["train"]
        for name in ("librispeech-tedlium3", "librispeech", "tedlium3")
    )
    taken = {part.source: part for part in full}
    for part in chain(*single):
        assert taken[part.source].model_copy(update={"every": part.every}) == part
        assert part.every > taken[part.source].every and part.every % taken[part.source].every == 0
