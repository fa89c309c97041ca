"""Runs of several processors: which are compared, and which are as if of one."""

from dataclasses import replace

import pytest

from convs2s.config.settings import Settings
from convs2s.paper.claims import Finding
from convs2s.paper.ledger import LedgerEntry, RunScore
from tests.support.claims import BASE, NO_SOURCE, NO_TARGET, better, entries, finding


def elsewhere(rows: list[LedgerEntry]) -> list[LedgerEntry]:
    """The same entries from another processor."""
    return [replace(one, processor="another") for one in rows]


def test_runs_of_two_kinds_of_processor_are_not_compared(demo: Settings) -> None:
    base, other = (entries(demo, row, [21.0, 21.1, 21.2]) for row in (BASE, NO_SOURCE))
    mixed = [
        replace(entry, processor="another, AVX2, torch 2.13.0") for entry in other[:1]
    ]
    result = finding(demo, better(BASE, NO_SOURCE), base, mixed + other[1:])
    assert (result.verdict, result.value) == ("no verdict", None)
    said = "not of one processor: a processor against another, AVX2, torch 2.13.0"
    assert result.note == said
    unknown = [replace(entry, processor=None) for entry in other]
    result = finding(demo, better(BASE, NO_SOURCE), base, unknown)
    assert (
        result.note
        == "not of one processor: a processor against one that is not stated"
    )
    all_unknown = [replace(entry, processor=None) for entry in base]
    result = finding(demo, better(BASE, NO_SOURCE), all_unknown, unknown)
    assert (result.verdict, result.note) == (
        "undecided",
        "the processor of the runs is not recorded",
    )


def test_runs_on_two_processors_are_compared_on_the_one_that_has_all(
    demo: Settings,
) -> None:
    """A base that was trained on both, and a row of each, as when sessions change machines."""
    base = entries(demo, BASE, [21.6, 21.7, 21.8])
    here = entries(demo, NO_SOURCE, [21.2, 21.3, 21.4])
    there = elsewhere(entries(demo, NO_TARGET, [21.5] * 3))
    both = base + elsewhere(entries(demo, BASE, [22.6, 22.7, 22.8]))
    result = finding(demo, better(BASE, NO_SOURCE), both, here)
    assert result.verdict == "held"
    assert result.value == pytest.approx(0.4)
    assert result.runs == "3 against 3"
    result = finding(demo, better(BASE, NO_TARGET), both, there)
    assert result.verdict == "held"
    assert result.value == pytest.approx(1.2)
    result = finding(demo, better(NO_TARGET, NO_SOURCE), here, there)
    assert result.note == "not of one processor: another against a processor"


def test_of_two_processors_that_have_all_the_order_of_lines_does_not_decide(
    demo: Settings,
) -> None:
    """It is the one with most runs of the table, then the last by name."""
    here = [
        *entries(demo, BASE, [21.6, 21.7, 21.8]),
        *entries(demo, NO_SOURCE, [21.2, 21.3, 21.4]),
    ]
    there = elsewhere(
        [*entries(demo, BASE, [20.0] * 3), *entries(demo, NO_SOURCE, [22.0] * 3)]
    )
    more = entries(demo, NO_TARGET, [21.0])
    for lines in ([*here, *there], [*there, *here]):
        assert finding(demo, better(BASE, NO_SOURCE), lines).value == pytest.approx(
            -2.0
        )
        found = finding(demo, better(BASE, NO_SOURCE), [*lines, *more])
        assert found.value == pytest.approx(0.4)


def test_processors_of_equal_perplexities_are_one(demo: Settings) -> None:
    """A training that both have made tells: to the last digit, or they stay two."""
    base = entries(demo, BASE, [21.6, 21.7, 21.8])
    other = elsewhere(entries(demo, NO_SOURCE, [21.2, 21.3, 21.4]))
    trained = entries(demo, BASE, [4.766], column="ppl", measure="perplexity")[0]

    def found(*trainings: LedgerEntry) -> Finding:
        return finding(demo, better(BASE, NO_SOURCE), base, other, list(trainings))

    def again(perplexity: float, processor: str | None = "another") -> LedgerEntry:
        scores = {"perplexity": RunScore(perplexity, None)}
        return replace(trained, processor=processor, scores=scores)

    assert found(trained).verdict == "no verdict"
    equal = found(trained, again(4.766))
    assert equal.verdict == "held"
    assert equal.value == pytest.approx(0.4)
    assert equal.runs == "3 against 3"
    assert found(trained, again(4.7660000000001)).verdict == "no verdict"
    assert found(trained, again(4.766, processor=None)).verdict == "no verdict"
    second = entries(demo, BASE, [4.766, 4.8], column="ppl", measure="perplexity")[1]
    differs = replace(
        second, processor="another", scores={"perplexity": RunScore(4.9, None)}
    )
    assert found(trained, again(4.766), second, differs).verdict == "no verdict"


def test_equal_perplexities_in_one_precision_say_nothing_of_another(
    demo: Settings,
) -> None:
    """Each precision has kernels of its own, and so has each kind of network."""

    def of(precision: str, kind: str, rows: list[LedgerEntry]) -> list[LedgerEntry]:
        trained = {"architecture": {"kind": kind}, "training": {"precision": precision}}
        return [replace(one, inputs={**one.inputs, "trained": trained}) for one in rows]

    base, other = (entries(demo, row, [21.0, 21.1, 21.2]) for row in (BASE, NO_SOURCE))
    trained = entries(demo, BASE, [4.766], column="ppl", measure="perplexity")
    trained = of("bf16", "convs2s", [*trained, *elsewhere(trained)])

    def verdict(precision: str, kind: str, *, is_trained: bool = True) -> str:
        here, there = of(precision, kind, base), elsewhere(of(precision, kind, other))
        found = trained if is_trained else []
        return finding(demo, better(BASE, NO_SOURCE), here, there, found).verdict

    assert verdict("bf16", "convs2s") == "undecided"
    assert verdict("bf16", "convs2s", is_trained=False) == "no verdict"
    assert verdict("fp32", "convs2s") == "no verdict"
    assert verdict("bf16", "lstm") == "no verdict"


def test_a_run_of_equal_processors_is_compared_with_what_one_of_them_made(
    demo: Settings,
) -> None:
    """In fp32 there is the LSTM of one processor; ConvS2S in bf16 counts as if made there too."""
    base = entries(demo, BASE, [21.6, 21.7, 21.8])
    lstm = [
        replace(
            one,
            processor="another",
            inputs={"trained": {"training": {"precision": "fp32"}}},
        )
        for one in entries(demo, NO_SOURCE, [21.2, 21.3, 21.4])
    ]
    trained = entries(demo, BASE, [4.766], column="ppl", measure="perplexity")
    both = trained + elsewhere(trained)
    assert finding(demo, better(BASE, NO_SOURCE), base, lstm, both).verdict == "held"
