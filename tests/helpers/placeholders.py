"""Wildcards that stand for themselves, so that paths of products are patterns of rules."""


class Placeholders(dict[str, str]):
    """A mapping that has `{name}` for every name, with which a product's path is the pattern of a rule."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"

    def __contains__(self, name: object) -> bool:
        return True
