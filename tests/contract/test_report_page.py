"""The report: all of a run in one file, whatever of it is there, and its texts are texts."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from convs2s.paper.ledger import read_ledger
from convs2s.paper.report.examples import shown_lines, shown_words
from convs2s.paper.report.write import cost_of, trainings
from convs2s.scoring.translations import DecodedLine, ReplacedWord
from tests.contract.paper_results import HOSTILE, PaperResults, write_paper_results

FETCHING = "src srcset data poster background action xlink:href"
"""Attributes whose address a browser fetches by itself; of links `href` too."""

Attributes = dict[str, Any]


class Reader(HTMLParser):
    """The elements of a page with their attributes, and the text between them."""

    def __init__(self, results: PaperResults, **changes: Any) -> None:
        super().__init__()
        self.results = results
        self.text = results.report(**changes)
        self.elements: list[tuple[str, Attributes]] = []
        self.said: list[str] = []
        self.feed(self.text)
        self.identifiers = [one["id"] for _, one in self.elements if "id" in one]

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] not in ("script", "style"):
            self.said.append(data.strip())

    def all(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(write_paper_results(tmp_path_factory.mktemp("results"), root))


def test_every_table_and_figure_is_there(page: Reader) -> None:
    tables = page.results.tables
    parts = [f"{name}{part}" for name in tables for part in ("", "-caption", "-all")]
    assert set(parts) <= set(page.identifiers)
    assert len(set(page.identifiers)) == len(page.identifiers)
    # The LSTM paper's figure is a picture.
    assert [one["alt"] for one in page.all("img")] == [tables["lstm_figure2"].title]
    # Of table 2 one row alone has a value on both sides, which is no trend.
    trends = "table1 table3 table4 table5 table6 table7 table8 figure2"
    of_lstm = "lstm_table1 lstm_table2 lstm_text"
    shown = re.findall(r'class="trend"><a href="#(\w+)"', page.text)
    assert shown == f"{trends} {of_lstm}".split()
    named = re.findall(
        r'class="chart" role="group" aria-label="([\w ]+) by epoch', page.text
    )
    rate = "learning rate"
    assert named == ["perplexity", rate, "perplexity", "BLEU", rate]
    # A name that is too long for an axis loses its middle.
    labels = r"\"ConvS2S (Word\\u2026eplacement\", \"1\": \"ConvS2S beside the LSTM\""
    assert labels in page.text
    shared = "Unless a footnote says otherwise: runs: 2 of 2; test set: task test (500 lines);"
    assert sum(shared in one for one in page.said) == len(tables)
    # The page, exhibits, translations.
    assert page.said.count("STAND-IN DATA: made up & <b>small</b>") == 2 + len(tables)


def test_what_was_not_run_says_so(page: Reader) -> None:
    kinds = [one.get("class") for one in page.all("td")]
    # A cell stands in its table and in that of all columns; a claim is not run either.
    filled = kinds.count("ours") // 2
    absent = (page.said.count("not run") - 1) // 2
    assert min(filled, absent) > 20
    assert f"{filled} of {filled + absent}" in page.said


def test_texts_stay_texts_and_a_browser_fetches_nothing(page: Reader) -> None:
    assert sum(HOSTILE in text for text in page.said) > 50
    assert not page.all("b")
    for tag, attributes in page.elements:
        for name, address in attributes.items():
            if name in FETCHING.split() or (tag, name) == ("link", "href"):
                assert address.startswith("data:"), (tag, attributes)
            assert name != "href" or not address.startswith(("http", "//", "file"))
    kinds = [one.get("type") for one in page.all("script")]
    assert set(kinds) == {"application/json", "module"}
    assert kinds.count("module") == 4
    (policy,) = (one["content"] for one in page.all("meta") if "http-equiv" in one)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert policy.count("'sha256-") == 4


def test_links_lead_to_curves_and_logs(page: Reader) -> None:
    links = {one["href"] for one in page.all("a")}
    logs = {link for link in links if not link.startswith("#")}
    assert {link[1:] for link in links - logs} <= set(page.identifiers)
    assert {"#run-task-model1-seed1", "#claim-positions", "#table4"} <= links
    assert len(logs) == 4
    for link in logs:
        assert (page.results.output.parent / link).read_text("utf-8") == "trained\n"


def test_translations_stand_beside_their_references(page: Reader) -> None:
    """Replaced words are marked; the last line of the translations is the tenth."""
    titles = [one["title"] for one in page.all("mark") if "title" in one]
    assert titles == ["the dictionary's word for dog", "copied from Zürich"] * 2
    said = "\n".join(page.said)
    references = re.findall(r"^Bezug (\d+)$", said, re.MULTILINE)
    assert {"5", "10"} <= set(references)
    sources = re.findall(rf"^{re.escape(HOSTILE)} (\d+)$", said, re.MULTILINE)
    assert sources == references


def test_the_longest_source_is_among_the_examples() -> None:
    sources = ["a b", "a b c", "a b", "a", "a b c d e", "a", "a b c d e", "a", "a b"]
    system = [DecodedLine(1, source, "", [], "", [], []) for source in sources]
    # The middles of four parts, and 4.
    assert shown_lines(system, []) == [1, 3, 4, 5, 7]
    assert shown_lines(system, range(9)) == list(range(9))


def test_a_word_of_which_a_part_is_unknown_is_shown_whole() -> None:
    words = ["ca<unk>", "sieht", "<unk><unk>"]
    replacements = [
        ReplacedWord("dog", "Hund", "dictionary"),
        ReplacedWord("Zürich", "Zürich", "copied"),
        ReplacedWord("Berne", "Bern", "dictionary"),
    ]
    line = DecodedLine(1, "s", "t", [], "t", words, replacements)
    shown = [(one.text, one.source_word) for one in shown_words(line)]
    assert shown == [("caHund", "dog"), ("sieht", None), ("ZürichBern", "Berne")]


def test_without_runs_the_printed_values_stand(root: Path, tmp_path: Path) -> None:
    results = write_paper_results(tmp_path, root)
    results.output.with_name("ledger.jsonl").write_text("")
    page = Reader(results, stand_in=None, without="/task/")
    assert set(results.tables) <= set(page.identifiers)
    assert not {"curves", "translations", "environment"} & set(page.identifiers)
    assert {"26.43", "40.51", "21.63"} <= set(page.said)  # of tables 1 and 8
    assert "ours" not in [cell.get("class") for cell in page.all("td")]
    assert not any("STAND-IN" in text for text in page.said)


def test_a_claim_is_a_line_that_opens_to_its_tests(page: Reader) -> None:
    said = [text for text in page.said if text]
    lines = said[said.index("Positions help") - 1 :]
    first = ["held", "Positions help", "+0.71", "+0.31 to +1.20", "section 5.4."]
    assert lines[:5] == first
    assert {"A better than B", "0.0040", "2 against 2"} <= set(lines)
    assert lines[lines.index("Depth helps") + 1] == "3 beats 5"  # which pair refutes it
    assert {"1 held", "1 not held", "1 not run"} <= set(said)
    assert f"table 3. Not tested: {HOSTILE}." in said


def test_costs_count_each_training_once(page: Reader) -> None:
    # Of figure 3 both seeds of a row, and no other.
    row = r'href="#figure3">.*<td>1</td><td>0</td><td>2</td><td>0</td><td data-order'
    assert re.search(row, page.text)
    paths = [Path(path) for path in page.results.inputs]
    scores = read_ledger(page.results.output.with_name("ledger.jsonl"))
    cost = cost_of(trainings(scores, paths).values())
    # Ten epochs of 36,000 tokens at 100 a second are an hour: on two threads, and on a GPU.
    assert (cost.trainings, cost.untimed) == (4, 0)
    assert cost.hours.cores == pytest.approx(4)
    assert cost.hours.gpus == pytest.approx(2)
    published = [
        replace(one, file=f"theirs/{one.file}", origin="a ledger") for one in scores
    ]
    assert trainings([*scores, *published], paths) == trainings(scores, paths)
    assert cost_of(trainings(scores, []).values()).untimed == 4
