"""Tables of verbs, by what they may take as subject and object."""

from convs2s.demo.lexicon import verbs

SEE = verbs("""
see, saw, seen: voir, voit, voient, vu, verr
admire: admirer
draw, drew, drawn: dessiner
photograph: photographier
look for: chercher
""")

RARE_SEE = verbs("""
notice: remarquer
""")

GET = verbs("""
buy, bought: acheter, achète, achètent, acheté, achèter
sell, sold: vendre, vend, vendent, vendu, vendr
find, found: trouver
choose, chose, chosen: choisir, choisit, choisissent, choisi
borrow: emprunter
""")

RARE_GET = verbs("""
rent: louer
order: commander
""")

TREAT = verbs("""
repair: réparer
clean: nettoyer, nettoie, nettoient, nettoyé, nettoier
hide, hid, hidden: cacher
paint: peindre, peint, peignent, peint, peindr
""")

RARE_TREAT = verbs("""
wrap, wrapped: emballer
polish: polir, polit, polissent, poli
""")

COOK = verbs("""
prepare: préparer
taste: goûter
eat, ate, eaten: manger
""")

RARE_COOK = verbs("""
photograph: photographier
""")

MOVE = verbs(
    """
arrive in: arriver
go to, went to, gone to: aller, va, vont, allé, ir
stay in: rester
""",
    with_etre=True,
)

DO = verbs("""
sing, sang, sung: chanter
dance: danser
work: travailler
sleep, slept: dormir, dort, dorment, dormi
read, read: lire, lit, lisent, lu, lir
play: jouer
""")

RARE_DO = verbs("""
whistle: siffler
""")
