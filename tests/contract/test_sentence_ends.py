"""Where sentences end: on a line of text, and in an abstract of a paper."""

import re

from convs2s.text.sentences import first_sentence
from convs2s.text.splitting import split_sentences

# A language, and a line of it with a bar between its sentences.
SENTENCES = """
en: The man sees two red cars. | She reads the book.
en: Dr. Smith paid 3.5 million, e.g. in No. 5. | Did he? | Yes!
en: He said "no." | J. K. Rowling did not.
fr: M. Dupont voit deux voitures. | Elle lit le livre.
fr: 1. Un homme est là. | Elle lit.
de_article: Am 3. Oktober kam Dr. Müller z. B. nach Berlin. | Er ja.
ro: Ea citește. | El doarme.
a language unheard of: One. | Two.
# Abbreviations after an elided article, a bracket or a quotation mark.
fr: D'après l'art. 7 du code, il perd d'env. 30 %. | Bien.
fr: Vers l’av. Hugo, voir l'al. 2. | Il n'a rien dit. | Elle non plus.
it: L'ing. Rossi cita l'art. 3. | Va bene.
ca: L'av. Diagonal és llarga. | Sí.
en: It is far (approx. 5 km). | He said "cf. Smith" twice. | Why?
# Numbers of a list.
en: 1. The man sees two cars. | 2. She reads. | 3. Dr. Lee sings.
de: 1. Der Mann sieht es. | 2. Die Frau liest.
fr: (1) Un homme lit. | (2) Une femme dort.
cs: 1. Muž čte. | 2. Žena spí. | 3. Dítě má č. 5. | Ano.
es: 2.1. El gato duerme. | 2.2. Come.
en: See No. 5. | He was 5. | She was 6. 7.
# Abbreviations that Moses' lists lack.
en: On Tue. Jan. 5, and on Sat. 9 May, it cost est. 3 dollars. | Sept. 1.
pt: São aprox. 500 reais na av. Brasil. | Fim.
ro: E pe str. Mare, la dna. Ionescu și d-na. Pop. | Da.
de: Frau Schmidt, geb. Müller, kam mit Hr. Lang. | Gut.
cs: Bydlí v ul. Nová u firmy Dům s.r.o. Praha. | Ano.
pl: Mieszka przy ul. Długiej, tel. 5. | Tak.
es: Vive en la Avda. Goya, p.ej. Madrid, n.º 5. | Sí.
uk_title: Вона на вул. Шевченка. | Так.
sv: Han såg bl.a. Göteborg. | Ja.
no: Hun bor i kap. Fem, tlf. 5. | Ja.
de: Bis ins 19. Jh. Teil Preußens. | Dr. phil. Ernst Lutz, Bgm. Kurz.
de: Er wohnt Goethestr. Nord. | Gebr. Grimm, Hptm. Ott, jur. Person.
pt: A Silva Ltda. Brasil paga. | O Cel. Melo, no séc. XX e em 30 a.C. Fim.
pt: Fala a V.Exa. Ana Jr. Costa. | Na Univ. Nova, fls. 3 e Apto. B.
ro: În 44 î.Hr. Cezar moare. | Pr. Ion, lt. Pop, la P-ța. Mare, sec. XIX.
ro: Trad. Ion Pop, col. Nouă, coord. Ana. | În iul. 1990, Sft. Maria.
en: Wm. Blake wrote to Chas. Lamb. | See J. Phys. Chem. Lett. IX, thm. 2.
en: The Govt. Whip met Cllr. Jones. | He said no. I did not.
fr: En 52 av. J.-C. César vient. | La Sté. Martin, Prés. Dupont, liv. IV.
fr: Le Cdt. Roux, dict. Larousse, rte. Neuve. | Il a lu un livre. | Oui.
it: Nel 44 a.C. Cesare muore. | La prof.ssa Rossi e i f.lli Bruni.
es: En el s. XX, el Pbro. Gil y Hnos. Ruiz. | Vio sus coches. | Ya.
nl: Zij woont in de Kerkstr. Noord. | Hij ook.
# Words that only look like abbreviations.
en: It rose with the sun. | He sat. | This is Max. | At 5 p.m. | Yes.
da: Bogen er min. | Den er god.
en: Look at example.com. | Then go.
"""


def test_each_sentence_is_found() -> None:
    for line in re.findall("^[^#].*", SENTENCES, re.MULTILINE):
        language, _, text = line.partition(": ")
        sentences = text.split(" | ")
        assert split_sentences(" ".join(sentences), language) == sentences
        assert split_sentences("\u2028 ".join(sentences) + "\r", language) == sentences


def test_a_line_without_a_second_sentence_stays_as_it_is() -> None:
    for line in (
        "",
        " ",
        "  One  sentence. ",
        "no end",
        "M. Dupont",
        ".",
        "Un homme est là.)",
        "1. Un homme est là.",
        'Il dit "oui." ""',
        "Oui. 1999.",
    ):
        assert split_sentences(line, "fr") == [line]


# The first sentence of an abstract, and how the abstract goes on.
ABSTRACTS = """
We parse text. | We then go on. And on.
Is it so? | We then go on. And on.
It rose by 3.5 points in version 2.0 of it. | We then go on. And on.
Some tasks, e.g. Chess or i.e. Go, are hard. | We then go on. And on.
Smith et al. (2015) and Jones et al. [3] disagree. | We then go on. And on.
As Fig. 3 and Eq. (2) show, cf. Sec. 4, it holds. | We then go on. And on.
The work of J. R. Smith and A.B. Jones is old. | We then go on. And on.
Prices, which are free in the U.S. Government sector, fell. | We then go on. And on.
Graphs of $n. K$ vertices are rare. | We then go on. And on.
He said "no." | We then go on. And on.
It works (as shown.) | We then go on. And on.
We study graphs in the class P. | We then go on. And on.
Nobody knows what comes after it... | We then go on. And on.
It goes on. in small letters. | We then go on. And on.
It ends. | 5G begins.
It ends. | $n$ is a number.
It ends. | (So it does.)
It costs $5. | We then go on. And on.
Vitamin C. | The rest
Vitamin C. Smith found it. | We then go on. And on.
"""


def test_the_first_sentence_of_an_abstract() -> None:
    for abstract in ABSTRACTS.strip().splitlines():
        first, _ = abstract.split(" | ")
        assert first_sentence(abstract.replace(" | ", " ")) == first
        assert first_sentence(f"\n {first}  ") == first
    for text in ("", "no end", "It ends.with no blank"):
        assert first_sentence(text) == text
