"""Every printed value of the papers' tables in its own cell, and what it is compared with.

The tables here are typed from the papers (arXiv v3 and ICML 2017; v1 where it differs).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.load import load
from convs2s.config.paper import Row, Table
from convs2s.config.settings import Settings

Printed = dict[str, float | str]
Line = tuple[str | None, str, str, Printed]
"""A row's group, system and kind, and what is printed in its columns."""

RO, DE, FR = "WMT'16 English-Romanian", "WMT'14 English-German", "WMT'14 English-French"
GNMT = "Wu et al. (2016) GNMT"


def cited(group: str | None, system: str, **printed: float | str) -> Line:
    return group, system, "cited", printed


def ours(group: str | None, system: str, **printed: float | str) -> Line:
    return group, system, "ours", printed


def grid(layers: tuple[int, ...], rows: dict[int, tuple[float, ...]]) -> list[Line]:
    """Return the rows of tables 7 and 8, which print a column for each number of layers."""
    return [
        ours(str(kernel), str(number), bleu=value)
        for kernel, values in rows.items()
        for number, value in zip(layers, values, strict=True)
    ]


def curve(network: str, printed: dict[int, float]) -> list[Line]:
    """Return figure 2's points, of which the paper prints a few elsewhere."""
    return [
        ours(network, str(n), **({"bleu": printed[n]} if n in printed else {}))
        for n in range(1, 26)
    ]


DUC, GIGAWORD = "DUC-2004", "Gigaword"
MLE, MRT = "RNN MLE (Shen et al., 2016)", "RNN MRT (Shen et al., 2016)"
WFE = "WFE (Suzuki & Nagata, 2017)"
RESCORED = "Rescoring the baseline 1000-best with"

