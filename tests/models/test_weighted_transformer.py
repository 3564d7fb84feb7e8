import pytest
import torch
from gradients import with_gradients
from pydantic import ValidationError
from small_models import CONFIGS, VOCAB, pairs, weighted_config

from pipeline.models.architectures import build_model
from pipeline.models.kernels import relu_layers
from pipeline.models.transformer.multi_head_attention import OutputProjection, SelfAttention
from pipeline.models.weighted_transformer.model import BranchedOutput, WeightedTransformer

MODES = ("split", "shared")


def by_the_formula(block: BranchedOutput, context: torch.Tensor) -> torch.Tensor:
    """Eq. 6 and 7 branch by branch. context (B, T, M, d_v)"""
    kappa, alpha = block.branch_weights()
    branches, total, width = len(kappa), 0.0, context.shape[-1]
    for i in range(branches):
        bhead = context[..., i, :] @ block.output.weight[:, i * width : (i + 1) * width].T * kappa[i]
        share = block.config.d_ff // branches
        units = slice(i * share, (i + 1) * share) if block.config.ffn_mode == "split" else slice(None)
        hidden = torch.relu(bhead @ block.inner.weight[units].T + block.inner.bias[units])
        total = total + alpha[i] * (hidden @ block.outer.weight[:, units].T + block.outer.bias)
    return total


@pytest.mark.parametrize("ffn_mode", MODES)
@pytest.mark.parametrize("changes", [{}, {"normalisation": "softmax"}, {"merged": True}, {"top_k": 2}, {"d_v": 5}])
def test_block_and_its_gradients_follow_the_equations(ffn_mode, changes):
    config = weighted_config(ffn_mode=ffn_mode, **changes)
    block, context = BranchedOutput(config), torch.randn(3, 5, 4, config.value_width)
    torch.nn.init.normal_(block.inner.bias)
    torch.nn.init.normal_(block.outer.bias)
    found, expected = block(context), by_the_formula(block, context)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    weights = [*block.parameters()]
    gradients, theirs = with_gradients([found], weights), with_gradients([expected], weights)
    torch.testing.assert_close(gradients, theirs, rtol=1e-4, atol=1e-4)


@pytest.fixture
def fused(monkeypatch) -> None:
    """Let the model take the path of Triton kernels, for which plain formulas stand in."""
    monkeypatch.setattr(f"{BranchedOutput.__module__}.fused", lambda x: True)
    monkeypatch.setattr(relu_layers, "weighted_sum", lambda alpha, x: torch.einsum("m,m...->...", alpha, x))
    monkeypatch.setattr(
        relu_layers,
        "summed_branches",
        lambda x, weight, bias, alpha: torch.einsum("m,mnf->nf", alpha, torch.relu(x @ weight.T + bias)),
    )


@pytest.mark.parametrize("changes", [{}, {"normalisation": "softmax"}, {"top_k": 2}, {"branch_scale": "weights"}])
@pytest.mark.parametrize(("ffn_mode", "form"), [("split", None), ("shared", None), ("shared", "fused")])
def test_layer_with_residuals_kept_follows_its_equations(request, ffn_mode, form, changes):
    """y_i = LN(x + kappa_i head_i W^{O_i}) and LN(sum alpha_i y_i + sum alpha_i FFN_i(y_i)), branch by branch."""
    config = weighted_config(ffn_mode=ffn_mode, residuals="sub-layers", **changes)
    layer = WeightedTransformer(config, VOCAB, VOCAB).encoder_layer()
    block, x = layer.attention.mix, torch.randn(3, 5, 32)
    for parameter in (block.inner.bias, block.outer.bias, layer.attention_norm.norm.weight):
        torch.nn.init.normal_(parameter)
    kappa, alpha = block.branch_weights()
    times, share = 4 if changes.get("branch_scale") else 1, 48 // 4
    mean = update = 0.0
    for i in range(4):
        head = head_of(layer.attention, x, i)
        y = layer.attention_norm.norm(x + times * kappa[i] * head @ block.output.weight[:, 8 * i : 8 * i + 8].T)
        units = slice(i * share, (i + 1) * share) if ffn_mode == "split" else slice(None)
        hidden = torch.relu(y @ block.inner.weight[units].T + block.inner.bias[units])
        mean = mean + alpha[i] * y
        update = update + times * alpha[i] * (hidden @ block.outer.weight[:, units].T + block.outer.bias)
    if form:
        request.getfixturevalue(form)
    found, expected = layer(x, None), layer.feed_forward_norm.norm(mean + update)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    weights = [*layer.parameters()]
    gradients, theirs = with_gradients([found], weights), with_gradients([expected], weights)
    torch.testing.assert_close(gradients, theirs, rtol=1e-4, atol=1e-4)


