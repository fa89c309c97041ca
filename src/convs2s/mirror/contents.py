"""What lies where in the mirror: every file that a task of the paper downloads, and licensed text.

Names, formats and members are those of the real files; of an archive that holds more languages than
a task names, the others are left out.
"""

import re
from collections.abc import Iterable, Mapping

from convs2s.mirror.languages import with_cedillas
from convs2s.mirror.newstest import as_news, sgm_members
from convs2s.mirror.packing import gzipped, packed_tar, packed_tgz, packed_zip, text
from convs2s.mirror.papers import headline, paper_tables, summaries
from convs2s.mirror.planted import with_faults
from convs2s.mirror.published_model import released_archive
from convs2s.mirror.sentences import SentencePairs, translated
from convs2s.mirror.talks import talks

Drawn = Mapping[str, SentencePairs]
"""(English, French) pairs by corpus."""

_STATMT = "www.statmt.org"
_MULTI30K = "raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
_STANFORD = "nlp.stanford.edu/projects/nmt/data/wmt14.en-de"
_BACK_TRANSLATIONS = "data.statmt.org/rsennrich/wmt16_backtranslations/en-ro/corpus.bt.en-ro"
_FAIRSEQ = "dl.fbaipublicfiles.com/fairseq/models"
_DUC_REFERENCES = 4


def mirror_files(drawn: Drawn) -> dict[str, bytes]:
    """Return every file of the mirror by its place, HOST/PATH."""
    return {
        **_wmt14(drawn),
        **_wmt14_tests(drawn),
        "data.statmt.org/wmt19/translation-task/dev.tgz": packed_tgz(_dev(drawn)),
        **_romanian(drawn),
        **_stanford(drawn),
        **_multi30k(drawn),
        **_released(drawn),
        **_licensed(drawn),
        **paper_tables(drawn["arxiv"]),
        **summaries(drawn["scitldr"]),
        **talks(*(translated(drawn[one], "de") for one in ("europarl", "newstest2013"))),
    }


def _sides(stem: str, language: str, pairs: SentencePairs) -> dict[str, bytes]:
    """Return both sides of a corpus as files."""
    english, other = zip(*pairs, strict=True)
    return {f"{stem}.{language}": text(other), f"{stem}.en": text(english)}


def _both(stem: str, pairs: SentencePairs) -> dict[str, bytes]:
    """Return a corpus as English with German and with French."""
    return {
        name: content
        for language in ("de", "fr")
        for name, content in _sides(
            f"{stem}.{language}-en", language, translated(pairs, language)
        ).items()
    }


def _wmt14(drawn: Drawn) -> dict[str, bytes]:
    """Training text of WMT'14; the faults are in Common Crawl, which is text of the web."""
    giga = _sides("giga-fren.release2.fixed", "fr", drawn["giga"])
    return {
        f"{_STATMT}/wmt13/training-parallel-europarl-v7.tgz": packed_tgz(
            _both("training/europarl-v7", drawn["europarl"])
        ),
        f"{_STATMT}/wmt13/training-parallel-commoncrawl.tgz": packed_tgz(
            _both("commoncrawl", with_faults(drawn["commoncrawl"]))
        ),
        f"{_STATMT}/wmt13/training-parallel-un.tgz": packed_tgz(
            _sides("un/undoc.2000.fr-en", "fr", drawn["un"])
        ),
        f"{_STATMT}/wmt14/training-parallel-nc-v9.tgz": packed_tgz(
            _both("training/news-commentary-v9", drawn["news_commentary"])
        ),
        f"{_STATMT}/wmt10/training-giga-fren.tar": packed_tar(
            {f"{name}.gz": gzipped(content) for name, content in giga.items()}
        ),
    }


def _wmt14_tests(drawn: Drawn) -> dict[str, bytes]:
    """newstest2014 in full, and without every eleventh segment, as the campaign's set has fewer."""
    full = as_news(drawn["newstest2014"])
    filtered = [pair for number, pair in enumerate(full, start=1) if number % 11]
    return {
        f"{_STATMT}/wmt14/test-full.tgz": packed_tgz(_newstest2014("test-full", full)),
        f"{_STATMT}/wmt14/test-filtered.tgz": packed_tgz(_newstest2014("test", filtered)),
    }


def _newstest2014(folder: str, pairs: SentencePairs) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    for language in ("de", "fr"):
        there, name = translated(pairs, language), f"-{language}en"
        back = [(other, english) for english, other in there]
        members |= sgm_members(f"{folder}/newstest2014", name, ("en", language), there)
        members |= sgm_members(f"{folder}/newstest2014", name, (language, "en"), back)
    return members


