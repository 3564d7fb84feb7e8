"""Settings of a training."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import NUMBER, Closed, Count, CountOrNone, Number, Positive, Probability

Decibels = Annotated[float, Field(ge=-200, le=200, strict=False, allow_inf_nan=False), NUMBER]


class TrainingConfig(Closed):
    """How a model is trained. Token counts are target subwords, padding included."""

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

    max_steps: Count = Field(description="Updates at most")
    optimiser: Literal["adam", "adadelta", "nag"] = Field(
        default="adam", description="nag: gradient descent with Nesterov's momentum"
    )
    schedule: Literal["inverse_sqrt", "constant", "plateau", "cosine"] = Field(
        default="inverse_sqrt",
        description="Learning rate: eq. 3 (Vaswani et al.); lr; lr, lowered when the dev loss stops falling; or a rise "
        "to lr over warmup_steps, then half a cosine to 0 at max_steps",
    )
    warmup_steps: Count | None = Field(
        default=None, description="inverse_sqrt, cosine: updates of linear warm-up (eq. 3)"
    )
    lr_factor: Positive = Field(default=1.0, description="inverse_sqrt: multiplier of the schedule")
    lr: Positive | None = Field(default=None, description="constant, plateau, cosine: (first, highest) learning rate")
    plateau_factor: Number = Field(default=0.5, gt=0, lt=1, description="plateau: what the rate is multiplied by")
    plateau_annealing: Literal["slow", "fast"] = Field(
        default="slow",
        description="plateau: lower at each validation without a new best; or at every one from the first such on",
    )
    min_lr: Positive | None = Field(
        default=None, description="plateau: the training ends when the rate falls below; null = never"
    )
    adam_beta1: Probability = 0.9
    adam_beta2: Probability = 0.98
    adam_eps: Positive = 1e-9
    adadelta_rho: Probability = 0.95
    adadelta_eps: Positive = 1e-6
    momentum: Probability = Field(default=0.99, description="nag")
    label_smoothing: Probability = Field(default=0.1, description="eps_ls: mass spread over the other symbols")
    tokens_per_update: Count | None = Field(
        default=None, description="Tokens per side and update, whatever the number of devices"
    )
    sentences_per_update: Count | None = Field(
        default=None, description="Sentence pairs an update, in the place of tokens_per_update"
    )
    loss_mean: Literal["token", "sentence"] = Field(
        default="token", description="What an update's summed loss is divided by the number of"
    )
    micro_batch_tokens: Count = Field(
        default=8192, description="Tokens per side that a device holds at once; the rest is accumulated"
    )
    max_length: Count = Field(default=256, description="Longer pairs (subwords per side) are left out and counted")
    clip_norm: Positive | None = Field(default=None, description="Global gradient norm; null = none")
    validate_every: Count = Field(description="Updates between validations")
    patience: Count | None = Field(
        default=None, description="Validations in a row without a new best that end the training; null = max_steps do"
    )
    checkpoint_every: Count = Field(description="Updates between checkpoints kept for averaging")
    keep_checkpoints: Count = Field(default=20, description="Checkpoints kept, newest first")
    precision: Literal["fp32", "bf16"] = Field(default="fp32", description="Autocast of matrix products")
    branch_warmup_steps: Count | None = Field(default=None, description="Warm-up of kappa and alpha (400 as printed)")
    branch_lr_factor: Positive = Field(default=1.0, description="Multiplier of the schedule of kappa and alpha")
    branch_freeze_steps: CountOrNone | None = Field(
        default=None, description="Last updates during which kappa and alpha are frozen (10000 as printed)"
    )
    scheduled_sampling: Probability = Field(
        default=0.0, description="How often a position reads the model's own prediction in place of the reference"
    )
    trained_part: Literal["all", "fusion"] = Field(
        default="all", description="fusion: the fusion layer alone, everything else as it was in the `initial` run"
    )
    train_share: Number = Field(
        default=1.0, gt=0, le=1, description="Share of the training data used; smaller ones are in larger"
    )
    sorted_first_epoch: bool = Field(default=False, description="Speech: first epoch from short to long (SortaGrad)")
    micro_batch_frames: Count = Field(default=100_000, description="Speech: frames that a device holds at once")
    max_frames: Count = Field(default=3000, description="Speech: longer utterances (frames) are left out and counted")
    noise_probability: Probability = Field(default=0.0, description="Speech: how often an utterance is given noise")
    noise_snr_db: tuple[Decibels, Decibels] = Field(
        default=(0.0, 15.0), strict=False, description="Speech: lowest and highest signal-to-noise ratio, in dB"
    )
    cuda_graphs: bool = Field(
        default=True,
        description="On a GPU, replay steps as CUDA graphs, with batches padded to a few shapes; false: eager steps",
    )
    tensorboard: bool = Field(default=False, description="Write what progress.jsonl has as event files, too: events/")

    @model_validator(mode="after")
    def has_one_size_of_updates(self):
        if (self.tokens_per_update is None) == (self.sentences_per_update is None):
            raise ValueError("needs exactly one of tokens_per_update and sentences_per_update")
        return self

    @model_validator(mode="after")
    def has_what_its_schedule_needs(self):
        needed = "warmup_steps" if self.schedule == "inverse_sqrt" else "lr"
        if getattr(self, needed) is None:
            raise ValueError(f"schedule {self.schedule} needs {needed}")
        if self.min_lr and self.lr and self.min_lr > self.lr:
            raise ValueError(f"min_lr {self.min_lr} is above lr {self.lr}: the training would end before it began")
        if self.noise_probability and self.noise_snr_db[0] > self.noise_snr_db[1]:
            raise ValueError("noise_snr_db: the lowest ratio comes first, got {}, {}".format(*self.noise_snr_db))
        return self
