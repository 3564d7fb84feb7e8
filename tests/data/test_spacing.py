"""Text of many languages survives Moses' tokeniser unchanged."""

import random

import pytest
from written_languages import WRITTEN

from pipeline.data.text.segmentation import segment
from pipeline.data.text.spacing import correct_spaces, spaces_in
from pipeline.data.text.tokenisation import detokenise, tokenise


@pytest.mark.parametrize("language", WRITTEN)
def test_typographic_marks_come_back_as_written(language):
    for line in WRITTEN[language]:
        assert detokenise(tokenise(line, language), language) == line


@pytest.mark.parametrize(
    "line", ["他，在车站忘记了两张地图。", "他说：“好的”，然后……Anna Keller走了。", "《书》（三本）！"]
)
@pytest.mark.parametrize("segmenter", ["jieba", "characters"])
def test_chinese_comes_back_without_spaces(line, segmenter):
    assert detokenise(segment(line, segmenter), "zh") == line


@pytest.mark.parametrize("language", WRITTEN)
def test_only_spaces_are_decided_of_random_tokens(language, seed):
    draw = random.Random(seed)
    marks = "“”„‘’«»‹›…—–-.,;:!?()[]€$%°·/_'\"¿¡„「」。，\u200c\u0301ａ"
    for _ in range(200):
        tokens = [draw.choice(["a", "Wort", "12", "été", "да", "你好", *marks]) for _ in range(draw.randint(1, 9))]
        assert detokenise(" ".join(tokens), language).replace(" ", "") == "".join(tokens)


def test_ascii_text_stays_as_moses_joined_it(seed):
    draw = random.Random(seed)
    for _ in range(100):
        tokens = [draw.choice(["a", "bc", "1", ",", ".", "[", "]", "'s", '"']) for _ in range(6)]
        text = "".join(token + draw.choice(["", " "]) for token in tokens).strip()
        assert correct_spaces(tokens, text, "en") == text
        if "  " not in text:
            spaces = spaces_in(tokens, text)
            assert (
                spaces is not None
                and "".join(map("".join, zip(tokens, [" " * s for s in [*spaces, 0]], strict=True))) == text
            )
