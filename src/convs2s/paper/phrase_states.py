"""The states of phrases, projected on two dimensions (Sutskever et al. 2014, figure 2)."""

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

# A component of fp32 states that has no more of the largest one is nothing but rounding.
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
    """Write where phrases lie by the states in which an LSTM's encoder ends after them.

    The header names task, model, run, scale and the phrases. A warning on the standard error names
    the phrases with words that the model does not know; a UserError says that the model is no LSTM.
    """
    texts: list[str] = []
    meanings: list[int] = []  # the number of each text's meaning
    for number, alike in enumerate(phrases.meanings):
        texts += alike
        meanings += [number] * len(alike)
    read = final_states(model, texts)
    for text, words in zip(texts, read.unknown, strict=True):
        if words:
            print(
                f"warning: phrases {header['name']}: {text!r} holds words that {header['model']} "
                f"of {header['task']} does not know: {', '.join(words)} (config/phrases.yaml)",
                file=sys.stderr,
            )
    points, explained = pca(read.states)
    chance, p = chance_of_share(read.states, meanings)
    states = []
    for place, text in enumerate(texts):
        x, y = points[place].tolist()
        unknown = len(read.unknown[place])
        states.append(PhraseState(text, meanings[place], read.tokens[place], unknown, x, y))
    written = PhraseMap(
        **header,
        stand_in=stand_in,
        title=phrases.title,
        source=phrases.source,
        explained=explained,
        apart=share_between(read.states, meanings),
        states=states,
        p=p,
        chance=chance,
    )
    write_json(output, {**asdict(written), "manifest": manifest})


def pca(states: Array) -> tuple[Array, tuple[float, float]]:
    """Return states (N, d) on their two main components (N, 2), and the variance's share of each.

    A component's sign is that of its largest weight, so that it does not depend on the machine.
    """
    centered = _centered(states)
    _, sizes, components = np.linalg.svd(centered, full_matrices=False)
    largest = np.abs(components).argmax(1)
    signs = np.sign(components[np.arange(len(components)), largest])
    points = centered @ (components * signs[:, None])[:2].T
    points[:, sizes[:2] < _ROUNDING * sizes[0]] = 0.0  # all states are on a line, or one point
    variance = sizes**2
    shares = variance[:2] / max(variance.sum(), np.finfo(np.float64).tiny)
    return points, (float(shares[0]), float(shares[1]))


def chance_of_share(states: Array, meanings: Sequence[int]) -> tuple[float, float]:
    """Return the mean `share_between` where no meaning counts, and p of so large or so small a one.

    Of all swaps of meanings among their n-th states, which differ in nothing else, or 10,000 random
    ones: of free permutations, what else the states differ in would be a part of chance.
    """
    groups = [np.flatnonzero(np.array(meanings) == meaning) for meaning in np.unique(meanings)]
    labels = np.sort(meanings)

    def share(*permuted: NDArray[np.integer[Any]]) -> float:
        return share_between(states[np.concatenate(permuted)], labels)

    order = np.random.default_rng(PERMUTATION_SEED)
    test = stats.permutation_test(
        groups, share, permutation_type="samples", n_resamples=9_999, rng=order
    )
    return float(test.null_distribution.mean()), float(test.pvalue)


def share_between(states: Array, meanings: Sequence[int] | NDArray[np.integer[Any]]) -> float:
    """Return the share of the states' variance that lies between the meanings; 0 without any.

    It is 1 where all phrases of a meaning have one state, and near (meanings - 1) / (states - 1)
    where states do not depend on the meaning.
    """
    groups = np.array(meanings)
    centered = _centered(states)
    total = float((centered**2).sum())
    between = 0.0
    for meaning in np.unique(groups):
        alike = centered[groups == meaning]
        between += len(alike) * float((alike.mean(0) ** 2).sum())
    return between / total if total else 0.0


def _centered(states: Array) -> NDArray[np.float64]:
    """Return states less their mean; in float32 it would depend on their order."""
    exact: NDArray[np.float64] = states.astype(np.float64)
    exact -= exact.mean(0)
    return exact
