"""Segmentation loses only white space, and follows the dataset file."""

import random
import time

import pytest
from toy_corpus import make_dataset

from pipeline.core.errors import UserError
from pipeline.data.text.cleaning import prepare_chunk
from pipeline.data.text.segmentation import dictionary, segment

LINES = ["我 喜欢北京。", "Anna Keller去年买了3.5公斤苹果，好吗？", "他说：“OK”……", "她在二〇二〇年㐀来了", "𠀀字"]


@pytest.mark.parametrize("segmenter", ["jieba", "characters"])
@pytest.mark.parametrize("line", LINES)
def test_the_text_is_the_same_but_for_spaces(segmenter, line):
    words = segment(line, segmenter).split(" ")
    assert all(word and not word.isspace() for word in words)
    assert "".join(words) == "".join(line.split())
    assert segment(line, segmenter) == segment(line, segmenter)


def test_characters_are_single_and_other_scripts_stay_whole():
    assert segment(LINES[1], "characters") == "Anna Keller 去 年 买 了 3 . 5 公 斤 苹 果 ， 好 吗 ？"


def test_jieba_knows_words():
    assert segment(LINES[0], "jieba") == "我 喜欢 北京 。"


@pytest.mark.parametrize(
    ("segmenter", "expected"), [("jieba", "我 喜欢 北京 。\n"), ("characters", "我 喜 欢 北 京 。\n")]
)
def test_the_dataset_chooses_for_the_chinese_side_alone(segmenter, expected):
    dataset = make_dataset(src="zh", tgt="en", segmenter=segmenter)
    chunk = prepare_chunk([(LINES[0].encode(), b"I like Beijing.")], dataset, drop_outliers=False)
    assert chunk.tokens == (expected, "I like Beijing .\n")


def test_a_segmenter_without_chinese_is_refused():
    with pytest.raises(UserError, match="segmenter is for Chinese"):
        make_dataset(segmenter="jieba")


@pytest.mark.parametrize("segmenter", ["jieba", "characters"])
def test_equal_ideographs_take_linear_time(segmenter):
    line = random.choice("的哈龘") * 100_000
    segment(LINES[0], segmenter)  # reads the dictionary
    began = time.process_time()
    words = segment(line, segmenter)
    assert time.process_time() - began < 5
    assert words.replace(" ", "") == line


def test_runs_of_usual_length_are_segmented_as_jieba_does():
    line = "".join(random.choices("我喜欢北京他说去年买了苹果", k=400)) + "。" + "北京" * 200 + "OK"
    assert segment(line, "jieba").split(" ") == list(dictionary().cut(line))
