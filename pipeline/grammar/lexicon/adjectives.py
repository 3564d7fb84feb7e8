"""Adjectives in four languages.

    English | German[:stem before an ending] | French | Chinese | classes

French is masculine/feminine[/masculine plural][/masculine before a vowel]. The sections tell where French puts
them, and the English order follows: those before the noun (size, age, beauty), then those after it. Chinese
gives the attributive form and, after the slash, the predicate that follows 很 (or, with =, the noun of 是…的). One
English adjective may have several rows: the noun's class then decides the translation.
"""

BEFORE_NOUN = """
big | groß | grand/grande | 大/大 | animal building room outdoors furniture vehicle thing nature
small | klein | petit/petite | 小/小 | child animal pet building room outdoors furniture vehicle thing nature solid
tall | groß | grand/grande | 高大 的/高 | person
old | alt | vieux/vieille/vieux/vieil | 老/老 | person animal nature
old | alt | vieux/vieille/vieux/vieil | 旧/旧 | clothes accessory vehicle building text thing furniture device picture
young | jung | jeune/jeune | 年轻 的/年轻 | person
new | neu | nouveau/nouvelle/nouveaux/nouvel | 新/新 | clothes vehicle building device text furniture film song idea
beautiful | schön | beau/belle/beaux/bel | 漂亮 的/漂亮 | clothes accessory building outdoors animal picture thing
beautiful | schön | beau/belle/beaux/bel | 动听 的/动听 | song plucked bowed
good | gut | bon/bonne | 好/好 | food drink idea film text
good | gut | bon/bonne | 善良 的/善良 | person
bad | schlecht | mauvais/mauvaise/mauvais | 糟糕 的/糟糕 | idea film food text
long | lang | long/longue | 长/长 | text tale film outdoors scarf coat
pretty | hübsch | joli/jolie | 好看 的/好看 | clothes accessory portable furniture
"""

AFTER_NOUN = """
red | rot | rouge/rouge | 红色 的/=红色 | clothes accessory vehicle portable furniture opening
blue | blau | bleu/bleue | 蓝色 的/=蓝色 | clothes accessory vehicle portable furniture opening
green | grün | vert/verte | 绿色 的/=绿色 | clothes accessory vehicle portable furniture opening
black | schwarz | noir/noire | 黑色 的/=黑色 | clothes accessory vehicle animal portable furniture
white | weiß | blanc/blanche | 白色 的/=白色 | clothes building animal pet furniture
yellow | gelb | jaune/jaune | 黄色 的/=黄色 | clothes accessory vehicle portable
expensive | teuer:teur | cher/chère | 昂贵 的/贵 | goods hotel restaurant
cheap | billig | bon marché/bon marché/bon marché | 便宜 的/便宜 | goods hotel restaurant
heavy | schwer | lourd/lourde | 沉重 的/重 | suitcase bag furniture stone box bucket
difficult | schwierig | difficile/difficile | 困难 的/难 | idea text
easy | leicht | facile/facile | 容易 的/容易 | question riddle
strange | seltsam | étrange/étrange | 奇怪 的/奇怪 | person animal idea film text tale
famous | berühmt | célèbre/célèbre | 著名 的/有名 | person building film song picture
rich | reich | riche/riche | 富有 的/富有 | person
poor | arm | pauvre/pauvre | 贫穷 的/穷 | person
tired | müde:müd | fatigué/fatiguée | 疲倦 的/累 | person animal
happy | glücklich | heureux/heureuse/heureux | 快乐 的/快乐 | person
sad | traurig | triste/triste | 悲伤 的/伤心 | person
sad | traurig | triste/triste | 感人 的/感人 | film song tale
angry | wütend | furieux/furieuse/furieux | 愤怒 的/生气 | person
lazy | faul | paresseux/paresseuse/paresseux | 懒惰 的/懒 | person pet
brave | mutig | courageux/courageuse/courageux | 勇敢 的/勇敢 | person
clever | klug | intelligent/intelligente | 聪明 的/聪明 | person animal
friendly | freundlich | sympathique/sympathique | 友好 的/友好 | person
hungry | hungrig | affamé/affamée | 饥饿 的/饿 | person animal
dangerous | gefährlich | dangereux/dangereuse/dangereux | 危险 的/危险 | animal outdoors idea contest
quiet | ruhig | calme/calme | 安静 的/安静 | room outdoors child hotel
empty | leer | vide/vide | 空 的/空 | building room glassy bag suitcase bucket bus train
dark | dunkel:dunkl | sombre/sombre | 黑暗 的/黑 | room forest church
modern | modern | moderne/moderne | 现代 的/现代 | building device furniture
clean | sauber | propre/propre | 干净 的/干净 | clothes room glassy vehicle
dirty | schmutzig | sale/sale | 肮脏 的/脏 | clothes room glassy vehicle street
hot | heiß | chaud/chaude | 热/烫 | coffee tea liquid
cold | kalt | froid/froide | 冷/冷 | coffee tea liquid room
cold | kalt | froid/froide | 冰镇 的/凉 | beer juice
fresh | frisch | frais/fraîche/frais | 新鲜 的/新鲜 | solid juice flower
sweet | süß | sucré/sucrée | 甜 的/甜 | solid tea juice
strong | stark | fort/forte | 强壮 的/强壮 | person horse elephant bear
strong | stark | fort/forte | 浓/浓 | coffee tea
interesting | interessant | intéressant/intéressante | 有趣 的/有趣 | text tale film idea event
boring | langweilig | ennuyeux/ennuyeuse/ennuyeux | 无聊 的/无聊 | text tale film event
important | wichtig | important/importante | 重要 的/重要 | idea text event
high | hoch:hoh | haut/haute | 高/高 | tower mountain bridge tree
deep | tief | profond/profonde | 深/深 | lake river forest
fast | schnell | rapide/rapide | 快/快 | vehicle horse
wild | wild | sauvage/sauvage | 凶猛 的/凶猛 | animal
"""
