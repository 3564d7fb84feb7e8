"""Words of the search domain: what people look for. Row formats as in `nouns`, `adjectives` and `phrases`."""

NOUNS = """
[ware device mobile; n]
phone | n Handy/Handys | m téléphone portable/téléphones portables | 手机 部
laptop | m Laptop/Laptops | m ordinateur portable/ordinateurs portables | 笔记本电脑 台
tablet | n Tablet/Tablets | f tablette | 平板电脑 台
camera | f Kamera/Kameras | m appareil photo/appareils photo | 相机 台
[ware device; n]
printer | m Drucker/Drucker | f imprimante | 打印机 台
keyboard | f Tastatur/Tastaturen | m clavier | 键盘 个
television | m Fernseher/Fernseher | m téléviseur | 电视机 台
[ware appliance; n]
washing machine | f Waschmaschine/Waschmaschinen | f machine à laver/machines à laver | 洗衣机 台
fridge | m Kühlschrank/Kühlschränke | m réfrigérateur | 冰箱 台
vacuum cleaner | m Staubsauger/Staubsauger | m aspirateur | 吸尘器 台
coffee machine | f Kaffeemaschine/Kaffeemaschinen | f machine à café/machines à café | 咖啡机 台
oven | m Backofen/Backöfen | m four | 烤箱 台
[ware vehicle hired; n]
bike | n Fahrrad/Fahrräder | m vélo | 自行车 辆
scooter | m Roller/Roller | m scooter | 踏板车 辆
car | n Auto/Autos | f voiture | 汽车 辆
van | m Transporter/Transporter | f camionnette | 面包车 辆
motorbike | n Motorrad/Motorräder | f moto | 摩托车 辆
[ware outdoor; n]
tent | n Zelt/Zelte | f tente | 帐篷 顶
backpack | m Rucksack/Rucksäcke | m sac à dos/sacs à dos | 背包 个
sleeping bag | m Schlafsack/Schlafsäcke | m sac de couchage/sacs de couchage | 睡袋 个
jacket | f Jacke/Jacken | f veste | 夹克 件
[ware furniture; n]
sofa | n Sofa/Sofas | m canapé | 沙发 张
mattress/mattresses | f Matratze/Matratzen | m matelas/matelas | 床垫 张
shelf/shelves | n Regal/Regale | f étagère | 书架 个
desk | m Schreibtisch/Schreibtische | m bureau/bureaux | 书桌 张
lamp | f Lampe/Lampen | f lampe | 灯 盏
wardrobe | m Kleiderschrank/Kleiderschränke | f armoire | 衣柜 个
[ware clothing; n]
wedding dress/wedding dresses | n Brautkleid/Brautkleider | f robe de mariée/robes de mariée | 婚纱 件
boot | m Stiefel/Stiefel | f botte | 靴子 双
shirt | n Hemd/Hemden | f chemise | 衬衫 件
[ware; n]
toy | n Spielzeug/Spielzeuge | m jouet | 玩具 个
guitar | f Gitarre/Gitarren | f guitare | 吉他 把
book | n Buch/Bücher | m livre | 书 本
umbrella | m Regenschirm/Regenschirme | m parapluie | 雨伞 把
[site lodging hired; n]
hotel | n Hotel/Hotels | m hôtel | 酒店 家
apartment | f Wohnung/Wohnungen | m appartement | 公寓 套
holiday home | n Ferienhaus/Ferienhäuser | f maison de vacances/maisons de vacances | 度假屋 栋
youth hostel | f Jugendherberge/Jugendherbergen | f auberge de jeunesse/auberges de jeunesse | 青年旅社 家
campsite | m Campingplatz/Campingplätze | m camping | 露营地 个
[site eating open; n]
restaurant | n Restaurant/Restaurants | m restaurant | 餐厅 家
bakery/bakeries | f Bäckerei/Bäckereien | f boulangerie | 面包店 家
bar | f Bar/Bars | m bar | 酒吧 家
ice cream parlour | f Eisdiele/Eisdielen | m glacier | 冰淇淋店 家
[site open; n]
library/libraries | f Bibliothek/Bibliotheken | f bibliothèque | 图书馆 座
dentist | m Zahnarzt/Zahnärzte | m dentiste | 牙医 位
hairdresser | m Friseur/Friseure | m coiffeur | 理发店 家
pharmacy/pharmacies | f Apotheke/Apotheken | f pharmacie | 药店 家
gym | n Fitnessstudio/Fitnessstudios | f salle de sport/salles de sport | 健身房 家
swimming pool | n Schwimmbad/Schwimmbäder | f piscine | 游泳池 个
car park | m Parkplatz/Parkplätze | m parking | 停车场 个
supermarket | m Supermarkt/Supermärkte | m supermarché | 超市 家
language school | f Sprachschule/Sprachschulen | f école de langues/écoles de langues | 语言学校 所
museum | n Museum/Museen | m musée | 博物馆 座
zoo | m Zoo/Zoos | m zoo | 动物园 个
airport | m Flughafen/Flughäfen | m aéroport | 机场 个
playground | m Spielplatz/Spielplätze | m terrain de jeux/terrains de jeux | 游乐场 个
[feature; n]
balcony/balconies | m Balkon/Balkone | m balcon | 阳台 个
garden | m Garten/Gärten | m jardin | 花园 个
kitchen | f Küche/Küchen | f cuisine | 厨房 间
terrace | f Terrasse/Terrassen | f terrasse | 露台 个
[part; n]
screen | m Bildschirm/Bildschirme | m écran | 屏幕 块
battery/batteries | m Akku/Akkus | f batterie | 电池 块
[group; m]
child/children | n Kind/Kinder | m enfant | 儿童 个
beginner | m Anfänger/Anfänger | m débutant | 初学者 位
student | mw Student/Studenten | m étudiant | 学生 个
family/families | f Familie/Familien | f famille | 家庭 个
senior | m Senior/Senioren | m retraité | 老年人 位
teenager | m Jugendliche/Jugendliche | m adolescent | 青少年 个
[animal; n]
dog | m Hund/Hunde | m chien | 狗 只
cat | f Katze/Katzen | m chat | 猫 只
horse | n Pferd/Pferde | m cheval/chevaux | 马 匹
rabbit | n Kaninchen/Kaninchen | m lapin | 兔子 只
hamster | m Hamster/Hamster | m hamster | 仓鼠 只
parrot | m Papagei/Papageien | m perroquet | 鹦鹉 只
[trade; m]
nurse | f Krankenschwester/Krankenschwestern | f infirmière | 护士 名
teacher | m Lehrer/Lehrer | m enseignant | 教师 名
cook | m Koch/Köche | m cuisinier | 厨师 名
engineer | m Ingenieur/Ingenieure | m ingénieur | 工程师 名
translator | m Übersetzer/Übersetzer | m traducteur | 翻译 名
bus driver | m Busfahrer/Busfahrer | m chauffeur de bus/chauffeurs de bus | 公交车司机 名
electrician | m Elektriker/Elektriker | m électricien | 电工 名
[edible; n]
tomato/tomatoes | f Tomate/Tomaten | f tomate | 西红柿 个
apple | m Apfel/Äpfel | f pomme | 苹果 个
nut | f Nuss/Nüsse | f noix/noix | 坚果 颗
grape | f Traube/Trauben | m raisin | 葡萄 颗
carrot | f Karotte/Karotten | f carotte | 胡萝卜 根
egg | n Ei/Eier | m œuf | 鸡蛋 个
mushroom | m Pilz/Pilze | m champignon | 蘑菇 个
onion | f Zwiebel/Zwiebeln | m oignon | 洋葱 个
"""

