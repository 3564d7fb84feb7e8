"""Table 1 of Attention Is All You Need on the layers that are timed: cost, path length, operations in sequence."""

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pipeline.probes.layer_cost import (
    HEADS,
    KERNEL,
    WIDTHS,
    WINDOW,
    additive_attention,
    layers,
    restricted_self_attention,
)

N, D = 100, 16
DEVICE = torch.device("cpu")


def test_a_convolution_costs_k_position_wise_layers():
    """O(k n d^2): k times the multiply-adds of a d x d map at every position."""
    x = torch.randn(1, N, D)
    counts = []
    for layer in (layers(D, DEVICE)["convolutional"], torch.nn.Linear(D, D)):
        with FlopCounterMode(display=False) as counter:
            layer(x)
        counts.append(counter.get_total_flops())
    convolution, position_wise = counts
    assert convolution == KERNEL * position_wise


def reaches(layer, depth, n):
    """Return whether the last output of a stack depends on the first input, by the gradient."""
    x = torch.randn(1, n, D, requires_grad=True)
    found = x
    for _ in range(depth):
        found = layer(found)
    (gradient,) = torch.autograd.grad(found[0, -1].sum(), x)
    return bool(gradient[0, 0].any())


@pytest.fixture
def float64():
    """Compute in float64: gradients of 99 convolutions may be too small for float32."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("self-attention", 1),
        ("recurrent", 1),  # one layer, inside which a path has n steps: see the chain below
        ("convolutional", math.ceil((N - 1) / (KERNEL // 2))),
        ("restricted self-attention", math.ceil((N - 1) / (WINDOW // 2))),
    ],
)
def test_layers_until_the_first_position_reaches_the_last(name, expected):
    """Both windows are centred, so that a layer carries half a window further."""
    torch.manual_seed(0)
    layer = layers(D, DEVICE)[name]
    assert reaches(layer, expected, N)
    assert expected == 1 or not reaches(layer, expected - 1, N)


def longest_chain(output):
    """Count the operations on the longest path through the graph of gradients."""
    depth, stack = {None: 0}, [output.grad_fn]
    while stack:
        sources = [source for source, _ in stack[-1].next_functions]
        unknown = [source for source in sources if source not in depth]
        if unknown:
            stack += unknown
        else:
            depth[stack.pop()] = 1 + max((depth[source] for source in sources), default=0)
    return depth[output.grad_fn]


def recurrence(d):
    """A plain recurrent layer as a loop: the fused module is one node of the graph."""
    cell = torch.nn.RNNCell(d, d)

    def run(x):
        state, outputs = torch.zeros(1, d), []
        for symbol in x.unbind(1):
            state = cell(symbol, state)
            outputs.append(state)
        return torch.stack(outputs, dim=1)

    return run


def test_only_recurrence_has_a_chain_that_grows_with_length():
    chains = {
        name: [longest_chain(layer(torch.randn(1, n, D, requires_grad=True))) for n in (20, 40, 80)]
        for name, layer in ({**layers(D, DEVICE), "recurrent": recurrence(D)}).items()
    }
    first, second, third = chains.pop("recurrent")
    assert third - second == 2 * (second - first) > 0
    assert all(len(set(found)) == 1 for found in chains.values()), chains


@pytest.mark.parametrize(
    ("layer", "score", "padding"),
    [
        (additive_attention, lambda query, key: torch.tanh(query + key).sum(), 0),
        (restricted_self_attention, lambda query, key: query @ key / math.sqrt(5), WINDOW - 7),  # zeros, which score 0
    ],
)
def test_attention_equals_its_written_out_scores(layer, score, padding):
    x = torch.randn(1, 7, 5)
    parts = [[math.exp(score(query, key)) for key in x[0]] for query in x[0]]
    weights = [[part / (sum(row) + padding) for part in row] for row in parts]
    torch.testing.assert_close(layer(x)[0], torch.tensor(weights) @ x[0], atol=1e-5, rtol=1e-4)


def test_heads_divide_every_width():
    assert [width % HEADS for width in WIDTHS] == [0] * len(WIDTHS)
