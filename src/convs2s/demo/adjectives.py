"""Tables of adjectives, those before the French noun and those behind it, and who takes which."""

from convs2s.demo.lexicon import Adjective, adjectives, invariable_adjectives

BEFORE = adjectives(
    """
big: grand
small: petit
old: vieux, vieille, vieil
new: nouveau, nouvelle, nouvel
beautiful: beau, belle, bel
young: jeune
good: bon, bonne
nice: gentil, gentille
excellent: excellent
""",
    precedes=True,
)

BEHIND = adjectives(
    """
red: rouge
blue: bleu
green: vert
white: blanc, blanche
black: noir
pink: rose
purple: violet, violette
heavy: lourd
expensive: cher
strange: étrange
fragile: fragile
useful: utile
modern: moderne
elegant: élégant
warm: chaud
hot: chaud
cold: froid
long: long, longue
famous: célèbre
tired: fatigué
happy: heureux
sad: triste
worried: inquiet, inquiète
proud: fier
angry: fâché
surprised: surpris
nervous: nerveux
shy: timide
wild: sauvage
hungry: affamé
fresh: frais, fraîche
ripe: mûr
delicious: délicieux
light: léger
dusty: poussiéreux
generous: généreux
jealous: jaloux, jalouse
striped: rayé
bitter: amer
salty: salé
abandoned: abandonné
noisy: bruyant
medieval: médiéval
""",
    precedes=False,
)

INVARIABLE = invariable_adjectives("""
brown: marron
wooden: en bois
plastic: en plastique
silk: en soie
""")

ALL = BEFORE | BEHIND | INVARIABLE


def pick(names: str) -> list[Adjective]:
    """Return the adjectives of a list of English words."""
    return [ALL[name] for name in names.split()]


COLORS = pick("red blue white green black brown")
RARE_COLORS = pick("purple pink")
OF_THINGS = [*COLORS, *pick("big small old new beautiful heavy expensive wooden")]
RARE_OF_THINGS = [*RARE_COLORS, *pick("dusty plastic")]
OF_CLOTHES = [*COLORS, *pick("new old beautiful warm elegant")]
RARE_OF_CLOTHES = [*RARE_COLORS, *pick("striped silk")]
OF_PEOPLE = pick("young old happy nice famous tired shy")
OF_CHILDREN = pick("nice happy tired shy")
RARE_OF_PEOPLE = pick("generous jealous")
OF_ANIMALS = pick("black white small brown big old")
RARE_OF_ANIMALS = pick("wild hungry")
OF_PRODUCE = pick("big good small fresh ripe")
RARE_OF_PRODUCE = pick("bitter excellent")
OF_FOOD = pick("good fresh")
RARE_OF_FOOD = pick("excellent")
OF_DRINKS = pick("cold good")
RARE_OF_DRINKS = pick("excellent")
OF_DISHES = pick("good big delicious hot")
RARE_OF_DISHES = pick("salty")
OF_BUILDINGS = pick("old big small new beautiful modern")
RARE_OF_BUILDINGS = pick("abandoned medieval")

QUALITIES = pick("heavy expensive useful beautiful strange")
RARE_QUALITIES = pick("light noisy")
FAULTS = pick("heavy expensive big old")
RARE_FAULTS = pick("fragile noisy")
SIZES = pick("big small long expensive")
RARE_SIZES = pick("light")
MOODS = pick("tired sad worried angry")
RARE_MOODS = pick("nervous")
JOYS = pick("happy proud surprised")
RARE_JOYS = pick("jealous")
