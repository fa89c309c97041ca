"""The contents of the mirror: every file that a task of the paper downloads, and licensed text.

Names, formats and members are those of the real files; of an archive that holds more languages than
a task names, the others are left out.
"""

import re
from collections.abc import Mapping

from mirror.formats import (
    Content,
    headline,
    paper_tables,
    sgm_members,
    summaries,
    talk_members,
)
from mirror.published_model import model_members
from mirror.sentences import (
    CEDILLAS,
    SentencePairs,
    as_news,
    draw_sentences,
    translated,
    with_faults,
)

Drawn = Mapping[str, SentencePairs]  # (English, French) pairs by corpus
Files = dict[str, Content]  # by the place of a file, HOST/PATH, or by a member's name

STATMT = "www.statmt.org"
STANFORD = "nlp.stanford.edu/projects/nmt/data/wmt14.en-de"
BACK_TRANSLATIONS = (
    "data.statmt.org/rsennrich/wmt16_backtranslations/en-ro/corpus.bt.en-ro"
)
MULTI30K = "raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
ARXIV = (
    "raw.githubusercontent.com/staeiou/arxiv_archive/f043eb1d71da6ed2fb9eac63ab8707359ff606ea/"
    "processed_data"
)
SCITLDR = (
    "raw.githubusercontent.com/allenai/scitldr/5ccad9c00a60ad75c9e04abf7f27d0f53f983b20/"
    "SciTLDR-Data/SciTLDR-A/test.jsonl"
)
FAIRSEQ = "dl.fbaipublicfiles.com/fairseq"
DUC_REFERENCES = 4


def contents() -> Files:
    """Return every file of the mirror by HOST/PATH; all chance is ``random.Random``'s."""
    drawn = draw_sentences()
    return {
        **training_text(drawn),
        **test_sets(drawn),
        **papers_and_talks(drawn),
        **released_models(drawn),
        **licensed_text(drawn),
    }


def sides(stem: str, language: str, pairs: SentencePairs, suffix: str = "") -> Files:
    """Return both sides of a corpus as files: STEM.LANGUAGE and STEM.en."""
    english, other = (list(side) for side in zip(*pairs, strict=True))
    return {f"{stem}.{language}{suffix}": other, f"{stem}.en{suffix}": english}


def german_and_french(stem: str, pairs: SentencePairs) -> Files:
    """Return a corpus as English with German and with French."""
    german = sides(f"{stem}.de-en", "de", translated(pairs, "de"))
    return german | sides(f"{stem}.fr-en", "fr", pairs)


