"""Text of every script survives tokens and subwords; losses are measured and reported."""

import random
from unicodedata import category

import pytest
from toy_corpus import make_dataset, record, write_raw, write_toy_raw

from pipeline.core.errors import UserError
from pipeline.core.records.corpus import PreparedPairs
from pipeline.core.schema import validate
from pipeline.data.dataset import CorpusRecord
from pipeline.data.text.prepare import prepare
from pipeline.data.text.subwords import learn_vocabularies, train
from pipeline.data.text.tokenisation import Tokenisation, detokenise, round_trip, tokenise
from pipeline.data.text.vocabulary import Subwords

RAW = Tokenisation("none")


def blocks(left_out: str = "Cc Cn Co Cs Zl Zp Zs") -> list[list[str]]:
    """Return the characters of each block of 256 code points that are in none of some Unicode categories."""
    starts = range(0, 0x30000, 0x100)
    found = [
        [chr(code) for code in range(start, start + 0x100) if category(chr(code)) not in left_out] for start in starts
    ]
    return [block for block in found if block]


def test_characters_of_every_block_survive_tokens_and_subwords(tmp_path, seed):
    draw = random.Random(seed)
    lines = []
    for block in blocks():
        words = ["".join(draw.choices(block, k=draw.randint(1, 6))) for _ in range(8)]
        lines += [" ".join(words[:4]), draw.choice(["", "a"]) + " ".join(words[4:])]
    lines += ["a  b\tc\x00\x1f\x07 d", " . "]
    tokens = [RAW.tokens(line, "xx") for line in lines]
    assert tokens == lines and [RAW.text(line, "xx") for line in tokens] == lines
    size = len({*"".join(lines)}) + 5
    (tmp_path / "model").write_bytes(train("bpe", iter(tokens), size, "all"))
    subwords = Subwords(tmp_path / "model")
    assert subwords.decode(subwords.encode(lines)) == lines


def test_lines_that_sentencepiece_skips_are_learnt_from(tmp_path, caplog):
    plain = [f"word {number}" for number in range(40)]
    odd = ["▅▅ άνεμος ▁", "one \x1f two ж", "я " * 200_000]
    (tmp_path / "model").write_bytes(train("bpe", iter([*plain, *odd]), 60, "toy"))
    subwords = Subwords(tmp_path / "model")
    assert subwords.decode(subwords.encode(odd[:2])) == odd[:2]
    assert all(1 not in ids for ids in subwords.encode(odd))


def test_characters_that_stay_unknown_are_logged(tmp_path, caplog, monkeypatch):
    write_toy_raw(tmp_path)
    write_raw(tmp_path, "train", ["a q b"] * 3, ["a b"] * 3)
    subwords = {"kind": "bpe", "vocab_size": 9, "sample_pairs": 10}
    dataset = make_dataset(subwords=subwords, cleaning={"max_tokens": 9, "max_ratio": 9})
    prepare(dataset, tmp_path, 1)
    monkeypatch.setattr(
        "pipeline.data.text.subwords.split_for_sentencepiece", lambda lines: (line.replace("q", "") for line in lines)
    )
    learn_vocabularies(dataset, tmp_path)
    assert "the vocabulary lacks 1 character of the sample: ['q']" in caplog.text


def test_the_ceiling_of_what_moses_loses_is_reported(tmp_path, caplog):
    write_toy_raw(tmp_path)
    lines = [f"nume\u0301ro {number} est ferme\u0301 a\u0300 Orle\u0301ans" for number in range(20)]
    write_raw(tmp_path, "test", lines, lines)
    report = prepare(make_dataset(), tmp_path, 1).splits
    assert report["train"].ceiling is None and report["dev"].ceiling > report["test"].ceiling
    assert report["test"].ceiling < 50 and report["test"].changed == 20
    assert "toy test: a perfect translation reaches sacreBLEU" in caplog.text and "the first on line 1;" in caplog.text
    caplog.clear()
    whole = prepare(make_dataset(tokeniser="none"), tmp_path, 1)
    assert whole.splits["test"].ceiling == 100 and "perfect" not in caplog.text
    assert whole == PreparedPairs.read(tmp_path / "prepared/report.json") and whole.tokeniser == "none"
    assert (tmp_path / "prepared/test.tok.de").read_text() == (tmp_path / "prepared/test.de").read_text()


def test_a_round_trip_of_lower_cased_text_ignores_case():
    how = Tokenisation("none", lowercase=True)
    text = ["My Neighbour waits.", "ÉTÉ, DIT-IL."] * 3
    found = round_trip(how, "fr", text, [how.tokens(line, "fr") for line in text])
    assert found.ceiling == 100 and not found.changed


