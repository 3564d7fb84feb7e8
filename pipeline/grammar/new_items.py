"""Take new items from an endless random stream, and stop if there are hardly any left."""

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from pipeline.core.errors import UserError, count_of

Item = TypeVar("Item")
MOST_REPEATS = 100
"""Known items in a row after which a stream counts as exhausted: about one in ten is new then."""


def new_items(
    stream: Iterator[Item], count: int, keys: Callable[[Item], set[Hashable]], seen: set[Hashable], setting: str
) -> Iterator[Item]:
    """Yield the first `count` new items of an endless `stream`.

    Args:
        stream: Items in random order, with repeats.
        count: How many to yield.
        keys: Returns the keys of an item, which is new if it shares none with earlier ones.
        seen: Keys so far, to which those of the new items are added.
        setting: File and key that ask for this number, for the error.

    Raises:
        UserError: Hardly any item of the stream is new any more.
    """
    found = repeats = 0
    while found < count:
        item = next(stream)
        if seen.isdisjoint(own := keys(item)):
            seen |= own
            found, repeats = found + 1, 0
            yield item
        elif (repeats := repeats + 1) == MOST_REPEATS:
            raise UserError(
                f"{setting}: asks for {count}, but the grammar has hardly more than {count_of(found, 'sentence')} for "
                f"it; write at most {found}"
            )
