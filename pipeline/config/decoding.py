"""Settings of a decoding: beam search, checkpoint averaging and language models."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import NUMBER, Closed, Count, Number, Seed


class DecodingSettings(Closed):
    """Settings of a decoding, not yet checked against each other."""

    read_by: ClassVar[dict[str, dict[str, list[str]]]] = {
        "length_normalisation": {"gnmt": ["length_penalty"], "length": ["length_penalty"], "none": []}
    }

    beam_size: int = Field(default=4, ge=1, le=1000)
    length_penalty: Number = Field(default=0.6, ge=0, le=10, description="alpha of ((5+|Y|)/6)^alpha or |Y|^alpha")
    length_normalisation: Literal["gnmt", "length", "none"] = "gnmt"
    max_extra_length: int = Field(
        default=50, ge=1, le=10_000, description="Most subwords by which the output may be longer than the source"
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
        description="Order of an n-gram model used instead, estimated on the text of language_model or of the model",
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


class DecodingConfig(DecodingSettings):
    """Settings by which a trained model is decoded."""

    @model_validator(mode="after")
    def check_language_model(self):
        """Return the settings if the weights of language models fit.

        Raises:
            ValueError: A weight has no language model, or fixed weights are given together with weights to tune.
        """
        there, beside = self.reads_language_model, self.language_model_use == "beside"
        if (self.lm_weight or self.tuned) and not (there and beside):
            raise ValueError("lm_weight and lm_weights need a language_model or ngram_order, used beside the model")
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
