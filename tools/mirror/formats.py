"""Text as its publishers set it: WMT's sgm, talks in tags and XML, arXiv's tables, JSON lines."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence

from mirror.sentences import SentencePairs

Content = bytes | list[str] | Mapping[str, "Content"]
"""Of a file: its bytes before they are compressed, its lines, or an archive's members by name."""

DOCUMENT_SEGMENTS = 20
TALK_LINES = 40
TALK_SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")

# Those that config/tasks/arxiv_titles.yaml states.
ARXIV_CATEGORIES = (
    *(
        "2020/NI",
        "2020/CR",
        "2020/SI",
        "2020/DC",
        "2020/SY",
        "2020/RO",
        "2020/LO",
        "2020/CY",
    ),
    *(
        "2020/NE",
        "2020/IR",
        "2020/SE",
        "2020/HC",
        "2020/DB",
        "2020/PL",
        "2020/CE",
        "2020/SD",
    ),
    *("2020/MA", "2020/DL", "2019/CL", "2019/DS"),
)
ARXIV_COLUMNS = (
    *(
        "",
        "abstract",
        "acm_class",
        "arxiv_id",
        "author_text",
        "categories",
        "comments",
        "created",
    ),
    *("doi", "num_authors", "num_categories", "primary_cat", "title", "updated"),
)
ABSTRACT_SENTENCES = 2

PLANTED_PAPERS = {"withdrawn": 3, "short": 2, "repeated": 2}
"""Reason to leave a paper out -> how many are planted for it."""

LISTED_TWICE = 90
"""Papers in the table of another category, too; half of them with their id written as a number."""

PaperRow = dict[str, str]


def sgm_members(
    stem: str, pair: str, languages: tuple[str, str], pairs: SentencePairs
) -> dict[str, Content]:
    """Return both sides of a test set of WMT as files of an archive: sgm, which is not quite XML.

    File names begin with ``stem``, such as ``dev/newstest2015``, and go on with ``pair``, such as
    ``-ende`` or nothing; ``languages`` are those of the source side and the target side.
    """
    members: dict[str, Content] = {}
    for side, language in enumerate(languages):
        name, tag = ("ref", "refset") if side else ("src", "srcset")
        lines = [
            f'<{tag} setid="{stem.rpartition("/")[2]}" srclang="any" trglang="{language}">'
        ]
        for start in range(0, len(pairs), DOCUMENT_SEGMENTS):
            document = start // DOCUMENT_SEGMENTS + 1
            lines.append(
                f'<doc sysid="ref" docid="{document}" genre="news" origlang="en">'
            )
            for place, segment in enumerate(pairs[start : start + DOCUMENT_SEGMENTS]):
                # A document's first segment is a headline. newstest2014 has an & that is no entity.
                tag_of_line = "p" if place else "hl"
                line = (
                    segment[side]
                    if start + place == 2
                    else segment[side].replace("&", "&amp;")
                )
                lines += [f"<{tag_of_line}>", f'<seg id="{place + 1}">{line}</seg>']
                lines.append(f"</{tag_of_line}>")
            lines.append("</doc>")
        members[f"{stem}{pair}-{name}.{language}.sgm"] = [*lines, f"</{tag}>"]
    return members


def talk_members(training: SentencePairs, tests: SentencePairs) -> dict[str, Content]:
    """Return the members of IWSLT'14's archive: text with its tags, and test sets in XML.

    All pairs are (English, German); the test sets share out ``tests``.
    """
    members: dict[str, Content] = {}
    for side, language in enumerate(("en", "de")):
        said = [pair[side] for pair in training]
        members[f"de-en/train.tags.de-en.{language}"] = list(transcript(said, language))
        for number, name in enumerate(TALK_SETS):
            segments = [pair[side] for pair in tests[number :: len(TALK_SETS)]]
            lines = [
                '<?xml version="1.0" encoding="UTF-8"?>',
                '<mteval><refset setid="talks">',
                '<doc docid="1" genre="lectures">',
                "<talkid>1</talkid>",
                *(
                    f'<seg id="{place}"> {line} </seg>'
                    for place, line in enumerate(segments, 1)
                ),
                "</doc>",
                "</refset></mteval>",
            ]
            members[f"de-en/IWSLT14.{name}.de-en.{language}.xml"] = lines
    return members


