"""Maps are the model's own attention, and a rule's choice is the one it describes."""

import torch

from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.models.transformer.model import Transformer
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.probes.attention_maps import choose, farthest, most_different, sharpest

H, N = 3, 12


def uniform(heads=H, n=N):
    return torch.full((heads, n, n), 1 / n)


def test_maps_are_softmax_of_the_layers_scaled_products():
    torch.manual_seed(0)
    config = TransformerConfig(architecture="transformer", num_layers=3, d_model=16, d_ff=8, num_heads=4)
    model = Transformer(config, 20, 20).eval()
    src = torch.randint(4, 20, (2, 7))
    src[1, 5:] = 0
    found = model.encoder_attention(TextBatch(src, src, src), 1)
    mask = (src != 0)[:, None, None, :]
    with torch.no_grad():
        x = model.encoder[0](model.embed(model.src_embedding, src, model.src_positions(0, 7)), mask)
        queries, keys, _ = model.encoder[1].attention.project(x)
        scores = (queries @ keys.transpose(-1, -2) / 2).masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(found, scores.softmax(-1))
    assert found[1, :, :, 5:].abs().max() == 0


def test_the_farthest_word_is_found():
    maps = uniform()
    maps[:, 2] = 0
    maps[:, 2, 10] = 1
    choice = farthest(maps)
    assert (choice.query, choice.heads) == (2, [0, 1, 2])
    assert choice.score == 1


def test_sharpest_heads_of_a_pronoun_skip_neighbours():
    tokens = ["▁a"] * N
    tokens[6] = "▁its"
    maps = uniform()
    maps[1, 6] = torch.eye(N)[2]
    maps[2, 6] = torch.eye(N)[5]  # the word just before
    maps[0, 6] = 0.5 * torch.eye(N)[3] + 0.5 / N
    choice = sharpest(tokens, maps)
    assert (choice.query, choice.heads) == (6, [1, 0])
    maps[0, 9] = maps[1, 9] = torch.eye(N)[0]
    assert sharpest(tokens, maps).query == 6
    assert sharpest(["▁a"] * N, maps).query == 9
    assert sharpest(tokens, maps[:1]) is None


def test_the_most_different_heads_are_found():
    maps = uniform()
    maps[2] = torch.eye(N)
    choice = most_different(maps)
    assert choice.heads == [0, 2]
    assert choice.score > 0.9
    assert most_different(uniform(heads=1)) is None


def test_the_last_two_symbols_do_not_count():
    maps = uniform()
    maps[:, :, -1] = 5
    for rule in ("distant", "contrast"):
        assert choose(rule, ["▁a"] * N, maps).score < 1
