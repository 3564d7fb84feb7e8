"""Faults of a campaign, one after the other, at shares of its progress that a seed draws."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from random import Random

from qa.campaign.campaign import Campaign
from qa.campaign.checks import look
from qa.campaign.faults import Fault

FIRST, LAST = 0.02, 0.9
"""Shares of all training steps between which faults happen."""
LONGEST_S = 120.0


class Weather(threading.Thread):
    """A thread that lets each of `faults` happen, and takes `looks` looks at the reports between them.

    Trainings are slow until the last of them is over.

    Attributes:
        struck: How often each fault happened.
        seen: Findings of each look.
        error: Failure of a fault itself, or of a look.
    """

    def __init__(self, campaign: Campaign, faults: Sequence[Fault], looks: int, seed: int):
        super().__init__(daemon=True)
        self.campaign, self.rng = campaign, Random(seed)
        events = [*faults, *[None] * looks]
        self.rng.shuffle(events)
        self.moments = sorted(self.rng.uniform(FIRST, LAST) for _ in events)
        self.events = list(zip(self.moments, events, strict=True))
        self.struck: Counter[str] = Counter()
        self.seen: list[dict] = []
        self.error: BaseException | None = None
        self.over = threading.Event()

    def run(self) -> None:
        try:
            for moment, fault in self.events:
                while self.campaign.progress < moment and not self.over.wait(0.5):
                    pass
                if self.over.is_set():
                    return
                self.happen(fault)
            self.campaign.hurry()
        except BaseException as error:
            self.error = error

    def happen(self, fault: Fault | None) -> None:
        began = time.strftime("%H:%M:%S")
        if fault is None:
            self.seen.append(look(self.campaign))
        else:
            fault(self.campaign, self.rng)
            self.struck[fault.__name__] += 1
        name = fault.__name__ if fault else "look"
        print(f"{began} {name} until {time.strftime('%H:%M:%S')}, {self.campaign.progress:.0%} done", flush=True)

    def end(self) -> None:
        """Raise the error of a fault or a look. A fault that still waits for its occasion came too late."""
        self.over.set()
        self.join(LONGEST_S)
        if self.error:
            raise self.error
