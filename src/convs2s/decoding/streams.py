"""Translate a stream: each line is translated as soon as it arrives, without waiting for more."""

import json
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from io import BufferedReader, UnsupportedOperation
from itertools import chain
from typing import TypeVar

from convs2s.decoding.parallel import Chunk
from convs2s.decoding.split_lines import SplitLines
from convs2s.decoding.translate import LINES_PER_CHUNK, LineTranslator, Translation
from convs2s.errors import UserError
from convs2s.files.limits import LONGEST_LINE_BYTES
from convs2s.files.text import text_lines
from convs2s.scoring.n_best import escaped, n_best_line
from convs2s.text.plain_text import PlainLines

_BLOCK_BYTES = 1 << 16  # maximum number of bytes in one read

_MOST_WARNINGS = 10
"""Maximum number of chunks with a warning. In a long text, further warnings would add little."""

_MOST_NAMED = 10  # number of lines, and of words, that a warning names

Line = TypeVar("Line")

_SECOND_SENTENCE = re.compile(
    r"""(?:\b[^\W\d_A-ZÀ-Þ]\w\w+|[^\W\d_A-ZÀ-Þ]{4})[.!?]["'”’»)]? ["'“‘«(]?[^\W\d_a-zß-ÿ]\w* \w"""
)
"""Evidence of a second sentence in a line.

It matches the end of a sentence, followed by a word with a capital and a further word. The last
word before the punctuation must begin with a small letter and have at least three letters, or end
in four letters that are not capitals. So initials and titles such as "Prof." do not match.
"""


class ChunkTranslator:
    """Translates a chunk to the output for it: plain text, JSON lines, or a Moses n-best list."""

    def __init__(
        self,
        translator: LineTranslator,
        as_json: bool,
        n_best: int | None,
        splits: bool = False,
        hints: bool = False,
    ) -> None:
        """Choose the form of the output.

        Args:
            translator: translates the lines.
            as_json: write JSON lines instead of text or an n-best list.
            n_best: write this many hypotheses of each line; None: only the best, as plain text.
            splits: split each line into sentences and translate them separately.
            hints: print a hint at the first line that has several sentences, unless lines are
                split.
        """
        self.translator = translator
        self.as_json = as_json
        self.n_best = n_best
        # None: lines are not split.
        self._language = translator.description.languages["source"] if splits else None
        self._hints = hints and not splits
        self._warnings_left = _MOST_WARNINGS

    def __call__(self, chunk: Chunk) -> str:
        """Return the output for a chunk of numbered lines."""
        for number, line in chunk:
            if self._hints and _SECOND_SENTENCE.search(line):
                self._hints = False  # one hint is enough
                print(
                    f"line {number} has several sentences, translated as one: --split-sentences "
                    "translates each separately",
                    file=sys.stderr,
                )
        split = SplitLines(chunk, self._language)
        translated_sentences = self.translator.translate_chunk(
            split.sentences, self.n_best
        )
        translations = split.joined(translated_sentences)
        self._warn_of_unknown_words(translations)
        return "".join(map(self.lines, translations))

    def _warn_of_unknown_words(self, translations: Sequence[Translation]) -> None:
        """Print a warning if lines have words that the model does not know.

        The warning names the first lines and words. Only the first ``_MOST_WARNINGS`` chunks that
        have such words cause a warning.
        """
        affected = [item for item in translations if item.unknown_words]
        if not affected or not self._warnings_left:
            return
        self._warnings_left -= 1
        lines = [str(item.line) for item in affected]
        unknown = chain.from_iterable(item.unknown_words for item in affected)
        words = list(dict.fromkeys(unknown))  # each once
        noun = "line" if len(lines) == 1 else "lines"
        end = "" if self._warnings_left else "; further lines are not reported"
        print(
            f"warning: {noun} {_first(lines, ', ')}: the model does not know, and so cannot "
            f"translate: {_first(words, ' ')} (--json has them as unknown_words{end})",
            file=sys.stderr,
        )

    def lines(self, translation: Translation) -> str:
        """Return the output for one translation: one or more lines, each with its line feed."""
        if self.as_json:
            return json.dumps(translation.as_json(), ensure_ascii=False) + "\n"
        if self.n_best is None:
            return translation.text + "\n"
        lines = ""
        for hypothesis in translation.n_best:
            text = hypothesis.text
            line = n_best_line(
                line=hypothesis.line,
                text=text if self.translator.pretokenized else escaped(text),
                score=hypothesis.score,
                length=len(hypothesis.tokens) + 1,  # with </s>
                length_penalty=self.translator.settings.alpha,
            )
            lines += f"{line}\n"
        return lines