WORDS = {"kind": "word", "vocab_size": 9}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tgt": "ja"}, "moses splits at spaces, but ja has none"),
        ({"tokeniser": "none", "tgt": "zh", "segmenter": "jieba"}, "segmenter has no effect"),
        ({"segmenter": "jieba"}, "segmenter is for Chinese"),
        ({"tokeniser": "none", "subwords": WORDS}, "needs the words of a tokeniser"),
        ({"tgt": False}, 'write "no" in quotation marks'),
        ({"tgt": "zh_tw"}, "moses splits at spaces, but zh-TW has none"),
        ({"tgt": "txtt"}, "not an ISO 639 code"),
    ],
)
def test_settings_that_do_not_fit_a_language_are_refused(changes, message):
    common = {key: value for key, value in record().items() if key not in ("kind", "generator")}
    with pytest.raises(UserError, match=message):
        validate(CorpusRecord, common | changes, "x.yaml")


def test_unspaced_text_in_a_spaced_language_is_refused(tmp_path):
    write_toy_raw(tmp_path)
    write_raw(tmp_path, "test", ["a b"] * 3, ["他在车站忘记了两张地图。"] * 3)
    with pytest.raises(UserError, match=r"test\.de: has a script without spaces between words, unlike de"):
        prepare(make_dataset(tokeniser="none"), tmp_path, 1)


LANGUAGES = {
    "en": ("letter neighbour it’s don’t o’clock dogs’ Brien’s x² 2:30 $5 #7 10% 3–4", "“” ‘’"),
    "de": ("Brief geht’s D’Artagnan Öl Andreas’ ich’s § 2:30 10% 20 °C 5–7", "„“ ‚‘ »« ›‹ “”"),
    "fr": ("lettre l’été qu’il aujourd’hui d’Yeu 5 € 2:30 20 °C", "« » “” ‘’"),
    "it": ("lettera dell’acqua un po’ di c’è 2:30 l’“amico”", "«» “” ‘’"),
    "ca": ("carta l’home n’hi col·labora", "«» “”"),
    "es": ("carta años mañana 2:30", "«» “” ‘’"),
    "pt": ("carta não d’água São", "«» “” ‘’"),
    "ro": ("scrisoare și între", "„” «»"),
    "nl": ("brief foto’s zo’n ’s", "‘’ “” „”"),
    "sv": ("brev kväll EU:s", "”” »» ’’"),
    "da": ("brev kød gæt", "»« ”” “”"),
    "no": ("brev gå sær", "«» ‘’"),
    "fi": ("kirje yö EU:n", "”” »» ’’"),
    "is": ("bréf þú", "„“ ‚‘"),
    "pl": ("list żółw", "„” «»"),
    "cs": ("dopis 3 psi kůň 2,5", "„“ ‚‘"),
    "sk": ("list kôň", "„“ ‚‘"),
    "sl": ("pismo čas", "„“ »«"),
    "hr": ("pismo žena", "„” »«"),
    "hu": ("levél ő így", "„” »«"),
    "lt": ("laiškas ąžuolas", "„“"),
    "et": ("kiri õhtu", "„” „“"),
    "ru": ("письмо ёлка", "«» „“"),
    "uk": ("лист об’єкт п'ять м’яч", "«» „“ “”"),
    "bg": ("писмо път", "„“"),
    "sr-Latn": ("pismo čaj", "„” „“"),
    "el": ("γράμμα απ’ όλα Ναι", "«» “”"),
    "tr": ("mektup Ankara’nın İzmir", "“” ‘’"),
    "vi": ("thư người ấy", "“” ‘’"),
    "ko": ("편지 사람 ‘네’라고 2:30", "“” ‘’ 《》"),
    "hi": ("पत्र क्या नमस्ते ₹50", "“” ‘’"),
    "ta": ("கடிதம் அவர்", "“” ‘’"),
    "ar": ("رسالة السّلامُ ١٢٫٥ ٥٠٪", "«» “”"),
    "fa": ("نامه می‌رود ۱۲٫۵", "«» “”"),
    "he": ("מכתב צה״ל ג׳ירפה בית־ספר שָׁלוֹם", "“” „”"),
    "hy": ("նամակ Ո՞վ Ի՜նչ Նա՞ եկավ", "«»"),
    "ka": ("წერილი დრო", "„“"),
    "am": ("ደብዳቤ ቤት", "«»"),
}
"""Words with the marks of each language, and its quotation marks."""
END = {"hi": "।", "hy": "։", "am": "።", "ar": "؟", "fa": "؟"}
CLAUSE = {"ar": "،", "fa": "،", "am": "፣"}


