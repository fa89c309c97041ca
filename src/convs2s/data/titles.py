"""Pairs to learn summaries from that anyone may share: a paper's first sentence and its title."""

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
_FIVE_DIGITS_SINCE = 1501  # January 2015, from which on arXiv numbers papers with five digits
_WITHDRAWN = re.compile(r"\b(has|have) been withdrawn\b", re.IGNORECASE)


@dataclass(frozen=True)
class Paper:
    """A paper of which a pair is made: its id, the first sentence of its abstract, its title."""

    identifier: str
    sentence: str
    title: str


def write_title_corpus(
    *, records: Sequence[str], files: LocalFiles, one_in: int, outputs: Path, counts: Path
) -> dict[str, Any]:
    """Write the pairs of train, valid and test as ``TITLE_FILES``, and what became of the records.

    ``records`` are tables of papers, as the configuration names them; an id's first record counts.
    One paper in ``one_in`` is for test, another one for validation. A UserError says that a table
    is missing or malformed, or that a part would be empty. The counts, which are returned as well:
    ``records`` that were read; ``papers``, that is, ids; those ``dropped``, by reason: no sentence
    or title (``empty``), a sentence that says that the paper was withdrawn, one of fewer than four
    words (``short``), another paper has the same sentence and title (``repeated``); ``formulas``:
    papers with LaTeX in their text, which stays as it is; ``parts``: pairs of each part.
    """
    read = 0
    papers: dict[str, Paper] = {}
    for reference in records:
        with open_lines(reference, files) as (name, lines):
            columns = ("arxiv_id", "title", "abstract")
            for written, title, abstract in read_columns(lines, columns, name):
                identifier = arxiv_identifier(written)
                paper = Paper(identifier, first_sentence(abstract), " ".join(title.split()))
                papers.setdefault(identifier, paper)
                read += 1
    kept, dropped = _worth_keeping(papers.values())
    parts: dict[str, list[Paper]] = {name.partition(".")[0]: [] for name in TITLE_FILES}
    for paper in kept:
        # The id alone decides, so that a paper stays where it is whatever others there are.
        digest = hashlib.sha256(paper.identifier.encode()).digest()
        drawn = int.from_bytes(digest, "big") % one_in
        part = {0: "test", 1: "valid"}.get(drawn, "train")
        parts[part].append(paper)
    empty = [part for part, of_part in parts.items() if not of_part]
    if empty:
        raise UserError(
            f"{' '.join(records)}: {len(kept)} papers leave {' and '.join(empty)} empty: give more "
            f"of them, or lower titles.one_in ({one_in})"
        )
    for part, of_part in parts.items():
        write_lines(outputs / f"{part}.sentence", (paper.sentence for paper in of_part))
        write_lines(outputs / f"{part}.title", (paper.title for paper in of_part))
    found = {
        "records": read,
        "papers": len(papers),
        "dropped": dropped,
        "formulas": sum("$" in paper.sentence + paper.title for paper in kept),
        "parts": {part: len(of_part) for part, of_part in parts.items()},
    }
    write_json(counts, found)
    return found


def arxiv_identifier(written: str) -> str:
    """Return an id as arXiv writes it, where a table took it for a number.

    So 0704.0090 is found as ``704.009``, and 1604.04038 as ``1604.0403800000001``.
    """
    match = _NUMERIC_ID.fullmatch(written)
    if not match:
        return written  # of before 2007, such as cs/0607081
    month = int(match[1])
    digits = 5 if month >= _FIVE_DIGITS_SINCE else 4
    number = round(float(f"0.{match[2]}") * 10**digits)
    return f"{month:04d}.{number:0{digits}d}"


def _worth_keeping(papers: Iterable[Paper]) -> tuple[list[Paper], dict[str, int]]:
    """Return the papers to make pairs of, and how many were dropped for which reason."""
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