def _first(items: Sequence[str], separator: str) -> str:
    """Return the first ``_MOST_NAMED`` items in one text that also says how many more there are."""
    shown = separator.join(items[:_MOST_NAMED])
    rest = len(items) - _MOST_NAMED
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def translate_stream(
    translate: ChunkTranslator,
    stream: BufferedReader,
    name: str,
) -> None:
    """Translate a stream to the standard output. Messages call the stream ``name``."""
    arriving_bytes = ArrivingBytes(stream)
    readline = PlainLines(arriving_bytes.readline, name)
    lines = enumerate(text_lines(readline, name), start=1)
    for chunk in arriving(lines, arriving_bytes.must_wait, LINES_PER_CHUNK):
        sys.stdout.write(translate(chunk))
        sys.stdout.flush()


class ArrivingBytes:
    """Reads lines of a stream, and can tell whether the next line has arrived."""

    def __init__(self, stream: BufferedReader) -> None:
        """Read from a pipe, a terminal, a file, or bytes in memory."""
        self._stream = stream
        # Bytes that were read from the stream, but that `readline` has not returned yet.
        self._pending = bytearray()
        self._ended = False

    def readline(self, limit: int) -> bytes:
        """Return the next line with its line feed, and wait for it if necessary.

        A line is cut after ``limit`` bytes; the next call goes on with its rest. At the end of the
        stream, the result is empty.
        """
        while not self._has_line() and len(self._pending) < limit:
            self._fill()
        line_feed = self._pending.find(b"\n", 0, limit)
        size = limit if line_feed < 0 else line_feed + 1
        line = bytes(self._pending[:size])
        del self._pending[:size]
        return line

    def must_wait(self) -> bool:
        """Return whether `readline` would have to wait for the rest of the next line.

        This reads what has arrived. It stops reading when a line is longer than
        ``LONGEST_LINE_BYTES``, which `text_lines` refuses; then the result is False.
        """
        while not self._has_line():
            if len(self._pending) > LONGEST_LINE_BYTES:
                return False
            # Bytes in memory have no file descriptor; there is no need to wait for them.
            with suppress(UnsupportedOperation):
                readable, _, _ = select.select([self._stream], [], [], 0)
                if not readable:
                    return True
            self._fill()
        return False

    def _has_line(self) -> bool:
        """Return whether the rest of the next line, or the end of the stream, has been read."""
        return self._ended or b"\n" in self._pending

    def _fill(self) -> None:
        """Read the bytes that have arrived, or wait for at least one. Note the stream's end."""
        block = self._stream.read1(_BLOCK_BYTES)
        self._pending += block
        self._ended = not block


def arriving(
    lines: Iterable[Line],
    must_wait: Callable[[], bool],
    limit: int,
) -> Iterator[list[Line]]:
    """Group the lines that have arrived together.

    A group ends when it has ``limit`` lines, or when ``must_wait`` says that the next line has not
    arrived yet. If ``lines`` raises a UserError, the lines before it are yielded first.
    """
    group: list[Line] = []
    try:
        for line in lines:
            group.append(line)
            if len(group) == limit or must_wait():
                yield group
                group = []
    except UserError:
        if group:
            yield group
        raise
    if group:
        yield group
