"""Training losses, and losses and samples of a validation."""

import contextlib
import math

import pytest
import torch
from gradients import with_gradients
from made_records import training_config

from pipeline.data.batches.corpus_batches import EvalBatches
from pipeline.data.batches.parallel_batches import ParallelBatches, ParallelSplit
from pipeline.models.architectures import build_model
from pipeline.models.kernels import cross_entropy
from pipeline.models.layers.loss import projected_cross_entropy
from pipeline.models.layers.regularisation import unrolled_logits
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.training import validation as validations
from pipeline.training.distributed import Group
from pipeline.training.validation import Validation


def naive(features, weight, bias, targets, smoothing):
    """-sum_v q(v) log p(v), q = 1 - eps on the target and eps / (V - 1) on the others."""
    log_probs = torch.nn.functional.linear(features, weight, bias).log_softmax(-1)
    spread = torch.full_like(log_probs, smoothing / (len(weight) - 1))
    target = spread.scatter(1, targets.unsqueeze(1), 1 - smoothing)
    return -(target * log_probs).sum(), -log_probs.gather(1, targets.unsqueeze(1)).sum()


def example(rows=37, width=12, vocab=50):
    features, weight, bias = torch.randn(rows, width), torch.randn(vocab, width), torch.randn(vocab)
    return *(x.requires_grad_() for x in (features, weight, bias)), torch.randint(vocab, (rows,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("chunk_rows", [1, 5, 100])
def test_value_and_gradient_equal_the_formula(smoothing, with_bias, chunk_rows, monkeypatch):
    monkeypatch.setattr(cross_entropy, "CHUNK_LOGITS", 50 * chunk_rows)
    features, weight, bias, targets = example()
    leaves = [features, weight, *([bias] if with_bias else [])]
    ours, nll = projected_cross_entropy(features, weight, bias if with_bias else None, targets, smoothing)
    expected, expected_nll = naive(features, weight, bias if with_bias else None, targets, smoothing)
    torch.testing.assert_close((ours, nll), (expected, expected_nll), rtol=1e-5, atol=0)
    assert not nll.requires_grad
    torch.testing.assert_close(with_gradients([3 * ours], leaves), with_gradients([3 * expected], leaves), **NEAR)


def test_bfloat16_autocast_stays_near_float32():
    features, weight, _, targets = example(rows=200, width=64, vocab=300)
    expected = naive(features, weight, None, targets, 0.1)[0]
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = projected_cross_entropy(features, weight, None, targets, 0.1)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=5e-3, atol=0)
    ours, reference = (torch.autograd.grad(value, [features, weight]) for value in (loss, expected))
    for gradient, by_formula in zip(ours, reference, strict=True):
        assert gradient.dtype == torch.float32
        assert (gradient - by_formula).norm() < 0.02 * by_formula.norm()


def test_loss_of_no_rows_is_zero():
    features, weight, bias, targets = example(rows=0)
    loss, nll = projected_cross_entropy(features, weight, bias, targets, 0.1)
    loss.backward()
    assert loss.item() == nll.item() == 0 and not weight.grad.any()


CPU = torch.device("cpu")


NEAR = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture
def model() -> torch.nn.Module:
    config = TransformerConfig(architecture="transformer", num_layers=1, d_model=16, d_ff=16, num_heads=2, dropout=0.5)
    return build_model(config, (24, 24)).train()


def updates(corpus) -> ParallelBatches:
    training = training_config(tokens_per_update=60, micro_batch_tokens=30, max_length=28)
    return ParallelBatches(ParallelSplit(corpus, "train"), training, seed=1)


def validation(corpus, batch_tokens: int, rank: int = 0, size: int = 1) -> Validation:
    batches = EvalBatches(ParallelSplit(corpus, "dev"), batch_tokens)
    return Validation(corpus, batches, updates(corpus), CPU, Group(rank, size), contextlib.nullcontext)


def test_perplexity_covers_all_targets_without_smoothing_dropout(copy_corpus, model, monkeypatch):
    smoothings, loss = set(), model.loss
    with monkeypatch.context() as patched:
        patched.setattr(model, "loss", lambda batch, smoothing: smoothings.add(smoothing) or loss(batch, smoothing))
        measured = validation(copy_corpus, 50).on_dev(model)
    assert smoothings == {0.0}, "a model may add its smoothing to the likelihood, or refuse any"
    log_probs, count = 0.0, 0
    model.eval()
    with torch.no_grad():
        for _, batch in EvalBatches(ParallelSplit(copy_corpus, "dev"), 1):
            found = unrolled_logits(model, batch, 0.0).double().log_softmax(-1)
            log_probs += float(found.gather(-1, batch.tgt_out.unsqueeze(-1)).sum())
            count += batch.tgt_out.numel()
    assert measured.tokens == count
    assert measured.nll_per_token == pytest.approx(-log_probs / count, rel=1e-5)
    assert measured.perplexity == pytest.approx(math.exp(-log_probs / count), rel=1e-4)


def test_processes_build_only_their_own_dev_batches(copy_corpus, model, monkeypatch):
    monkeypatch.setattr(Group, "total", lambda self, values, device: values)
    built, tokens = [], 0
    for rank in range(3):
        checked = validation(copy_corpus, 50, rank, size=3)
        batch = checked.batches.pairs.batch
        monkeypatch.setattr(checked.batches.pairs, "batch", lambda part, batch=batch: built.extend(part) or batch(part))
        tokens += checked.on_dev(model).tokens
    assert sorted(built) == list(range(40)) and tokens == validation(copy_corpus, 50).on_dev(model).tokens


def test_fit_loss_is_that_of_the_first_batches_without_dropout(copy_corpus, model):
    trained_on = updates(copy_corpus)
    measured = [validation(copy_corpus, tokens).on_training_data(model) for tokens in (9, 1000)]
    assert measured[0] == measured[1] and model.training
    batches = [batch for step in range(validations.FIT_STEPS) for batch in trained_on.micro_batches(step)]
    with torch.no_grad():
        losses = [model.eval().loss(batch, 0.0) for batch in batches]
    tokens = sum(loss.tokens for loss in losses)
    assert len(trained_on) > validations.FIT_STEPS and measured[0].tokens == tokens
    assert measured[0].nll_per_token == pytest.approx(sum(float(loss.nll) for loss in losses) / tokens, rel=1e-5)


def test_samples_are_the_same_three_and_keep_training_mode(copy_corpus, model):
    checked = validation(copy_corpus, 50)
    first, second = checked.samples(model), checked.samples(model)
    pairs = checked.batches.pairs
    texts = checked.tgt_symbols.decode([pairs.tgt[number] for number in range(len(pairs.tgt))])
    assert first == second
    assert [sample["reference"] for sample in first] == [texts[0], texts[len(texts) // 2], texts[-1]]
    assert all(sample["source"] == sample["reference"] != "" for sample in first)
    assert model.training
    model.loss(next(iter(EvalBatches(ParallelSplit(copy_corpus, "dev"), 50)))[1], 0.1).loss.backward()
