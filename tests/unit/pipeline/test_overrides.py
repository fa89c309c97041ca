"""Settings for single jobs are refused where there is no such job."""

import re

import pytest

from convs2s.errors import UserError
from convs2s.pipeline.overrides import check_names

JOBS = ["align_words", "build_dictionary", "train_model", "download_file"]
TARGETS = {"train": ["train_model"], "align": ["build_dictionary"]}


def test_jobs_are_accepted() -> None:
    check_names("--set-threads", ["train_model", "build_dictionary"], JOBS, {})
    check_names("--set-threads", [], JOBS, {})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("train", "'train' is a target, not a job; its job is train_model"),
        ("align", "'align' is a target, not a job; its jobs include align_words, build_dictionary"),
        ("trian_model", "'trian_model' is not a job; did you mean 'train_model'?"),
        ("xyz", "'xyz' is not a job; snakemake --list-rules shows all"),
    ],
)
def test_other_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(f'--set-threads {name}: {message}')}$"):
        check_names("--set-threads", ["build_dictionary", name], JOBS, TARGETS)
