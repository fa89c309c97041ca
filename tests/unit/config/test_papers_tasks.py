"""Every task of the papers, field by field: its text, its cleaning, its vocabulary, its tests.

Typed from the papers and their authors' scripts, as tests/unit/config/test_papers_models.py is.
"""

from typing import Any

import pytest

from convs2s.config.corpus import FilePair
from convs2s.config.settings import Settings

Json = dict[str, Any]

EUROPARL = (
    "http://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz#training/europarl-v7"
)
COMMON_CRAWL = (
    "http://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz#commoncrawl"
)
NEWS = "http://www.statmt.org/wmt14/training-parallel-nc-v9.tgz#training/news-commentary-v9"
UN = "http://www.statmt.org/wmt13/training-parallel-un.tgz#un/undoc.2000.fr-en"
GIGA = "http://www.statmt.org/wmt10/training-giga-fren.tar#giga-fren.release2.fixed"
SETIMES = (
    "https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip#SETIMES.en-ro"
)
BACK = "http://data.statmt.org/rsennrich/wmt16_backtranslations/en-ro/corpus.bt.en-ro"
STANFORD = "https://nlp.stanford.edu/projects/nmt/data/wmt14.en-de/train"
DEV = "http://data.statmt.org/wmt19/translation-task/dev.tgz#dev"
DUC_REFERENCES = "data/duc2004/references/task1_ref"
FULL = "http://www.statmt.org/wmt14/test-full.tgz#test-full"
FILTERED = "http://www.statmt.org/wmt14/test-filtered.tgz#test"


def sides(
    languages: tuple[str, str], *stems: str, end: str = ""
) -> list[tuple[str, str]]:
    """Return the two files of each stem: STEM.LANGUAGE."""
    return [
        (f"{stem}.{languages[0]}{end}", f"{stem}.{languages[1]}{end}") for stem in stems
    ]


def segments(target: str, *stems: str) -> list[tuple[str, str]]:
    """Return source and reference of each stem of a test set from English."""
    return [(f"{stem}-src.en.sgm", f"{stem}-ref.{target}.sgm") for stem in stems]


EN_DE, EN_FR, EN_RO = ("en", "de"), ("en", "fr"), ("en", "ro")
TRAINING = {
    "wmt16_en_ro": [
        *sides(
            EN_RO,
            "http://www.statmt.org/europarl/v7/ro-en.tgz#europarl-v7.ro-en",
            SETIMES,
        ),
        *sides(EN_RO, BACK, end=".gz"),
    ],
    "wmt14_en_de": sides(
        EN_DE, *(f"{stem}.de-en" for stem in (EUROPARL, COMMON_CRAWL, NEWS))
    ),
    "wmt14_en_de_stanford": sides(EN_DE, STANFORD),
    "wmt14_en_fr_selected": sides(
        EN_FR,
        *(
            f"data/wmt14_en_fr/bitexts.tgz#bitexts.selected/{part}"
            for part in (
                "ep7_pc45",
                "nc9",
                "dev08_11",
                "crawl",
                "ccb2_pc30",
                "un2000_pc34",
            )
        ),
        end=".gz",
    ),
    "wmt14_en_fr": [
        *sides(
            EN_FR, f"{EUROPARL}.fr-en", f"{COMMON_CRAWL}.fr-en", UN, f"{NEWS}.fr-en"
        ),
        *sides(EN_FR, GIGA, end=".gz"),
    ],
}
NEWSTEST2014_FILTERED = segments("de", f"{FILTERED}/newstest2014-deen")
NEWSTEST2015 = segments("de", f"{DEV}/newstest2015-ende")
TESTS = {
    "wmt16_en_ro": {
        "newstest2016": segments("ro", f"{DEV}/newstest2016-enro"),
        "newsdev2016": segments("ro", f"{DEV}/newsdev2016-enro"),
    },
    "wmt14_en_de": {
        "newstest2014": segments("de", f"{FULL}/newstest2014-deen"),
        "newstest2014_filtered": NEWSTEST2014_FILTERED,
        "newstest2015": NEWSTEST2015,
    },
    "wmt14_en_de_stanford": {
        "newstest2014_filtered": NEWSTEST2014_FILTERED,
        "newstest2015": NEWSTEST2015,
    },
    "wmt14_en_fr_selected": {
        "newstest2014": segments("fr", f"{FULL}/newstest2014-fren")
    },
    "wmt14_en_fr": {
        "newstest2014": segments("fr", f"{FULL}/newstest2014-fren"),
        "newstest2012_2013": segments(
            "fr", f"{DEV}/newstest2012", f"{DEV}/newstest2013"
        ),
    },
}
VALIDATION = {
    "wmt14_en_fr_selected": segments("fr", f"{DEV}/newstest2012", f"{DEV}/newstest2013")
}
"""Of tasks that hold out no training text."""

