"""Tables of fixed expressions: when, where, what the weather is like, and the like."""

from convs2s.demo.lexicon import pairs

PAST = pairs("""
yesterday: hier
this morning: ce matin
last week: la semaine dernière
last month: le mois dernier
last summer: l'été dernier
two days ago: il y a deux jours
""")

FUTURE = pairs("""
tomorrow: demain
this evening: ce soir
next week: la semaine prochaine
next month: le mois prochain
next summer: l'été prochain
in two weeks: dans deux semaines
""")

HABIT = pairs("""
every day: tous les jours
every morning: tous les matins
every week: toutes les semaines
once a month: une fois par mois
twice a week: deux fois par semaine
""")

WEATHER = pairs("""
it is raining: il pleut
it is snowing: il neige
it is cold: il fait froid
it is very hot: il fait très chaud
the wind is blowing: le vent souffle
the sun is shining: le soleil brille
the weather is nice: il fait beau
""")

COUNTRIES = pairs("""
in France: en France
in Italy: en Italie
in Spain: en Espagne
in Canada: au Canada
in Japan: au Japon
in the United States: aux États-Unis
""")

JOBS = pairs("""
journalist: journaliste
dentist: dentiste
architect: architecte
photographer: photographe
""")

RARE_JOBS = pairs("""
florist: fleuriste
cyclist: cycliste
vet: vétérinaire
""")

AMOUNTS = pairs("""
one kilo: un kilo
two kilos: deux kilos
three kilos: trois kilos
half a kilo: un demi-kilo
a big bag: un grand sac
a small basket: un petit panier
""")

CHORES = pairs("""
washes the dishes: lave la vaisselle
waters the flowers: arrose les fleurs
sets the table: met la table
tidies the living room: range le salon
""")

REASONS = pairs("""
lost the keys: perdu les clés
broke a window: cassé une fenêtre
lost the game: perdu la partie
missed the bus: manqué le bus
""")

MANNERS = pairs("""
while singing: en chantant
while talking: en parlant
while listening to the radio: en écoutant la radio
in silence: en silence
""")