BEFORE_NOUN = """
best | best | meilleur/meilleure | 最好 的/好 | ware site
small | klein | petit/petite | 小/小 | ware lodging feature part
big | groß | grand/grande | 大/大 | ware lodging feature part
good | gut | bon/bonne | 好/好 | site device part
beautiful | schön | beau/belle/beaux/bel | 漂亮 的/漂亮 | clothing furniture lodging feature
"""

AFTER_NOUN = """
cheap | günstig | pas cher/pas chère | 便宜 的/便宜 | ware lodging eating
used | gebraucht | d'occasion/d'occasion/d'occasion | 二手/旧 | ware
new | neu | neuf/neuve | 新/新 | ware
modern | modern | moderne/moderne | 现代 的/现代 | furniture appliance lodging
quiet | ruhig | calme/calme | 安静 的/安静 | lodging eating appliance feature
romantic | romantisch | romantique/romantique | 浪漫 的/浪漫 | lodging restaurant
waterproof | wasserdicht | imperméable/imperméable | 防水/防水 | outdoor boot camera phone
electric | elektrisch | électrique/électrique | 电动/电动 | vehicle
light | leicht | léger/légère | 轻便 的/轻便 | outdoor laptop
fast | schnell | rapide/rapide | 快 的/快 | laptop tablet vehicle
wireless | kabellos | sans fil/sans fil/sans fil | 无线/无线 | keyboard printer
red | rot | rouge/rouge | 红色/=红色 | clothing furniture vehicle
black | schwarz | noir/noire | 黑色/=黑色 | clothing furniture vehicle device
white | weiß | blanc/blanche | 白色/=白色 | clothing furniture appliance
vegetarian | vegetarisch | végétarien/végétarienne | 素食/素 | restaurant
Italian | italienisch | italien/italienne | 意大利/意大利 | restaurant ice bar
Chinese | chinesisch | chinois/chinoise | 中国/中国 | restaurant supermarket
cosy | gemütlich | confortable/confortable | 舒适 的/舒适 | lodging sofa bar
"""

