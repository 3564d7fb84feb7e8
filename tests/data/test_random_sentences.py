"""Random sentences of many languages and random text of every block, through each tokeniser and back."""

import random
from unicodedata import category

import pytest

from pipeline.data.text.tokenisation import Tokenisation, detokenise, round_trip, tokenise

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
    for _ in range(60):
        line = sentence(language, draw)
        assert detokenise(tokenise(line, language), language) == line, tokenise(line, language)


def blocks() -> list[list[str]]:
    """The visible characters of each 256 code points up to the third plane."""
    found = []
    for begin in range(0, 0x30000, 0x100):
        good = [chr(code) for code in range(begin, begin + 0x100) if category(chr(code))[0] not in "CZ"]
        if good:
            found.append(good)
    return found


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
    for block in blocks():
        words = ["".join(draw.choices([*block, *MARKS], k=draw.randint(1, 8))) for _ in range(6)]
        lines.append(" ".join(words))
    tokens = [how.tokens(line, language) for line in lines]
    returned = [how.text(line, language) for line in tokens]
    assert ["".join(line.split()) for line in returned] == ["".join(line.split()) for line in lines]
    found = round_trip(how, language, lines, tokens)
    assert found.changed == [n for n, (first, two) in enumerate(zip(lines, returned, strict=True), 1) if first != two]
    assert (found.ceiling == 100 and not found.changed) if name == "none" else found.changed


ODD = ["x'", "'x", "-", "–", "li", "mail", "5", ".", ",", "“", "„", "'", '"', "``", "EU:", "ssa", "$", "(", "\\", "한"]


@pytest.mark.parametrize("language", [*LANGUAGES, "ga", "zh", "ja", "xx"])
def test_any_tokens_of_a_model_become_text(language, seed):
    draw = random.Random(f"{seed} {language}")
    for _ in range(300):
        tokens = [draw.choice([*ODD, *MARKS]) for _ in range(draw.randint(1, 8))]
        assert detokenise(" ".join(tokens), language).replace(" ", "") == "".join(tokens)