TABLES: dict[str, list[Line]] = {
    "table1": [
        cited(RO, "Sennrich et al. (2016b) GRU (BPE 90K)", bleu=28.1),
        ours(RO, "ConvS2S (Word 80K)", bleu=29.45),
        ours(RO, "ConvS2S (BPE 40K)", bleu=30.02),
        cited(DE, "Luong et al. (2015) LSTM (Word 50K)", bleu=20.9),
        cited(DE, "Kalchbrenner et al. (2016) ByteNet (Char)", bleu=23.75),
        cited(DE, f"{GNMT} (Word 80K)", bleu=23.12),
        cited(DE, f"{GNMT} (Word pieces)", bleu=24.61),
        ours(DE, "ConvS2S (BPE 40K), the 2737 lines", bleu=25.16),
        ours(DE, "ConvS2S (BPE 40K), the 2737 lines, the Stanford corpus"),
        ours(DE, "ConvS2S (BPE 40K), the 3003 lines"),
        cited(FR, f"{GNMT} (Word 80K)", bleu=37.90),
        cited(FR, f"{GNMT} (Word pieces)", bleu=38.95),
        cited(FR, f"{GNMT} (Word pieces) + RL", bleu=39.92),
        ours(FR, "ConvS2S (BPE 40K)", bleu=40.51),
        ours(FR, "ConvS2S (BPE 40K), the en-de architecture", bleu=39.41),
    ],
    "table2": [
        cited(DE, GNMT, bleu=26.20),
        cited(DE, f"{GNMT} + RL", bleu=26.30),
        ours(DE, "ConvS2S, the 2737 lines", bleu=26.43),
        ours(DE, "ConvS2S, the 3003 lines"),
        cited(FR, "Zhou et al. (2016)", bleu=40.4),
        cited(FR, GNMT, bleu=40.35),
        cited(FR, f"{GNMT} + RL", bleu=41.16),
        ours(FR, "ConvS2S", bleu=41.44),
        ours(FR, "ConvS2S (10 models)", bleu=41.62),
    ],
    "table3": [
        cited(None, "GNMT GPU (K80)", bleu=31.20, seconds=3028),
        cited(None, "GNMT CPU 88 cores", bleu=31.20, seconds=1322),
        cited(None, "GNMT TPU", bleu=31.21, seconds=384),
        ours(None, "ConvS2S GPU (K40), beam 1", bleu=33.45, seconds=327),
        ours(None, "ConvS2S GPU (M40), beam 1", bleu=33.45, seconds=221),
        ours(None, "ConvS2S GPU (GTX-1080ti), beam 1", bleu=33.45, seconds=142),
        ours(None, "ConvS2S CPU 48 cores, beam 1", bleu=33.45, seconds=142),
        ours(None, "ConvS2S GPU (K40), beam 5", bleu=34.10, seconds=587),
        ours(None, "ConvS2S CPU 48 cores, beam 5", bleu=34.10, seconds=482),
        ours(None, "ConvS2S GPU (M40), beam 5", bleu=34.10, seconds=406),
        ours(None, "ConvS2S GPU (GTX-1080ti), beam 5", bleu=34.10, seconds=256),
        ours(None, "ConvS2S GPU in bf16, beam 1"),
        ours(None, "ConvS2S GPU in bf16, beam 5"),
        ours(None, "ConvS2S CPU in bf16, beam 1"),
        ours(None, "ConvS2S CPU in bf16, beam 5"),
    ],
    "table4": [
        ours(None, "ConvS2S", ppl=6.64, bleu=21.7),
        ours(None, "-source position", ppl=6.69, bleu=21.3),
        ours(None, "-target position", ppl=6.63, bleu=21.5),
        ours(None, "-source & target position", ppl=6.68, bleu=21.2),
    ],
    "table5": [
        ours(None, "1, 2, 3, 4, 5", ppl=6.65, bleu=21.63, speed=3624),
        ours(None, "1, 2, 3, 4", ppl=6.70, bleu=21.54),
        ours(None, "1, 2, 3", ppl=6.95, bleu=21.36),
        ours(None, "1, 2", ppl=6.92, bleu=21.47),
        ours(None, "1, 3, 5", ppl=6.97, bleu=21.10),
        ours(None, "1", ppl=7.15, bleu=21.26, speed=3772),
        ours(None, "2", ppl=7.09, bleu=21.30),
        ours(None, "3", ppl=7.11, bleu=21.19),
        ours(None, "4", ppl=7.19, bleu=21.31),
        ours(None, "5", ppl=7.66, bleu=20.24),
    ],
    "table6": [
        cited(DUC, MLE, rg1=24.92, rg2=8.60, rgl=22.25),
        cited(DUC, MRT, rg1=30.41, rg2=10.87, rgl=26.79),
        cited(DUC, WFE, rg1=32.28, rg2=10.54, rgl=27.80),
        ours(DUC, "ConvS2S", rg1=30.44, rg2=10.84, rgl=26.90),
        cited(GIGAWORD, MLE, rg1=32.67, rg2=15.23, rgl=30.56),
        cited(GIGAWORD, MRT, rg1=36.54, rg2=16.59, rgl=33.44),
        cited(GIGAWORD, WFE, rg1=36.30, rg2=17.31, rgl=33.88),
        ours(GIGAWORD, "ConvS2S", rg1=35.88, rg2=17.48, rgl=33.29),
    ],
    "table7": grid(
        (5, 9, 13),
        {3: (20.61, 21.17, 21.63), 5: (20.80, 21.02, 21.42), 7: (20.81, 21.30, 21.09)},
    ),
    "table8": grid(
        (3, 5, 7),
        {3: (21.10, 21.71, 21.62), 5: (21.09, 21.63, 21.24), 7: (21.40, 21.31, 21.33)},
    ),
    "figure2": [
        *curve("encoder", {5: 20.61, 9: 21.17, 13: 21.63}),
        *curve("decoder", {3: 21.09, 5: 21.63, 7: 21.24}),
    ],
    "figure3": [ours(None, "Attention maps", layers=8)],
    "lstm_table1": [
        cited(None, "Bahdanau et al.", bleu=28.45),
        cited(None, "Baseline System (phrase-based SMT)", bleu=33.30),
        ours(None, "Single forward LSTM, beam size 12", bleu=26.17),
        ours(None, "Single reversed LSTM, beam size 12", bleu=30.59),
        ours(None, "Ensemble of 5 reversed LSTMs, beam size 1", bleu=33.00),
        ours(None, "Ensemble of 2 reversed LSTMs, beam size 12", bleu=33.27),
        ours(None, "Ensemble of 5 reversed LSTMs, beam size 2", bleu=34.50),
        ours(None, "Ensemble of 5 reversed LSTMs, beam size 12", bleu=34.81),
    ],
    "lstm_table2": [
        cited(None, "Baseline System", bleu=33.30),
        ours(None, "Baseline System, the list given here"),
        cited(None, "Cho et al.", bleu=34.54),
        cited(None, "Best WMT'14 result", bleu=37.0),
        ours(None, f"{RESCORED} a single forward LSTM", bleu=35.61),
        ours(None, f"{RESCORED} a single reversed LSTM", bleu=35.85),
        ours(None, f"{RESCORED} an ensemble of 5 reversed LSTMs", bleu=36.5),
        cited(None, "Oracle rescoring of the baseline 1000-best lists", bleu="~45"),
        ours(None, "Oracle rescoring, the list given here"),
    ],
    "lstm_figure2": [
        ours(group, system)
        for group, sixteen in (
            ("of the paper", ""),
            ("of this project", ""),
            ("of this project", ", sixteen phrases"),
        )
        for system in (f"word order{sixteen}", f"active and passive voice{sixteen}")
    ],
    "lstm_text": [
        ours("3.3", "Source as it stands", test_ppl=5.8, bleu=25.9),
        ours("3.3", "Source reversed", test_ppl=4.7, bleu=30.6),
        *(
            ours("3.4", layers)
            for layers in ("1 layer", "2 layers", "3 layers", "4 layers")
        ),
        ours(
            "3.4",
            "Batches of about the same length",
            speed="1700 (one GPU), 6300 (eight)",
        ),
        ours("3.4", "Batches of mixed lengths"),
    ],
    "lstm_figure3": [
        ours(None, "LSTM", bleu=34.8),
        cited(None, "Baseline", bleu=33.3),
        ours(None, "Baseline, the list given here"),
    ],
}

