"""Tables of nouns, by meaning. Each meaning has common nouns and rare ones.

The rare ones are seen a few times in training: too rarely for a word vocabulary that is limited by
frequency, often enough for an alignment dictionary to know their translation.
"""

from convs2s.demo.lexicon import nouns

PEOPLE = nouns("""
man, men: homme, m
woman, women: femme, f
neighbor: voisin, m
teacher: professeur, m
doctor: médecin, m
nurse: infirmière, f
baker: boulanger, m
waitress: serveuse, f
gardener: jardinier, m
singer: chanteuse, f
""")

CHILDREN = nouns("""
girl: fille, f
boy: garçon, m
child, children: enfant, m
""")

RARE_PEOPLE = nouns("""
plumber: plombier, m
lawyer: avocat, m
shepherd: berger, m
princess: princesse, f
dancer: danseuse, f
hairdresser: coiffeuse, f
fisherman, fishermen: pêcheur, m
sailor: marin, m
""")

FAMILY = nouns("""
mother: mère, f
father: père, m
sister: sœur, f
brother: frère, m
grandmother: grand-mère, f, grands-mères
aunt: tante, f
uncle: oncle, m
daughter: fille, f
son: fils, m
wife, wives: femme, f
husband: mari, m
friend: ami, m
""")

RARE_FAMILY = nouns("""
niece: nièce, f
nephew: neveu, m, neveux
godmother: marraine, f
colleague: collègue, m
""")

ANIMALS = nouns("""
cat: chat, m
dog: chien, m
horse: cheval, m
bird: oiseau, m
rabbit: lapin, m
cow: vache, f
duck: canard, m
""")

RARE_ANIMALS = nouns("""
hedgehog: hérisson, m
owl: hibou, m, hiboux
squirrel: écureuil, m
swan: cygne, m
donkey: âne, m
fox: renard, m
butterfly: papillon, m
mouse, mice: souris, f
""")

VEHICLES = nouns("""
car: voiture, f
bicycle: vélo, m
boat: bateau, m
""")

RARE_VEHICLES = nouns("""
tractor: tracteur, m
sled: luge, f
""")

THINGS = nouns("""
book: livre, m
chair: chaise, f
lamp: lampe, f
clock: horloge, f
bag: sac, m
box: boîte, f
mirror: miroir, m
umbrella: parapluie, m
camera: appareil photo, m, appareils photo
phone: téléphone, m
key: clé, f
suitcase: valise, f
""")

RARE_THINGS = nouns("""
lantern: lanterne, f
ladder: échelle, f
drum: tambour, m
harp: harpe, f
cushion: coussin, m
axe: hache, f
typewriter: machine à écrire, f, machines à écrire
bell: cloche, f
curtain: rideau, m
telescope: télescope, m
wallet: portefeuille, m
envelope: enveloppe, f
""")

TABLEWARE = nouns("""
plate: assiette, f
knife, knives: couteau, m
spoon: cuillère, f
glass: verre, m
""")

RARE_TABLEWARE = nouns("""
fork: fourchette, f
napkin: serviette, f
corkscrew: tire-bouchon, m
""")

CLOTHES = nouns("""
hat: chapeau, m
coat: manteau, m
dress: robe, f
shirt: chemise, f
sweater: pull, m
scarf, scarves: écharpe, f
""")

RARE_CLOTHES = nouns("""
apron: tablier, m
cap: casquette, f
raincoat: imperméable, m
uniform: uniforme, m
tie: cravate, f
""")

PRODUCE = nouns("""
apple: pomme, f
pear: poire, f
tomato: tomate, f
orange: orange, f
potato: pomme de terre, f, pommes de terre
strawberry: fraise, f
lemon: citron, m
""")

RARE_PRODUCE = nouns("""
bean: haricot, m
apricot: abricot, m
peach: pêche, f
oyster: huître, f
mushroom: champignon, m
""")

INGREDIENTS = nouns("""
butter: beurre, m
flour: farine, f
sugar: sucre, m
cheese: fromage, m
bread: pain, m
salt: sel, m
oil: huile, f
honey: miel, m
rice: riz, m
""")

RARE_INGREDIENTS = nouns("""
garlic: ail, m
mustard: moutarde, f
cinnamon: cannelle, f
pepper: poivre, m
yogurt: yaourt, m
""")

DRINKS = nouns("""
water: eau, f
coffee: café, m
tea: thé, m
milk: lait, m
juice: jus, m
""")

RARE_DRINKS = nouns("""
cider: cidre, m
beer: bière, f
lemonade: limonade, f
""")

DISHES = nouns("""
soup: soupe, f
cake: gâteau, m
pie: tarte, f
pizza: pizza, f
omelet: omelette, f
""")

RARE_DISHES = nouns("""
sauce: sauce, f
roast: rôti, m
pancake: crêpe, f
""")

PLACES = nouns("""
station: gare, f
museum: musée, m
library: bibliothèque, f
restaurant: restaurant, m
hospital: hôpital, m
market: marché, m
castle: château, m
hotel: hôtel, m
swimming pool: piscine, f
bakery: boulangerie, f
""")

RARE_PLACES = nouns("""
pharmacy: pharmacie, f
stadium: stade, m
bookstore: librairie, f
harbor: port, m
town hall: mairie, f
factory: usine, f
""")

BUILDINGS = nouns("""
house: maison, f
bridge: pont, m
tower: tour, f
school: école, f
church: église, f
hotel: hôtel, m
""")

RARE_BUILDINGS = nouns("""
lighthouse: phare, m
chapel: chapelle, f
palace: palais, m
inn: auberge, f
""")

SIGHTS = nouns("""
museum: musée, m
castle: château, m
theater: théâtre, m
church: église, f
swimming pool: piscine, f
""")

RARE_SIGHTS = nouns("""
zoo, zoos: zoo, m
aquarium: aquarium, m
cathedral: cathédrale, f
""")

ROOMS = nouns("""
kitchen: cuisine, f
garden: jardin, m
living room: salon, m
bedroom: chambre, f
garage: garage, m
attic: grenier, m
""")

RARE_ROOMS = nouns("""
cellar: cave, f
workshop: atelier, m
bathroom: salle de bains, f
""")

SURFACES = nouns("""
table: table, f
bed: lit, m
bench: banc, m
shelf, shelves: étagère, f
stairs: escalier, m
""")

RARE_SURFACES = nouns("""
armchair: fauteuil, m
desk: bureau, m
carpet: tapis, m
""")

SUBJECTS = nouns("""
history: histoire, f
music: musique, f
physics: physique, f
English: anglais, m
geography: géographie, f
""")

RARE_SUBJECTS = nouns("""
chemistry: chimie, f
algebra: algèbre, f
Latin: latin, m
""")

GAMES = nouns("""
tennis: tennis, m
soccer: football, m
chess: échecs, mp
cards: cartes, fp
""")

RARE_GAMES = nouns("""
golf: golf, m
marbles: billes, fp
""")

INSTRUMENTS = nouns("""
piano, pianos: piano, m
violin: violon, m
flute: flûte, f
trumpet: trompette, f
""")

RARE_INSTRUMENTS = nouns("""
harmonica: harmonica, m
oboe: hautbois, m
""")

NUISANCES = nouns("""
rain: pluie, f
snow: neige, f
fog: brouillard, m
storm: orage, m
strike: grève, f
""")

RARE_NUISANCES = nouns("""
frost: gel, m
hail: grêle, f
""")
