"""Identities of Deep and Cold Fusion (Cold Fusion, sections 2.2, 3 and 4.4)."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from recurrent_models import convolutional_config, recurrent_config
from small_models import pairs, transformer_config
from speech_batches import FUSIONS, VOCAB, fused_recogniser, fusion_config, lm_config, speech

from pipeline.models.architectures import build_model
from pipeline.models.language_model.fusion import FusedModel, FusionLayer
from pipeline.models.language_model.model import LanguageModel, Ngram
from pipeline.models.layers.regularisation import unrolled_logits
from pipeline.models.seq2seq import count_parameters, parameters_by_part
from pipeline.models.settings import BOS
from pipeline.models.transformer.model import Transformer

every_row = pytest.mark.parametrize("row", FUSIONS)


def permuted(model: FusedModel) -> FusedModel:
    """The same, with the hidden units of the language model in another order and its weights reordered with them."""
    other = copy.deepcopy(model)
    lm, width = other.language_model, other.language_model.state_width
    order = previous = None
    for layer in range(lm.config.num_layers):
        previous, order = order, torch.randperm(width)
        rows = torch.cat([gate * width + order for gate in range(3)])
        for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh"):
            weight = lm.gru.get_parameter(f"{name}_l{layer}")
            weight.data = weight.data[rows]
            columns = order if name == "weight_hh" else previous if name == "weight_ih" else None
            if columns is not None:
                weight.data = weight.data[:, columns]
    lm.output.weight.data = lm.output.weight.data[:, order]
    return other


@every_row
@torch.no_grad()
def test_only_probability_projection_survives_lm_permutation(row):
    model, batch = fused_recogniser(row).eval(), speech([23, 9], [7, 4])
    other = permuted(model)
    lm_logits = [lm.logits(lm.hidden_states(batch.tgt_in)) for lm in (model.language_model, other.language_model)]
    torch.testing.assert_close(*lm_logits, rtol=0, atol=1e-6)
    before, after = unrolled_logits(model, batch, 0.0), unrolled_logits(other, batch, 0.0)
    if row in ("CF4", "R2"):
        torch.testing.assert_close(after, before, rtol=0, atol=1e-5)
    else:
        assert (after - before).abs().max() > 1e-4


@torch.no_grad()
def test_constant_added_to_lm_logits_does_not_change_fusion():
    layer = FusionLayer(fusion_config("CF4"), state_width=9, lm_width=8, vocab=VOCAB)
    state, lm_state, logits = torch.randn(4, 9), torch.randn(4, 8), torch.randn(4, VOCAB)
    torch.testing.assert_close(layer(state, lm_state, logits + 7.5), layer(state, lm_state, logits), rtol=0, atol=1e-5)
    assert not layer(state, lm_state, logits * 2).equal(layer(state, lm_state, logits))


@torch.no_grad()
@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_the_layer_of_the_last_row_is_equation_4_written_out(scale):
    config = fusion_config("CF4").model_copy(update={"logit_scale": scale})
    layer = FusionLayer(config, state_width=9, lm_width=8, vocab=VOCAB)
    s, logits = torch.randn(9), torch.randn(VOCAB)
    h = layer.project.weight @ (scale * (logits - logits.max())) + layer.project.bias
    g = torch.sigmoid(layer.gate.weight @ torch.cat((s, h)) + layer.gate.bias)
    r = torch.relu(layer.hidden.weight @ torch.cat((s, g * h)) + layer.hidden.bias)
    expected = layer.output.weight @ r + layer.output.bias
    torch.testing.assert_close(layer(s, torch.zeros(8), logits), expected, rtol=0, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("row", [row for row in FUSIONS if row != "CF4"])
def test_layers_of_other_rows_are_their_equations_written_out(row):
    """Equation 3, or equation 4 of a state; the literal reading R2 has ReLU in equation 4a and on its logits."""
    layer = FusionLayer(fusion_config(row), state_width=9, lm_width=8, vocab=VOCAB)
    s, lm_state, logits = torch.randn(9), torch.randn(8), torch.randn(VOCAB)
    h = torch.relu(layer.project.weight @ (logits - logits.max())) if row == "R2" else lm_state
    g = torch.sigmoid(layer.gate.weight @ (h if row == "DF0" else torch.cat((s, h))) + layer.gate.bias)
    fused = torch.cat((s, g * h))
    if row in ("DF3", "CF3"):
        fused = torch.relu(layer.hidden.weight @ fused + layer.hidden.bias)
    expected = layer.output.weight @ fused + layer.output.bias
    expected = torch.relu(expected) if row == "R2" else expected
    torch.testing.assert_close(layer(s, lm_state, logits), expected, rtol=0, atol=1e-5)


def test_gates_have_the_width_and_the_initial_bias_of_their_row():
    gates = {row: fused_recogniser(row).fusion.gate for row in FUSIONS}
    widths = {row: gate.out_features for row, gate in gates.items()}
    assert widths == {"DF0": 1, "DF1": 1, "DF2": 8, "DF3": 8, "CF1": 1, "CF2": 8, "CF3": 8, "CF4": 6, "R2": 6}
    assert gates["DF0"].in_features == 8 and gates["DF1"].in_features == 8 + 10
    assert all((gate.bias == (-1 if row.startswith("DF") else 0)).all() for row, gate in gates.items())


def test_parameters_of_the_fusion_at_the_papers_sizes():
    """Specification: V = 30, |s| = 1920, 256 units: 7936 + 557312 + 557312 + 7710."""
    config = fusion_config("CF4").model_copy(update={"width": 256})
    assert count_parameters(FusionLayer(config, state_width=1920, lm_width=1024, vocab=30)) == 1_130_270


def test_parameters_of_a_fused_recogniser_are_counted_by_part():
    model = fused_recogniser("CF4")
    parts = parameters_by_part(model)
    assert list(parts) == ["encoder", "attention", "embedding", "gru", "language_model", "fusion"]
    assert parts["language_model"] == sum(weight.numel() for weight in model.language_model.parameters())
    assert sum(parts.values()) == count_parameters(model) + parts["language_model"]


@torch.no_grad()
def test_hypotheses_of_an_utterance_do_not_see_each_other():
    model, batch = fused_recogniser("CF4").eval(), speech([23, 9], [4, 4])
    hypotheses = torch.randint(4, VOCAB, (2, 3, 5))
    source, cache = model.start(batch)
    cache = torch.utils._pytree.tree_map(lambda t: t.expand(-1, 3, *t.shape[2:]), cache)
    for position in range(5):
        logits, cache = model.step(hypotheses[..., position], source, cache)
    for k in range(3):
        expected = unrolled_logits(model, batch.reading(hypotheses[:, k]), 0.0)[:, -1]
        torch.testing.assert_close(logits[:, k], expected, rtol=0, atol=1e-5)


def updated(model: FusedModel) -> set[str]:
    """The parts whose weights an update changes; every part that is trained does."""
    before = copy.deepcopy(model.state_dict())
    weights = model.parameter_groups()["weights"]
    model.train().sampling_rate = 0.2
    model.loss(speech([23, 9], [7, 4]), 0.0).loss.backward()
    torch.optim.Adam(weights, lr=0.1).step()
    changed = {name for name, value in model.state_dict().items() if not value.equal(before[name])}
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert changed <= trained
    return {name.split(".")[0] for name in changed}


@every_row
def test_deep_fusion_trains_fusion_and_cold_fusion_the_task_too(row):
    assert updated(fused_recogniser(row)) == ({"fusion"} if row.startswith("DF") else {"fusion", "task"})


def test_fine_tuning_changes_the_fusion_alone():
    model = fused_recogniser("CF4")
    model.freeze_task()
    assert updated(model) == {"fusion"}


def test_frozen_parts_are_used_without_dropout():
    for row, task_is_trained in (("DF1", False), ("CF4", True)):
        task, lm = Transformer(transformer_config(dropout=0.5), 40, 40), LanguageModel(lm_config(dropout=0.5), 40)
        assert FusedModel(fusion_config(row), task, lm, 40).train().fusion.training
        assert task.training is task_is_trained and not any(module.training for module in lm.modules())
        assert task_is_trained or not any(module.training for module in task.modules())


TASKS = {
    "tied transformer": transformer_config(),
    "transformer": transformer_config(tie_embeddings="none"),
    "multi-channel encoder": recurrent_config("ntm-rnn-emb"),
    "convolutional": convolutional_config(),
}


@pytest.fixture
def fused_translation() -> Callable[[str], FusedModel]:
    """Fuse a translation model with a language model."""
    lm = LanguageModel(lm_config(), 40)
    return lambda task: FusedModel(fusion_config("CF4"), build_model(TASKS[task], (40, 40)), lm, 40).eval()


@pytest.mark.parametrize("task", TASKS)
@torch.no_grad()
def test_a_translation_model_is_fused_by_the_same_layer(task, fused_translation):
    model, batch = fused_translation(task), pairs([9, 4, 6], [7, 7, 7])
    stepwise = unrolled_logits(model, batch, 0.0)
    nll = -stepwise.log_softmax(-1).gather(-1, batch.tgt_out.unsqueeze(-1)).sum()
    torch.testing.assert_close(model.loss(batch, 0.0).nll, nll, rtol=1e-5, atol=0)


@torch.no_grad()
def test_ngram_model_can_replace_the_fused_language_model(fused_translation):
    """The layer reads, at every position, the logarithms of what follows the two symbols before."""
    model, batch = fused_translation("transformer"), pairs([9, 4, 6], [7, 7, 7])
    ngrams = Ngram(3, 40, [np.array(text) for text in ([7, 8, 9], [7, 8, 5], [9, 9])])
    states = model.task.states(batch)
    model.replace_language_model(ngrams)
    read = [[BOS] * 2 + row for row in batch.tgt_in.tolist()]
    after = [[ngrams.log_probs(tuple(row[t + 1 : t + 3])) for t in range(batch.tgt_in.shape[1])] for row in read]
    by_hand = model.fusion(states, states, torch.stack([torch.stack(row) for row in after]))
    torch.testing.assert_close(unrolled_logits(model, batch, 0.0), by_hand, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_only_a_fusion_of_logits_takes_another_language_model():
    other = LanguageModel(lm_config(hidden_width=11), VOCAB)
    with pytest.raises(ValueError, match="hidden states"):
        fused_recogniser("CF3").replace_language_model(other)
    model, batch = fused_recogniser("CF4").eval(), speech([23, 9], [7, 4])
    before = unrolled_logits(model, batch, 0.0)
    model.replace_language_model(other)
    assert not unrolled_logits(model, batch, 0.0).equal(before)
    assert not any(parameter.requires_grad for parameter in model.language_model.parameters())
