"""The seven systems of *Multi-channel Encoder*, and DL4MT, against their equations, word by word in NumPy.

The text has lost its equations. These are rebuilt from its prose, the works that it cites and its parameter counts.
"""

import numpy as np
import pytest
import torch
from recurrent_models import CHANNELS, dl4mt_config, recurrent_config
from small_models import pairs

from pipeline.models.architectures import build_model
from pipeline.models.recurrent.model import Recurrent
from pipeline.models.settings import PAD

READINGS = [{"memory_write": "forget_update"}, {"blending": "gru"}, {"backward_reads": "embeddings"}]
SYSTEMS = {
    **{channels: recurrent_config(channels) for channels in CHANNELS},
    **{f"{reading}": recurrent_config("ntm-rnn-emb", **reading) for reading in READINGS},
    "dl4mt": dl4mt_config(initialisation="uniform", init_scale=0.5),
}
Words = np.ndarray
"""One row per word of a sentence."""


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class Equations:
    """The equations for one sentence without padding, with the weights of a model."""

    def __init__(self, model: Recurrent):
        self.config = model.config
        self.weights = {name: weight.numpy() for name, weight in model.state_dict().items()}

    def embedded(self, side: str, symbols: np.ndarray) -> Words:
        return self.weights[f"{side}_embedding.weight"][symbols] + self.weights.get(f"{side}_embedding.bias", 0)

    def affine(self, name: str, x: np.ndarray) -> np.ndarray:
        return self.weights[f"{name}.weight"] @ x + self.weights[f"{name}.bias"]

    def gru(self, name: str, x: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Equations 7 and 8; the second unit of DL4MT's decoder resets the candidate's bias too."""
        of_input, of_state, biases = (
            self.weights[f"{name}.{part}"] for part in ("weight_input", "weight_state", "bias")
        )
        (w_r, w_z, w), (u_r, u_z, u), (b_r, b_z, b) = (np.split(part, 3) for part in (of_input, of_state, biases))
        r, z = sigmoid(w_r @ x + u_r @ h + b_r), sigmoid(w_z @ x + u_z @ h + b_z)
        resets_bias = self.config.reset_bias and name == "decoder.second"
        recurrent = r * (u @ h + b) if resets_bias else r * (u @ h) + b
        return z * h + (1 - z) * np.tanh(w @ x + recurrent)

    def attention(self, name: str, s: np.ndarray, annotations: Words) -> np.ndarray:
        """Equation 5: a weight for each word."""
        w, u, b, v, c = (self.weights[f"{name}.{part}"] for part in ("query", "key", "bias", "score", "offset"))
        exponentials = np.array([np.exp(v @ np.tanh(w @ s + u @ word + b) + c[0]) for word in annotations])
        return exponentials / exponentials.sum()

    def layer(self, name: str, inputs: Words, cells: Words) -> tuple[Words, Words]:
        """Section 3.1: states in reading order, and the memory at the end; without a memory, cells stay as they are."""
        state, states, cells = np.zeros(self.config.d_state), [], cells.copy()
        for x in inputs:
            if not self.config.has_memory:
                state = self.gru(name, x, state)
            else:
                weights = self.attention(f"{name}.addressing", state, cells)
                read = sigmoid(self.weights[f"{name}.read_gate"] @ state) * cells
                state = self.gru(f"{name}.gru", x, weights @ read)
                first, second = np.split(self.weights[f"{name}.write_gates"], 2)
                gate = sigmoid(first @ state)
                is_content = self.config.memory_write == "tanh_content"
                added = gate * np.tanh(second @ state) if is_content else sigmoid(second @ state)
                for cell, weight in zip(cells, weights, strict=True):
                    cell[:] = cell * (1 - weight * gate) + weight * added
            states.append(state)
        return np.array(states), cells

    def channels(self, x: Words) -> dict[str, Words]:
        """Section 3.1 and 4.4: the backward layer reads the forward states; both memories begin as embeddings."""
        ahead, memory_ahead = self.layer("encoder.forward_layer", x, x)
        inputs = ahead if self.config.backward_reads == "forward" else x
        back, memory_back = self.layer("encoder.backward_layer", inputs[::-1], x)
        return {"rnn": np.hstack((ahead, back[::-1])), "ntm": np.hstack((memory_ahead, memory_back)), "emb": x}

    def annotations(self, channels: dict[str, Words]) -> Words:
        """Section 3.2: the channels in the order of the system's name."""
        first, *others = (channels[name] for name in self.config.channels.split("-"))
        for number, other in enumerate(others):
            parts = (self.weights[f"encoder.blends.{number}.{part}"] for part in ("of_first", "of_second", "bias"))
            of_first, of_second, b_z = parts
            (w, p), (u, q) = np.split(of_first.T, 2, axis=1), np.split(of_second.T, 2, axis=1)
            z = sigmoid(first @ w + other @ u + b_z)
            if self.config.blending == "gate":
                first = z * (first @ p) + (1 - z) * (other @ q)
            else:
                first = (1 - z) * first + z * np.tanh(first @ p + other @ q)
        return first

    def logits(self, src: np.ndarray, tgt_in: np.ndarray) -> np.ndarray:
        """Sections 2 and 4.3: the conditional GRU, and an output layer, whose bias only DL4MT has."""
        channels = self.channels(self.embedded("src", src))
        annotations, rows = self.annotations(channels), []
        s = np.tanh(self.affine("start_state", channels["rnn"].mean(axis=0)))
        for y in self.embedded("tgt", tgt_in):
            middle = self.gru("decoder.first", y, s)
            c = self.attention("decoder.attention", middle, annotations) @ annotations
            s = self.gru("decoder.second", c, middle)
            read = self.affine("read_state", s) + self.affine("read_previous", y) + self.affine("read_context", c)
            rows.append(self.weights["output_weight"] @ np.tanh(read) + self.weights.get("output_bias", 0))
        return np.array(rows)


@pytest.mark.parametrize("name", SYSTEMS)
@torch.no_grad()
def test_logits_are_the_papers_equations_word_by_word(name):
    model, batch = build_model(SYSTEMS[name], (40, 40)).double().eval(), pairs([5, 3], [4, 6])
    found, equations = model.logits(model.states(batch)).numpy(), Equations(model)
    for row, sentence in enumerate(zip(batch.src.numpy(), batch.tgt_in.numpy(), strict=True)):
        src, tgt_in = (side[side != PAD] for side in sentence)
        np.testing.assert_allclose(found[row, : len(tgt_in)], equations.logits(src, tgt_in), rtol=0, atol=1e-5)