BESIDE = {
    ("table1", RO, "ConvS2S (BPE 40K)"): ({"bleu": 29.88}, {}),
    ("table1", DE, "ConvS2S (BPE 40K), the 2737 lines"): ({}, {"bleu": 25.39}),
    ("table1", FR, "ConvS2S (BPE 40K)"): ({"bleu": 40.46}, {"bleu": 40.70}),
    ("table2", DE, "ConvS2S, the 2737 lines"): ({"bleu": 26.36}, {}),
    ("table2", FR, "ConvS2S"): ({"bleu": 41.29}, {}),
}
"""What arXiv v1 and the paper's best run have instead; no other row says either."""


@pytest.fixture
def tables(paper: Settings) -> Mapping[str, Table]:
    return paper.paper


def number(value: object) -> object:
    """Return a number for what reads as one: a quoted value keeps its digits in the table."""
    text = str(value)
    return float(text) if text.replace(".", "").isdigit() else value


def numbers(printed: Any) -> dict[str, object]:
    return {key: number(value) for key, value in printed.items() if value is not None}


def test_every_table_is_here(tables: Mapping[str, Table]) -> None:
    assert set(tables) == {*TABLES, "further_rows", "trainings"}


def test_every_training_has_one_row(root: Path) -> None:
    """At the scale that makes every table."""
    paper = load(root, {"scale": "multi30k_trained"}).paper
    trained = {
        (row.task, row.model)
        for name, table in paper.items()
        for row in own(table)
        if name != "trainings"
    }
    rows = [(row.task, row.model) for row in own(paper["trainings"])]
    assert len(rows) == len(trained)
    assert set(rows) == trained


@pytest.mark.parametrize("name", TABLES)
def test_each_value_is_in_its_cell(tables: Mapping[str, Table], name: str) -> None:
    found = [
        (row.group, row.system, row.kind, numbers(row.paper))
        for row in tables[name].rows
    ]
    expected = [(*line[:3], numbers(line[3])) for line in TABLES[name]]
    assert found == expected


@pytest.mark.parametrize("name", TABLES)
def test_what_other_versions_print(tables: Mapping[str, Table], name: str) -> None:
    for row in tables[name].rows:
        v1, best_run = BESIDE.get((name, row.group or "", row.system), ({}, {}))
        assert (numbers(row.v1), numbers(row.best_run)) == (v1, best_run)


# ---- what each row is compared with ----

SEEDS = ("seed1", "seed2", "seed3")
ABLATIONS = ("wmt14_en_de_word", SEEDS, "newstest2014_filtered", "beam5")

FIVE, ONE = ("ensemble5",), ("seed1",)

Compared = tuple[str, str, tuple[str, ...], str | None, str | None]
"""Task, model, runs, test set and decoding."""


def german(model: str) -> Compared:
    task, runs, testset, decoding = ABLATIONS
    return task, model, runs, testset, decoding


def timed(decoding: str) -> Compared:
    return "wmt14_en_fr", "wmt14_en_fr", ("seed1",), "newstest2012_2013", decoding