def sentence(language: str, draw: random.Random) -> str:
    """A random sentence, of which a part is quoted."""
    words, quotes = LANGUAGES[language]
    marks = [pair.replace(" ", "") for pair in (["«»"] if language == "fr" else quotes.split())]
    spaced = " " if language == "fr" else ""
    units = [unit for unit in chunks(words) if unit]

    def phrase(count: int) -> str:
        return " ".join(draw.choice(units) for _ in range(count))

    opening, closing = draw.choice(marks)
    quoted = f"{opening}{spaced}{plain(units, draw)} {phrase(2)} {plain(units, draw)}{spaced}{closing}"
    comma, end = CLAUSE.get(language, ","), END.get(language, draw.choice([".", "…"]))
    shapes = [
        f"{phrase(2)} {plain(units, draw)}{end}",
        f"{plain(units, draw)}{comma} {phrase(2)} ({plain(units, draw)}) {plain(units, draw)}{end}",
        f"{quoted}{comma} {plain(units, draw)} {phrase(1)} {plain(units, draw)}{end}",
        f"{plain(units, draw)} {quoted} – {plain(units, draw)}{end}",
        f"{plain(units, draw)} ({quoted}){end}",
    ]
    return draw.choice(shapes)


def chunks(words: str) -> list[str]:
    """Words, of which some belong together: `5 €`, `un po’ di`."""
    for whole in ("5 €", "20 °C", "un po’ di", "απ’ όλα", "3 psi", "Նա՞ եկավ", "Andreas’ Öl", "dogs’ tails"):
        words = words.replace(whole, whole.replace(" ", "_"))
    alone = [word.replace("_", " ") for word in words.split()]
    return [word for word in alone if word not in ("§", "Andreas’", "dogs’", "’s")]


def plain(units: list[str], draw: random.Random) -> str:
    """A word of letters alone."""
    return draw.choice([unit for unit in units if all(category(character)[0] in "LM" for character in unit)])


@pytest.mark.parametrize("language", LANGUAGES)
def test_random_sentences_come_back_from_moses(language, seed):
    draw = random.Random(f"{seed} {language}")
    for _ in range(25):
        line = sentence(language, draw)
        assert detokenise(tokenise(line, language), language) == line, tokenise(line, language)


TOKENISERS = {
    "moses": Tokenisation(),
    "jieba": Tokenisation(segmenter="jieba"),
    "characters": Tokenisation(segmenter="characters"),
    "none": Tokenisation("none"),
}
MARKS = list("aB1.,;:!?'\"“”„‘’«»‹›-–—/&%#@$€°()[]_…。、「」")


@pytest.mark.parametrize("name", TOKENISERS)
def test_text_of_any_block_loses_only_spaces_and_is_counted(name, seed):
    how, draw, lines = TOKENISERS[name], random.Random(f"{seed} {name}"), []
    language = "zh" if how.segmenter else draw.choice([*LANGUAGES, "xx"])
    for block in draw.sample(blocks("Cf Cc Cn Co Cs Zl Zp Zs"), 120):
        words = ["".join(draw.choices([*block, *MARKS], k=draw.randint(1, 8))) for _ in range(6)]
        lines.append(" ".join(words))
    tokens = [how.tokens(line, language) for line in lines]
    returned = [how.text(line, language) for line in tokens]
    assert ["".join(line.split()) for line in returned] == ["".join(line.split()) for line in lines]
    found = round_trip(how, language, lines, tokens)
    assert found.changed == [n for n, (first, two) in enumerate(zip(lines, returned, strict=True), 1) if first != two]
    assert (found.ceiling == 100 and not found.changed) if name == "none" else found.changed


ODD = [*"-–5.,“„'\"$(\\한\u200c\u0301ａ", "x'", "'x", "li", "mail", "``", "EU:", "ssa"]


@pytest.mark.parametrize("language", [*LANGUAGES, "ga", "zh", "ja", "xx"])
def test_any_tokens_of_a_model_become_text(language, seed):
    draw = random.Random(f"{seed} {language}")
    for _ in range(100):
        tokens = [draw.choice([*ODD, *MARKS]) for _ in range(draw.randint(1, 8))]
        assert detokenise(" ".join(tokens), language).replace(" ", "") == "".join(tokens)
