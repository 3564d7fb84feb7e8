"""Text as it is within a line of Markdown: what a reader sees is what was written, whatever the data hold."""

import re

LINE_ENDS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)"  # a backslash that would hide the next character, or what follows the text
    r"|[|`*~$]"  # cells, code, emphasis, struck out, mathematics
    r"|\](?=\()"  # links; not intervals, as in [0.1, 0.2]
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis; not within a name, as in dev_loss
    r"|<(?=[A-Za-z/!?])"  # HTML, and addresses
    r"|&(?=#?\w+;)"  # a character by its name, as `&quot;`
)


def literal(text: str) -> str:
    """`text` on one line, each character that would be markup behind a backslash; text without such is unchanged."""
    return MARKUP.sub(r"\\\g<0>", LINE_ENDS.sub(" ", text))