MOSES: Json = {"train": "moses_train", "test": "moses_test", "truecase": False}
VOCABULARY: Json = {
    "kind": "bpe",
    "merges": 40_000,
    "joint": True,
    "threshold": 0,
    "glossaries": [],
    "source_size": None,
    "target_size": None,
    "minimum_count": 1,
}


def bpe(merges: int = 40_000) -> Json:
    return {**VOCABULARY, "merges": merges}


def words(source: int, target: int) -> Json:
    sizes = {"kind": "word", "source_size": source, "target_size": target}
    return {**VOCABULARY, "merges": 8000, **sizes}


def headline(model: str, *tests: str, decoding: str = "beam5", seeds: int = 3) -> Json:
    numbers = list(range(1, seeds + 1))
    return {
        "model": model,
        "seeds": numbers,
        "tests": list(tests),
        "decoding": decoding,
    }


ROMANIAN: Json = {
    "languages": {"source": "en", "target": "ro"},
    "hold_out": {"every": 100},
    "preparation": {"train": "wmt16", "test": "wmt16", "truecase": True},
    "clean": {"minimum": 1, "maximum": 175, "ratio": None, "tokens": 1023},
    "paper_pairs": 2_800_000,
    "alignment": {
        "aligner": "fast_align",
        "dictionary": "aligned",
        "pairs": None,
        "seed": 1,
    },
    "metric": "bleu",
    "vocabulary": bpe(),
    "headline": headline("wmt16_en_ro", "newstest2016"),
}
GERMAN: Json = {
    "languages": {"source": "en", "target": "de"},
    "hold_out": {"every": 100},
    "preparation": MOSES,
    "clean": {"minimum": 1, "maximum": 250, "ratio": 1.5, "tokens": 1023},
    "paper_pairs": 4_500_000,
    "alignment": {
        "aligner": "fast_align",
        "dictionary": "aligned",
        "pairs": None,
        "seed": 1,
    },
    "metric": "bleu",
    "vocabulary": bpe(),
    "headline": headline(
        "wmt14_en_de", "newstest2014_filtered", "newstest2014", decoding="beam5_en_de"
    ),
}
FRENCH: Json = {
    "languages": {"source": "en", "target": "fr"},
    "hold_out": {"every": 1333},
    "preparation": MOSES,
    "clean": {"minimum": 1, "maximum": 175, "ratio": 1.5, "tokens": 1023},
    "paper_pairs": 35_500_000,
    "alignment": {
        "aligner": "fast_align",
        "dictionary": "aligned",
        "pairs": 5_000_000,
        "seed": 1,
    },
    "metric": "bleu",
    "vocabulary": bpe(),
    "headline": headline("wmt14_en_fr", "newstest2014"),
}
OF_LSTM: Json = {
    "vocabulary": words(160_000, 80_000),
    "n_best": {"newstest2014": "data/wmt14_en_fr/newstest2014.1000best.gz"},
    "headline": headline("lstm", "newstest2014", decoding="lstm_beam12"),
}
"""Sutskever et al. (2014), sections 3.1 and 3.7."""
TASKS: dict[str, Json] = {
    "wmt16_en_ro": ROMANIAN,
    "wmt16_en_ro_word": {**ROMANIAN, "vocabulary": words(200_000, 80_000)},
    "wmt14_en_de": GERMAN,
    "wmt14_en_de_stanford": {
        **GERMAN,
        "preparation": {**MOSES, "train": "stanford"},
        "clean": {"minimum": 1, "maximum": 175, "ratio": None, "tokens": 1023},
        "headline": headline(
            "wmt14_en_de", "newstest2014_filtered", decoding="beam5_en_de"
        ),
    },
    "wmt14_en_de_word": {
        **GERMAN,
        "vocabulary": words(160_000, 160_000),
        "headline": headline("ablation", "newstest2014_filtered"),
    },
    "wmt14_en_de_bpe80k": {
        **GERMAN,
        "vocabulary": bpe(80_000),
        "headline": headline("attention_plot", "newstest2014_filtered", seeds=1),
    },
    "wmt14_en_fr": FRENCH,
    "wmt14_en_fr_word": {**FRENCH, **OF_LSTM},
    "wmt14_en_fr_selected": {
        **FRENCH,
        **OF_LSTM,
        "hold_out": None,
        "clean": {"minimum": 1, "maximum": None, "ratio": None, "tokens": 1023},
        "paper_pairs": 12_000_000,
    },
    "gigaword": {
        "languages": {"source": "en_article", "target": "en_title"},
        "hold_out": None,
        "preparation": {"train": "none", "test": "none", "truecase": False},
        "clean": {"minimum": 1, "maximum": 175, "ratio": None, "tokens": 1023},
        "paper_pairs": 3_800_000,
        "alignment": {
            "aligner": "fast_align",
            "dictionary": "identity",
            "pairs": None,
            "seed": 1,
        },
        "metric": "rouge",
        "rouge": {
            "gigaword": {"bytes": None, "stem": True, "measure": "f1", "lead_words": 8},
            "duc2004": {
                "bytes": 75,
                "stem": True,
                "measure": "recall",
                "lead_words": 75,
            },
        },
        "vocabulary": words(30_000, 30_000),
        "headline": headline(
            "summarization", "gigaword", "duc2004", decoding="beam5_minimum14"
        ),
    },
}
SHARES_TEXT = {
    "wmt16_en_ro_word": "wmt16_en_ro",
    "wmt14_en_de_word": "wmt14_en_de",
    "wmt14_en_de_bpe80k": "wmt14_en_de",
    "wmt14_en_fr_word": "wmt14_en_fr",
}


