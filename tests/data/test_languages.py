"""Language codes are shortened or refused, and the script of a language chooses the unit of its scores."""

import pytest

from pipeline.data.languages import bleu_tokenizer, canonical, is_unspaced
from pipeline.data.text.segmentation import lacks_spaces, length
from pipeline.data.text.tokenisation import Tokenisation

SHORTENED = {
    "zh": ["zh", "zho", "chi", "cmn"],
    "en": ["en", "eng"],
    "de": ["de", "deu", "ger"],
    "fr": ["fr", "fra", "fre"],
    "ja": ["jpn"],
    "fa": ["fas", "per", "pes"],
    "ar": ["ara", "arb"],
    "no": ["no", "nor"],
    "cs": ["ces", "cze"],
    "yue": ["yue"],
    "xx": ["xx", "XX"],
    "zh-Hant": ["zh-Hant", "zh_hant", "ZHO-HANT", "cmn-hant"],
    "zh-TW": ["zh-TW", "zh_TW", "chi-tw", "zh-tw"],
    "zh-Hans-CN": ["zh_Hans_CN", "cmn-hans-cn"],
    "pt-BR": ["pt-BR", "pt_br", "por-BR"],
    "sr-Latn": ["sr-Latn", "srp_latn", "sh"],
    "en-GB": ["en-UK", "eng_GB"],
    "de-1996": ["ger-1996"],
    "es-419": ["es_419"],
    "fil": ["fil", "tl", "tgl"],
}


@pytest.mark.parametrize("code", SHORTENED)
def test_codes_of_one_language_are_one(code):
    assert [canonical(alias) for alias in SHORTENED[code]] == [code] * len(SHORTENED[code])


CODES_OF_NONE = [
    *("zzq", "qq", "english", "e", "", "d3", "öö", "en ", "en-", "-en", "en--US", "en\n", "en US", "zz-ZZ", "en-ABC"),
    *("zh-yue", "en-x-mine", "en-u-co-phonebk", "en_US.UTF-8", "de_DE@euro", "../en", "en/US", "en-US-US", "zh-Xxxx"),
]


@pytest.mark.parametrize("code", CODES_OF_NONE)
def test_codes_of_no_language_are_refused(code):
    with pytest.raises(ValueError, match="not an ISO 639 code or BCP 47 tag"):
        canonical(code)


@pytest.mark.parametrize(
    ("codes", "tokenizer"),
    [
        (["zh", "yue", "wuu", "zh-TW", "zh-Hans", "yue-HK"], "zh"),
        (["ja", "th", "lo", "km", "my", "bo", "dz", "ja-JP", "th-TH"], "char"),
        (["en", "de", "fr", "cs", "ru", "ar", "fa", "hi", "ko", "vi", "he", "am", "xx"], "13a"),
        (["pt-BR", "sr-Latn", "zh-Latn", "ja-Latn", "az-Arab", "fr-CA"], "13a"),
    ],
)
def test_the_script_of_a_language_chooses_the_tokenizer(codes, tokenizer):
    assert [bleu_tokenizer(code) for code in codes] == [tokenizer] * len(codes)
    assert all(is_unspaced(code) == (tokenizer != "13a") for code in codes)


@pytest.mark.parametrize("tag", ["fr-CA", "pt-BR", "en-GB", "it-CH", "cs-CZ"])
@pytest.mark.parametrize(
    "text",
    ["L’eau, « oui » ? J'ai dit “c'est 5 %”.", "The Sr. of dell'arte can't, S.A. Paulo.", "Má v bytě 3 psy a 4."],
)
def test_moses_takes_a_tag_for_its_language(tag, text):
    moses, code = Tokenisation(), tag[:2]
    tokens = moses.tokens(text, tag)
    assert tokens == moses.tokens(text, code) and moses.text(tokens, tag) == moses.text(tokens, code)


@pytest.mark.parametrize("tag", ["zh-TW", "zh-Hans"])
def test_chinese_of_any_region_is_segmented(tag):
    how = Tokenisation(segmenter="characters")
    assert how.tokens("他在車站", tag) == "他 在 車 站" and how.text("他 在 車 站", tag) == "他在車站"
    assert how.scored_as(tag) == "characters"


ALIKE = {
    "en": "My neighbour bought three old letters at the station.",
    "zh": "我的邻居在车站买了三封旧信。",
    "ja": "隣の人は駅で古い手紙を三通買いました。",
    "th": "เพื่อนบ้านของฉันซื้อจดหมายเก่าสามฉบับที่สถานี",
    "lo": "ເພື່ອນບ້ານຂອງຂ້ອຍຊື້ຈົດໝາຍເກົ່າສາມສະບັບຢູ່ສະຖານີ",
    "km": "អ្នកជិតខាងរបស់ខ្ញុំបានទិញសំបុត្រចាស់បីនៅស្ថានីយ៍",
    "my": "ကျွန်ုပ်၏အိမ်နီးချင်းသည်ဘူတာရုံတွင်စာဟောင်းသုံးစောင်ဝယ်ခဲ့သည်",
    "hi": "मेरे पड़ोसी ने स्टेशन पर तीन पुराने पत्र खरीदे।",
}


def test_a_sentence_is_about_as_long_in_every_script():
    lengths = {code: length(line) for code, line in ALIKE.items()}
    assert max(lengths.values()) <= 2.5 * min(lengths.values()), lengths


@pytest.mark.parametrize("code", ALIKE)
def test_unspaced_languages_are_recognised(code):
    assert lacks_spaces([ALIKE[code]] * 3) == is_unspaced(code)


def test_letters_without_marks_decide_and_no_letters_do_not():
    assert not lacks_spaces(["12 345", "!?"]) and not lacks_spaces([])
    assert lacks_spaces(["他说 OK", "你好，Anna，你好吗"])