# English | German infinitive | French | Chinese | objects; errands are run in a town
ERRANDS = """
sell | verkaufen | vendre | 卖 | ware
buy | kaufen | acheter | 买 | ware
rent | mieten | louer | 租 | hired
find | finden | trouver | 找 | site
repair | reparieren | réparer | 修理 | device appliance vehicle umbrella
order | bestellen | commander | 订购 | ware
"""

CHORES = """
clean | reinigen | nettoyer | 清洗 | appliance vehicle furniture outdoor clothing keyboard
install | installieren | installer | 安装 | printer television oven
choose | aus_wählen | choisir | 选择 | ware
build | bauen | fabriquer | 制作 | furniture toy
paint | streichen | peindre | 粉刷 | furniture kitchen balcony
draw | zeichnen | dessiner | 画 | animal vehicle
feed | füttern | nourrir | 喂 | animal
wash | waschen | laver | 洗 | outdoor clothing dog horse
import | importieren | importer | 进口 | vehicle
compare | vergleichen | comparer | 比较 | ware lodging
transport | transportieren | transporter | 运输 | vehicle furniture appliance animal
"""

# English noun phrase | German | French | Chinese; used without articles
DISHES = """
(NP (NN pizza)) | pizza | pizza | 比萨饼
(NP (NN apple) (NN cake)) | apfelkuchen | gâteau aux pommes | 苹果蛋糕
(NP (NN onion) (NN soup)) | zwiebelsuppe | soupe à l'oignon | 洋葱汤
(NP (NN potato) (NN salad)) | kartoffelsalat | salade de pommes de terre | 土豆沙拉
(NP (NNS pancakes)) | pfannkuchen | crêpes | 煎饼
(NP (NN chocolate) (NN cake)) | schokoladenkuchen | gâteau au chocolat | 巧克力蛋糕
(NP (NN fish) (NN soup)) | fischsuppe | soupe de poisson | 鱼汤
(NP (NN rice) (NN pudding)) | milchreis | riz au lait | 米布丁
(NP (NN vegetable) (NN curry)) | gemüsecurry | curry de légumes | 蔬菜咖喱
(NP (NNS meatballs)) | fleischbällchen | boulettes de viande | 肉丸
"""

INGREDIENTS = """
(NP (NN chicken)) | hähnchen | poulet | 鸡肉
(NP (NN cream)) | sahne | crème | 奶油
(NP (NN sugar)) | zucker | sucre | 糖
(NP (NN flour)) | mehl | farine | 面粉
(NP (NN garlic)) | knoblauch | ail | 大蒜
(NP (NN spinach)) | spinat | épinards | 菠菜
(NP (NN cheese)) | käse | fromage | 奶酪
(NP (NN butter)) | butter | beurre | 黄油
(NP (NN ginger)) | ingwer | gingembre | 姜
(NP (NN milk)) | milch | lait | 牛奶
(NP (NN honey)) | honig | miel | 蜂蜜
(NP (NN bacon)) | speck | lardons | 培根
(NP (NN cinnamon)) | zimt | cannelle | 肉桂
"""