def _dev(drawn: Drawn) -> dict[str, bytes]:
    """The test sets of other years."""
    members: dict[str, bytes] = {}
    for year in ("newstest2012", "newstest2013"):
        pairs = as_news(drawn[year])
        for language in ("de", "fr"):
            there = translated(pairs, language)
            back = [(other, english) for english, other in there]
            members |= sgm_members(f"dev/{year}", "", ("en", language), there)
            members |= sgm_members(f"dev/{year}", "", (language, "en"), back)
            members |= _sides(f"dev/{year}", language, there)
    for name, language in (
        ("newsdiscussdev2015", "fr"),
        ("newstest2015", "de"),
        ("newstest2016", "ro"),
        ("newsdev2016", "ro"),
    ):
        pairs = translated(as_news(drawn[name]), language)
        members |= sgm_members(f"dev/{name}", f"-en{language}", ("en", language), pairs)
    return members


def _romanian(drawn: Drawn) -> dict[str, bytes]:
    """Training text of WMT'16; SETIMES has the faults, and cedillas in place of commas."""
    europarl = _sides("europarl-v7.ro-en", "ro", translated(drawn["europarl"], "ro"))
    setimes = with_faults(translated(drawn["setimes"], "ro"))
    older = [(english, with_cedillas(romanian)) for english, romanian in setimes]
    opus = {"README": b"Generated text in the place of SETIMES v2.\n"}
    back_translated = _sides("", "ro", translated(drawn["back_translations"], "ro"))
    return {
        f"{_STATMT}/europarl/v7/ro-en.tgz": packed_tgz(europarl),
        "object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip": packed_zip(
            opus | _sides("SETIMES.en-ro", "ro", older)
        ),
        **{
            f"{_BACK_TRANSLATIONS}{name}.gz": gzipped(content)
            for name, content in back_translated.items()
        },
    }


def _stanford(drawn: Drawn) -> dict[str, bytes]:
    """WMT'14's English-German text in words, its hyphens marked as Luong et al. (2015) do."""
    pairs = [*drawn["europarl"], *drawn["commoncrawl"], *drawn["news_commentary"]]
    words = [(_words(left), _words(right)) for left, right in translated(pairs, "de")]
    marked = [tuple(side.replace("-", " ##AT##-##AT## ") for side in pair) for pair in words]
    return {
        f"{_STANFORD}/train.{language}": text(side)
        for language, side in zip(("en", "de"), zip(*marked, strict=True), strict=True)
    }


def _words(line: str) -> str:
    """Return a line's words and punctuation, apart from each other."""
    return " ".join(re.findall(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:-[^\W\d_]+)*|\S", line))


def _multi30k(drawn: Drawn) -> dict[str, bytes]:
    splits = {"train": "multi30k", "val": "val"} | {
        name: name for name in ("test_2016_flickr", "test_2017_flickr")
    }
    files: dict[str, bytes] = {}
    for split, corpus in splits.items():
        for language in ("de", "fr"):
            pairs = translated(drawn[corpus], language)
            files |= _sides(f"{_MULTI30K}/{split}", language, pairs)
    return {f"{place}.gz": gzipped(content) for place, content in files.items()}


def _released(drawn: Drawn) -> dict[str, bytes]:
    files = {}
    for archive, folder, language in (
        ("wmt14.v2.en-fr", "wmt14.en-fr", "fr"),
        ("wmt14.en-de", "wmt14.en-de", "de"),
    ):
        pairs = translated(drawn["europarl"], language)
        words = [(_words(left), _words(right)) for left, right in pairs]
        content = released_archive(f"{folder}.fconv-py", ("en", language), words)
        files[f"{_FAIRSEQ}/{archive}.fconv-py.tar.bz2"] = content
    return files


def _licensed(drawn: Drawn) -> dict[str, bytes]:
    """Gigaword and DUC 2004, which nobody serves: where a user puts them, as NAMAS leaves them."""
    files = {}
    for name, corpus in (
        ("train.{}.txt", "gigaword"),
        ("valid.{}.filter.txt", "gigaword_valid"),
        ("test.{}.txt", "gigaword_test"),
    ):
        files[f"data/gigaword/{name.format('article')}"] = text(_articles(drawn[corpus]))
        files[f"data/gigaword/{name.format('title')}"] = text(_titles(drawn[corpus]))
    files["data/duc2004/input.txt"] = text(_articles(drawn["duc2004"]))
    for number in range(_DUC_REFERENCES):
        reference = text(_titles(drawn["duc2004"], skipped=number))
        files[f"data/duc2004/references/task1_ref{number}.txt"] = reference
    return files


def _articles(pairs: SentencePairs) -> Iterable[str]:
    """Return English sentences in small letters, # for each digit."""
    return [re.sub(r"\d", "#", _words(english).lower()) for english, _ in pairs]


def _titles(pairs: SentencePairs, skipped: int = 0) -> Iterable[str]:
    """Return the first longer words of each after some, which stand for its headline."""
    return [headline(line, skipped) for line in _articles(pairs)]
