"""Irregular verb forms of English, German and French, and the rules for the regular ones."""

ENGLISH = """
see saw; find found; buy bought; sell sold; read read; write wrote; eat ate; drink drank; know knew; hear heard
take took; catch caught; run ran; leave left; lose lost; win won; think thought; meet met; bite bit; feed fed
build built; sing sang; tell told; forget forgot; understand understood; hide hid; steal stole; throw threw; ride rode
drive drove; give gave; send sent; show showed; bring brought; lend lent; sleep slept; swim swam; wake woke; get got
come came; go went; say said; begin began; kick kicked; hit hit; beat beat; have had; break broke; spill spilled
wear wore; burn burned; do did; make made; smell smelled; lead led
"""

# infinitive: third person singular, participle, simple past (third person)
GERMAN = """
sehen sieht gesehen sah; finden findet gefunden fand; lesen liest gelesen las; schreiben schreibt geschrieben schrieb
essen isst gegessen aß; trinken trinkt getrunken trank; mögen mag gemocht mochte; kennen kennt gekannt kannte
wissen weiß gewusst wusste; treten tritt getreten trat; streichen streicht gestrichen strich
zerbrechen zerbricht zerbrochen zerbrach; tragen trägt getragen trug; nehmen nimmt genommen nahm
fangen fängt gefangen fing; verlassen verlässt verlassen verließ; verlieren verliert verloren verlor
gewinnen gewinnt gewonnen gewann; helfen hilft geholfen half; denken denkt gedacht dachte; rufen ruft gerufen rief
laden lädt geladen lud; treffen trifft getroffen traf; beißen beißt gebissen biss; ziehen zieht gezogen zog
werfen wirft geworfen warf; schließen schließt geschlossen schloss; singen singt gesungen sang
vergessen vergisst vergessen vergaß; verstehen versteht verstanden verstand; stehlen stiehlt gestohlen stahl
waschen wäscht gewaschen wusch; verbrennen verbrennt verbrannt verbrannte; reiten reitet geritten ritt
fahren fährt gefahren fuhr; beschreiben beschreibt beschrieben beschrieb; geben gibt gegeben gab
bringen bringt gebracht brachte; leihen leiht geliehen lieh; schlafen schläft geschlafen schlief
rennen rennt gerannt rannte; schwimmen schwimmt geschwommen schwamm; kommen kommt gekommen kam
gehen geht gegangen ging; verschwinden verschwindet verschwunden verschwand; sterben stirbt gestorben starb
stehen steht gestanden stand; schlagen schlägt geschlagen schlug; lassen lässt gelassen ließ
halten hält gehalten hielt; beschließen beschließt beschlossen beschloss; versprechen verspricht versprochen versprach
bellen bellt gebellt bellte; haben hat gehabt hatte; riechen riecht gerochen roch; lügen lügt gelogen log
sein ist gewesen war; vergleichen vergleicht verglichen verglich
"""

GERMAN_WITH_SEIN = frozenset(
    [
        "folgen",
        "rennen",
        "schwimmen",
        "an_kommen",
        "weg_gehen",
        "verschwinden",
        "sterben",
        "auf_wachen",
        "auf_stehen",
        "zurück_kommen",
        "gehen",
        "zurück_kehren",
        "kommen",
    ]
)

# ich, du, er, wir, sie
GERMAN_PRESENT = {
    "sein": "bin bist ist sind sind",
    "haben": "habe hast hat haben haben",
    "werden": "werde wirst wird werden werden",
    "wollen": "will willst will wollen wollen",
    "können": "kann kannst kann können können",
    "müssen": "muss musst muss müssen müssen",
    "sollen": "soll sollst soll sollen sollen",
    "mögen": "mag magst mag mögen mögen",
    "wissen": "weiß weißt weiß wissen wissen",
    "halten": "halte hältst hält halten halten",
    "laden": "lade lädst lädt laden laden",
    "lächeln": "lächle lächelst lächelt lächeln lächeln",
    "treten": "trete trittst tritt treten treten",
}


