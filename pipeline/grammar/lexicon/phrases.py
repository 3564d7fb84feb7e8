"""Closed-class phrases: adverbs of time, frequency and manner, conjunctions, openers, numbers.

English is a tree; German, French and Chinese are words separated by spaces.
"""

# English | German | French | Chinese, by tense
TIME = {
    "past": """
(NP (NN yesterday)) | gestern | hier | 昨天
(NP (JJ last) (NN night)) | letzte Nacht | la nuit dernière | 昨晚
(NP (JJ last) (NN week)) | letzte Woche | la semaine dernière | 上周
(NP (JJ last) (NN summer)) | letzten Sommer | l'été dernier | 去年 夏天
(ADVP (NP (CD two) (NNS years)) (RB ago)) | vor zwei Jahren | il y a deux ans | 两年 前
(ADVP (NP (CD three) (NNS days)) (RB ago)) | vor drei Tagen | il y a trois jours | 三天 前
(PP (IN on) (NP (NNP Sunday))) | am Sonntag | dimanche | 星期天
(NP (DT this) (NN morning)) | heute Morgen | ce matin | 今天 早上""",
    "present": """
(NP (NN today)) | heute | aujourd'hui | 今天
(ADVP (RB now)) | jetzt | maintenant | 现在
(NP (DT every) (NN day)) | jeden Tag | chaque jour | 每天
(PP (IN at) (NP (NN night))) | nachts | la nuit | 夜里
(PP (IN in) (NP (DT the) (NN morning))) | am Morgen | le matin | 早上
(NP (DT every) (NN winter)) | jeden Winter | chaque hiver | 每年 冬天""",
    "future": """
(NP (NN tomorrow)) | morgen | demain | 明天
(NP (JJ next) (NN week)) | nächste Woche | la semaine prochaine | 下周
(NP (JJ next) (NN year)) | nächstes Jahr | l'année prochaine | 明年
(ADVP (RB soon)) | bald | bientôt | 很快
(NP (NN tonight)) | heute Abend | ce soir | 今晚
(PP (IN in) (NP (CD three) (NNS days))) | in drei Tagen | dans trois jours | 三天 后
(PP (IN on) (NP (NNP Monday))) | am Montag | lundi | 星期一""",
}

FREQUENCY = """
often | oft | souvent | 经常
always | immer | toujours | 总是
sometimes | manchmal | parfois | 有时
rarely | selten | rarement | 很少
"""

MANNER = """
quickly | schnell | rapidement | 迅速 地
slowly | langsam | lentement | 慢慢 地
carefully | vorsichtig | prudemment | 小心 地
quietly | leise | discrètement | 悄悄 地
secretly | heimlich | en secret | 偷偷 地
proudly | stolz | fièrement | 骄傲 地
reluctantly | widerwillig | à contrecœur | 不情愿 地
"""

# English | German | French | Chinese opening and closing words of the subordinate clause, opening of the main | tenses
SUBORDINATORS = """
(IN because) | weil | parce que | 因为 _ 所以 | past present future
(WHADVP (WRB when)) | als | quand | 当 的时候 _ | past
(WHADVP (WRB when)) | wenn | quand | 当 的时候 _ | present
(IN if) | wenn | si | 如果 _ 就 | present
(IN although) | obwohl | bien que | 虽然 _ 但是 | past
(IN while) | während | pendant que | 在 的时候 _ | past present
(IN since) | da | puisque | 既然 _ 就 | past present future
"""

# English | German | French | Chinese
COORDINATORS = """
and | und | et | _
but | aber | mais | 但是
so | deshalb | donc | 所以
"""

OPENERS = """
(ADVP (RB unfortunately)) | leider | malheureusement | 可惜
(ADVP (RB fortunately)) | zum Glück | heureusement | 幸好
(PP (IN of) (NP (NN course))) | natürlich | bien sûr | 当然
(ADVP (RB suddenly)) | plötzlich | soudain | 突然
"""

INTERJECTIONS = """
(UH oh) | ach | oh | 哦
(UH well) | nun | eh bien | 嗯
(UH yes) | ja | oui | 是的
(UH no) | nein | non | 不
(UH hey) | he | hé | 嘿
"""

NUMBERS = """
two | zwei | deux | 两
three | drei | trois | 三
four | vier | quatre | 四
five | fünf | cinq | 五
six | sechs | six | 六
seven | sieben | sept | 七
eight | acht | huit | 八
nine | neun | neuf | 九
ten | zehn | dix | 十
twelve | zwölf | douze | 十二
twenty | zwanzig | vingt | 二十
"""