def transcript(lines: Sequence[str], language: str) -> Iterator[str]:
    """Yield the lines of talks, before each talk's what is said about it."""
    for start in range(0, len(lines), TALK_LINES):
        yield f"<url>http://talks.example/{language}/{start}</url>"
        yield "<keywords>talks</keywords>"
        yield f"<talkid>{start}</talkid>"
        yield f"<title>{lines[start]}</title>"
        yield f"<description>{lines[start]}</description>"
        yield from (f" {line} " for line in lines[start : start + TALK_LINES])


def headline(line: str, skipped: int = 0) -> str:
    """Return some longer words of a line, which stand for its title."""
    longer = [word for word in line.split() if len(word) > 3]
    return " ".join(longer[skipped : skipped + 6])


def paper_tables(pairs: SentencePairs) -> dict[str, Content]:
    """Return arXiv's table of each category by its name in the archive.

    A paper that is listed in two categories stands in both tables.
    """
    rows = list(papers(pairs))
    # Papers that give no pair, made of others.
    for place, (reason, count) in enumerate(PLANTED_PAPERS.items()):
        for number in range(count):
            row = {
                **rows[1 + 10 * place + number],
                "arxiv_id": f"1912.{place}{number:04d}",
            }
            if reason == "withdrawn":
                row["abstract"] = "This paper has been withdrawn by the author."
            elif reason == "short":
                row["abstract"] = f"Erratum. {row['abstract']}"
            rows.append(row)
    tables: dict[str, list[PaperRow]] = {category: [] for category in ARXIV_CATEGORIES}
    for number, row in enumerate(rows):
        tables[ARXIV_CATEGORIES[number % len(tables)]].append(row)
    for number, row in enumerate(rows[:LISTED_TWICE]):
        identifier = row["arxiv_id"]
        if number % 2 and "/" not in identifier:
            # As a table does that took it for a number.
            identifier = repr(float(identifier))
        listed = ARXIV_CATEGORIES[(number + 1) % len(tables)]
        tables[listed].append({**row, "arxiv_id": identifier})
    files: dict[str, Content] = {}
    for category, table in tables.items():
        stream = io.StringIO()
        writer = csv.DictWriter(
            stream, ARXIV_COLUMNS, restval="", delimiter="\t", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(table)
        name = f"{category[:4]}0101/per_category/cs.{category[5:]}.tsv.xz"
        files[name] = stream.getvalue().encode()
    return files


def papers(pairs: SentencePairs) -> Iterator[PaperRow]:
    """Yield a paper for every few sentences; ids end in zeros, are of five digits, are older."""
    english = [sentence for sentence, _ in pairs]
    for number in range(len(english) // ABSTRACT_SENTENCES):
        sentences = english[
            ABSTRACT_SENTENCES * number : ABSTRACT_SENTENCES * (number + 1)
        ]
        identifier = ("0704.{:04d}", "1604.{:05d}", "cs/07{:05d}")[number % 3]
        formula = f"For $n \\geq {number}$, " if number % 25 == 0 else ""
        yield {
            "arxiv_id": identifier.format(10 * number),
            "title": headline(sentences[0]).capitalize(),
            "abstract": f"{formula}{' '.join(sentences)} ",
            # Line feeds, tabs and quotes within a field.
            "comments": f'{number} pages,\n  "two" figures\tand tables'
            if number % 5 == 0
            else "",
        }


def summaries(pairs: SentencePairs) -> bytes:
    """Return SciTLDR's test set: JSON lines of two to four summaries, the last line without end."""
    lines = []
    for number, (sentence, _) in enumerate(pairs):
        targets = [
            headline(sentence, skipped) + "." for skipped in range(2 + number % 3)
        ]
        source = [f"{sentence} ", f"{pairs[number - 1][0]}\n"]
        lines.append(
            json.dumps({"source": source, "target": targets, "paper_id": str(number)})
        )
    return "\n".join(lines).encode()
