"""Interfaces that training and decoding use: sequence-to-sequence models, with and without a task state.

Dimensions: B sentences, K hypotheses per sentence, S source positions, T target positions, V target vocabulary.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Tree = Any
"""A tree of tensors: dicts, lists and tuples nested at will (`torch.utils._pytree`)."""
Item = TypeVar("Item", bound=nn.Module)


class Modules(nn.ModuleList, Generic[Item]):
    """`torch.nn.ModuleList` with the type of its items."""

    def __iter__(self) -> Iterator[Item]:
        return cast(Iterator[Item], super().__iter__())


class LossSums(NamedTuple):
    """Sums over the target symbols of a batch without padding, in nats."""

    loss: Tensor
    """Label-smoothed cross-entropy, to be differentiated."""
    nll: Tensor
    """Negative log-likelihood without smoothing, detached."""
    tokens: int


class Seq2Seq(nn.Module):
    """A model of p(target | source): a training loss, and incremental decoding."""

    sampling_rate: float = 0.0
    """Scheduled sampling: probability that the decoder reads its own prediction in training."""
    max_positions: int | None = None
    """Positions of a side, BOS or EOS included, that have a learned vector; None if unbounded."""

    def loss(self, batch, label_smoothing: float) -> LossSums:
        """Return the summed loss over all target symbols of a batch, teacher-forced, in nats.

        With scheduled sampling the decoder reads some of its own predictions in training.

        Args:
            batch: Source and target of B sentences.
            label_smoothing: ε in [0, 1), the probability mass taken from the target symbol.

        Raises:
            NotImplementedError: The architecture does not define it.
        """
        raise NotImplementedError

    def start(self, batch) -> tuple[Tree, Tree]:
        """Encode a batch and create the cache before the first target symbol.

        Returns:
            The source and the cache. The source has tensors (B, …) that all hypotheses of a sentence share, and that
            are never replicated. The cache has tensors (B, 1, …) of what a hypothesis has read so far.

        Raises:
            NotImplementedError: The model has no decoder, such as one trained with CTC alone.
        """
        raise NotImplementedError

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Score the next symbol of each hypothesis.

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            source: First result of `start`, shared by the hypotheses of a sentence.
            cache: Second result of `start`, or the cache of the previous step.

        Returns:
            Float32 logits (B, K, V) and the cache after this symbol.

        Raises:
            NotImplementedError: The model has no decoder, such as one trained with CTC alone.
        """
        raise NotImplementedError

    def fixed_cache(self, cache: Tree, places: int) -> Tree:
        """Convert a cache into one that keeps its shapes over `places` steps.

        A cache that never grows, such as that of a recurrent decoder, is returned as it is.

        Args:
            cache: Second result of `start`, or a fixed cache to which places are added.
            places: Total number of steps, including those that the cache has read.

        Returns:
            A cache for `step`, whose result has the same shapes.
        """
        return cache

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Return the trainable parameters: "weights" and, of a Weighted Transformer, "branch_weights"."""
        return {"weights": [weight for weight in self.parameters() if weight.requires_grad], "branch_weights": []}

    def replace_branch_weights(self, kind: Literal["learned", "random", "uniform"], seed: int) -> None:
        """Set all branch weights in place, if the model has them.

        Args:
            kind: Values to set: as learned, drawn at random, or all equal.
            seed: Seed of the random draws.

        Raises:
            NotImplementedError: The model has no branch weights.
        """
        raise NotImplementedError

    def after_step(self, frozen: bool, skip: Tensor | None = None) -> None:
        """Run after every optimiser step.

        Args:
            frozen: The branch weights got no step.
            skip: On the device, shape (): 1.0 if no parameter got one, else 0.0; None stands for 0.0.
        """

    def monitors(self) -> dict[str, list[float]]:
        """Return small values by name for the progress log."""
        return {}


class FrameModel(Seq2Seq):
    """A model that predicts a symbol for every frame at once, as CTC does; PAD stands for the blank."""

    def log_probs(self, batch) -> tuple[Tensor, Tensor]:
        """Compute log p(symbol | frame).

        Args:
            batch: Speech of B utterances.

        Returns:
            Float32 log-probabilities (B, S', V), and the output frames of each utterance (B,).

        Raises:
            NotImplementedError: The architecture does not define it.
        """
        raise NotImplementedError

    def best_path(self, batch) -> list[list[int]]:
        """Decode greedily: take the most probable symbol of each frame, merge repeats and remove blanks.

        Returns:
            Symbol ids of each utterance.

        Raises:
            NotImplementedError: The architecture does not define it.
        """
        raise NotImplementedError


class TaskModel(Seq2Seq):
    """A model whose decoder exposes a task state s_t, which a fusion reads (language_model/fusion.py)."""

    state_width: int
    output: Any
    """Its own output layer, if that is a module; a fusion removes it."""

    def advance(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        """Read the newest symbol of each hypothesis.

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            source: First result of `start`.
            cache: Second result of `start`, or the cache of the previous step.

        Returns:
            Task states (B, K, state_width) and the cache after this symbol.

        Raises:
            NotImplementedError: The architecture does not define it.
        """
        raise NotImplementedError

    def logits(self, states: Tensor) -> Tensor:
        """Return float32 logits (…, V) of task `states` (…, state_width), by the model's own output layer.

        Raises:
            NotImplementedError: The architecture does not define it.
        """
        raise NotImplementedError

    def states(self, batch) -> Tensor | None:
        """Return all task states (B, T, state_width), teacher-forced; None if the model needs a loop over steps."""
        return None

    def chosen_states(self, batch, choose: Callable[[int, Tensor], Tensor]) -> Tensor | None:
        """Compute the task states of a decoder that reads the symbols which `choose` selects.

        Args:
            batch: Source, and the number of target positions.
            choose: (position, task state before it (B, state_width)) -> symbols (B,) to read there.

        Returns:
            Task states (B, T, state_width), or None if the model has no such loop.
        """
        return None

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        states, cache = self.advance(prev_tokens, source, cache)
        return self.logits(states), cache


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """Return the number of scalars of each part of a model, frozen ones included.

    A shared tensor counts at its first part. The parts of a fused model are those of its task model, its fusion and its
    language model.
    """
    counts: dict[str, int] = {}
    for name, weight in model.named_parameters():
        part = name.removeprefix("task.").partition(".")[0]
        counts[part] = counts.get(part, 0) + weight.numel()
    return counts


def count_parameters(model: nn.Module) -> int:
    """Count the trainable scalars, shared tensors once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def count_parameters_on_meta(build: Callable[[], nn.Module]) -> int:
    """Count the trainable scalars of the model that `build` makes, shared ones once, without memory for them."""
    with torch.device("meta"):
        try:
            with ShapesOnly():
                return count_parameters(build())
        except (RuntimeError, TypeError, ValueError, LookupError):  # arithmetic that only the compiler knows
            return count_parameters(build())


class ShapesOnly(TorchFunctionMode):
    """Make a model on the meta device without torch's compiler, whose import takes a second.

    On that device torch asks the compiler for the shapes of normal deviates and norms, and for most arithmetic. Models
    compute initial values from ranges and uniform deviates, which are tensors of the CPU here, all ones for the latter.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.normal_ or func is nn.init.normal_:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        if func is Tensor.uniform_:
            return torch.ones((), device="cpu").expand(args[0].shape)
        if func is Tensor.norm:
            return args[0].select(kwargs["dim"], 0)
        if func is torch.rand and kwargs.get("device") is None:
            return torch.ones(*args, device="cpu")
        if func is torch.arange and kwargs.get("device") is None:
            return torch.arange(*args, **kwargs | {"device": "cpu"})
        return func(*args, **kwargs)
