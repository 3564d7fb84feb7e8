"""Nouns in four languages.

A header line opens a semantic class: `[class other-class; natural gender]`. A row reads

    English[/plural] | gender German/plural | gender French[/plural] | Chinese measure-word

German gender is m, f, n, or mw for the weak masculine nouns that take -(e)n outside the nominative singular. A `#tag`
tells two English homonyms apart (`bat#animal`). Places carry in, on, at or shore (on the bank, am
Ufer): the preposition that says "located there".
"""

NOUNS = """
[person; m]
man/men | m Mann/Männer | m homme | 男人 个
boy | mw Junge/Jungen | m garçon | 男孩 个
teacher | m Lehrer/Lehrer | m professeur | 老师 位
doctor | m Arzt/Ärzte | m médecin | 医生 位
friend | m Freund/Freunde | m ami | 朋友 个
neighbour | mw Nachbar/Nachbarn | m voisin | 邻居 个
student | mw Student/Studenten | m étudiant | 学生 个
policeman/policemen | mw Polizist/Polizisten | m policier | 警察 名
thief/thieves | m Dieb/Diebe | m voleur | 小偷 个
lawyer | m Anwalt/Anwälte | m avocat | 律师 名
driver | m Fahrer/Fahrer | m chauffeur | 司机 名
waiter | m Kellner/Kellner | m serveur | 服务员 名
guest | m Gast/Gäste | m invité | 客人 位
writer | m Schriftsteller/Schriftsteller | m écrivain | 作家 位
farmer | mw Bauer/Bauern | m fermier | 农民 个
soldier | mw Soldat/Soldaten | m soldat | 士兵 名
captain | m Kapitän/Kapitäne | m capitaine | 船长 位
baker | m Bäcker/Bäcker | m boulanger | 面包师 名
detective | m Detektiv/Detektive | m détective | 侦探 名
king | m König/Könige | m roi | 国王 位
hero/heroes | mw Held/Helden | m héros/héros | 英雄 位
[person; f]
woman/women | f Frau/Frauen | f femme | 女人 个
girl | n Mädchen/Mädchen | f fille | 女孩 个
nurse | f Krankenschwester/Krankenschwestern | f infirmière | 护士 位
actress/actresses | f Schauspielerin/Schauspielerinnen | f actrice | 女演员 名
queen | f Königin/Königinnen | f reine | 女王 位
dancer | f Tänzerin/Tänzerinnen | f danseuse | 舞蹈演员 名
journalist | f Journalistin/Journalistinnen | f journaliste | 记者 名
[person kin; m]
brother | m Bruder/Brüder | m frère | 哥哥 个
father | m Vater/Väter | m père | 父亲 位
son | m Sohn/Söhne | m fils/fils | 儿子 个
uncle | m Onkel/Onkel | m oncle | 叔叔 位
boss/bosses | m Chef/Chefs | m patron | 老板 个
[person kin; f]
sister | f Schwester/Schwestern | f sœur | 姐姐 个
mother | f Mutter/Mütter | f mère | 母亲 位
daughter | f Tochter/Töchter | f fille | 女儿 个
aunt | f Tante/Tanten | f tante | 阿姨 位
grandmother | f Großmutter/Großmütter | f grand-mère/grands-mères | 奶奶 位
[person kin child; m]
child/children | n Kind/Kinder | m enfant | 孩子 个
[animal pet barker; n]
dog | m Hund/Hunde | m chien | 狗 只
[animal pet; n]
cat | f Katze/Katzen | m chat | 猫 只
[animal; n]
horse | n Pferd/Pferde | m cheval/chevaux | 马 匹
bird | m Vogel/Vögel | m oiseau/oiseaux | 鸟 只
mouse/mice | f Maus/Mäuse | f souris/souris | 老鼠 只
bear | mw Bär/Bären | m ours/ours | 熊 头
wolf/wolves | m Wolf/Wölfe | m loup | 狼 只
elephant | mw Elefant/Elefanten | m éléphant | 大象 头
cow | f Kuh/Kühe | f vache | 奶牛 头
snake | f Schlange/Schlangen | m serpent | 蛇 条
monkey | mw Affe/Affen | m singe | 猴子 只
duck | f Ente/Enten | m canard | 鸭子 只
bat#animal | f Fledermaus/Fledermäuse | f chauve-souris/chauves-souris | 蝙蝠 只
[food solid goods; n]
apple | m Apfel/Äpfel | f pomme | 苹果 个
cake | m Kuchen/Kuchen | m gâteau/gâteaux | 蛋糕 块
egg | n Ei/Eier | m œuf | 鸡蛋 个
sandwich/sandwiches | n Sandwich/Sandwiches | m sandwich | 三明治 个
potato/potatoes | f Kartoffel/Kartoffeln | f pomme de terre/pommes de terre | 土豆 个
tomato/tomatoes | f Tomate/Tomaten | f tomate | 西红柿 个
cheese | m Käse/Käse | m fromage | 奶酪 块
orange | f Orange/Orangen | f orange | 橙子 个
[food liquid; n]
soup | f Suppe/Suppen | f soupe | 汤 碗
[drink goods; n]
coffee | m Kaffee/Kaffees | m café | 咖啡 杯
tea | m Tee/Tees | m thé | 茶 杯
beer | n Bier/Biere | f bière | 啤酒 瓶
wine | m Wein/Weine | m vin | 葡萄酒 瓶
juice | m Saft/Säfte | m jus/jus | 果汁 杯
[clothes goods; n]
coat | m Mantel/Mäntel | m manteau/manteaux | 大衣 件
shirt | n Hemd/Hemden | f chemise | 衬衫 件
dress/dresses | n Kleid/Kleider | f robe | 裙子 条
jacket | f Jacke/Jacken | f veste | 夹克 件
[accessory goods; n]
hat | m Hut/Hüte | m chapeau/chapeaux | 帽子 顶
ring | m Ring/Ringe | f bague | 戒指 枚
scarf/scarves | m Schal/Schals | f écharpe | 围巾 条
watch/watches | f Uhr/Uhren | f montre | 手表 块
[plucked goods device; n]
piano | n Klavier/Klaviere | m piano | 钢琴 架
guitar | f Gitarre/Gitarren | f guitare | 吉他 把
[bowed goods device; n]
violin | f Geige/Geigen | m violon | 小提琴 把
[blown goods; n]
flute | f Flöte/Flöten | f flûte | 笛子 支
trumpet | f Trompete/Trompeten | f trompette | 小号 把
[vehicle road goods; n]
car | n Auto/Autos | f voiture | 汽车 辆
taxi | n Taxi/Taxis | m taxi | 出租车 辆
[vehicle road public; n]
bus/buses | m Bus/Busse | m bus/bus | 公共汽车 辆
[vehicle public; n]
train | m Zug/Züge | m train | 火车 列
[vehicle goods; n]
bicycle | n Fahrrad/Fahrräder | m vélo | 自行车 辆
ship | n Schiff/Schiffe | m navire | 船 艘
plane | n Flugzeug/Flugzeuge | m avion | 飞机 架
[place building openhouse in; n]
house | n Haus/Häuser | f maison | 房子 座
castle | n Schloss/Schlösser | m château/châteaux | 城堡 座
tower | m Turm/Türme | f tour | 塔 座
[place building business in; n]
hotel | n Hotel/Hotels | m hôtel | 酒店 家
restaurant | n Restaurant/Restaurants | m restaurant | 餐馆 家
factory/factories | f Fabrik/Fabriken | f usine | 工厂 家
theatre | n Theater/Theater | m théâtre | 剧院 家
bank#money | f Bank/Banken | f banque | 银行 家
[place building in; n]
school | f Schule/Schulen | f école | 学校 所
hospital | n Krankenhaus/Krankenhäuser | m hôpital/hôpitaux | 医院 家
church/churches | f Kirche/Kirchen | f église | 教堂 座
museum | n Museum/Museen | m musée | 博物馆 座
library/libraries | f Bibliothek/Bibliotheken | f bibliothèque | 图书馆 座
prison | n Gefängnis/Gefängnisse | f prison | 监狱 座
[place room in; n]
kitchen | f Küche/Küchen | f cuisine | 厨房 间
office | n Büro/Büros | m bureau/bureaux | 办公室 间
room | n Zimmer/Zimmer | f chambre | 房间 间
[place outdoors in; n]
garden | m Garten/Gärten | m jardin | 花园 座
park | m Park/Parks | m parc | 公园 座
forest | m Wald/Wälder | f forêt | 森林 片
village | n Dorf/Dörfer | m village | 村子 个
city/cities | f Stadt/Städte | f ville | 城市 座
[place outdoors on; n]
beach/beaches | m Strand/Strände | f plage | 海滩 片
island | f Insel/Inseln | f île | 岛 座
bridge | f Brücke/Brücken | m pont | 桥 座
market | m Markt/Märkte | m marché | 市场 个
mountain | m Berg/Berge | f montagne | 山 座
[place outdoors shore; n]
bank#river | n Ufer/Ufer | f rive | 河岸 片
[place at; n]
station | m Bahnhof/Bahnhöfe | f gare | 车站 座
lake | m See/Seen | m lac | 湖边 个
[text goods written; n]
book | n Buch/Bücher | m livre | 书 本
letter | m Brief/Briefe | f lettre | 信 封
report | m Bericht/Berichte | m rapport | 报告 份
poem | n Gedicht/Gedichte | m poème | 诗 首
[text goods; n]
newspaper | f Zeitung/Zeitungen | m journal/journaux | 报纸 份
[tale written; n]
story/stories | f Geschichte/Geschichten | f histoire | 故事 个
[thing goods portable; n]
key | m Schlüssel/Schlüssel | f clé | 钥匙 把
bag | f Tasche/Taschen | m sac | 包 个
suitcase | m Koffer/Koffer | f valise | 箱子 个
umbrella | m Regenschirm/Regenschirme | m parapluie | 雨伞 把
knife/knives | n Messer/Messer | m couteau/couteaux | 刀 把
map | f Karte/Karten | f carte | 地图 张
gift | n Geschenk/Geschenke | m cadeau/cadeaux | 礼物 份
flower | f Blume/Blumen | f fleur | 花 朵
ticket | f Fahrkarte/Fahrkarten | m billet | 票 张
ball | m Ball/Bälle | m ballon | 球 个
bucket | m Eimer/Eimer | m seau/seaux | 水桶 个
stone | m Stein/Steine | f pierre | 石头 块
bat#club | m Schläger/Schläger | f batte | 球棒 根
[thing goods glassy portable; n]
bottle | f Flasche/Flaschen | f bouteille | 瓶子 个
glass/glasses | n Glas/Gläser | m verre | 玻璃杯 个
mirror | m Spiegel/Spiegel | m miroir | 镜子 面
[thing goods furniture; n]
lamp | f Lampe/Lampen | f lampe | 灯 盏
table | m Tisch/Tische | f table | 桌子 张
chair | m Stuhl/Stühle | f chaise | 椅子 把
bed | n Bett/Betten | m lit | 床 张
[thing opening; n]
door | f Tür/Türen | f porte | 门 扇
window | n Fenster/Fenster | f fenêtre | 窗户 扇
[device goods portable thing; n]
phone | n Telefon/Telefone | m téléphone | 电话 部
computer | m Computer/Computer | m ordinateur | 电脑 台
camera | f Kamera/Kameras | m appareil photo/appareils photo | 照相机 台
[picture goods thing; n]
picture | n Bild/Bilder | m tableau/tableaux | 画 幅
[snapshot; n]
photo | n Foto/Fotos | f photo | 照片 张
[song; n]
song | n Lied/Lieder | f chanson | 歌 首
[film; n]
film | m Film/Filme | m film | 电影 部
[nature; n]
tree | m Baum/Bäume | m arbre | 树 棵
river | m Fluss/Flüsse | f rivière | 河 条
[idea; n]
question | f Frage/Fragen | f question | 问题 个
[idea riddle; n]
problem | n Problem/Probleme | m problème | 难题 个
[idea hidden; n]
answer | f Antwort/Antworten | f réponse | 答案 个
secret | n Geheimnis/Geheimnisse | m secret | 秘密 个
plan | m Plan/Pläne | m projet | 计划 个
[idea; n]
mistake | m Fehler/Fehler | f erreur | 错误 个
dream | m Traum/Träume | m rêve | 梦 个
idea | f Idee/Ideen | f idée | 主意 个
[event festive; n]
wedding | f Hochzeit/Hochzeiten | m mariage | 婚礼 场
concert | n Konzert/Konzerte | m concert | 音乐会 场
party/parties | f Feier/Feiern | f fête | 聚会 个
meeting | f Sitzung/Sitzungen | f réunion | 会议 个
[contest; n]
war | m Krieg/Kriege | f guerre | 战争 场
match/matches | n Spiel/Spiele | m match | 比赛 场
"""