# the French name carries its article
DISEASES = """
(NP (NN flu)) | grippe | la grippe | 流感
(NP (NN diabetes)) | diabetes | le diabète | 糖尿病
(NP (NN asthma)) | asthma | l'asthme | 哮喘
(NP (NN anaemia)) | blutarmut | l'anémie | 贫血
(NP (NN hay) (NN fever)) | heuschnupfen | le rhume des foins | 花粉症
(NP (NN food) (NN poisoning)) | lebensmittelvergiftung | l'intoxication alimentaire | 食物中毒
(NP (NNS measles)) | masern | la rougeole | 麻疹
(NP (NN migraine)) | migräne | la migraine | 偏头痛
(NP (NN sunstroke)) | sonnenstich | l'insolation | 中暑
(NP (NN pneumonia)) | lungenentzündung | la pneumonie | 肺炎
"""

REMEDIES = """
(NP (NNS symptoms)) | symptome | symptômes | 症状
(NP (NN treatment)) | behandlung | traitement | 治疗
(NP (NNS causes)) | ursachen | causes | 病因
(NP (NN home) (NNS remedies)) | hausmittel | remèdes maison | 偏方
"""

WORKS = """
(NP (NNS songs)) | lieder | chansons | 歌
(NP (NNS films)) | filme | films | 电影
(NP (NNS books)) | bücher | livres | 书
(NP (NNS quotes)) | zitate | citations | 名言
(NP (NNS photos)) | fotos | photos | 照片
(NP (NNS poems)) | gedichte | poèmes | 诗
"""

LIFE = """
(NP (NN biography)) | biografie | biographie | 简历
(NP (NN age)) | alter | âge | 年龄
(NP (NN wedding)) | hochzeit | mariage | 婚礼
(NP (NN family)) | familie | famille | 家庭
(NP (NN height)) | größe | taille | 身高
(NP (NN house)) | haus | maison | 房子
(NP (NN interview)) | interview | interview | 采访
"""

DAYS = """
(NP (NN today)) | heute | aujourd'hui | 今天
(NP (NN tomorrow)) | morgen | demain | 明天
(NP (NN tonight)) | heute abend | ce soir | 今晚
(NP (JJ next) (NN week)) | nächste woche | la semaine prochaine | 下周
(NP (DT this) (NN weekend)) | dieses wochenende | ce week-end | 这个 周末
(PP (IN on) (NP (NNP monday))) | am montag | lundi | 星期一
(PP (IN on) (NP (NNP saturday))) | am samstag | samedi | 星期六
(PP (IN in) (NP (NNP july))) | im juli | en juillet | 七月
(PP (IN in) (NP (NN winter))) | im winter | en hiver | 冬天
(PP (IN at) (NP (NNP christmas))) | an weihnachten | à noël | 圣诞节
"""

TRANSPORT = """
(NN train) | zug | train | 火车
(NN bus) | bus | bus | 大巴
(NN flight) | flug | vol | 航班
(NN night) (NN train) | nachtzug | train de nuit | 夜车
(NN ferry) | fähre | ferry | 渡轮
"""

TOWN_TOPICS = """
(NP (NN weather)) | wetter | météo | 天气
(NP (NNS concerts)) | konzerte | concerts | 音乐会
(NP (NN flea) (NNS markets)) | flohmärkte | marchés aux puces | 跳蚤市场
(NP (NNS exhibitions)) | ausstellungen | expositions | 展览
(NP (NN road) (NNS works)) | baustellen | travaux | 道路 施工
(NP (NNS fireworks)) | feuerwerk | feux d'artifice | 烟花
(NP (NN city) (NNS tours)) | stadtführungen | visites guidées | 城市 游览
"""

AMOUNTS = """
two | zwei | deux | 两
three | drei | trois | 三
four | vier | quatre | 四
five | fünf | cinq | 五
six | sechs | six | 六
ten | zehn | dix | 十
"""

PRICES = """
fifty | fünfzig | cinquante | 五十
a hundred | hundert | cent | 一百
two hundred | zweihundert | deux cents | 两百
three hundred | dreihundert | trois cents | 三百
five hundred | fünfhundert | cinq cents | 五百
a thousand | tausend | mille | 一千
"""