def french(model: str = "wmt14_en_fr", runs: tuple[str, ...] = SEEDS) -> Compared:
    return "wmt14_en_fr", model, runs, "newstest2014", "beam5"


def lstm(
    runs: tuple[str, ...], decoding: str | None = "lstm_beam12", model: str = "lstm"
) -> Compared:
    return "wmt14_en_fr_word", model, runs, "newstest2014", decoding


def stacked(side: str, kernel: int, layers: int, base: tuple[int, int]) -> Compared:
    """Return an ablation with so many layers of a side; the base is the model ``ablation``."""
    is_base = (layers, kernel) == base
    return german("ablation" if is_base else f"ablation_{side}_{layers}_k{kernel}")


ENCODER, DECODER = (13, 3), (5, 5)
DEVICES = (
    ["cuda"] * 3
    + ["cpu"]
    + ["cuda", "cpu", "cuda", "cuda"]
    + ["cuda"] * 2
    + ["cpu"] * 2
)

COMPARED: dict[str, list[Compared]] = {
    "table1": [
        ("wmt16_en_ro_word", "wmt16_en_ro", SEEDS, "newstest2016", "beam5"),
        ("wmt16_en_ro", "wmt16_en_ro", SEEDS, "newstest2016", "beam5"),
        ("wmt14_en_de", "wmt14_en_de", SEEDS, "newstest2014_filtered", "beam5_en_de"),
        (
            "wmt14_en_de_stanford",
            "wmt14_en_de",
            SEEDS,
            "newstest2014_filtered",
            "beam5_en_de",
        ),
        ("wmt14_en_de", "wmt14_en_de", SEEDS, "newstest2014", "beam5_en_de"),
        french(),
        french("wmt14_en_fr_small"),
    ],
    "table2": [
        (
            "wmt14_en_de",
            "wmt14_en_de",
            ("ensemble8",),
            "newstest2014_filtered",
            "beam5_en_de",
        ),
        ("wmt14_en_de", "wmt14_en_de", ("ensemble8",), "newstest2014", "beam5_en_de"),
        french(runs=("ensemble8",)),
        french(runs=("ensemble10",)),
    ],
    "table3": [
        *[timed("table3_beam1")] * 4,
        *[timed("table3_beam5")] * 4,
        *[timed("table3_beam1_bf16"), timed("table3_beam5_bf16")] * 2,
    ],
    "table4": [
        german("ablation"),
        german("ablation_no_source_position"),
        german("ablation_no_target_position"),
        german("ablation_no_position"),
    ],
    "table5": [
        german("ablation"),
        *(
            german(f"ablation_attention_{layers}")
            for layers in ("1_2_3_4", "1_2_3", "1_2", "1_3_5", "1", "2", "3", "4", "5")
        ),
    ],
    "table6": [
        ("gigaword", "summarization", SEEDS, "duc2004", "beam5_minimum14"),
        ("gigaword", "summarization", SEEDS, "gigaword", "beam5_minimum14"),
    ],
    "table7": [
        stacked("encoder", k, layers, ENCODER)
        for k in (3, 5, 7)
        for layers in (5, 9, 13)
    ],
    "table8": [
        stacked("decoder", k, layers, DECODER)
        for k in (3, 5, 7)
        for layers in (3, 5, 7)
    ],
    "figure2": [
        *(stacked("encoder", 3, layers, ENCODER) for layers in range(1, 26)),
        *(stacked("decoder", 5, layers, DECODER) for layers in range(1, 26)),
    ],
    "figure3": [
        ("wmt14_en_de_bpe80k", "attention_plot", ("seed1",), "newstest2014", "beam5")
    ],
    "lstm_table1": [
        lstm(SEEDS, model="lstm_forward"),
        lstm(SEEDS),
        lstm(FIVE, "lstm_beam1"),
        lstm(("ensemble2",)),
        lstm(FIVE, "lstm_beam2"),
        lstm(FIVE),
    ],
    "lstm_table2": [
        lstm(ONE, None),
        lstm(SEEDS, None, model="lstm_forward"),
        lstm(SEEDS, None),
        lstm(FIVE, None),
        lstm(ONE, None),
    ],
    "lstm_figure2": [("wmt14_en_fr_word", "lstm", SEEDS, None, None)] * 6,
    "lstm_figure3": [lstm(FIVE), lstm(ONE, None)],
    "lstm_text": [
        lstm(SEEDS, model=f"lstm{which}")
        for which in (
            "_forward",
            "",
            "_1_layer",
            "_2_layers",
            "_3_layers",
            "_4_layers",
            "",
        )
    ]
    + [lstm(ONE, model="lstm_mixed_lengths")],
}