def head_of(attention: SelfAttention, x: torch.Tensor, i: int) -> torch.Tensor:
    """softmax(Q K^T / sqrt(d_k)) V of one head, d_k = d_v = 8."""
    queries, keys, values = (x @ weight[8 * i : 8 * i + 8].T for weight in attention.qkv.weight.split(32))
    return torch.softmax(queries @ keys.transpose(1, 2) / 8**0.5, dim=-1) @ values


def test_branches_that_start_larger_differ_by_that_alone():
    drawn = []
    for scale in ("one", "start"):
        torch.manual_seed(5)
        drawn.append(BranchedOutput(weighted_config(branch_scale=scale)).state_dict())
    for name, weight in drawn[0].items():
        factor = 4 if name in ("output.weight", "outer.weight") else 1
        torch.testing.assert_close(drawn[1][name], factor * weight)


def test_branches_sum_to_multi_head_attention_with_identity_ffn():
    """The paper's remark on kappa = alpha = 1 needs a feed-forward network without its ReLU. With one, the identity is
    FFN(x) = max(0, x I) I - max(0, -x I) I, i.e. W_1 = [I, -I], W_2 = [I; -I]."""
    config = weighted_config(ffn_mode="shared", d_ff=64)
    attention = SelfAttention(config, BranchedOutput(config))
    block, identity = attention.mix, torch.eye(32)
    with torch.no_grad():
        block.kappa.fill_(1)
        block.alpha.fill_(1)
        block.inner.weight.copy_(torch.cat((identity, -identity)))
        block.outer.weight.copy_(torch.cat((identity, -identity)).T)
    plain = SelfAttention(config, OutputProjection(config))
    plain.load_state_dict(attention.state_dict(), strict=False)
    x = torch.randn(2, 6, 32)
    torch.testing.assert_close(attention(x, None, False), plain(x, None, False), rtol=0, atol=1e-5)


@pytest.mark.parametrize("ffn_mode", MODES)
def test_every_branch_is_initialised_by_its_own_number_of_inputs(ffn_mode):
    """Uniform in ±sqrt(3 / fan_in), where W^{O_i} has d_v inputs and W_2 of branch i d_ff / M, or d_ff where shared."""
    block = BranchedOutput(weighted_config(ffn_mode=ffn_mode, d_model=256, d_ff=512))
    for weight, fan_in in ((block.output.weight, 64), (block.outer.weight, 128 if ffn_mode == "split" else 512)):
        assert float(weight.abs().max()) == pytest.approx((3 / fan_in) ** 0.5, rel=1e-3)
        assert float(weight.var()) == pytest.approx(1 / fan_in, rel=0.05)


@pytest.mark.parametrize("merged", [False, True])
def test_weights_stay_on_the_simplex_after_every_step(merged):
    model = build_model(weighted_config(merged=merged), (VOCAB, VOCAB))
    groups = model.parameter_groups()
    assert sum(p.numel() for p in groups["branch_weights"]) == (2 if merged else 4) * 2 * 4
    optimiser = torch.optim.Adam([{"params": groups["weights"]}, {"params": groups["branch_weights"], "lr": 0.3}])
    for _ in range(3):
        optimiser.zero_grad()
        model.loss(pairs([9, 4], [3, 8]), 0.1).loss.backward()
        optimiser.step()
        model.after_step(frozen=False)
        for weights in groups["branch_weights"]:
            assert (weights >= 0).all() and abs(weights.sum().item() - 1) < 1e-6


@pytest.mark.parametrize("config", [*CONFIGS.values(), weighted_config(paired_layers=True)])
def test_groups_hold_every_parameter_once(config):
    model = build_model(config, (VOCAB, VOCAB))
    grouped = [id(p) for group in model.parameter_groups().values() for p in group]
    assert len(grouped) == len(set(grouped)) and set(grouped) == {id(p) for p in model.parameters()}


@pytest.mark.parametrize("normalisation", ["projection", "softmax"])
def test_weights_can_be_replaced(normalisation):
    model = build_model(weighted_config(normalisation=normalisation), (VOCAB, VOCAB))

    def weights(kind: str, seed: int = 0) -> torch.Tensor:
        model.replace_branch_weights(kind, seed)
        return torch.stack([torch.stack(block.branch_weights()) for block in model.blocks.values()]).detach()

    learned = torch.stack([torch.stack(block.branch_weights()) for block in model.blocks.values()]).detach()
    assert weights("learned").equal(learned)
    drawn = weights("random", seed=1)
    torch.testing.assert_close(drawn.sum(-1), torch.ones(4, 2))
    assert len(drawn.flatten().unique()) == drawn.numel()
    assert (weights("random", seed=2) - drawn).abs().max() > 0.01
    assert weights("random", seed=1).equal(drawn)
    torch.testing.assert_close(weights("uniform"), torch.full((4, 2, 4), 0.25))


