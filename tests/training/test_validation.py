import math

import pytest
import torch
from made_records import training_config

from pipeline.data.batches.corpus_batches import EvalBatches
from pipeline.data.batches.parallel_batches import ParallelBatches, ParallelSplit
from pipeline.models.architectures import build_model
from pipeline.models.settings import PAD
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.training.distributed import Group
from pipeline.training.state import FIT_STEPS
from pipeline.training.step import micro_seed
from pipeline.training.validation import Validation

CPU = torch.device("cpu")


@pytest.fixture
def model() -> torch.nn.Module:
    torch.manual_seed(micro_seed(1, 2, 3))
    config = TransformerConfig(architecture="transformer", num_layers=1, d_model=16, d_ff=16, num_heads=2, dropout=0.5)
    return build_model(config, (24, 24)).train()


def updates(corpus) -> ParallelBatches:
    training = training_config(tokens_per_update=60, micro_batch_tokens=30, max_length=28)
    return ParallelBatches(ParallelSplit(corpus, "train"), training, seed=1)


def validation(corpus, batch_tokens: int) -> Validation:
    def precision():
        return torch.autocast("cpu", enabled=False)

    return Validation(
        corpus, EvalBatches(ParallelSplit(corpus, "dev"), batch_tokens), updates(corpus), CPU, Group(), precision
    )


def test_perplexity_covers_all_targets_without_smoothing_dropout(copy_corpus, model):
    measured = validation(copy_corpus, 50).on_dev(model)
    log_probs, count = 0.0, 0
    model.eval()
    with torch.no_grad():
        for _, batch in EvalBatches(ParallelSplit(copy_corpus, "dev"), 1):
            source, cache = model.start(batch)
            for token, target in zip(batch.tgt_in[0], batch.tgt_out[0], strict=True):
                logits, cache = model.step(token.view(1, 1), source, cache)
                assert target != PAD
                log_probs += float(logits[0, 0].double().log_softmax(-1)[target])
                count += 1
    assert measured.tokens == count
    assert measured.nll_per_token == pytest.approx(-log_probs / count, rel=1e-5)
    assert measured.perplexity == pytest.approx(math.exp(-log_probs / count), rel=1e-4)


def test_the_size_of_batches_does_not_matter(copy_corpus, model):
    small, large = (validation(copy_corpus, tokens).on_dev(model).nll_per_token for tokens in (9, 1000))
    assert small == pytest.approx(large, rel=1e-5)


def test_fit_loss_is_that_of_the_first_batches_without_dropout(copy_corpus, model):
    trained_on = updates(copy_corpus)
    measured = [validation(copy_corpus, tokens).on_training_data(model) for tokens in (9, 1000)]
    assert measured[0] == measured[1] and model.training
    model.eval()
    with torch.no_grad():
        losses = [model.loss(batch, 0.0) for step in range(FIT_STEPS) for batch in trained_on.micro_batches(step)]
    tokens = sum(loss.tokens for loss in losses)
    assert len(trained_on) > FIT_STEPS and measured[0].tokens == tokens
    assert measured[0].nll_per_token == pytest.approx(sum(float(loss.nll) for loss in losses) / tokens, rel=1e-5)


def test_samples_are_the_same_three_and_keep_training_mode(copy_corpus, model):
    checked = validation(copy_corpus, 50)
    first, second = checked.samples(model), checked.samples(model)
    assert first == second and len(first) == 3
    assert all(sample["source"] == sample["reference"] != "" for sample in first)
    assert model.training
    model.loss(next(iter(EvalBatches(ParallelSplit(copy_corpus, "dev"), 50)))[1], 0.1).loss.backward()
