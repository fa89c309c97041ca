"""The report: all of a run in one file, whatever of it is there, and its texts are texts."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
import vl_convert

from convs2s.paper.ledger import read_ledger
from convs2s.paper.report.examples import shown_lines, shown_words
from convs2s.paper.report.write import cost_of, trainings
from convs2s.scoring.translations import DecodedLine, ReplacedWord
from tests.support.paper_results import HOSTILE, PaperResults, write_paper_results

FETCHING = {"src", "srcset", "data", "poster", "background", "action", "xlink:href"}
"""Attributes whose address a browser fetches by itself; of links `href` too."""


class Reader(HTMLParser):
    """The elements of a page with their attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self.inside = None

    def handle_data(self, data: str) -> None:
        if self.inside is None:
            self.said.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def identifiers(self) -> list[str]:
        return [str(found["id"]) for _, found in self.elements if "id" in found]


@pytest.fixture(scope="module")
def results(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PaperResults]:
    with pytest.MonkeyPatch.context() as patch:
        # The program of all plots takes a second, and is the same on each page.
        patch.setattr(
            vl_convert, "javascript_bundle", cache(vl_convert.javascript_bundle)
        )
        yield write_paper_results(tmp_path_factory.mktemp("results"), root)


@pytest.fixture(scope="module")
def few(results: PaperResults) -> PaperResults:
    """The same with few exhibits, some of each kind."""
    names = ("table1", "table4", "figure2", "figure3", "lstm_figure2")
    kept = {name: results.tables[name] for name in names}
    return replace(results, settings=replace(results.settings, paper=kept))


@pytest.fixture(scope="module")
def text(results: PaperResults) -> str:
    return results.report()


@pytest.fixture(scope="module")
def page(text: str) -> Reader:
    return Reader(text)


@pytest.fixture(scope="module")
def bare_page(few: PaperResults) -> Reader:
    """A page of no stand-in data, without histories."""
    return Reader(few.report(stand_in=None, without="history.jsonl"))


def test_every_table_and_figure_is_there(page: Reader, results: PaperResults) -> None:
    tables = results.tables
    assert set(tables) <= set(page.identifiers)
    captions = {f"{name}-caption" for name in tables}
    assert captions <= set(page.identifiers)
    assert len(set(page.identifiers)) == len(page.identifiers)
    said = " ".join(page.said)
    assert all(table.title in said for table in tables.values())
    # The LSTM paper's figure is a picture.
    assert [one["alt"] for one in page.all("img")] == [tables["lstm_figure2"].title]


def test_what_was_not_run_says_so(page: Reader) -> None:
    kinds = [one.get("class") for one in page.all("td")]
    said = [text.strip() for text in page.said]
    # A cell stands in its table and in that of all columns; a claim is not run either.
    filled, absent = kinds.count("ours") // 2, (said.count("not run") - 1) // 2
    assert min(filled, absent) > 20
    assert f"{filled} of {filled + absent}" in said


def test_stand_in_data_is_named_at_every_exhibit(
    page: Reader, bare_page: Reader, results: PaperResults
) -> None:
    places = 1 + len(results.tables) + 1  # the page, exhibits, translations
    assert page.said.count("STAND-IN DATA: made up & <b>small</b>") == places
    assert "STAND-IN DATA" not in "".join(bare_page.said)


def test_texts_stay_texts(page: Reader) -> None:
    assert sum(HOSTILE in text for text in page.said) > 50
    assert not [
        one for one in page.all("img") if not str(one["src"]).startswith("data:")
    ]
    programs = [
        one for one in page.all("script") if one.get("type") != "application/json"
    ]
    assert [one["type"] for one in programs] == ["module"] * 4
    assert not page.all("b")


