"""A plain PyTorch Transformer base, eager or compiled, as the rival of our training step in the same run.

Fused QKV, scaled dot-product attention, cross-entropy with label smoothing, bfloat16 autocast, fused Adam.
"""

from collections.abc import Callable

import torch
from agreement import Results
from cases import WORDS
from torch import Tensor, nn
from torch.nn import functional as F

ROWS, LENGTH = 834, 30
WIDTH, HIDDEN, HEADS, LAYERS, DROPOUT = 512, 2048, 8, 6, 0.1


def heads(x: Tensor) -> Tensor:
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, causal: bool, cross: bool):
        super().__init__()
        self.causal, self.cross = causal, cross
        self.query = nn.Linear(WIDTH, WIDTH if cross else 3 * WIDTH, bias=False)
        self.keys = nn.Linear(WIDTH, 2 * WIDTH, bias=False) if cross else None
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, source: Tensor | None = None) -> Tensor:
        if self.keys is not None:
            query, (key, value) = self.query(x), self.keys(source).chunk(2, -1)
        else:
            query, key, value = self.query(x).chunk(3, -1)
        read = F.scaled_dot_product_attention(heads(query), heads(key), heads(value), is_causal=self.causal)
        return self.out(read.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, decoder: bool):
        super().__init__()
        self.attention = Attention(causal=decoder, cross=False)
        self.cross = Attention(causal=False, cross=True) if decoder else None
        self.network = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, WIDTH))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3 if decoder else 2))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, source: Tensor | None = None) -> Tensor:
        x = self.norms[0](x + self.dropout(self.attention(x)))
        if self.cross is not None:
            x = self.norms[1](x + self.dropout(self.cross(x, source)))
        return self.norms[-1](x + self.dropout(self.network(x)))


class PlainTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.register_buffer("positions", torch.randn(LENGTH, WIDTH))
        self.encoder = nn.ModuleList(Layer(decoder=False) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Layer(decoder=True) for _ in range(LAYERS))
        self.dropout = nn.Dropout(DROPOUT)

    def embed(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.embedding(tokens) * WIDTH**0.5 + self.positions)

    def forward(self, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        x = self.embed(src)
        for layer in self.encoder:
            x = layer(x)
        y = self.embed(tgt_in)
        for layer in self.decoder:
            y = layer(y, x)
        logits = F.linear(y, self.embedding.weight).flatten(0, 1)
        return F.cross_entropy(logits, tgt_out.flatten(), label_smoothing=0.1)


def plain_step(device: torch.device, compiled: bool) -> Callable[[], Results]:
    """Return a function that trains the plain model on a batch of random sentences and returns its loss."""
    torch.use_deterministic_algorithms(False)
    model = PlainTransformer().to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    src, tgt_in, tgt_out = (torch.randint(4, WORDS, (ROWS, LENGTH), device=device) for _ in range(3))
    loss_of = torch.compile(model, dynamic=False) if compiled else model

    def step() -> Results:
        with torch.autocast(device.type, torch.bfloat16):
            loss = loss_of(src, tgt_in, tgt_out)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return {"losses": [loss.detach()]}

    return step
