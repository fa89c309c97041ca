"""Projection of the states of phrases to two dimensions (Sutskever et al. 2014, figure 2)."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from convs2s.config.paper import Phrases
from convs2s.decoding.inspection import final_states
from convs2s.files.text import write_json
from convs2s.paper.phrase_map import PhraseMap, PhraseState

Array = NDArray[np.floating[Any]]

# A singular value of fp32 states below this share of the largest one is a rounding error.
_ROUNDING = 1e-6
PERMUTATION_SEED = 12345


def project_phrases(
    *,
    model: Path,
    phrases: Phrases,
    header: Mapping[str, str],
    stand_in: str | None,
    output: Path,
    manifest: Mapping[str, object],
) -> None:
    """Write a map of phrases by the final states of an LSTM's encoder, as JSON.

    For each phrase with words that the model does not know, a warning is printed to standard error.

    Args:
        model: the model file.
        phrases: the phrases, by their meanings.
        header: the task, model, run and scale, and the name of the phrases.
        stand_in: what stands in for the paper's data; None for the paper's data.
        output: the file to write.
        manifest: the manifest of the job.

    Raises:
        UserError: the model is not an LSTM.
    """
    texts: list[str] = []
    meanings: list[int] = []  # for each text, the number of its meaning
    for number, texts_of_meaning in enumerate(phrases.meanings):
        texts += texts_of_meaning
        meanings += [number] * len(texts_of_meaning)
    encoded = final_states(model, texts)
    for text, words in zip(texts, encoded.unknown, strict=True):
        if words:
            print(
                f"warning: phrases {header['name']}: {text!r} has words that {header['model']} "
                f"of {header['task']} does not know: {', '.join(words)} (config/phrases.yaml)",
                file=sys.stderr,
            )
    points, explained = pca(encoded.states)
    chance, p = chance_of_share(encoded.states, meanings)
    states = []
    for index, text in enumerate(texts):
        x, y = points[index].tolist()
        unknown = len(encoded.unknown[index])
        states.append(
            PhraseState(text, meanings[index], encoded.tokens[index], unknown, x, y)
        )
    written = PhraseMap(
        **header,
        stand_in=stand_in,
        title=phrases.title,
        source=phrases.source,
        explained=explained,
        apart=share_between(encoded.states, meanings),
        states=states,
        p=p,
        chance=chance,
    )
    write_json(output, {**asdict(written), "manifest": manifest})


def pca(states: Array) -> tuple[Array, tuple[float, float]]:
    """Project states (N, d) onto their first two principal components.

    Return the points (N, 2) and the share of the variance on each component. The sign of a
    component is chosen so that its largest weight is positive; without this choice it would depend
    on the machine.
    """
    centered = _centered(states)
    _, sizes, components = np.linalg.svd(centered, full_matrices=False)
    # components: (min(N, d), d), one in each row
    largest = np.abs(components).argmax(1)
    signs = np.sign(components[np.arange(len(components)), largest])
    points = centered @ (components * signs[:, None])[:2].T
    # If all states are equal or on a line, the coordinates on the components that have no variance
    # are rounding errors.
    points[:, sizes[:2] < _ROUNDING * sizes[0]] = 0.0
    variance = sizes**2
    # If all states are equal, both shares are 0, not 0 / 0.
    shares = variance[:2] / max(variance.sum(), np.finfo(np.float64).tiny)
    return points, (float(shares[0]), float(shares[1]))


def chance_of_share(states: Array, meanings: Sequence[int]) -> tuple[float, float]:
    """Return the `share_between` that is expected by chance, and the p-value of the actual share.

    This is a two-sided permutation test. The n-th phrases of all meanings differ only in their
    meaning, so a permutation swaps meanings only among the n-th states. Free permutations would
    count other differences between the phrases as chance. If there are more than 9,999
    permutations, 9,999 random ones are drawn.
    """
    # For each meaning, the indices of its states.
    groups = [
        np.flatnonzero(np.array(meanings) == meaning) for meaning in np.unique(meanings)
    ]
    labels = np.sort(meanings)  # the meanings of the states, one group after the other

    def share(*permuted: NDArray[np.integer[Any]]) -> float:
        """Return the share if the n-th meaning has the n-th group of indices."""
        return share_between(states[np.concatenate(permuted)], labels)

    rng = np.random.default_rng(PERMUTATION_SEED)
    test = stats.permutation_test(
        groups, share, permutation_type="samples", n_resamples=9_999, rng=rng
    )
    return float(test.null_distribution.mean()), float(test.pvalue)


def share_between(
    states: Array, meanings: Sequence[int] | NDArray[np.integer[Any]]
) -> float:
    """Return the share of the states' variance between the meanings; 0 if all states are equal.

    The share is 1 if all phrases of a meaning have the same state. If the states do not depend on
    the meaning, the share is near (meanings - 1) / (states - 1).
    """
    labels = np.array(meanings)
    centered = _centered(states)
    total = float((centered**2).sum())
    between = 0.0
    for meaning in np.unique(labels):
        states_of_meaning = centered[labels == meaning]
        mean = states_of_meaning.mean(0)
        between += len(states_of_meaning) * float((mean**2).sum())
    return between / total if total else 0.0


def _centered(states: Array) -> NDArray[np.float64]:
    """Return the states minus their mean, in float64.

    In float32, the mean would depend on the order of the states.
    """
    exact: NDArray[np.float64] = states.astype(np.float64)
    exact -= exact.mean(0)
    return exact
