"""From the translations of a test set to a JSON file of scores with everything they rest on."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from convs2s.errors import UserError
from convs2s.files import atomic_text, read_lines
from convs2s.scoring.bleu import chrf, detokenized_bleu, length_ratio, tokenized_bleu
from convs2s.scoring.translations import UNKNOWN, Translation, read_translations


def evaluate(
    translations: Path,
    reference_raw: Path,
    reference_tokenized: Path,
    output: Path,
    *,
    test_set: str,
    manifest: Mapping[str, Any],
) -> None:
    """Score a decoded test set and write the scores as JSON.

    Args:
        translations: the decoder's JSON lines.
        reference_raw: the target side as published, for detokenized BLEU and chrF.
        reference_tokenized: the target side in the words of the task, for tokenized BLEU.
        output: the JSON file.
        test_set: the test set's name.
        manifest: what the numbers rest on: configuration, seed, checksums, versions, hardware.

    Raises:
        UserError: a file is missing or malformed, or the files differ in their number of lines.
    """
    system = read_translations(translations)
    raw = _read_reference(reference_raw, translations, len(system))
    tokenized = _read_reference(reference_tokenized, translations, len(system))
    result = {
        "test_set": test_set,
        "lines": len(system),
        **_scores(system, raw, tokenized),
        "unknown_words": _count_unknown_words(system),
        "manifest": manifest,
    }
    with atomic_text(output) as stream:
        json.dump(result, stream, ensure_ascii=False, indent=2)
        stream.write("\n")


def _read_reference(reference: Path, translations: Path, expected: int) -> list[str]:
    lines = list(read_lines(reference))
    if len(lines) != expected:
        raise UserError(
            f"{translations} has {expected} lines but {reference} has {len(lines)}: a test set is "
            "scored as a whole; decode it again, or give its own reference"
        )
    return lines


def _scores(
    system: Sequence[Translation], raw: Sequence[str], tokenized: Sequence[str]
) -> dict[str, Any]:
    text = [translation.text for translation in system]
    words = [" ".join(translation.words) for translation in system]
    text_before = [translation.text_before for translation in system]
    words_before = [" ".join(translation.words_before) for translation in system]
    return {
        "bleu": _both_bleus(words, tokenized, text, raw),
        "chrf": asdict(chrf(text, raw)),
        "length_ratio": length_ratio(words, tokenized).score,
        "before_replacement": {"bleu": _both_bleus(words_before, tokenized, text_before, raw)},
    }


def _both_bleus(
    words: Sequence[str], tokenized: Sequence[str], text: Sequence[str], raw: Sequence[str]
) -> dict[str, Any]:
    return {
        "tokenized": asdict(tokenized_bleu(words, tokenized)),
        "detokenized": asdict(detokenized_bleu(text, raw)),
    }


def _count_unknown_words(system: Sequence[Translation]) -> dict[str, int]:
    """Count the unknown words of the output, and by what they were replaced, if they were."""
    by = Counter(item.by for translation in system for item in translation.replacements)
    # within words too: a token of a word can be unknown
    total = sum(word.count(UNKNOWN) for item in system for word in item.words_before)
    return {"total": total, "dictionary": by["dictionary"], "copied": by["copied"]}
