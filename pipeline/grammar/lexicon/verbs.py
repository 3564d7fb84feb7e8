"""Verbs, idioms and set phrases in four languages.

    English | German | French | Chinese | frame | subjects | objects | flags

A line that starts with | continues the row above. Frames: t object, i none, d object and recipient, g goal of a
movement, c that-clause, q whether-clause, v infinitive. The rest of the English, German and French cells says
how the object is marked: a preposition (`auf+A`), a case (`D`), `sich` or `se` for reflexives; `an_` is a
separable prefix; square brackets hold fixed words (English ones as a tree). In Chinese, ~ is the object's
place, ^ the recipient's, + the place of 了 (a closing - : none); after a semicolon the form with 把. Subjects and
objects are semantic classes or single nouns. Flags: s a state, p without a place. Rows with the same English
verb are told apart by their objects: the translation depends on them.
"""

VERBS = """
see | sehen | voir | 看见 | t | person animal | person animal building vehicle thing picture
find | finden | trouver | 找到 | t | person | portable animal device text clothes accessory
buy | kaufen | acheter | 买 | t | person | goods
sell | verkaufen | vendre | 卖掉 | t | person | goods
read | lesen | lire | 读 | t | person | text tale
write | schreiben | écrire | 写 | t | person | written
eat | essen | manger | 吃 | t | person animal | solid
eat | essen | manger | 喝 | t | person | soup
drink | trinken | boire | 喝 | t | person | drink
love | lieben | aimer | 爱 | t | person | person pet | s
like | mögen | aimer | 喜欢 | t | person | animal food drink clothes building film song picture text | s
know | kennen | connaître | 认识 | t | person | person | s
know | kennen | connaître | 熟悉 | t | person | building outdoors | s
know | kennen | connaître | 知道 | t | person | hidden | s
open | öffnen | ouvrir | 打开 | t | person | opening suitcase bag bottle
close | schließen | fermer | 关上 | t | person | opening suitcase bag
hear | hören | entendre | 听见 | t | person animal | person animal
watch | an_sehen | regarder | 看 | t | person | film match picture
watch | beobachten | observer | 观察 | t | person animal | animal person
kick | treten gegen+A | taper dans | 踢 | t | person | ball bucket
clean | putzen | nettoyer | 打扫 | t | person | room house church
clean | putzen | nettoyer | 擦 | t | person | opening mirror glass bicycle
paint | malen | peindre | 画 | t | person | picture
paint | streichen | peindre | 粉刷 | t | person | house opening room church
repair | reparieren | réparer | 修理 | t | person | vehicle device opening
break | zerbrechen | casser | 打破 | t | person pet | glassy
carry | tragen | porter | 搬 | t | person | furniture suitcase stone bucket
wear | tragen | porter | 穿 | t | person | clothes
wear | tragen | porter | 戴 | t | person | accessory
take | nehmen | prendre | 坐 | t | person | public taxi plane
take | machen | prendre | 拍 | t | person | photo
take | nehmen | prendre | 拿走 | t | person | portable
miss | verpassen | rater | 错过 | t | person | public plane
catch | fassen | attraper | 抓住 | t | policeman detective soldier | thief
catch | fangen | attraper | 接住 | t | person dog | ball
catch | fangen | attraper | 捉到 | t | pet snake bear wolf | mouse bird
save | retten | sauver | 救 | t | person dog | person pet
run | leiten | diriger | 经营 | t | person | business
leave | verlassen | quitter | 离开 | t | person | building outdoors
lose | verlieren | perdre | 丢 | t | person | portable accessory
lose | verlieren | perdre | 输掉 | t | person | contest
win | gewinnen | gagner | 赢得 | t | person | contest
ask | stellen | poser | 提出 | t | person | question
ask | fragen | interroger | 询问 | t | person | person
answer | beantworten | répondre à | 回答 | t | person | question
answer | beantworten | répondre à | 回复 | t | person | letter
help | helfen D | aider | 帮助 | t | person | person
thank | danken D | remercier | 感谢 | t | person | person
follow | folgen D | suivre | 跟踪 | t | person animal | person animal
wait for | warten auf+A | attendre | 等 | t | person | person public
look for | suchen | chercher | 寻找 | t | person animal | person pet portable accessory
think of | denken an+A | penser à | 想到 | t | person | person event idea
call | an_rufen | appeler | 给 ~ 打 + 电话 | t | person | person
invite | ein_laden | inviter | 邀请 | t | person | person
visit | besuchen | rendre [visite] à | 拜访 | t | person | person
visit | besuchen | visiter | 参观 | t | person | building castle
meet | treffen | rencontrer | 遇见 | t | person | person
marry | heiraten | épouser | 跟 ~ 结 + 婚 | t | person | person
bite | beißen | mordre | 咬 | t | animal | person pet
chase | jagen | poursuivre | 追赶 | t | animal policeman | pet mouse bird thief
feed | füttern | nourrir | 喂 | t | person | animal
raise | groß_ziehen | élever | 抚养 | t | person | child son daughter
raise | züchten | élever | 饲养 | t | farmer man woman | horse cow duck
raise | auf_werfen | soulever | 提出 | t | lawyer journalist teacher detective | riddle
cook | kochen | cuisiner | 煮 | t | person | soup potato egg
build | bauen | construire | 建造 | t | person | building bridge
sing | singen | chanter | 唱 | t | person | song
tell | erzählen | raconter | 讲 | t | person | tale
forget | vergessen | oublier | 忘记 | t | person | portable idea
remember | sich erinnern an+A | se souvenir de | 记得 | t | person | person event idea film | s
understand | verstehen | comprendre | 理解 | t | person | idea text film | s
solve | lösen | résoudre | 解决 | t | person | riddle
hide | verstecken | cacher | 藏起 | t | person | portable accessory animal
steal | stehlen | voler | 偷走 | t | person thief | portable accessory picture vehicle
throw | werfen | lancer | 扔 | t | person | ball stone bottle
wash | waschen | laver | 洗 | t | person | clothes vehicle glass dog
burn | verbrennen | brûler | 烧掉 | t | person | text picture snapshot
order | bestellen | commander | 点 | t | person | food drink
attend | besuchen | assister à | 参加 | t | person | festive
organise | organisieren | organiser | 组织 | t | person | festive
play | spielen | jouer de | 弹 | t | person | plucked
play | spielen | jouer de | 拉 | t | person | bowed
play | spielen | jouer de | 吹 | t | person | blown
ride | reiten | monter | 骑 | t | person | horse elephant
drive | fahren | conduire | 开 | t | person | road
admire | bewundern | admirer | 欣赏 | t | person | person picture building | s
describe | beschreiben | décrire | 描述 | t | person | person building idea picture
defend | verteidigen | défendre | 保卫 | t | soldier king captain | city castle bridge island
defend | verteidigen | défendre | 为 ~ 辩护 | t | lawyer | person | s
pull | ziehen | tirer | 拉 | t | horse man boy | table bed car

give | geben | donner | 给 + ^ ~ ; 把 ~ 给 + ^ | d | person | portable text goods
send | schicken | envoyer | 寄 给 + ^ ~ ; 把 ~ 寄 给 + ^ | d | person | text gift picture clothes
show | zeigen | montrer | 给 ^ 看 + ~ ; 把 ~ 给 ^ 看 + | d | person | picture snapshot building portable text
bring | bringen | apporter | 给 ^ 带来 + ~ ; 把 ~ 带 给 + ^ | d | person | food drink portable
lend | leihen | prêter | 借 给 + ^ ~ ; 把 ~ 借 给 + ^ | d | person | text vehicle clothes portable
explain | erklären | expliquer | 向 ^ 解释 + ~ | d | person | idea
sell | verkaufen | vendre | 卖 给 + ^ ~ ; 把 ~ 卖 给 + ^ | d | person | goods

sleep | schlafen | dormir | 睡 + 觉 | i | person animal |
laugh | lachen | rire | 笑 + | i | person |
cry | weinen | pleurer | 哭 + | i | person |
dance | tanzen | danser | 跳 + 舞 | i | person |
work | arbeiten | travailler | 工作 + | i | person |
run | rennen | courir | 跑步 + | i | person animal |
wait | warten | attendre | 等待 + | i | person |
swim | schwimmen | nager | 游 + 泳 | i | person animal |
bark | bellen | aboyer | 叫 + | i | barker |
smile | lächeln | sourire | 微笑 + | i | person |
arrive | an_kommen | arriver | 到达 + | i | person public
leave | weg_gehen | partir | 走 + | i | person | | p
disappear | verschwinden | disparaître | 消失 + | i | person animal |
die | sterben | mourir | 死 + | i | person animal |
wake up | auf_wachen | se réveiller | 醒 + | i | person |
get up | auf_stehen | se lever | 起 + 床 | i | person | | p
come back | zurück_kommen | revenir | 回来 + | i | person | | p

go to | gehen zu+D | aller à | 去 + ~ | g | person | building outdoors station market
return to | zurück_kehren zu+D | retourner à | 回到 + ~ | g | person | building outdoors station
come to | kommen zu+D | venir à | 来到 + ~ | g | person | building outdoors station

say | sagen | dire | 说 - | c | person |
think | denken | penser | 认为 | c | person | | s
know | wissen | savoir | 知道 | c | person | | s
believe | glauben | croire | 相信 | c | person | | s
hope | hoffen | espérer | 希望 | c | person | | s
forget | vergessen | oublier | 忘记 + | c | person |
claim | behaupten | affirmer | 声称 - | c | person |
wonder | sich fragen | se demander | 想 知道 | q | person | | s
ask | fragen | demander | 问 - | q | person |

try | versuchen | essayer de | 试着 | v | person |
begin | an_fangen | commencer à | 开始 | v | person |
forget | vergessen | oublier de | 忘记 | v | person |
promise | versprechen | promettre de | 答应 | v | person |
decide | beschließen | décider de | 决定 | v | person |
hope | hoffen | espérer | 希望 | v | person | | s
"""