# infinitive: je, tu, il, nous, ils; future stem; participle
FRENCH = """
voir: vois vois voit voyons voient, verr, vu
acheter: achète achètes achète achetons achètent, achèter, acheté
lire: lis lis lit lisons lisent, lir, lu
écrire: écris écris écrit écrivons écrivent, écrir, écrit
décrire: décris décris décrit décrivons décrivent, décrir, décrit
manger: mange manges mange mangeons mangent, manger, mangé
boire: bois bois boit buvons boivent, boir, bu
connaître: connais connais connaît connaissons connaissent, connaîtr, connu
ouvrir: ouvre ouvres ouvre ouvrons ouvrent, ouvrir, ouvert
nettoyer: nettoie nettoies nettoie nettoyons nettoient, nettoier, nettoyé
peindre: peins peins peint peignons peignent, peindr, peint
prendre: prends prends prend prenons prennent, prendr, pris
diriger: dirige diriges dirige dirigeons dirigent, diriger, dirigé
interroger: interroge interroges interroge interrogeons interrogent, interroger, interrogé
suivre: suis suis suit suivons suivent, suivr, suivi
appeler: appelle appelles appelle appelons appellent, appeller, appelé
poursuivre: poursuis poursuis poursuit poursuivons poursuivent, poursuivr, poursuivi
nourrir: nourris nourris nourrit nourrissons nourrissent, nourrir, nourri
élever: élève élèves élève élevons élèvent, élèver, élevé
soulever: soulève soulèves soulève soulevons soulèvent, soulèver, soulevé
construire: construis construis construit construisons construisent, construir, construit
conduire: conduis conduis conduit conduisons conduisent, conduir, conduit
souvenir: souviens souviens souvient souvenons souviennent, souviendr, souvenu
venir: viens viens vient venons viennent, viendr, venu
revenir: reviens reviens revient revenons reviennent, reviendr, revenu
comprendre: comprends comprends comprend comprenons comprennent, comprendr, compris
résoudre: résous résous résout résolvons résolvent, résoudr, résolu
lancer: lance lances lance lançons lancent, lancer, lancé
promettre: promets promets promet promettons promettent, promettr, promis
mettre: mets mets met mettons mettent, mettr, mis
envoyer: envoie envoies envoie envoyons envoient, enverr, envoyé
dormir: dors dors dort dormons dorment, dormir, dormi
mentir: mens mens ment mentons mentent, mentir, menti
rire: ris ris rit rions rient, rir, ri
sourire: souris souris sourit sourions sourient, sourir, souri
courir: cours cours court courons courent, courr, couru
nager: nage nages nage nageons nagent, nager, nagé
aboyer: aboie aboies aboie aboyons aboient, aboier, aboyé
partir: pars pars part partons partent, partir, parti
disparaître: disparais disparais disparaît disparaissons disparaissent, disparaîtr, disparu
mourir: meurs meurs meurt mourons meurent, mourr, mort
lever: lève lèves lève levons lèvent, lèver, levé
aller: vais vas va allons vont, ir, allé
dire: dis dis dit disons disent, dir, dit
savoir: sais sais sait savons savent, saur, su
croire: crois crois croit croyons croient, croir, cru
espérer: espère espères espère espérons espèrent, espérer, espéré
essayer: essaie essaies essaie essayons essaient, essaier, essayé
commencer: commence commences commence commençons commencent, commencer, commencé
faire: fais fais fait faisons font, fer, fait
avoir: ai as a avons ont, aur, eu
être: suis es est sommes sont, ser, été
vouloir: veux veux veut voulons veulent, voudr, voulu
pouvoir: peux peux peut pouvons peuvent, pourr, pu
devoir: dois dois doit devons doivent, devr, dû
mener: mène mènes mène menons mènent, mèner, mené
rendre: rends rends rend rendons rendent, rendr, rendu
"""

