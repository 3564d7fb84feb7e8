"""A forecast equals the counts of the training, from real or expected lengths."""

import numpy as np
import pytest
from made_records import parallel_corpus, parallel_split
from real_project import project_at

from pipeline.config import RunSpec, TrainingConfig
from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.data.batches.parallel_batches import ParallelBatches, ParallelSplit
from pipeline.data.sequence_store import write_tokens
from pipeline.models.settings import EOS, BatchShape, training_flops
from pipeline.planning.corpus_size import Corpus
from pipeline.planning.devices import COUNTED, NO_LAUNCHES, launch_counts, load_devices
from pipeline.planning.run_forecast import LONGER, forecast_run, forward_flops
from pipeline.training.state import FIT_STEPS

VOCABULARY = 50
MODEL = {"num_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 2}
TRAINING = {"max_steps": 40, "warmup_steps": 4, "tokens_per_update": 300, "micro_batch_tokens": 150, "max_length": 40}
TRAINING |= {"validate_every": 15, "checkpoint_every": 10, "keep_checkpoints": 3}


@pytest.fixture
def encoded(tmp_path):
    """An encoded corpus of random sentences."""
    rng = np.random.default_rng()
    splits = {}
    for split, pairs in (("train", 500), ("dev", 20), ("test", 20)):
        base = rng.integers(1, 35, pairs)
        tokens = {}
        for side in ("src", "tgt"):
            lengths = np.maximum(1, base + rng.integers(-3, 14, pairs))
            with write_tokens(tmp_path / f"encoded/{split}.{side}", VOCABULARY) as store:
                store.append(rng.integers(EOS + 1, VOCABULARY, lengths.sum()), lengths)
            tokens[f"{side}_tokens"] = int(lengths.sum())
        splits[split] = parallel_split(pairs, **tokens)
    parallel_corpus(VOCABULARY, splits=splits).write(tmp_path / "encoded/corpus.json")
    return tmp_path


def corpus_of(folder):
    return Corpus.of(None, folder)


def spec(**model):
    names = {"paper": "p", "system": "s", "dataset": "d", "scale": "smoke", "seed": 1, "corpus": ""}
    return RunSpec(**names, model={"architecture": "transformer", **MODEL, **model}, training=TRAINING)


def real_batches(folder):
    return ParallelBatches(ParallelSplit(folder / "encoded", "train"), TrainingConfig(**TRAINING), seed=1)


def test_the_mean_update_is_that_of_the_training(encoded):
    batches = real_batches(encoded)
    updates = [batches.micro_batches(step) for step in range(len(batches))]
    found = corpus_of(encoded).step_shape(TrainingConfig(**TRAINING))
    tokens, sentences = (
        sum(count(batch) for update in updates for batch in update) / len(batches)
        for count in (lambda batch: batch.num_tokens, lambda batch: len(batch.src))
    )
    assert (found.tgt_tokens, found.src_positions / found.src_length) == pytest.approx((tokens, sentences))
    mean = np.mean([sum(batch.tgt_out.numel() for batch in update) for update in updates])
    # Micro-batches are a little narrower than the widths by which updates are cut.
    assert mean <= found.tgt_positions <= 1.1 * mean


def test_operations_are_those_that_the_training_counts(encoded):
    run, batches, counted = spec(), real_batches(encoded), 0.0
    for step in range(len(batches)):
        for b in batches.micro_batches(step):
            sizes = (b.src.numel(), b.tgt_out.numel(), b.src.shape[1], b.tgt_out.shape[1])
            counted += training_flops(run.model, BatchShape(VOCABULARY, *sizes))
    found = forecast_run(run, corpus_of(encoded))
    assert found.step_flops == pytest.approx(counted / len(batches), rel=0.1)
    assert found.training_flops == 40 * found.step_flops
    assert found.tokens == 40 * found.step.tgt_tokens


def test_validations_and_decodings_are_counted(encoded):
    corpus, found = corpus_of(encoded), forecast_run(spec(), corpus_of(encoded))
    src, tgt = corpus.src_subwords + 1, corpus.tgt_subwords + 1
    once = training_flops(spec().model, BatchShape(VOCABULARY, 20 * src, 20 * tgt, src, tgt)) / 3
    again = FIT_STEPS * found.step_flops / 3
    assert found.validation_flops == pytest.approx(3 * (once + again))  # after updates 15, 30 and 40
    beam = project_at(encoded).decoding("attention", "base", "final").beam_size
    wide, narrow = (forward_flops(spec(), corpus, 100, hypotheses, LONGER) for hypotheses in (beam, 1))
    assert 2 < wide / narrow < beam


def test_disk_is_that_of_the_checkpoint_policy(encoded):
    found = forecast_run(spec(), corpus_of(encoded))
    assert found.kept_bytes == (3 + 1 + 3) * 4 * found.parameters
    assert found.peak_bytes == (3 + 1 + 9) * 4 * found.parameters


@pytest.mark.parametrize("dataset", ["wmt14-en-de", "grammar-en-de", "craft"])
def test_expected_lengths_have_the_means_of_the_dataset_file(tmp_path, dataset):
    record = project_at(tmp_path).dataset_records[dataset]
    src, tgt = Corpus.of(record, tmp_path).lengths
    assert src.mean() - 1 == pytest.approx(record.size.src_subwords, rel=0.05)
    assert tgt.mean() - 1 == pytest.approx(record.size.tgt_subwords, rel=0.05)


def test_a_corpus_of_unknown_size_is_named(tmp_path):
    record = project_at(tmp_path).dataset_records["wmt14-en-de"].model_copy(update={"size": None})
    with pytest.raises(UserError, match=r"wmt14-en-de\.yaml: `size` is missing"):
        Corpus.of(record, tmp_path)


@pytest.mark.parametrize(("system", "hours"), [("base", 12), ("big", 84)])
def test_forecast_on_eight_p100_matches_the_hours_of_the_paper(tmp_path, system, hours):
    project = project_at(tmp_path, scale="paper")
    run = project.run_spec(RunId("attention", system, "wmt14-en-de", 1))
    found = forecast_run(run, Corpus.of(project.dataset_records["wmt14-en-de"], tmp_path))
    rate = load_devices(ROOT / "workflow/devices.yaml")["P100"].rate("bf16")
    assert found.flops / rate / 8 / 3600 == pytest.approx(hours, rel=0.25)


def test_a_device_without_bfloat16_computes_in_single_precision():
    devices = load_devices(ROOT / "workflow/devices.yaml")
    assert devices["V100"].rate("bf16") == devices["V100"].rate("fp32")
    assert devices["A100"].rate("bf16") > 2 * devices["A100"].rate("fp32")


def test_a_variant_of_the_transformer_has_its_launches():
    own = spec()
    variant = own.model_copy(update={"model": own.model.model_copy(update={"architecture": "gated"})})
    assert launch_counts(variant) == COUNTED["transformer"] != NO_LAUNCHES
