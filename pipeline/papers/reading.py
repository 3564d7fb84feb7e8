"""Readings: the ways to understand a passage of a paper, each of them settings that systems have."""

from typing import Any, Literal

from pydantic import Field

from pipeline.analysis.names import NewName, SystemName
from pipeline.core.errors import UserError
from pipeline.core.schema import Closed


class Choice(Closed):
    """One way to understand the passage."""

    means: str = Field(description="What is then done")
    support: str = Field(description="What speaks for it and against it in the text")
    settings: dict[str, Any] = Field(min_length=1, description="Those of its systems, by `section.key`; a list: any")

    def fits(self, given: dict[str, Any]) -> bool:
        return all(given[key] in (one if isinstance(one, list) else [one]) for key, one in self.settings.items())


class Reading(Closed):
    """A passage that leaves something open. Every choice is that of some system, so that they stand side by side."""

    where: str = Field(description="Section or equation")
    passage: str = Field(description="What is written there, quoted briefly")
    choices: dict[NewName, Choice] = Field(min_length=2)
    of: SystemName | None = Field(default=None, description="What it is about: systems based on this one; null = all")
    default: NewName = Field(description="The choice of systems that are no arm of their own")
    why: str = Field(description="Why this one, from the text")
    chosen: Literal["before results", "after results"] = Field(description="When the default was chosen")

    def choice_of(self, settings: dict[str, Any], where: str) -> str | None:
        """Of a system with these settings, by `section.key`; None where it has not all that the choices set.

        Raises UserError, a line that begins with `where`, when it has them but fits no choice.
        """
        keys = sorted({key for choice in self.choices.values() for key in choice.settings})
        if not settings.keys() >= set(keys):
            return None
        if fitting := [name for name, choice in self.choices.items() if choice.fits(settings)]:
            return fitting[0]
        raise UserError(f"{where}{', '.join(f'{key} {settings[key]}' for key in keys)} is none of the choices")