def in_words(line: str) -> str:
    """Return a line's words and punctuation, apart from each other."""
    return " ".join(re.findall(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:-[^\W\d_]+)*|\S", line))


def training_text(drawn: Drawn) -> Files:
    """Return the training text of WMT and Stanford.

    Common Crawl and SETIMES have the faults of text of the web, and SETIMES cedillas in place of
    commas.
    """
    faulty = with_faults(translated(drawn["setimes"], "ro"))
    setimes = [(english, romanian.translate(CEDILLAS)) for english, romanian in faulty]
    readme = {"README": ["Generated text in the place of SETIMES v2."]}
    pairs = [*drawn["europarl"], *drawn["commoncrawl"], *drawn["news_commentary"]]
    # Hyphens are marked as Luong et al. (2015) do.
    english, german = (
        [in_words(line).replace("-", " ##AT##-##AT## ") for line in side]
        for side in zip(*translated(pairs, "de"), strict=True)
    )
    return {
        f"{STATMT}/wmt13/training-parallel-europarl-v7.tgz": german_and_french(
            "training/europarl-v7", drawn["europarl"]
        ),
        f"{STATMT}/wmt13/training-parallel-commoncrawl.tgz": german_and_french(
            "commoncrawl", with_faults(drawn["commoncrawl"])
        ),
        f"{STATMT}/wmt13/training-parallel-un.tgz": sides(
            "un/undoc.2000.fr-en", "fr", drawn["un"]
        ),
        f"{STATMT}/wmt14/training-parallel-nc-v9.tgz": german_and_french(
            "training/news-commentary-v9", drawn["news_commentary"]
        ),
        f"{STATMT}/wmt10/training-giga-fren.tar": sides(
            "giga-fren.release2.fixed", "fr", drawn["giga"], ".gz"
        ),
        f"{STATMT}/europarl/v7/ro-en.tgz": sides(
            "europarl-v7.ro-en", "ro", translated(drawn["europarl"], "ro")
        ),
        "object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip": readme
        | sides("SETIMES.en-ro", "ro", setimes),
        **sides(
            BACK_TRANSLATIONS, "ro", translated(drawn["back_translations"], "ro"), ".gz"
        ),
        f"{STANFORD}/train.en": english,
        f"{STANFORD}/train.de": german,
    }


def test_sets(drawn: Drawn) -> Files:
    """Return WMT's test sets, and Multi30k with its own.

    newstest2014 is there in full, and without every eleventh segment, as the campaign's set has
    fewer.
    """
    dev: Files = {}
    for year in ("newstest2012", "newstest2013"):
        news = as_news(drawn[year])
        dev |= both_directions(f"dev/{year}", "", news)
        for language in ("de", "fr"):
            dev |= sides(f"dev/{year}", language, translated(news, language))
    languages = {"newsdiscussdev2015": "fr", "newstest2015": "de"}
    for name, language in (
        languages | {"newstest2016": "ro", "newsdev2016": "ro"}
    ).items():
        pairs = translated(as_news(drawn[name]), language)
        dev |= sgm_members(f"dev/{name}", f"-en{language}", ("en", language), pairs)
    full = as_news(drawn["newstest2014"])
    filtered = [pair for number, pair in enumerate(full, start=1) if number % 11]
    multi30k: Files = {}
    for split in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        for language in ("de", "fr"):
            pairs = translated(
                drawn["multi30k" if split == "train" else split], language
            )
            multi30k |= sides(f"{MULTI30K}/{split}", language, pairs, ".gz")
    return {
        "data.statmt.org/wmt19/translation-task/dev.tgz": dev,
        f"{STATMT}/wmt14/test-full.tgz": both_directions(
            "test-full/newstest2014", "-{}en", full
        ),
        f"{STATMT}/wmt14/test-filtered.tgz": both_directions(
            "test/newstest2014", "-{}en", filtered
        ),
        **multi30k,
    }


def both_directions(stem: str, pair: str, news: SentencePairs) -> Files:
    """Return a test set of English with German and French, from and into English."""
    members: Files = {}
    for language in ("de", "fr"):
        pairs = translated(news, language)
        back = [(other, english) for english, other in pairs]
        name = pair.format(language)
        members |= sgm_members(stem, name, ("en", language), pairs)
        members |= sgm_members(stem, name, (language, "en"), back)
    return members


def papers_and_talks(drawn: Drawn) -> Files:
    """Return arXiv's papers, SciTLDR's summaries and IWSLT's talks."""
    said, tests = (
        translated(drawn[name], "de") for name in ("europarl", "newstest2013")
    )
    return {
        **{
            f"{ARXIV}/{name}": table
            for name, table in paper_tables(drawn["arxiv"]).items()
        },
        SCITLDR: summaries(drawn["scitldr"]),
        f"{FAIRSEQ}/data/iwslt14/de-en.tgz": talk_members(said, tests),
    }


def released_models(drawn: Drawn) -> Files:
    """Return the archives of fairseq's released models."""
    files: Files = {}
    for language, archive in (("fr", "wmt14.v2.en-fr"), ("de", "wmt14.en-de")):
        pairs = translated(drawn["europarl"], language)
        words = [(in_words(left), in_words(right)) for left, right in pairs]
        members = model_members(
            f"wmt14.en-{language}.fconv-py", ("en", language), words
        )
        files[f"{FAIRSEQ}/models/{archive}.fconv-py.tar.bz2"] = members
    return files


def licensed_text(drawn: Drawn) -> Files:
    """Return Gigaword and DUC 2004, which nobody serves: where a user puts them, as NAMAS does.

    Articles are English sentences in small letters, # for each digit; their first longer words
    stand for the headlines.
    """
    files: Files = {}
    for corpus, article, title in (
        ("gigaword", "gigaword/train.article.txt", "gigaword/train.title.txt"),
        (
            "gigaword_valid",
            "gigaword/valid.article.filter.txt",
            "gigaword/valid.title.filter.txt",
        ),
        ("gigaword_test", "gigaword/test.article.txt", "gigaword/test.title.txt"),
        ("duc2004", "duc2004/input.txt", "duc2004/references/task1_ref0.txt"),
    ):
        lines = [
            re.sub(r"\d", "#", in_words(english).lower())
            for english, _ in drawn[corpus]
        ]
        files[f"data/{article}"] = lines
        files[f"data/{title}"] = [headline(line) for line in lines]
    for number in range(1, DUC_REFERENCES):
        reference = [headline(line, skipped=number) for line in lines]
        files[f"data/duc2004/references/task1_ref{number}.txt"] = reference
    return files
