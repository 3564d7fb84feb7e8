"""The external memory against its formulas, and what the specification says of it."""

import pytest
import torch

from pipeline.models.recurrent.external_memory import MemoryGRU

WRITES = ["forget_update", "tanh_content"]
MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


def memory(write: str = "forget_update") -> MemoryGRU:
    layer = MemoryGRU(4, 6, write)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer.double()


def sentences() -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and first cells."""
    return tuple(torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True) for _ in "xm")


def by_the_formulas(layer: MemoryGRU, x, cells, write: str):
    """States, final cells and the weights of each step, one sentence and one cell at a time."""
    w_f, w_u = layer.write_gates.chunk(2)
    addressing, all_states, all_cells, all_weights = layer.addressing, [], [], []
    for row, length in enumerate(MASK.sum(1).tolist()):
        m, s = list(cells[row]), torch.zeros(4).double()
        states = []
        for t in range(length):
            hidden = [addressing.query @ s + addressing.key @ m[i] + addressing.bias for i in range(length)]
            e = torch.stack([addressing.score @ torch.tanh(h) + addressing.offset[0] for h in hidden])
            w = e.softmax(0)
            r = torch.sigmoid(layer.read_gate @ s)
            c = sum(w[i] * (r * m[i]) for i in range(length))
            s = layer.gru.step(layer.gru.project(x[row, t]), c)
            f = torch.sigmoid(w_f @ s)
            written = torch.sigmoid(w_u @ s) if write == "forget_update" else f * torch.tanh(w_u @ s)
            m = [m[i] * (1 - w[i] * f) + w[i] * written if i < length else m[i] for i in range(5)]
            states.append(s)
            all_weights.append(w)
        all_states.append(torch.stack(states))
        all_cells.append(torch.stack(m))
    return all_states, torch.stack(all_cells), all_weights


@pytest.mark.parametrize("write", WRITES)
def test_states_cells_and_gradients_are_those_of_the_formulas(write):
    layer, (x, cells) = memory(write), sentences()
    states, final = layer(x, cells, MASK)
    expected_states, expected_final, weights = by_the_formulas(layer, x, cells, write)
    torch.testing.assert_close(final, expected_final, rtol=0, atol=1e-10)
    for row, expected in enumerate(expected_states):
        torch.testing.assert_close(states[row, : len(expected)], expected, rtol=0, atol=1e-10)
    assert all(abs(float(w.sum()) - 1) < 1e-12 for w in weights)
    of_states, of_cells = torch.randn_like(states) * MASK.unsqueeze(2), torch.randn_like(final)
    total = (states * of_states).sum() + (final * of_cells).sum()
    pieces = [(s * of_states[row, : len(s)]).sum() for row, s in enumerate(expected_states)]
    expected_total = sum(pieces) + (expected_final * of_cells).sum()
    leaves = [x, cells, *(weight for name, weight in layer.named_parameters() if not name.endswith("offset"))]
    for ours, theirs in zip(*(torch.autograd.grad(t, leaves) for t in (total, expected_total)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("write", WRITES)
def test_padded_cells_never_change(write):
    layer, (x, cells) = memory(write), sentences()
    final = layer(x, cells, MASK)[1]
    assert torch.equal(final[~MASK], cells[~MASK])
    assert not torch.isclose(final[MASK], cells[MASK]).all(-1).any()


def test_a_memory_that_neither_forgets_nor_is_written_to_stays_the_embeddings():
    """With F_t = U_t = 0: the gates' weights point away from a state that is 1 in every unit."""
    layer, (x, cells) = memory(), sentences()
    with torch.no_grad():
        layer.gru.weight_input.zero_()
        layer.gru.weight_state.zero_()
        layer.gru.bias.copy_(torch.tensor([0.0] * 4 + [-800.0] * 4 + [800.0] * 4))
        layer.write_gates.fill_(-800.0)
    states, final = layer(x, cells, MASK)
    assert torch.equal(states, torch.ones_like(states))
    assert torch.equal(final, cells)


def test_what_other_sentences_hold_makes_no_difference():
    layer, (x, cells) = memory(), sentences()
    states, final = layer(x, cells, MASK)
    alone_states, alone = layer(x[1:, :3], cells[1:, :3], MASK[1:, :3])
    torch.testing.assert_close(states[1, :3], alone_states[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(final[1, :3], alone[0], rtol=0, atol=1e-12)