def test_every_task_of_the_papers_is_here(settings: Settings) -> None:
    own = ("demo", "multi30k", "arxiv_titles", "iwslt14")
    names = {name for name in settings.tasks if not name.startswith(own)}
    assert {name for name in names if not name.endswith("_released")} == set(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_tasks(settings: Settings, name: str) -> None:
    task = settings.tasks[name]
    left_out = {"description", "text", "corpus", "released"}
    shown = task.model_dump(mode="json", exclude=left_out)
    assert shown == {
        "rouge": {},
        "metrics": [],
        "n_best": {},
        "titles": None,
        "vocabulary_of": None,
        **TASKS[name],
    }
    assert task.text == SHARES_TEXT.get(name)
    assert task.released is None


def pairs(files: tuple[FilePair, ...]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in files]


@pytest.mark.parametrize("name", TRAINING)
def test_the_files_of_each_task(settings: Settings, name: str) -> None:
    corpus = settings.tasks[name].corpus
    assert pairs(corpus.train) == TRAINING[name]
    assert {test: pairs(files) for test, files in corpus.tests.items()} == TESTS[name]
    assert pairs(corpus.valid) == VALIDATION.get(name, [])


def test_the_summaries_files(settings: Settings) -> None:
    corpus = settings.tasks["gigaword"].corpus
    folder = "data/gigaword"
    for split, files in (("train.{}", corpus.train), ("valid.{}.filter", corpus.valid)):
        names = [f"{folder}/{split.format(side)}.txt" for side in ("article", "title")]
        assert [*map(list, pairs(files))] == [names]
    assert {test: pairs(files) for test, files in corpus.tests.items()} == {
        "gigaword": [(f"{folder}/test.article.txt", f"{folder}/test.title.txt")],
        "duc2004": [("data/duc2004/input.txt", f"{DUC_REFERENCES}0.txt")],
    }
    (duc,) = corpus.tests["duc2004"]
    assert duc.references == tuple(
        f"{DUC_REFERENCES}{number}.txt" for number in (1, 2, 3)
    )
    task = settings.tasks["gigaword"]
    assert (task.reference_count("gigaword"), task.reference_count("duc2004")) == (1, 4)
    assert set(duc.references) <= set(task.references(task.splits))
