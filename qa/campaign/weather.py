"""When faults befall a campaign: at moments drawn from a seed, told by how much of it is done, one after the other."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from random import Random

from qa.campaign.campaign import Campaign
from qa.campaign.checks import look
from qa.campaign.faults import Fault

FIRST, LAST = 0.02, 0.9
"""Shares of all updates, between which something happens."""
LONGEST_S = 120.0


class Weather(threading.Thread):
    """Lets each of `faults` strike, and looks at the reports `looks` times between.

    Attributes:
        struck: how often each fault was there.
        seen: what each look found.
        error: what went wrong with a fault itself, or a look.
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
        """Raises what went wrong. A fault that still waits for something to befall came too late."""
        self.over.set()
        self.join(LONGEST_S)
        if self.error:
            raise self.error