IDIOMS = """
kick [(NP (DT the) (NN bucket))] | beißen [ins Gras] | casser [sa pipe] | 翘 + 辫子 | i | person |
spill [(NP (DT the) (NNS beans))]
    | plaudern [aus dem Nähkästchen] | vendre [la mèche] | 说漏 + 嘴 | i | person |
hit [(NP (DT the) (NN nail)) (PP (IN on) (NP (DT the) (NN head)))]
    | treffen [den Nagel auf den Kopf] | mettre [dans le mille] | 说得 一针见血 - | i | person |
beat [(PP (IN around) (NP (DT the) (NN bush)))]
    | herum_reden [um den heißen Brei] | tourner [autour du pot] | 拐弯抹角 - | i | person |
turn [(NP (DT a) (JJ blind) (NN eye))]
    | zu_drücken [ein Auge] | fermer [les yeux] | 睁一只眼闭一只眼 - | i | person |
burn [(NP (DT the) (NN midnight) (NN oil))]
    | machen [die Nacht zum Tag] | travailler [jusqu'à l'aube] | 开 + 夜车 | i | person |
kill [(NP (CD two) (NNS birds)) (PP (IN with) (NP (CD one) (NN stone)))]
    | schlagen [zwei Fliegen mit einer Klappe] | faire [d'une pierre deux coups] | 一举两得 - | i | person |
sleep [(PP (IN like) (NP (DT a) (NN log)))]
    | schlafen [wie ein Murmeltier] | dormir [comme un loir] | 睡 + 个 好 觉 | i | person |
eat [(PP (IN like) (NP (DT a) (NN horse)))]
    | essen [wie ein Scheunendrescher] | manger [comme quatre] | 大 吃 + 一顿 | i | person |
buy [(NP (DT a) (NN pig)) (PP (IN in) (NP (DT a) (NN poke)))]
    | kaufen [die Katze im Sack] | acheter [chat en poche] | 隔山买牛 - | i | person |
take [(NP (DT the) (NN bull)) (PP (IN by) (NP (DT the) (NNS horns)))]
    | packen [den Stier bei den Hörnern] | prendre [le taureau par les cornes] | 迎难而上 - | i | person |
have [(NP (DT a) (NN screw)) (ADJP (JJ loose))]
    | haben [nicht alle Tassen im Schrank] | avoir [un grain] | 脑子 有 毛病 | i | person | | s
have [(NP (JJ other) (NN fish)) (S (VP (TO to) (VP (VB fry))))]
    | haben [Wichtigeres zu tun] | avoir [d'autres chats à fouetter] | 有 更 重要 的 事 要 做 | i | person | | s
throw [(PRT (RP in)) (NP (DT the) (NN towel))]
    | werfen [das Handtuch] | baisser [les bras] | 认 + 输 | i | person |
paint [(NP (DT the) (NN town)) (ADJP (JJ red))]
    | machen [einen drauf] | faire [la noce] | 狂欢 + 一番 | i | person |
live [(PP (IN from) (NP (NN hand))) (PP (TO to) (NP (NN mouth)))]
    | leben [von der Hand in den Mund] | tirer [le diable par la queue] | 勉强 糊口 - | i | person |
run [(PP (IN around) (PP (IN in) (NP (NNS circles))))]
    | sich drehen [im Kreis] | tourner [en rond] | 白 忙 + 一场 | i | person | | p
smell [(NP (DT a) (NN rat))] | riechen [Lunte] | flairer [un piège] | 觉得 不对劲 - | i | person |
break [(NP (DT the) (NN bank))]
    | sprengen [die Bank] | faire [sauter la banque] | 赢 + 一 大 笔 钱 | i | person |
leave [(PP (IN in) (NP (DT the) (NN lurch)))]
    | lassen [im Stich] | laisser [en plan] | 弃 ~ 于 不顾 - | t | person | person
give [(NP (DT the) (JJ cold) (NN shoulder))]
    | zeigen D [die kalte Schulter] | tourner [le dos] à | 冷落 + ~ | t | person | person
take [(PP (IN for) (NP (DT a) (NN ride)))]
    | führen [hinters Licht] | mener [en bateau] | 欺骗 + ~ | t | person | person
lead [(PP (IN up) (NP (DT the) (NN garden) (NN path)))]
    | halten [zum Narren] | mener [par le bout du nez] | 耍 + ~ | t | person | person
"""

