"""Translate a document with a model."""

from pathlib import Path

from convs2s.config.decoding import SPLIT_SENTENCES
from convs2s.decoding.parallel import in_chunks
from convs2s.decoding.progress import progress
from convs2s.decoding.split_lines import SplitLines
from convs2s.decoding.translate import LINES_PER_CHUNK, LineTranslator
from convs2s.documents.passages import parts_warning
from convs2s.documents.read import Document
from convs2s.files.atomic import atomic_path


def translate_document(
    translator: LineTranslator,
    document: Document,
    output: Path,
    *,
    silent: bool = False,
) -> str | None:
    """Translate each sentence of a document, and write the translated document.

    Return a warning if sentences were translated in parts because of their tags, None otherwise.
    Progress is shown on the standard error unless ``silent``.

    Raises:
        UserError: the output cannot be written.
    """
    language = translator.description.languages["source"] if SPLIT_SENTENCES else None
    translations = list[str]()
    with progress(" texts", len(document.texts), silent=silent) as bar:
        for chunk in in_chunks(document.texts, LINES_PER_CHUNK):
            split = SplitLines(chunk, language)
            translated = translator.translate_chunk(split.sentences)
            translations += [text.text for text in split.joined(translated)]
            bar.update(len(chunk))
    content = document.translated(translations)
    with atomic_path(output) as temporary:
        temporary.write_bytes(content)
    return parts_warning(document.passages)
