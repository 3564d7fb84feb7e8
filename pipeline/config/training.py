"""Settings of a training and of a decoding."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import NUMBER, Closed, Count, CountOrNone, Number, Positive, Probability, Seed

Decibels = Annotated[float, Field(ge=-200, le=200, strict=False, allow_inf_nan=False), NUMBER]


class TrainingConfig(Closed):
    """Settings by which a model is trained. Token counts include padding."""

    read_by: ClassVar[dict[str, dict[str, list[str]]]] = {
        "schedule": {
            "inverse_sqrt": ["warmup_steps", "lr_factor"],
            "constant": ["lr"],
            "plateau": ["lr", "plateau_factor", "plateau_annealing", "min_lr"],
            "cosine": ["lr", "warmup_steps"],
        },
        "optimiser": {
            "adam": ["adam_beta1", "adam_beta2", "adam_eps"],
            "adadelta": ["adadelta_rho", "adadelta_eps"],
            "nag": ["momentum"],
        },
    }

    max_steps: Count = Field(description="Maximum number of training steps")
    optimiser: Literal["adam", "adadelta", "nag"] = Field(
        default="adam", description="nag: gradient descent with Nesterov's momentum"
    )
    schedule: Literal["inverse_sqrt", "constant", "plateau", "cosine"] = Field(
        default="inverse_sqrt",
        description="Learning rate. inverse_sqrt: eq. 3 of Vaswani et al.; constant: lr; plateau: lr, lowered when the "
        "development loss stops falling; cosine: linear warm-up to lr, then half a cosine, to 0 after max_steps",
    )
    warmup_steps: Count | None = Field(
        default=None, description="inverse_sqrt, cosine: steps of linear warm-up (eq. 3)"
    )
    lr_factor: Positive = Field(default=1.0, description="inverse_sqrt: factor of the learning rate")
    lr: Positive | None = Field(
        default=None, description="Learning rate of constant, first one of plateau, highest one of cosine"
    )
    plateau_factor: Number = Field(
        default=0.5, gt=0, lt=1, description="plateau: factor by which the learning rate is lowered"
    )
    plateau_annealing: Literal["slow", "fast"] = Field(
        default="slow",
        description="plateau: slow: lower at each validation without a new best; fast: once lowered, at every one",
    )
    min_lr: Positive | None = Field(
        default=None, description="plateau: training ends when the learning rate falls below this; null = never"
    )
    adam_beta1: Probability = 0.9
    adam_beta2: Probability = 0.98
    adam_eps: Positive = 1e-9
    adadelta_rho: Probability = 0.95
    adadelta_eps: Positive = 1e-6
    momentum: Probability = Field(default=0.99, description="Momentum of nag")
    label_smoothing: Probability = Field(
        default=0.1, description="eps_ls: probability mass spread over the other symbols"
    )
    tokens_per_update: Count | None = Field(
        default=None, description="Maximum number of tokens per side and step, summed over all devices"
    )
    sentences_per_update: Count | None = Field(
        default=None, description="Sentence pairs, utterances or sentences per step; replaces tokens_per_update"
    )
    loss_mean: Literal["token", "sentence"] = Field(
        default="token", description="Unit over which the loss of a step is averaged"
    )
    micro_batch_tokens: Count = Field(
        default=8192,
        description="Tokens per side in a micro-batch of one device; gradients are accumulated over micro-batches",
    )
    max_length: Count = Field(default=256, description="Subwords per side; longer pairs are left out and counted")
    clip_norm: Positive | None = Field(default=None, description="Largest global gradient norm; null = no clipping")
    validate_every: Count = Field(description="Steps between validations")
    patience: Count | None = Field(
        default=None, description="Training ends after this many validations without a new best; null = after max_steps"
    )
    checkpoint_every: Count = Field(description="Steps between checkpoints that are kept for averaging")
    keep_checkpoints: Count = Field(default=20, description="Number of checkpoints kept, the newest ones")
    precision: Literal["fp32", "bf16"] = Field(
        default="fp32", description="Precision of matrix multiplications (autocast)"
    )
    branch_warmup_steps: Count | None = Field(
        default=None, description="Steps of warm-up of kappa and alpha (printed: 400)"
    )
    branch_lr_factor: Positive = Field(default=1.0, description="Factor of the learning rate of kappa and alpha")
    branch_freeze_steps: CountOrNone | None = Field(
        default=None, description="Number of last steps in which kappa and alpha are frozen (printed: 10000)"
    )
    scheduled_sampling: Probability = Field(
        default=0.0,
        description="Probability that a position is fed the model's own prediction instead of the reference",
    )
    trained_part: Literal["all", "fusion"] = Field(
        default="all",
        description="fusion: train the fusion layer alone; all other weights stay as in the `initial` run",
    )
    train_share: Number = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of the training data used; a smaller share is a subset of a larger one",
    )
    sorted_first_epoch: bool = Field(
        default=False, description="Speech: sort the first epoch from short to long utterances (SortaGrad)"
    )
    micro_batch_frames: Count = Field(default=100_000, description="Speech: frames in a micro-batch of one device")
    max_frames: Count = Field(
        default=3000, description="Speech: longest utterance, frames; longer ones are left out and counted"
    )
    noise_probability: Probability = Field(
        default=0.0, description="Speech: probability that noise is added to an utterance"
    )
    noise_snr_db: tuple[Decibels, Decibels] = Field(
        default=(0.0, 15.0), strict=False, description="Speech: lowest and highest signal-to-noise ratio, dB"
    )
    cuda_graphs: bool = Field(
        default=True,
        description="On a GPU, replay steps and searches as CUDA graphs, padded to a few shapes; false: run eagerly",
    )
    tensorboard: bool = Field(default=False, description="Also write progress as TensorBoard event files to events/")

    @model_validator(mode="after")
    def check_batch_size(self):
        """Return the settings if they give one batch size.

        Raises:
            ValueError: None is given, or two.
        """
        if (self.tokens_per_update is None) == (self.sentences_per_update is None):
            raise ValueError("needs exactly one of tokens_per_update and sentences_per_update")
        return self

    @model_validator(mode="after")
    def check_schedule(self):
        """Return the settings if schedule and ranges fit.

        Raises:
            ValueError: A setting is missing, or a range is empty.
        """
        needed = "warmup_steps" if self.schedule == "inverse_sqrt" else "lr"
        if getattr(self, needed) is None:
            raise ValueError(f"schedule {self.schedule} needs {needed}")
        if self.min_lr and self.lr and self.min_lr > self.lr:
            raise ValueError(f"min_lr {self.min_lr} is above lr {self.lr}: training would end at once")
        if self.noise_probability and self.noise_snr_db[0] > self.noise_snr_db[1]:
            raise ValueError("noise_snr_db: write the lowest ratio first, got {}, {}".format(*self.noise_snr_db))
        return self


class DecodingSettings(Closed):
    """Settings of a decoding, not yet checked against each other."""

    read_by: ClassVar[dict[str, dict[str, list[str]]]] = {
        "length_normalisation": {"gnmt": ["length_penalty"], "length": ["length_penalty"], "none": []},
        "branch_weights": {"learned": [], "random": ["branch_weights_seed"], "uniform": []},
    }

    beam_size: int = Field(default=4, ge=1, le=1000)
    length_penalty: Number = Field(default=0.6, ge=0, le=10, description="alpha of ((5+|Y|)/6)^alpha or |Y|^alpha")
    length_normalisation: Literal["gnmt", "length", "none"] = "gnmt"
    max_extra_length: int = Field(
        default=50,
        ge=1,
        le=10_000,
        description="Maximum number of symbols by which the output may be longer than the source, or for speech than a "
        "third of its frames",
    )
    average_last: Count = Field(default=1, description="Number of checkpoints averaged; 1 = the final weights alone")
    averaged: Literal["last", "best"] = Field(
        default="last", description="Checkpoints averaged: the last, or the kept ones with the lowest development loss"
    )
    branch_weights: Literal["learned", "random", "uniform"] = Field(
        default="learned", description="kappa and alpha of a Weighted Transformer at test time (Table 3 of its paper)"
    )
    branch_weights_seed: Seed = Field(default=1, description="Seed of `random` branch weights")
    batch_tokens: Count = Field(default=4096, description="Source subwords (speech: frames) decoded at once")
    language_model: str | None = Field(
        default=None, description="Language model used in decoding: `system@dataset` or `paper/system@dataset`"
    )
    language_model_use: Literal["beside", "instead"] = Field(
        default="beside",
        description="beside: shallow fusion; instead: replaces the language model that the model was fused with",
    )
    ngram_order: Annotated[int, Field(ge=2, le=20)] | None = Field(
        default=None,
        description="Order of an n-gram model used instead, of all training text of language_model or of the model",
    )
    lm_weight: Number = Field(
        default=0.0, ge=0, le=1e4, description="λ, the weight of the language model in shallow fusion"
    )
    ctc_weight: Number = Field(
        default=0.3, ge=0, le=1, description="γ, the weight of CTC in joint decoding; the decoder has weight 1 - γ"
    )
    word_bonus: Number = Field(default=0.0, ge=-1e4, le=1e4, description="β, a bonus for every word in CTC decoding")
    lm_weights: list[Annotated[float, Field(ge=0, le=1e4, strict=False, allow_inf_nan=False), NUMBER]] = Field(
        default=[], description="Values of λ to tune on the development set of the run's dataset; empty = use lm_weight"
    )
    word_bonuses: list[Annotated[Number, Field(ge=-1e4, le=1e4)]] = Field(
        default=[0.0], min_length=1, description="Values of β to tune together with lm_weights"
    )
    tuning_sentences: Count = Field(
        default=500, description="Number of evenly spaced development sentences used for tuning"
    )
    tuned_with: list[str] = Field(
        default=[],
        description="Further runs, as `system@dataset`, whose development sets choose λ and β together with the run's "
        "own; error rates are averaged over runs",
    )


class DecodingConfig(DecodingSettings):
    """Settings by which a trained model is decoded."""

    @model_validator(mode="after")
    def check_language_model(self):
        """Return the settings if the weights of language models fit.

        Raises:
            ValueError: A weight has no language model, fixed weights are given together with weights to tune, or
                further runs tune nothing.
        """
        there, beside = self.reads_language_model, self.language_model_use == "beside"
        if (self.lm_weight or self.tuned) and not (there and beside):
            raise ValueError("lm_weight and lm_weights need a language_model or ngram_order, used beside the model")
        if self.tuned_with and not self.tuned:
            raise ValueError("tuned_with needs lm_weights to tune")
        if self.tuned and (self.lm_weight or self.word_bonus):
            raise ValueError("lm_weight and word_bonus must be 0 if lm_weights is set; or leave out lm_weights")
        if not (there or beside):
            raise ValueError("language_model_use: instead needs a language_model or ngram_order")
        return self

    @property
    def reads_checkpoints(self) -> bool:
        """Return whether other weights than the final ones are decoded."""
        return self.average_last > 1 or self.averaged == "best"

    @property
    def reads_language_model(self) -> bool:
        """Return whether an external language model or n-gram model is used."""
        return bool(self.language_model or self.ngram_order)

    @property
    def zero_weight_fault(self) -> str:
        """Return a message if a language model has weight 0 and is not tuned, else an empty text."""
        weighted = self.lm_weight or self.tuned or self.language_model_use == "instead" or not self.reads_language_model
        return "" if weighted else "its language model has weight 0: set lm_weight, or lm_weights to tune it"

    @property
    def tuned(self) -> bool:
        """Return whether λ and β are tuned on the development set."""
        return bool(self.lm_weights)

    def changed_since(self, recorded: Mapping[str, Any]) -> list[str]:
        """Return the settings that differ from those `recorded` beside an output (see `differing_settings`)."""
        return differing_settings(self.model_dump(mode="json"), recorded)


def differing_settings(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the settings in which two decodings differ, except ones that change no output.

    Tuned weights are recorded by their values, and not the runs that they were tuned with.

    Args:
        one: Settings by name; those that are missing have their defaults.
        other: The same of the other decoding.
    """
    usual = DecodingConfig().model_dump(mode="json")
    left_out = {"batch_tokens", "tuned_with", *(("lm_weight", "word_bonus") if one.get("lm_weights") else ())}
    return [key for key in usual if key not in left_out and one.get(key, usual[key]) != other.get(key, usual[key])]