BLEU, BEFORE = "bleu_tokenized", "bleu_tokenized_before_replacement"
LENGTH = "length_ratio"
MEASURES: dict[str, dict[str, str]] = {
    "table1": {"bleu": BLEU, "length": LENGTH},
    "table2": {"bleu": BLEU},
    "table3": {"bleu": BLEU},
    "table4": {"ppl": "perplexity", "bleu": BEFORE, "length": LENGTH},
    "table5": {
        "ppl": "perplexity",
        "bleu": BEFORE,
        "length": LENGTH,
        "speed": "training_speed",
    },
    "table6": {"rg1": "rouge_1_f1", "rg2": "rouge_2_f1", "rgl": "rouge_l_f1"},
    "table7": {"bleu": BEFORE, "length": LENGTH},
    "table8": {"bleu": BEFORE, "length": LENGTH},
    "figure2": {"bleu": BEFORE, "length": LENGTH},
    "figure3": {"layers": "attention_layers"},
    "lstm_table1": {"bleu": BLEU, "length": LENGTH},
    "lstm_table2": {"bleu": "bleu_rescored"},
    "lstm_figure2": {"apart": "phrases_apart"},
    "lstm_figure3": {"bleu": BLEU},
    "trainings": {"ppl": "perplexity", "hours": "training_hours"},
    "lstm_text": {"test_ppl": "test_perplexity", "ppl": "perplexity", "bleu": BLEU},
}
"""What the columns of each table measure, where a row says nothing else."""


def own(table: Table) -> list[Row]:
    return [row for row in table.rows if row.kind == "ours"]


@pytest.mark.parametrize("name", COMPARED)
def test_each_row_is_compared_with_its_runs(
    tables: Mapping[str, Table], name: str
) -> None:
    columns = tables[name].columns
    found = [row for row in own(tables[name]) if row.comparison(name, columns)]
    described = [
        (row.task, row.model, row.runs, row.testset, row.decoding) for row in found
    ]
    assert described == COMPARED[name]


@pytest.mark.parametrize("name", MEASURES)
def test_each_column_has_its_measure(tables: Mapping[str, Table], name: str) -> None:
    columns = {column.key: column.measure for column in tables[name].columns}
    assert {key: measure for key, measure in columns.items() if measure} == MEASURES[
        name
    ]


def test_rows_with_measures_of_their_own(tables: Mapping[str, Table]) -> None:
    recall = {"rg1": "rouge_1_recall", "rg2": "rouge_2_recall", "rgl": "rouge_l_recall"}
    expected: dict[str, Sequence[Mapping[str, str | None]]] = {
        "table1": [{"bleu": "bleu_detokenized"}] * 2 + [{}] * 5,
        "table3": [{"seconds": f"seconds_{device}"} for device in DEVICES],
        "table6": [recall, {}],
        "lstm_table2": [{"bleu": "bleu_of_list"}, {}, {}, {}, {"bleu": "bleu_oracle"}],
        "lstm_figure3": [{}, {"bleu": "bleu_of_list"}],
        "lstm_text": [{}] * 6 + [{"speed": "training_speed"}] * 2,
        "further_rows": [
            {"types": "types_per_batch"},
            {"bleu": "bleu_tokenized_before_replacement"},
            *[{}] * 2,
            *[{"ppl": None}] * 2,
        ],
    }
    for name, table in tables.items():
        rows = [row.measures for row in own(table)]
        assert rows == expected.get(name, [{}] * len(rows)), name


def test_the_states_are_of_the_papers_phrases_and_of_our_own(
    tables: Mapping[str, Table],
) -> None:
    phrases = [row.phrases for row in tables["lstm_figure2"].rows]
    assert phrases[:4] == ["word_order", "voice", "caption_word_order", "caption_voice"]
    assert phrases[4:] == ["sixteen_caption_word_orders", "sixteen_caption_voices"]


def test_figure_2_counts_its_layers(tables: Mapping[str, Table]) -> None:
    assert [row.x for row in tables["figure2"].rows] == [*range(1, 26), *range(1, 26)]


def test_figure_3_shows_the_papers_sentence(tables: Mapping[str, Table]) -> None:
    sentence = "We built this festival as a way of continuing to work with them."
    assert tables["figure3"].example_source == sentence
