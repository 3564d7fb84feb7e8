"""What training and decoding ask of every sequence-to-sequence model.

Dimensions: B sentences, K hypotheses per sentence, S source subwords, T target subwords, V target vocabulary.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from torch import Tensor, nn

# A tree of tensors: dicts, lists and tuples nested at will (`torch.utils._pytree`).
Tree = Any


class LossSums(NamedTuple):
    """Sums over a batch's non-padding target subwords, in nats."""

    loss: Tensor
    """Label-smoothed cross-entropy, to be differentiated."""
    nll: Tensor
    """Negative log-likelihood without smoothing, detached."""
    tokens: int


class Seq2Seq(nn.Module):
    """A model of p(target | source): a training loss, and incremental decoding."""

    sampling_rate: float = 0.0
    """Scheduled sampling: how often a model that is trained position by position reads its own prediction."""
    max_positions: int | None = None
    """Positions of a side, its BOS or EOS among them, that there are vectors for; None where they have no end."""

    def loss(self, batch, label_smoothing: float) -> LossSums:
        """Summed loss of a `TextBatch`, teacher-forced."""
        raise NotImplementedError

    def start(self, batch) -> tuple[Tree, Tree]:
        """(source, cache) before the first target subword.

        source: tensors (B, …), shared by all hypotheses of a sentence and never replicated.
        cache: tensors (B, K=1, …), what a hypothesis has read so far.
        """
        raise NotImplementedError

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """prev_tokens (B, K), the newest subword of each hypothesis -> (float32 logits (B, K, V), the cache grown)."""
        raise NotImplementedError

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Parameters by learning-rate schedule: "weights", and "branch_weights" where a model has them."""
        return {"weights": [weight for weight in self.parameters() if weight.requires_grad], "branch_weights": []}

    def replace_branch_weights(self, kind: Literal["learned", "random", "uniform"], seed: int) -> None:
        """Set all branch weights, in place; of models that have them."""
        raise NotImplementedError

    def after_step(self, frozen: bool) -> None:
        """Called after every optimiser step; `frozen` says whether the branch weights were left alone."""

    def monitors(self) -> dict[str, list[float]]:
        """Small values worth following over a training, by name; the progress log has them now and then."""
        return {}


class FrameModel(Seq2Seq):
    """A model that gives the symbols of all frames at once, PAD for none, as CTC does: decoded by prefix search."""

    def log_probs(self, batch) -> tuple[Tensor, Tensor]:
        """log p(symbol | frame), (B, S', V) float32, and the frames of each utterance (B,)."""
        raise NotImplementedError

    def best_path(self, batch) -> list[list[int]]:
        """What the most probable symbols of the frames stand for: the fastest guess."""
        raise NotImplementedError


class TaskModel(Seq2Seq):
    """A model whose decoder shows its task state s_t: what a language model can be fused with (fusion/model.py)."""

    state_width: int
    output: Any
    """Its own output layer, if that is a module; a fusion removes it."""

    def advance(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """prev_tokens (B, K) -> (task states (B, K, state_width), the cache grown)."""
        raise NotImplementedError

    def logits(self, states: Tensor) -> Tensor:
        """The model's own output layer, which a fusion takes the place of: (…, state_width) -> float32 (…, V)."""
        raise NotImplementedError

    def states(self, batch) -> Tensor | None:
        """Task states (B, T, state_width) of all target positions, teacher-forced; None where one needs the other."""
        return None

    def chosen_states(self, batch, choose: Callable[[int, Tensor], Tensor]) -> Tensor | None:
        """The same where `choose` says what is read at a position, (B,), of its number and the task state before it,
        (B, state_width); None of a model that has no such loop."""
        return None

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        states, cache = self.advance(prev_tokens, source, cache)
        return self.logits(states), cache


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """Scalars of each part, frozen ones among them, shared tensors counted where they come first.

    Of a fused model, the parts of its task model, its fusion and its language model.
    """
    counts: dict[str, int] = {}
    for name, weight in model.named_parameters():
        part = name.removeprefix("task.").partition(".")[0]
        counts[part] = counts.get(part, 0) + weight.numel()
    return counts


def count_parameters(model: nn.Module) -> int:
    """Scalars that are trained, shared tensors counted once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
