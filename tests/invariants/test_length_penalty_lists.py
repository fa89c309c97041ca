"""One n-best list holds what a search with any length penalty answers."""

from pathlib import Path

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.rescoring import list_n_best
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_lines, write_lines
from convs2s.scoring.n_best import read_n_best
from convs2s.scoring.reranking import by_length_penalty
from tests.support.golden import golden_lines
from tests.support.trained import TRAINED, import_trained


@pytest.mark.parametrize("finished", ["replace", "leave"])
def test_one_list_holds_what_a_search_with_any_value_answers(
    tmp_path: Path, finished: str
) -> None:
    model = import_trained(tmp_path)
    lines = golden_lines(TRAINED, "test200.bpe.en")[:30]
    write_lines(tmp_path / "source", lines)
    answers: list[list[str]] = []
    for alpha in (1.0, 0.0, 0.5, 2.0):
        stated = {"beam": 4, "finished": finished, "length_penalty": alpha}
        settings = DecodingSettings.model_validate(stated)
        translator = LineTranslator([model], settings, "cpu", pretokenized=True)
        if not answers:
            output = tmp_path / "list"
            list_n_best(translator, source=tmp_path / "source", output=output)
            groups = list(read_n_best(read_lines(output), "list"))
        found = [" ".join(one.words) for one in translator.translate(lines)]
        best = [max(group, key=by_length_penalty(alpha)) for group in groups]
        assert [one.text for one in best] == found
        answers.append(found)
    assert any(answer != answers[0] for answer in answers)  # the value matters here
    assert all(max(group, key=lambda one: one.score) == group[0] for group in groups)
