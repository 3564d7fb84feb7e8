"""First weights of the recurrent models."""

import torch
from recurrent_models import dl4mt_config, recurrent_config
from small_models import VOCAB

from pipeline.models.architectures import build_model


def test_uniform_weights_fill_their_range_biases_included():
    model = build_model(recurrent_config("ntm-rnn-emb", init_scale=0.04), (VOCAB, VOCAB))
    for name, parameter in model.named_parameters():
        assert parameter.abs().max() <= 0.04, name
    drawn = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert drawn.max() > 0.0395 and drawn.min() < -0.0395 and abs(drawn.std() / 0.04 - 3**-0.5) < 0.03


def test_dl4mt_initialises_square_matrices_orthogonally():
    model = build_model(dl4mt_config(), (VOCAB, VOCAB))
    units = [model.encoder.forward_layer, model.encoder.backward_layer, model.decoder.first, model.decoder.second]
    square = [block for unit in units for block in unit.weight_state.chunk(3)]
    square += [model.decoder.attention.key, model.decoder.second.weight_input[:24]]
    for block in square:
        torch.testing.assert_close(block @ block.t(), torch.eye(len(block)), rtol=0, atol=1e-5)
    others = [model.src_embedding.weight, model.read_state.weight, model.output_weight, model.decoder.attention.query]
    others += [model.read_previous.weight, model.decoder.second.weight_input[24:], model.decoder.first.weight_input]
    for weight in others:
        assert weight.abs().max() < 0.06, weight.shape
    drawn = torch.cat([parameter.detach().flatten() for parameter in others])
    assert abs(drawn.std() / 0.01 - 1) < 0.1 and model.decoder.attention.score.any()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name


def test_the_draw_follows_the_seed():
    models = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        models.append(build_model(recurrent_config("ntm-rnn"), (VOCAB, VOCAB)).state_dict())
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])
    assert not any(torch.equal(models[0][name], models[2][name]) for name in models[0])
