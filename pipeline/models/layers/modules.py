"""torch's list of modules, with the type of what it holds."""

from collections.abc import Iterator
from typing import Generic, TypeVar, cast

from torch import nn

Item = TypeVar("Item", bound=nn.Module)


class Modules(nn.ModuleList, Generic[Item]):
    """Its weights are named as those of `nn.ModuleList`."""

    def __iter__(self) -> Iterator[Item]:
        return cast(Iterator[Item], super().__iter__())
