"""Settings of a decoding."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import NUMBER, Closed, Count, Number, Seed


class DecodingSettings(Closed):
    """Settings of a decoding, each on its own."""

    read_by: ClassVar[dict[str, dict[str, list[str]]]] = {
        "length_normalisation": {"gnmt": ["length_penalty"], "length": ["length_penalty"], "none": []}
    }

    beam_size: int = Field(default=4, ge=1, le=1000)
    length_penalty: Number = Field(default=0.6, ge=0, le=10, description="alpha of ((5+|Y|)/6)^alpha or |Y|^alpha")
    length_normalisation: Literal["gnmt", "length", "none"] = "gnmt"
    max_extra_length: int = Field(
        default=50, ge=1, le=10_000, description="Output may exceed the source by so many subwords"
    )
    average_last: Count = Field(default=1, description="Checkpoints averaged; 1 = the final weights alone")
    averaged: Literal["last", "best"] = Field(
        default="last", description="Which: the last, or those kept whose development loss is lowest"
    )
    branch_weights: Literal["learned", "random", "uniform"] = Field(
        default="learned", description="kappa and alpha of a Weighted Transformer at test time (its Table 3)"
    )
    branch_weights_seed: Seed = Field(default=1, description="Seed of random branch weights")
    batch_tokens: Count = Field(default=4096, description="Source subwords decoded at once; of speech, frames")
    language_model: str | None = Field(
        default=None, description="`system@dataset` or `paper/system@dataset` of a language model used in decoding"
    )
    language_model_use: Literal["beside", "instead"] = Field(
        default="beside",
        description="beside: shallow fusion; instead: in the place of the one that the model was fused with",
    )
    ngram_order: Annotated[int, Field(ge=2, le=20)] | None = Field(
        default=None, description="An n-gram instead: of what language_model was trained on, or of one's own training"
    )
    lm_weight: Number = Field(default=0.0, ge=0, le=1e4, description="λ of shallow fusion")
    ctc_weight: Number = Field(
        default=0.3, ge=0, le=1, description="γ of CTC in joint decoding; the rest is the decoder's"
    )
    word_bonus: Number = Field(default=0.0, ge=-1e4, le=1e4, description="β: added for every word, in CTC decoding")
    lm_weights: list[Annotated[float, Field(ge=0, le=1e4, strict=False, allow_inf_nan=False), NUMBER]] = Field(
        default=[], description="λ to choose among on the development set of the run's own dataset; none = as given"
    )
    word_bonuses: list[Annotated[Number, Field(ge=-1e4, le=1e4)]] = Field(
        default=[0.0], min_length=1, description="β to choose among together with lm_weights"
    )
    tuning_sentences: Count = Field(default=500, description="Evenly spaced sentences on which that choice is made")


class DecodingConfig(DecodingSettings):
    """How a trained model is turned into text."""

    @model_validator(mode="after")
    def has_a_language_model_to_weigh(self):
        there, beside = self.reads_language_model, self.language_model_use == "beside"
        if (self.lm_weight or self.tuned) and not (there and beside):
            raise ValueError("lm_weight and lm_weights need a language_model or ngram_order, used beside the model")
        if self.tuned and (self.lm_weight or self.word_bonus):
            raise ValueError(
                "lm_weight and word_bonus are 0 where lm_weights are to choose among; or leave lm_weights out"
            )
        if not (there or beside):
            raise ValueError("language_model_use instead needs a language_model or ngram_order")
        return self

    @property
    def reads_checkpoints(self) -> bool:
        """Whether it reads other weights than those that the training ended in."""
        return self.average_last > 1 or self.averaged == "best"

    @property
    def reads_language_model(self) -> bool:
        """Whether a language model or n-grams take part that are not the model's own."""
        return bool(self.language_model or self.ngram_order)

    @property
    def unweighed(self) -> str:
        """What to say where a language model beside the model counts nothing; the best of lm_weights may be 0."""
        counts = self.lm_weight or self.tuned or self.language_model_use == "instead" or not self.reads_language_model
        return "" if counts else "its language model has no weight: set lm_weight, or lm_weights to choose among"

    @property
    def tuned(self) -> bool:
        """Whether λ and β are chosen on the development set."""
        return bool(self.lm_weights)
