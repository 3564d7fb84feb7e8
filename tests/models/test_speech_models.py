"""The encoder, the attention recogniser, CTC and the language model on random speech."""

from dataclasses import replace

import pytest
import torch
from speech_batches import FEATURES, VOCAB, attention_config, ctc_config, lm_config, speech
from torch.nn import functional as F

from pipeline.models.ctc.model import BLANK, CTC, SequenceBatchNorm, ctc_loss
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.layers.regularisation import DecoderInputs, negated_gumbel_noise, sample, unrolled_logits
from pipeline.models.layers.speech_encoder import BidirectionalLSTM, SpeechEncoder, max_pool
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.models.speech_attention.model import AttentionRecogniser, HybridAttention


def test_bidirectional_lstm_equals_torch_on_single_utterances():
    layer, lengths = BidirectionalLSTM(3, 4), torch.tensor([7, 4, 1])
    reference = torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    for name, weight in layer.ahead.named_parameters():
        reference.get_parameter(name).data.copy_(weight)
        reference.get_parameter(f"{name}_reverse").data.copy_(layer.back.get_parameter(name))
    x = torch.randn(3, 7, 3)
    together = layer(x, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone, _ = reference(x[row : row + 1, :length])
        torch.testing.assert_close(together[row, :length], alone[0], rtol=0, atol=1e-6)


def test_max_pool_takes_pairs_and_keeps_an_odd_last_frame():
    x = torch.tensor([[1.0, 5.0, -3.0, 9.0], [-2.0, -1.0, -4.0, 9.0]]).unsqueeze(-1)
    values, lengths = max_pool(x, torch.tensor([4, 3]))
    assert values.squeeze(-1).tolist() == [[5, 9], [-1, -4]] and lengths.tolist() == [2, 2]


@torch.no_grad()
@pytest.mark.parametrize("stacking", [1, 2, 3])
@pytest.mark.parametrize("layers", [2, 3, 4])
def test_encoder_position_spans_its_frames_with_zeros_behind(stacking, layers):
    config, counts = attention_config(frame_stacking=stacking, encoder_layers=layers), [1, 7, 8, 9, 24, 25, 48, 61]
    assert config.frames_per_position == 4 * stacking
    values, real = SpeechEncoder(config)(torch.randn(8, 61, FEATURES), torch.tensor(counts))
    assert real.sum(1).tolist() == [-(-count // config.frames_per_position) for count in counts]
    assert not values[~real].any()


@torch.no_grad()
def test_ctc_says_of_as_many_frames_as_its_settings_count():
    config, counts = ctc_config(), [1, 2, 7, 16, 25]
    _, lengths = CTC(config, VOCAB).eval().log_probs(speech(counts, [1] * len(counts)))
    assert lengths.tolist() == [config.output_frames(count) for count in counts]


@torch.no_grad()
def test_attention_equals_the_formulas_of_chorowski_written_out():
    attention = HybridAttention(annotation_width=4, state_width=3, width=5, filters=2, filter_width=3)
    values, state, before = torch.randn(1, 6, 4), torch.randn(1, 1, 3), torch.rand(1, 1, 6).softmax(-1)
    mask = torch.tensor([[True] * 5 + [False]])
    context, alignment = attention(state, before, attention.prepare(values, mask))
    padded, energies = F.pad(before[0, 0], (1, 1)), []
    for j in range(5):
        f = torch.stack([(attention.filters[k] * padded[j : j + 3]).sum() for k in range(2)])
        compared = attention.of_state.weight @ state[0, 0] + attention.of_annotation.weight @ values[0, j]
        compared = compared + attention.of_location.weight @ f + attention.of_annotation.bias
        energies.append(attention.score.weight[0] @ torch.tanh(compared))
    expected = torch.stack(energies).softmax(0)
    torch.testing.assert_close(alignment[0, 0, :5], expected, rtol=0, atol=1e-6)
    assert alignment[0, 0, 5] == 0
    torch.testing.assert_close(context[0, 0], expected @ values[0, :5], rtol=0, atol=1e-6)


def test_location_filters_start_with_sums_of_unit_variance():
    attention = HybridAttention(annotation_width=4, state_width=3, width=5, filters=300, filter_width=9)
    assert float(attention.filters.detach().std()) == pytest.approx(9**-0.5, rel=0.08)


@pytest.mark.parametrize("gru_reads", ["this context", "last context"])
@pytest.mark.parametrize("task_state", ["state and context", "state"])
@torch.no_grad()
def test_task_states_are_those_of_the_decoder_written_out(gru_reads, task_state):
    """Character by character: what is asked for with which state, and what the GRU reads beside the last character."""
    batch, config = speech([37, 21], [6, 3]), attention_config(gru_reads=gru_reads, task_state=task_state)
    recogniser = AttentionRecogniser(config, VOCAB).eval()
    source, cache = recogniser.start(batch)
    state, alignment = cache["state"], cache["alignment"]
    context = torch.zeros(2, 1, source["values"].shape[-1])
    for symbol in batch.tgt_in.unsqueeze(-1).unbind(1):
        ours, cache = recogniser.advance(symbol, source, cache)
        if config.gru_reads == "this context":
            context, alignment = recogniser.attention(state, alignment, source)
        state = recogniser.gru(torch.cat((recogniser.embedding(symbol), context), -1)[:, 0], state[:, 0])[:, None]
        if config.gru_reads == "last context":
            context, alignment = recogniser.attention(state, alignment, source)
        expected = state if config.task_state == "state" else torch.cat((state, context), -1)
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-6)


@torch.no_grad()
def test_language_model_step_by_step_equals_the_whole_text():
    model, batch = LanguageModel(lm_config(), VOCAB).eval(), speech([9, 9], [5, 5])
    expected = model.logits(model.hidden_states(batch.tgt_in))
    torch.testing.assert_close(unrolled_logits(model, batch, 0.0), expected, rtol=0, atol=1e-6)
    real = expected.log_softmax(-1).gather(-1, batch.tgt_out.unsqueeze(-1)).sum()
    torch.testing.assert_close(model.loss(batch, 0.0).nll, -real, rtol=1e-5, atol=0)


def test_scheduled_sampling_has_its_rate_and_only_in_training(monkeypatch):
    """The recogniser's own predictions are made to be symbol 4 alone, which no reference holds."""
    model, seen, at = AttentionRecogniser(attention_config(), VOCAB), [], DecoderInputs.at
    model.output.bias.data[4] = 1e4
    monkeypatch.setattr(DecoderInputs, "at", lambda *given: seen.append(at(*given)) or seen[-1])
    batch = speech([9] * 200, [11] * 200)
    batch = batch.reading(batch.tgt_in.masked_fill(batch.tgt_in == 4, 5))
    model.sampling_rate = 0.2
    model.loss(batch, 0.0)
    inputs = torch.stack(seen, dim=1)
    assert (inputs[:, 0] == BOS).all()
    share = (inputs[:, 1:] == 4).float().mean()
    assert abs(share - 0.2) < 4 * (0.2 * 0.8 / 2200) ** 0.5
    assert inputs[inputs != 4].equal(batch.tgt_in[inputs != 4])
    seen.clear()
    model.eval().loss(batch, 0.0)
    assert torch.stack(seen, dim=1).equal(batch.tgt_in)


def test_sampled_symbols_follow_the_unreserved_distribution():
    logits = torch.randn(1, 1, 7).expand(20000, 1, 7)
    drawn = sample(logits, negated_gumbel_noise(tuple(logits.shape), logits.device))
    shares = torch.bincount(drawn.flatten(), minlength=7) / 20000
    reserved = torch.isin(torch.arange(7), torch.tensor([PAD, BOS, EOS]))
    expected = logits[0, 0].masked_fill(reserved, -torch.inf).softmax(-1)
    assert not shares[reserved].any()
    torch.testing.assert_close(shares, expected, rtol=0, atol=0.02)


def test_ctc_loss_equals_torch_even_if_a_text_is_too_long():
    """Loss and gradient to the byte, without lengths on the device; nine frames hold any five characters."""
    batch, scores = speech([20, 18, 4], [3, 5, 4]), torch.randn(3, 10, VOCAB)
    found, expected = (scores.log_softmax(-1).requires_grad_() for _ in range(2))
    loss = ctc_loss(found, ctc_config(), batch).loss
    counts = torch.tensor([10, 9, 2]), torch.tensor([3, 5, 4])
    options = {"blank": BLANK, "reduction": "sum", "zero_infinity": True}
    torchs = F.ctc_loss(expected.transpose(0, 1), batch.tgt_in[:, 1:], *counts, **options)
    assert torch.equal(loss, torchs)
    loss.backward(), torchs.backward()
    assert torch.equal(found.grad, expected.grad) and not found.grad[2].any() and found.grad[1].any()


def test_sequence_batch_norm_equals_torch_over_real_frames():
    ours, theirs = SequenceBatchNorm(5), torch.nn.BatchNorm1d(5)
    x, mask = torch.randn(3, 6, 5) * 2 + 1, torch.arange(6) < torch.tensor([[6], [2], [4]])
    for training in (True, False):
        found, expected = ours.train(training)(x, mask)[mask], theirs.train(training)(x[mask])
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close((ours.running_mean, ours.running_variance), (theirs.running_mean, theirs.running_var))


@torch.no_grad()
def test_residuals_join_equal_widths_and_precede_the_pooling():
    encoder, batch = SpeechEncoder(attention_config()), speech([24], [1])
    x = batch.frames
    for number, layer in enumerate(encoder.layers):
        heard = layer(x, torch.tensor([x.shape[1]]))
        x = x + heard if number else heard
        x = torch.maximum(x[:, ::2], x[:, 1::2]) if number < 2 else x
    torch.testing.assert_close(encoder(batch.frames, batch.frame_counts)[0], x)


@torch.no_grad()
def test_ctc_has_the_layers_of_deep_speech_2_written_out():
    """One utterance is so loud that the ReLU is clipped; normalisation has its initial mean 0 and variance 1."""
    model, batch = CTC(ctc_config(), VOCAB).eval(), speech([23], [1])
    x = loud = 100 * batch.frames.unsqueeze(1)
    for convolution, stride, padding in zip(model.convolutions, ((2, 2), (1, 2)), ((5, 20), (5, 10)), strict=True):
        heard = F.conv2d(x, convolution.weight, convolution.bias, stride, padding)
        x = heard.relu().minimum(torch.tensor(20.0))
        assert stride == (1, 2) or (heard > 20).any()
    assert x.shape[2:] == (12, 10)
    x = x.transpose(1, 2).flatten(2)
    for layer in model.layers:
        both = torch.nn.GRU(6, 6, batch_first=True, bidirectional=True)
        for name, weight in layer.ahead.named_parameters():
            both.get_parameter(name).copy_(weight)
            both.get_parameter(f"{name}_reverse").copy_(layer.back.get_parameter(name))
        x = both(layer.project(x) / (1 + 1e-5) ** 0.5)[0].unflatten(2, (2, 6)).sum(2)
    characters = [BLANK, *range(EOS + 1, VOCAB)]
    expected = model.output(x)[..., characters].log_softmax(-1)
    found, _ = model.log_probs(replace(batch, frames=loud.squeeze(1)))
    torch.testing.assert_close(found[..., characters], expected, rtol=0, atol=1e-4)


def test_the_best_path_ends_with_the_utterance(monkeypatch):
    model = CTC(ctc_config(), VOCAB)
    paths = torch.tensor([[5, 5, BLANK, 5, 6, 7], [8, BLANK, 8, 9, 10, 11], [4, 5, 6, 7, 8, 9]])
    log_probs = F.one_hot(paths, VOCAB).float().log_softmax(-1)
    monkeypatch.setattr(model, "log_probs", lambda batch: (log_probs, torch.tensor([4, 3, 6])))
    assert model.best_path(speech([12, 8, 9], [1, 1, 1])) == [[5, 5], [8, 8], [4, 5, 6, 7, 8, 9]]


@pytest.mark.parametrize("layers", [1, 3])
def test_dropout_between_layers_has_the_masks_of_a_torch_gru(layers):
    """Only torch's operator of dropout draws by the seed in a CUDA graph; cuDNN keeps random numbers of its own."""
    config = lm_config(num_layers=layers, dropout=0.5)
    model, tokens = LanguageModel(config, VOCAB), torch.randint(VOCAB, (4, 7))
    assert model.gru.dropout == 0
    sizes = config.embedding_width, config.hidden_width, layers
    torchs = torch.nn.GRU(*sizes, batch_first=True, dropout=0.5 if layers > 1 else 0.0)
    torchs.load_state_dict(model.gru.state_dict())
    for training in (True, False):
        model.train(training), torchs.train(training)
        torch.manual_seed(3)
        found = model.hidden_states(tokens)
        torch.manual_seed(3)
        assert torch.equal(found, torchs(model.embedding(tokens))[0])


def test_dropout_before_the_output_acts_in_training_alone():
    model, batch = LanguageModel(lm_config(num_layers=1, dropout=0.5), VOCAB), speech([9, 9], [8, 5])
    plain = LanguageModel(lm_config(num_layers=1, dropout=0.0), VOCAB)
    plain.load_state_dict(model.state_dict())
    assert model.loss(batch, 0.0).nll != model.loss(batch, 0.0).nll
    assert model.eval().loss(batch, 0.0).nll == plain.loss(batch, 0.0).nll