FRENCH_WITH_ETRE = frozenset(["arriver", "partir", "mourir", "venir", "revenir", "aller", "retourner", "rentrer"])

GERMAN_INSEPARABLE = ("be", "ver", "er", "ent", "zer", "ge")


def _rows(table: str) -> dict[str, list[str]]:
    """`word form form; …` as word -> forms."""
    rows = (row.split() for row in table.replace("\n", " ;").split(";"))
    return {row[0]: row[1:] for row in rows if row}


def english_forms(base: str) -> tuple[str, str, str]:
    """Base, third person singular, past: `see` -> see, sees, saw."""
    consonant_y = base.endswith("y") and base[-2] not in "aeiou"
    if base in {"have", "do", "go"}:
        third = {"have": "has", "do": "does", "go": "goes"}[base]
    elif consonant_y:
        third = base[:-1] + "ies"
    else:
        third = base + ("es" if base.endswith(("s", "sh", "ch", "x", "o")) else "s")
    if base in _ENGLISH:
        past = _ENGLISH[base][0]
    elif consonant_y:
        past = base[:-1] + "ied"
    else:
        past = base + ("d" if base.endswith("e") else "ed")
    return base, third, past


def german_forms(infinitive: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Five present forms, five simple past forms, participle of a verb without its separable prefix."""
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    link = "e" if stem.endswith(("t", "d", "chn", "ffn", "gn")) else ""
    if infinitive in _GERMAN:
        third, participle, past = _GERMAN[infinitive]
    else:
        third, past = f"{stem}{link}t", f"{stem}{link}te"
        prefixed = infinitive.startswith(GERMAN_INSEPARABLE) or infinitive.endswith("ieren")
        participle = ("" if prefixed else "ge") + f"{stem}{link}t"
    if infinitive in GERMAN_PRESENT:
        present = tuple(GERMAN_PRESENT[infinitive].split())
    else:
        root = third[:-1]
        second = root + ("t" if root.endswith(("s", "ß", "z", "x")) else "st")
        present = (f"{stem}e", second, third, infinitive, infinitive)
    return present, german_past(past), participle


def german_past(third: str) -> tuple[str, ...]:
    """Simple past in five persons from its third person: `kannte`, `ging`."""
    if third.endswith("e"):
        return third, third + "st", third, third + "n", third + "n"
    second = third + ("est" if third.endswith(("s", "ß", "d", "t")) else "st")
    return third, second, third, third + "en", third + "en"


def french_forms(infinitive: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]:
    """Five present, future and imperfect forms, and the masculine participle."""
    if infinitive in _FRENCH:
        present_cell, stem, participle = _FRENCH[infinitive]
        present = tuple(present_cell.split())
    elif infinitive.endswith("er"):
        root = infinitive[:-2]
        present = tuple(root + ending for ending in ("e", "es", "e", "ons", "ent"))
        stem, participle = infinitive, root + "é"
    elif infinitive.endswith("dre"):
        root = infinitive[:-2]
        present = (root + "s", root + "s", root, root + "ons", root + "ent")
        stem, participle = infinitive[:-1], root + "u"
    else:
        raise ValueError(f"no conjugation for the French verb {infinitive!r}; add a row to FRENCH")
    future = tuple(stem + ending for ending in ("ai", "as", "a", "ons", "ont"))
    past_stem = "ét" if infinitive == "être" else present[3][: -len("ons")]
    soft = past_stem.replace("ç", "c") if past_stem.endswith("ç") else past_stem.removesuffix("e")
    imperfect = (*(past_stem + e for e in ("ais", "ais", "ait")), soft + "ions", past_stem + "aient")
    return present, future, imperfect, participle


_ENGLISH = _rows(ENGLISH)
_GERMAN = _rows(GERMAN)
_FRENCH = {
    infinitive: [cell.strip() for cell in forms.split(",")]
    for infinitive, forms in (row.split(": ") for row in FRENCH.strip().split("\n"))
}
