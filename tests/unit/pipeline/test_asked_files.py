"""A file that no rule makes is refused with the nearest one that rules make in its folder."""

import re

import pytest

from convs2s.errors import UserError
from convs2s.pipeline.asked_files import check_file

PATTERNS = [
    "results/{task}/bleu.txt",
    "results/{task}/examples.txt",
    "results/{task}/models/{model}/{run}/{testset}.{decoding}.bleu.json",
    "results/{task}/models/{model}/{run}/{testset}.{decoding}.attention{line}.svg",
    "results/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.txt",
]
RUN = "results/one/models/small/seed1"
MADE = re.compile(
    r"results/one/(bleu|examples)\.txt|results/one/compare/test\.beam5\.a-vs-b\.txt|"
    r"results/one/models/small/seed1/test\.beam5\.(bleu\.json|attention\d\.svg)"
)


def is_made(path: str) -> bool:
    return MADE.fullmatch(path) is not None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("results/one/bleuu.txt", "unknown file 'bleuu.txt'; did you mean 'bleu.txt'?"),
        (
            f"{RUN}/test.beam5.blue.json",
            "unknown file 'test.beam5.blue.json'; did you mean 'test.beam5.bleu.json'?",
        ),
        (
            "results/one/compare/test.beam5.a.b.txt",
            "unknown file 'test.beam5.a.b.txt'; expected {testset}.{decoding}."
            "{baseline}-vs-{system}.txt",
        ),
        (
            "results/one/zzz",
            "unknown file 'zzz'; expected one of bleu.txt, examples.txt",
        ),
    ],
)
def test_the_nearest_file_of_the_folder_is_named(path: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(f'{path}: {message}')}$"):
        check_file(path, PATTERNS, is_made)


@pytest.mark.parametrize(
    "path", ["results/one/bleu.txt", f"{RUN}/test.beam5.attention3.svg", "results/a/b/c/d/e/f"]
)
def test_what_is_made_and_what_no_folder_is_known_of_pass(path: str) -> None:
    check_file(path, PATTERNS, is_made)
