"""The best that a choice from an n-best list could score.

Which choice gives the highest BLEU of the whole set is no question that can be answered sentence by
sentence, and there are too many choices to try. So each sentence's hypothesis with the highest BLEU
of its own is taken (smoothed, as a sentence rarely has all its n-grams), of equal ones the one that
the list prefers. Where that choice scores less than the list's own, which happens in sets of a few
sentences, the list's own is the answer.
"""

from collections.abc import Callable, Iterable, Sequence

from convs2s.errors import UserError
from convs2s.scoring.bleu import BleuKind, SentenceBleu, detokenized_bleu, tokenized_bleu
from convs2s.scoring.n_best import Group, every_sentence, own_score, reranked

Reader = Callable[[str], str]


def first_and_oracle(
    groups: Iterable[Group],
    references: Sequence[Sequence[str]],
    kind: BleuKind,
    read: Reader = str,
) -> tuple[list[str], list[str]]:
    """Choose from an n-best list by its own score and by the references.

    Args:
        groups: the list.
        references: one or more lists of lines, in the form that ``kind`` asks for.
        kind: by which BLEU to choose.
        read: from a hypothesis's text in the list to the form that ``kind`` asks for.

    Returns:
        The texts of the highest scores, and those of the oracle.

    Raises:
        UserError: a sentence has no hypothesis, or the references are not as many as the sentences.
    """
    sentence_bleu, first, chosen = SentenceBleu(kind), list[str](), list[str]()
    for number, group in enumerate(every_sentence(groups)):
        texts = [read(one.text) for one in reranked(group, own_score)]
        first.append(texts[0])
        if all(number < len(lines) for lines in references):  # else an error when all are counted
            lines = [lines[number] for lines in references]
            chosen.append(max(texts, key=lambda text: sentence_bleu(text, *lines)))
    if not first:
        raise UserError("the n-best list is empty: give one with a hypothesis of each sentence")
    metric = tokenized_bleu if kind == "tokenized" else detokenized_bleu
    of_first = metric(first, *references)
    is_better = metric(chosen, *references).score >= of_first.score
    return first, chosen if is_better else first