def test_projected_start_keeps_differences_of_other_weights():
    """Away from the edge a projection adds one number to all; sqrt(3 / d) gives other weights a variance of 1 / d."""
    config = weighted_config(branch_start="projected", d_model=512)
    weights = torch.cat([torch.stack(BranchedOutput(config).branch_weights()) for _ in range(120)]).detach()
    torch.testing.assert_close(weights.sum(-1), torch.ones(240))
    assert (weights > 0).all() and float((weights.amax(-1) - weights.amin(-1)).max()) < 2 * (3 / 512) ** 0.5
    assert float(weights.var(dim=-1).mean()) == pytest.approx(1 / 512, rel=0.15)


def test_random_branch_weights_are_uniform_in_evaluation():
    block = BranchedOutput(weighted_config(weights="random"))
    first, second = block.branch_weights()[0], block.branch_weights()[0]
    assert not first.equal(second) and first.sum().item() == pytest.approx(1)
    assert block.eval().branch_weights()[1].tolist() == [0.25] * 4


def test_top_k_keeps_the_largest_weights_of_the_sum():
    """Section 4.5 replaces the summation of equation 7, so kappa stays as it is."""
    block = BranchedOutput(weighted_config(top_k=2))
    block.alpha.data.copy_(torch.tensor([0.1, 0.4, 0.2, 0.3]))
    kappa, alpha = block.branch_weights()
    assert alpha.tolist() == pytest.approx([0, 0.4, 0, 0.3])
    assert kappa.equal(block.kappa)


def test_monitors_name_the_weights_of_every_block():
    model = WeightedTransformer(weighted_config(), VOCAB, VOCAB)
    monitors = model.monitors()
    assert len(monitors) == 2 * 2 * 2
    assert monitors["encoder.1.kappa"] == model.encoder[1].attention.mix.kappa.tolist()
    assert monitors["decoder.0.alpha"] == model.decoder[0].cross_attention.mix.alpha.tolist()
    merged = WeightedTransformer(weighted_config(merged=True), VOCAB, VOCAB)
    assert set(merged.monitors()) == {f"{stack}.{layer}.kappa" for stack in ("encoder", "decoder") for layer in (0, 1)}


@pytest.mark.parametrize("merged", [False, True])
def test_paired_layers_train_half_as_many_branch_weights(merged):
    configs = [weighted_config(paired_layers=pair, merged=merged) for pair in (True, False)]
    paired, own = (build_model(config, (VOCAB, VOCAB)) for config in configs)
    sizes = [sum(weight.numel() for weight in model.parameter_groups()["branch_weights"]) for model in (paired, own)]
    assert sizes == [2 * 4 * (1 if merged else 2), 2 * 2 * 4 * (1 if merged else 2)]
    for group in paired.parameter_groups()["branch_weights"]:
        group.data += 0.3
    paired.after_step(frozen=False)
    monitors = paired.monitors()
    for name, values in monitors.items():
        assert values == monitors[name.replace("decoder", "encoder")] and sum(values) == pytest.approx(1)


MERGED = {"residuals": "sub-layers", "merged": True, "weights": "random"}
PROJECTED = {"branch_start": "projected", "normalisation": "softmax"}
PAIRED = {"paired_layers": True, "weights": "random"}
UNFIT = {
    "merged weights that are random": (MERGED, [{"residuals": "block"}, {"merged": False}, {"weights": "learned"}]),
    "branch_start: projected needs": (PROJECTED, [{"branch_start": "simplex"}, {"normalisation": "projection"}]),
    "paired_layers needs weights: learned": (PAIRED, [{"paired_layers": False}, {"weights": "learned"}]),
    "top_k 5 exceeds num_branches 4": ({"top_k": 5}, [{"top_k": 4}, {"num_branches": 8}]),
    "num_branches 6 must divide d_model 32": ({"num_branches": 6}, [{"num_branches": 8}, {"d_k": 3, "d_v": 5}]),
    "num_branches 32 must divide d_ff 48": ({"num_branches": 32}, [{"num_branches": 16}, {"ffn_mode": "shared"}]),
}


@pytest.mark.parametrize("message", UNFIT)
def test_weighted_config_refuses_each_inconsistent_combination(message):
    settings, mended = UNFIT[message]
    with pytest.raises(ValidationError, match=message):
        weighted_config(**settings)
    for change in mended:
        weighted_config(**settings | change)