PHRASES = """
play [(NP (NN football))] | spielen [Fußball] | jouer [au football] | 踢 + 足球 | i | person |
play [(NP (NN tennis))] | spielen [Tennis] | jouer [au tennis] | 打 + 网球 | i | person |
play [(NP (NN chess))] | spielen [Schach] | jouer [aux échecs] | 下 + 棋 | i | person |
play [(NP (NNS cards))] | spielen [Karten] | jouer [aux cartes] | 打 + 牌 | i | person |
tell [(NP (DT the) (NN truth))] | sagen [die Wahrheit] | dire [la vérité] | 说 + 实话 | i | person |
have [(NP (NN breakfast))] | frühstücken | prendre [le petit-déjeuner] | 吃 + 早饭 | i | person |
take [(NP (DT a) (NN shower))] | duschen | prendre [une douche] | 洗 + 澡 | i | person |
go [(ADVP (NN home))] | gehen [nach Hause] | rentrer [à la maison] | 回 + 家 | i | person | | p
go [(PP (TO to) (NP (NN bed)))] | gehen [ins Bett] | aller [au lit] | 上 + 床 睡觉 | i | person | | p
make [(NP (DT a) (NN mistake))]
    | machen [einen Fehler] | faire [une erreur] | 犯 + 一 个 错误 | i | person |
do [(NP (DT the) (NNS dishes))]
    | spülen [das Geschirr] | faire [la vaisselle] | 洗 + 碗 | i | person |
tell [(NP (DT a) (NN lie))] | lügen | mentir | 撒 + 谎 | i | person |
"""
