"""Sentences that a page or a help has a model translate: the demo's model translates them well."""

import re
from pathlib import Path

import pytest

from convs2s.api.translator import Translator
from convs2s.cli.main import EXAMPLES
from convs2s.demo.corpus import read_demo_corpus
from convs2s.text.splitting import split_sentences
from tests.contract.pages import GENERATED
from tests.support.checkout import Checkout

FRENCH = {
    "The man sees two red cars.": "L'homme voit deux voitures rouges.",
    "The girl sees a small dog.": "La fille voit un petit chien.",
}


def test_they_are_of_words_that_the_demo_learns(root: Path) -> None:
    text = EXAMPLES
    for page in (root / "README.md", *(root / "docs").glob("*.md")):
        if page.name not in GENERATED:
            text += page.read_text("utf-8")
    shown = set()
    for line in text.splitlines():
        if re.search(r"\btranslate\b|\battention\b|\btext\b", line):
            for quoted in re.findall(r'"([A-Z][a-z]+ [^"]*[.?!])"', line):
                # A sentence for a graph of ONNX is of tokens.
                whole = re.sub(r" ([.?!])", r"\1", quoted)
                shown.update(split_sentences(whole, "en"))
    assert shown == FRENCH.keys()
    for language, sentences in enumerate(([*FRENCH], [*FRENCH.values()])):
        learned = " ".join(pair[language] for pair in read_demo_corpus()["train"])
        words = set(re.findall(r"[\w']+", learned))
        assert set(re.findall(r"[\w']+", " ".join(sentences))) <= words


@pytest.mark.slow
def test_the_demo_translates_them(checkout: Checkout) -> None:
    model = "results/demo_en_fr/models/demo/seed1/model.safetensors"
    checkout.configure({"device": "cpu", "cores": 1})
    checkout.snakemake(model).succeeded()
    translator = Translator.load(checkout / model, device="cpu")
    found = [one.text for one in translator.translate([*FRENCH])]
    assert found == [*FRENCH.values()]