def test_a_browser_fetches_nothing(page: Reader) -> None:
    for tag, attributes in page.elements:
        fetched = FETCHING | ({"href"} if tag == "link" else set())
        addresses = [str(attributes[name]) for name in fetched & attributes.keys()]
        assert all(one.startswith("data:") for one in addresses), (tag, attributes)
        assert not str(attributes.get("href", "#")).startswith(("http", "//", "file"))
    policy = next(
        str(one["content"]) for one in page.all("meta") if "http-equiv" in one
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert len(re.findall("'sha256-", policy)) == 4


def test_links_lead_to_curves_and_logs(page: Reader, results: PaperResults) -> None:
    links = [str(one["href"]) for one in page.all("a")]
    inside = {link[1:] for link in links if link.startswith("#")}
    assert inside <= set(page.identifiers)
    assert {"run-task-model1-seed1", "claim-positions", "table4"} <= inside
    logs = {link for link in links if not link.startswith("#")}
    assert len(logs) == 4
    for link in logs:
        assert (results.output.parent / link).read_text("utf-8") == "trained\n"


def test_replaced_words_are_marked(page: Reader) -> None:
    titles = [str(one["title"]) for one in page.all("mark") if "title" in one]
    assert titles == ["the dictionary's word for dog", "copied from Zürich"] * 2
    assert {"Hund", "Zürich", "Bezug 5"} <= set(page.said)


def test_the_longest_source_is_among_the_examples() -> None:
    sources = ["a b", "a b c", "a b", "a", "a b c d e", "a", "a b c d e", "a", "a b"]
    system = [
        DecodedLine(number, source, "", [], "", [], [])
        for number, source in enumerate(sources, start=1)
    ]
    # The middles of four parts, and 4.
    assert shown_lines(system, []) == [1, 3, 4, 5, 7]
    assert shown_lines(system, range(9)) == list(range(9))


def test_a_word_of_which_a_part_is_unknown_is_shown_whole() -> None:
    line = DecodedLine(
        line=1,
        source="s",
        text="t",
        words=["caHund", "sieht", "ZürichBern"],
        text_before="t",
        words_before=["ca<unk>", "sieht", "<unk><unk>"],
        replacements=[
            ReplacedWord("dog", "Hund", "dictionary"),
            ReplacedWord("Zürich", "Zürich", "copied"),
            ReplacedWord("Berne", "Bern", "dictionary"),
        ],
    )
    shown = [(one.text, one.source_word) for one in shown_words(line)]
    assert shown == [("caHund", "dog"), ("sieht", None), ("ZürichBern", "Berne")]


def test_without_runs_the_printed_values_stand(results: PaperResults) -> None:
    output = results.output
    empty = output.with_name("ledger.jsonl")
    kept = empty.read_text("utf-8")
    empty.write_text("", encoding="utf-8")
    try:
        page = Reader(results.report(without="/task/"))
    finally:
        empty.write_text(kept, encoding="utf-8")
    assert set(results.tables) <= set(page.identifiers)
    assert {"26.43", "40.51", "21.63"} <= set(page.said)  # of tables 1 and 8
    assert "ours" not in [cell.get("class") for cell in page.all("td")]
    assert not [one for one in page.all("a") if str(one["href"]).startswith("#run-")]


def test_a_claim_is_a_line_that_opens_to_its_tests(page: Reader) -> None:
    said = [text.strip() for text in page.said]
    of_claim = said[said.index("Positions help") - 2 :]
    lines = [text for text in of_claim if text]
    assert lines[:5] == [
        "held",
        "Positions help",
        "+0.71",
        "+0.31 to +1.20",
        "section 5.4.",
    ]
    assert {"A better than B", "0.0040", "2 against 2"} <= set(lines)
    # Of no test: no empty column.
    assert "Notes" not in lines[: lines.index("Depth helps")]
    assert {"beam", "positions"} <= set(said)  # first screen
    assert lines[lines.index("Depth helps") + 1] == "3 beats 5"  # which pair refutes it
    verdicts = [text for text in said if text in ("1 held", "1 not held", "1 not run")]
    # Those that were tested first.
    assert verdicts == ["1 held", "1 not held", "1 not run"]
    assert f"table 3. Not tested: {HOSTILE}." in said


def test_costs_count_each_training_once(results: PaperResults) -> None:
    paths = [Path(path) for path in results.inputs]
    scores = read_ledger(results.output.with_name("ledger.jsonl"))
    cost = cost_of(trainings(scores, paths).values())
    # Ten epochs of 36,000 tokens at 100 a second are an hour: on two threads, and on a GPU.
    assert (cost.trainings, cost.untimed) == (4, 0)
    assert cost.hours.cores == pytest.approx(4)
    assert cost.hours.gpus == pytest.approx(2)
    published = [
        replace(one, file=f"theirs/{one.file}", origin="a ledger") for one in scores
    ]
    assert trainings([*scores, *published], paths) == trainings(scores, paths)
    unknown = cost_of(trainings(scores, []).values())
    assert (unknown.trainings, unknown.untimed, unknown.hours.cores) == (4, 4, 0)
