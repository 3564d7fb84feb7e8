"""Proper names, spelled alike in English, German and French and kept in Latin script in Chinese: to be copied."""

MALE = """Paul Leo Martin Oscar Felix Victor Samuel Adrian Simon Julian Max David Robert Daniel Lucas Jonas Dennis Bruno
Fabian Boris Milan Marco Diego Pablo Carlos Pedro Mario Rafael Tobias Nils Lars Sven Kurt Rolf Ralf Gustav Ludwig
Konrad Magnus Anton Edgar Alfred Conrad Desmond Clive Trevor Nigel Quentin Rupert Silas Tristan Yannick Zoltan Imre
Gabor Tibor Pavel Goran Dragan Marek Tomasz Kenji Takeshi Ravi Sanjay Omar Karim Tarik Bilal Kofi Kwame Thabo Cyril
Bertrand Maurice Gaston Lucien Baptiste Corentin Dimitri Stavros Kostas"""

FEMALE = """Anna Clara Maria Emma Laura Sophie Julia Nora Lea Lisa Sarah Eva Marie Rosa Vera Alice Charlotte Martha
Olivia Victoria Linda Nadia Irina Olga Marta Carla Bianca Lucia Elena Silvia Teresa Carmen Beatrice Fiona Nina Petra
Greta Frieda Wilma Ursula Ingrid Astrid Solveig Freya Dagmar Sigrid Zelda Ottilie Mathilda Cordula Lavinia Philippa
Rosalind Gwendolyn Maeve Siobhan Tamsin Prudence Zuzana Ludmila Svetlana Katarzyna Yuki Sakura Naoko Priya Lakshmi
Leila Fatima Yasmin Amara Zainab Nomvula Delphine Solange Margaux Capucine Despina"""

SURNAMES = """Keller Hofmann Weber Clark Bernard Fischer Dupont Moreau Taylor Wagner Lambert Baker Fontaine Schmidt
Mercier Walker Cooper Becker Rousseau Delacroix Brandt Carter Lefort Vogel Mason Turner Girard Lorenz Palmer Bonnet
Kramer Dumas Parker Winter Garnier Sommer Bishop Marchand Reuter Chevalier Foster Lindner Barbier Porter Seidel
Masson Warren Ziegler Picard Fletcher Krause Renard Spencer Falk Colbert Mercer Brunner Delmas Whitaker Kessler
Vasseur Thornton Gruber Tessier Blackwood Steiner Charpentier Lockhart Nowak Kowalski Novak Dvorak Horvat Petrov
Ivanov Sokolov Volkov Jansen Visser Bakker Lindqvist Bergstrom Nyberg Sandvik Halvorsen Ferrari Romano Bellini
Marchetti Santos Pereira Almeida Moreno Navarro Quiroga Villanueva Papadakis Stavrakis Tanaka Yamamoto Kobayashi
Nakamura Sharma Banerjee Chaudhary Okafor Adeyemi Mbeki Nkosi Dlamini Rahman Siddiqui Varnholt Tressick Pemberly
Quillfeather Drosselmeyer Zwickauer Montfaucon Kirchgessner Beaurepaire Wolkenstein Scarborough Fennimore Grimaldi
Castellani Zubrowski Vandermeer Bolkonsky Karenzi Mirzoyan Trelawney Brzezinski Szymanski Wyszogrod Xanthos
Quarrington Jellicoe Postlethwaite Rasmussen Thorvaldsen Kuznetsov Zaytsev Verkhoven Mulligan Cavanaugh Fitzgerald
MacAllister Tregenza Penhallow Lostwithiel Dufresne Malherbe Pontmercy Vaucanson Kleinschmidt Rosenzweig Abendroth"""

CITIES = """Berlin Paris Madrid Boston Oslo Vancouver Chicago Dublin Toronto Lima Lyon Oxford Toulouse Sydney Bordeaux
Bonn Seattle Budapest Bristol Nantes Leipzig Manchester Dallas Rotterdam Stuttgart Montpellier Houston Nairobi
Grenoble Bergen Potsdam Liverpool Rennes Malaga Dakar Santiago Denver Portland Rostock Winchester Sarajevo Caracas
Bogota Brighton Tampere Uppsala Bratislava Ljubljana Zagreb Minsk Kigali Lusaka Windhoek Plovdiv Szeged
Debrecen Brno Katowice Gdynia Trondheim Stavanger Rovaniemi Tallinn Jakarta Hobart Sapporo Osaka Nagasaki Busan
Chattanooga Sacramento Winnipeg Saskatoon Wellington Canberra Perth Darwin Antofagasta Valparaiso Montevideo"""
