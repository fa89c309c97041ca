"""Chunks of lines to text, and lines as they arrive: none waits for a later one."""

import json
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import BufferedReader, UnsupportedOperation

from convs2s.decoding.parallel import Chunk
from convs2s.decoding.split_lines import SplitLines
from convs2s.decoding.translate import LINES_PER_CHUNK, LineTranslator, Translation
from convs2s.errors import UserError
from convs2s.files.limits import LONGEST_LINE_BYTES
from convs2s.files.text import text_lines
from convs2s.scoring.n_best import escaped, n_best_line

_BLOCK_BYTES = 1 << 16

_SECOND_SENTENCE = re.compile(
    r"""(?:\b[^\W\d_A-ZÀ-Þ]\w\w+|[^\W\d_A-ZÀ-Þ]{4})[.!?]["'”’»)]? ["'“‘«(]?[^\W\d_a-zß-ÿ]\w* \w"""
)
"""Evidently another sentence, of two words or more: after a word of three letters, or a name."""


class ChunkTranslator:
    """From a chunk to what is written for it: text, JSON lines, or a Moses n-best list."""

    def __init__(
        self,
        translator: LineTranslator,
        as_json: bool,
        n_best: int | None,
        splits: bool = False,
        hints: bool = False,
    ) -> None:
        """Write JSON rather than text; ``n_best`` hypotheses of each line, None: no list.

        It ``splits`` lines into sentences, or else ``hints`` once at a line that has several.
        """
        self.translator = translator
        self.as_json = as_json
        self.n_best = n_best
        self._language = translator.description.languages["source"] if splits else None
        self._hints = hints and not splits

    def __call__(self, chunk: Chunk) -> str:
        """Translate a chunk."""
        for number, line in chunk:
            if self._hints and _SECOND_SENTENCE.search(line):
                self._hints = False
                print(
                    f"line {number} has several sentences, translated as one: --split-sentences "
                    "takes each alone",
                    file=sys.stderr,
                )
        lines = SplitLines(chunk, self._language)
        of_sentences = self.translator.translate_chunk(lines.sentences, self.n_best)
        return "".join(map(self.lines, lines.joined(of_sentences)))

    def lines(self, translation: Translation) -> str:
        """Return all lines of one translation, each ended by a line feed."""
        if self.as_json:
            return json.dumps(translation.as_json(), ensure_ascii=False) + "\n"
        if self.n_best is None:
            return translation.text + "\n"
        lines = ""
        alpha = self.translator.settings.alpha
        for best in translation.n_best:
            text = best.text if self.translator.pretokenized else escaped(best.text)
            lines += n_best_line(best.line, text, best.score, len(best.tokens) + 1, alpha) + "\n"
        return lines


def translate_stream(
    translate: ChunkTranslator,
    stream: BufferedReader,
    name: str,
) -> None:
    """Translate a stream to the standard output; ``name`` is what errors call it."""
    arriving_bytes = ArrivingBytes(stream)
    lines = text_lines(arriving_bytes.readline, name)
    first = 1
    for group in arriving(lines, arriving_bytes.waits, LINES_PER_CHUNK):
        sys.stdout.write(translate(list(enumerate(group, start=first))))
        sys.stdout.flush()
        first += len(group)


class ArrivingBytes:
    """A stream that can tell whether its next line is there yet."""

    def __init__(self, stream: BufferedReader) -> None:
        """Read from a pipe, a terminal, a file or bytes in memory, which are always there."""
        self._stream = stream
        self._pending = bytearray()
        self._ended = False

    def readline(self, limit: int) -> bytes:
        """Return the next line, waiting for it; at most ``limit`` bytes, none at the end."""
        while b"\n" not in self._pending and len(self._pending) < limit and not self._ended:
            self._fill()
        end = self._pending.find(b"\n", 0, limit) + 1
        if end == 0:
            end = limit
        line = bytes(self._pending[:end])
        del self._pending[:end]
        return line

    def waits(self) -> bool:
        """Return whether the next line has to be waited for: of one too long, no more is read."""
        while not self._ended and b"\n" not in self._pending:
            if len(self._pending) > LONGEST_LINE_BYTES:
                return False
            with suppress(UnsupportedOperation):  # of bytes in memory
                readable, _, _ = select.select([self._stream], [], [], 0)
                if not readable:
                    return True
            self._fill()
        return False

    def _fill(self) -> None:
        block = self._stream.read1(_BLOCK_BYTES)
        self._pending += block
        self._ended = not block


def arriving(
    lines: Iterable[str],
    waits: Callable[[], bool],
    most: int,
) -> Iterator[list[str]]:
    """Group lines: a group ends where ``waits`` says that the next is not there yet, or is full.

    An error of ``lines`` comes after the group before the fault.
    """
    group: list[str] = []
    try:
        for line in lines:
            group.append(line)
            if len(group) == most or waits():
                yield group
                group = []
    except UserError:
        if group:
            yield group
        raise
    if group:
        yield group
