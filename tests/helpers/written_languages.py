"""Sentences as people write them, with typographic marks, in languages of many scripts."""

WRITTEN = {
    "en": [
        "“My uncle cooks,” she said. “Well, it’s late.”",
        "‘It’s fine,’ he said.",
        "The dogs’ tails wag; don’t wait…",
    ],
    "de": ["„Ja“, sagte er. „Nein!“", "»Ja«, sagte er.", "Er sagte: “Ja”.", "„Das ist ‚gut‘ so“, meint er."],
    "fr": ["« l’eau numéro 0 », dit-elle.", "Aujourd’hui, j’ai 5 € !", "L’État l’a dit : “C’est l’été.”"],
    "sv": ["”Ja”, sa han. ”Nej.”"],
    "fi": ["”Ei”, sanoi hän, ”en tule.”"],
    "da": ["»Ja«, sagde han."],
    "pl": ["„Tak”, powiedział. „Nie.”"],
    "cs": ["„Ano,“ řekl. „Ne.“"],
    "es": ["¿Cómo estás? «Bien», dijo. “Sí”. ¡Hola!"],
    "it": ["L’acqua dell’isola è “buona”.", "«Sì», disse."],
    "ca": ["L’home col·labora."],
    "ro": ["„Da”, a spus el."],
    "ru": ["«Да», — сказал он.", "„Нет“, ответил он."],
    "uk": ["Об’єкт «так» — ні."],
    "el": ["«Ναι», είπε· «όχι»."],
    "tr": ["İstanbul’da “evet” dedi."],
    "ko": ["“네,” 그가 말했다. “아니요.”"],
    "hi": ["शिक्षक घर में किताब धोता है।", "“हाँ,” उसने कहा।"],
    "bn": ["আমি ভাত খাই।"],
    "fa": ["معلم ساعت را در خانه می‌خرد.", "کتاب‌ها، «خوب» است؟"],
    "ar": ["هل أنت «بخير»؟ نعم، شكرا؛ وأنت؟"],
    "he": ["צה״ל בית־ספר שלום."],
    "hy": ["Նա ասաց՝ «այո»։"],
    "am": ["ሰላም። እንዴት ነህ፧"],
}
"""Text that the rules for Moses' tokens restore."""
BEYOND_RULES = {
    "vi": ["Tôi không biết “anh ấy” là ai…", "Vie\u0323\u0302t Nam, thu\u031b\u0301 ba."],  # combining marks
    "ja": ["「先生」は家で手紙を運びました。", "彼は、Tokyoで花を買いました！"],
    "zho": ["他，在车站忘记了两张地图。", "他说：“好的”，然后……走了。"],
    "yue": ["佢哋喺車站。"],
    "tha": ["เพื่อนบ้าน ของฉันซื้อจดหมาย 3 ฉบับ"],
    "lo": ["ເພື່ອນບ້ານຂອງຂ້ອຍຊື້ຈົດໝາຍ"],
    "km": ["អ្នកជិតខាងរបស់ខ្ញុំបានទិញ។"],
    "my": ["ကျွန်ုပ်၏အိမ်နီးချင်းသည်၊ စာ။"],
    "bo": ["བོད་ཡིག་ནི་བཀྲ་ཤིས།"],
    "ta": ["அவர் “ஆம்” என்றார்."],
    "ur": ["وہ گھر گیا۔"],
    "xx": ["“bami’koko miko,” ruta. “bami.”", "a  b/c _d_ 5$ 50 % #x @y"],
}
