"""arXiv's tables of papers and SciTLDR's summaries, small and generated, as odd as the real ones.

Their names are those that config/tasks/arxiv_titles.yaml states. A paper that is listed in two
categories stands in both tables.
"""

import csv
import io
import json
from collections.abc import Iterator

from convs2s.mirror.packing import xz
from convs2s.mirror.sentences import SentencePairs

_ARXIV = (
    "raw.githubusercontent.com/staeiou/arxiv_archive/f043eb1d71da6ed2fb9eac63ab8707359ff606ea/"
    "processed_data"
)
_SCITLDR = (
    "raw.githubusercontent.com/allenai/scitldr/5ccad9c00a60ad75c9e04abf7f27d0f53f983b20/"
    "SciTLDR-Data/SciTLDR-A/test.jsonl"
)
_CATEGORIES = (
    *("2020/NI", "2020/CR", "2020/SI", "2020/DC", "2020/SY", "2020/RO", "2020/LO", "2020/CY"),
    *("2020/NE", "2020/IR", "2020/SE", "2020/HC", "2020/DB", "2020/PL", "2020/CE", "2020/SD"),
    *("2020/MA", "2020/DL", "2019/CL", "2019/DS"),
)
_COLUMNS = (
    *("", "abstract", "acm_class", "arxiv_id", "author_text", "categories", "comments", "created"),
    *("doi", "num_authors", "num_categories", "primary_cat", "title", "updated"),
)
_SENTENCES = 2  # of each abstract

PLANTED_PAPERS = {"withdrawn": 3, "short": 2, "repeated": 2}
"""Reason to leave a paper out -> how many are planted for it."""

LISTED_TWICE = 90
"""Papers in the table of another category, too; half of them with their id written as a number."""

PaperRow = dict[str, str]


def headline(line: str, skipped: int = 0) -> str:
    """Return some longer words of a line, which stand for its title."""
    longer = [word for word in line.split() if len(word) > 3]
    return " ".join(longer[skipped : skipped + 6])


def paper_tables(pairs: SentencePairs) -> dict[str, bytes]:
    """Return the tables of all categories by their place."""
    rows = [*_papers(pairs), *_faulty_papers(pairs)]
    tables: dict[str, list[PaperRow]] = {category: [] for category in _CATEGORIES}
    for number, row in enumerate(rows):
        tables[_CATEGORIES[number % len(_CATEGORIES)]].append(row)
    for number, row in enumerate(rows[:LISTED_TWICE]):
        written = _as_number(row["arxiv_id"]) if number % 2 else row["arxiv_id"]
        elsewhere = _CATEGORIES[(number + 1) % len(_CATEGORIES)]
        tables[elsewhere].append({**row, "arxiv_id": written})
    return {
        f"{_ARXIV}/{category[:4]}0101/per_category/cs.{category[5:]}.tsv.xz": xz(_table(table))
        for category, table in tables.items()
    }


def _papers(pairs: SentencePairs) -> Iterator[PaperRow]:
    """Yield a paper for every few sentences; ids end in zeros, are of five digits, are older."""
    english = [sentence for sentence, _ in pairs]
    for number in range(len(english) // _SENTENCES):
        sentences = english[_SENTENCES * number : _SENTENCES * (number + 1)]
        month = ("0704.{:04d}", "1604.{:05d}", "cs/07{:05d}")[number % 3]
        formula = f"For $n \\geq {number}$, " if number % 25 == 0 else ""
        yield {
            "arxiv_id": month.format(10 * number),
            "title": headline(sentences[0]).capitalize(),
            "abstract": f"{formula}{' '.join(sentences)} ",
            # Line feeds, tabs and quotes within a field.
            "comments": f'{number} pages,\n  "two" figures\tand tables' if number % 5 == 0 else "",
        }


def _faulty_papers(pairs: SentencePairs) -> Iterator[PaperRow]:
    """Yield papers that give no pair, as many for each reason as ``PLANTED_PAPERS`` says."""
    again = list(_papers(pairs))[1:]
    withdrawn = {"abstract": "This paper has been withdrawn by the author."}
    for place, (reason, count) in enumerate(PLANTED_PAPERS.items()):
        for number in range(count):
            row = again[10 * place + number]
            short = {"abstract": f"Erratum. {row['abstract']}"}
            change = {"withdrawn": withdrawn, "short": short, "repeated": PaperRow()}[reason]
            yield {**row, **change, "arxiv_id": f"1912.{place}{number:04d}"}


def _as_number(identifier: str) -> str:
    """Write an id as a table does that took it for a number; older ones stay."""
    return identifier if "/" in identifier else repr(float(identifier))


def _table(rows: list[PaperRow]) -> bytes:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _COLUMNS, restval="", delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def summaries(pairs: SentencePairs) -> dict[str, bytes]:
    """Return SciTLDR's test set: JSON lines of two to four summaries, the last line without end."""
    lines = []
    for number, (sentence, _) in enumerate(pairs):
        targets = [headline(sentence, skipped) + "." for skipped in range(2 + number % 3)]
        source = [f"{sentence} ", f"{pairs[number - 1][0]}\n"]
        lines.append(json.dumps({"source": source, "target": targets, "paper_id": str(number)}))
    return {_SCITLDR: "\n".join(lines).encode()}
