"""Make a freely shareable corpus for summarization: first sentences of abstracts, and titles."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convs2s.config.corpus import TITLE_FILES
from convs2s.config.file_reference import LocalFiles
from convs2s.data.corpus import open_lines
from convs2s.data.formats import read_columns
from convs2s.errors import UserError
from convs2s.files.text import write_json, write_lines
from convs2s.text.sentences import first_sentence

_NUMERIC_ID = re.compile(r"(\d{3,4})\.(\d+)")
# Since January 2015, arXiv ids (YYMM.NUMBER) have five digits after the dot.
_FIVE_DIGITS_SINCE = 1501
_WITHDRAWN = re.compile(r"\b(has|have) been withdrawn\b", re.IGNORECASE)


@dataclass(frozen=True)
class Paper:
    """What a pair is made of: a paper's arXiv id, the first sentence of its abstract, its title."""

    identifier: str
    sentence: str
    title: str


def write_title_corpus(
    *,
    records: Sequence[str],
    files: LocalFiles,
    one_in: int,
    outputs: Path,
    counts: Path,
) -> dict[str, Any]:
    """Write the pairs of the parts train, valid and test, and counts of the papers.

    Args:
        records: Tables of papers, as the configuration names them. If several records have the same
            id, the first one is used.
        files: Maps the location in each name to the local file.
        one_in: Of so many papers, one is in test and one is in valid, on average.
        outputs: The folder for the files of pairs, ``TITLE_FILES``.
        counts: The JSON file for the counts.

    Returns:
        The counts, which are written as well:

        - ``records``: number of records that were read.
        - ``papers``: number of papers, that is, of distinct ids.
        - ``dropped``: number of papers that were dropped, by reason: without a sentence or a title
          (``empty``), with a sentence that says that the paper was withdrawn (``withdrawn``), with
          a sentence of fewer than four words (``short``), or with the same sentence and title as an
          earlier paper (``repeated``).
        - ``formulas``: number of papers with LaTeX in their sentence or title, which is kept.
        - ``parts``: number of pairs in each part.

    Raises:
        UserError: a table is missing or malformed, or a part would be empty.
    """
    read = 0
    papers: dict[str, Paper] = {}
    for reference in records:
        with open_lines(reference, files) as (name, lines):
            columns = ("arxiv_id", "title", "abstract")
            for id_text, title, abstract in read_columns(lines, columns, name):
                identifier = arxiv_identifier(id_text)
                sentence = first_sentence(abstract)
                paper = Paper(identifier, sentence, " ".join(title.split()))
                papers.setdefault(identifier, paper)
                read += 1
    kept, dropped = _without_unsuitable(papers.values())
    # TITLE_FILES has two files for each part; the dictionary keeps each part once.
    parts: dict[str, list[Paper]] = {name.partition(".")[0]: [] for name in TITLE_FILES}
    for paper in kept:
        parts[_part_of(paper, one_in)].append(paper)
    empty = [part for part, part_papers in parts.items() if not part_papers]
    if empty:
        raise UserError(
            f"{' '.join(records)}: {len(kept)} papers leave {' and '.join(empty)} empty: add "
            f"papers, or change titles.one_in ({one_in})"
        )
    for part, part_papers in parts.items():
        write_lines(
            outputs / f"{part}.sentence", (paper.sentence for paper in part_papers)
        )
        write_lines(outputs / f"{part}.title", (paper.title for paper in part_papers))
    found = {
        "records": read,
        "papers": len(papers),
        "dropped": dropped,
        "formulas": sum("$" in paper.sentence + paper.title for paper in kept),
        "parts": {part: len(part_papers) for part, part_papers in parts.items()},
    }
    write_json(counts, found)
    return found


def _part_of(paper: Paper, one_in: int) -> str:
    """Return the part of a paper, which depends only on its id and ``one_in``.

    A paper therefore stays in its part if other papers are added.
    """
    digest = hashlib.sha256(paper.identifier.encode()).digest()
    remainder = int.from_bytes(digest, "big") % one_in
    return {0: "test", 1: "valid"}.get(remainder, "train")


def arxiv_identifier(text: str) -> str:
    """Return an id as arXiv writes it, even if the table stores ids as floating-point numbers.

    Such a table has ``704.009`` for 0704.0090 and ``1604.0403800000001`` for 1604.04038.
    """
    match = _NUMERIC_ID.fullmatch(text)
    if not match:
        # An id from before 2007, such as cs/0607081.
        return text
    # YYMM without leading zeros.
    month = int(match[1])
    digits = 5 if month >= _FIVE_DIGITS_SINCE else 4
    number = round(float(f"0.{match[2]}") * 10**digits)
    return f"{month:04d}.{number:0{digits}d}"


def _without_unsuitable(papers: Iterable[Paper]) -> tuple[list[Paper], dict[str, int]]:
    """Return the papers to keep, and how many papers were dropped for each reason."""
    kept = dict[tuple[str, str], Paper]()
    dropped = Counter(dict.fromkeys(("empty", "short", "withdrawn", "repeated"), 0))
    for paper in papers:
        pair = (paper.sentence, paper.title)
        if not all(pair):
            dropped["empty"] += 1
        elif _WITHDRAWN.search(paper.sentence):
            dropped["withdrawn"] += 1
        elif len(paper.sentence.split()) < 4:
            dropped["short"] += 1
        elif pair in kept:
            dropped["repeated"] += 1
        else:
            kept[pair] = paper
    return list(kept.values()), dict(dropped)
