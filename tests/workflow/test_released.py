"""A released model's task, from the download of the authors' archive to a score."""

import io
import json
import tarfile
from pathlib import Path

from tests.support.checkout import Checkout
from tests.support.golden import DATA
from tests.support.loopback import LoopbackServer, Served

TASK = "wmt14_en_fr_released"
ARCHIVE = "/dl.fbaipublicfiles.com/fairseq/models/wmt14.v2.en-fr.fconv-py.tar.bz2"
MEMBERS = "wmt14.en-fr.fconv-py"


def archive(folder: Path) -> bytes:
    """fairseq's tiny model as the authors pack theirs; the codes join each word's characters."""
    types = [
        line.split()[0]
        for name in ("dict.src.txt", "dict.tgt.txt")
        for line in (folder / name).read_text("utf-8").splitlines()
    ]
    merges = {f"{word[0]} {word[1]}" for word in types} | {
        f"{word[:2]} {word[2]}</w>" for word in types if len(word) == 3
    }
    files = {
        "model.pt": (folder / "checkpoint_tiny.pt").read_bytes(),
        "dict.en.txt": (folder / "dict.src.txt").read_bytes(),
        "dict.fr.txt": (folder / "dict.tgt.txt").read_bytes(),
        "bpecodes": "\n".join(["#version: 0.2", *sorted(merges), ""]).encode(),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:bz2") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{MEMBERS}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_from_the_archive_to_a_score(checkout: Checkout, server: LoopbackServer) -> None:
    server.serve(ARCHIVE, Served(archive(DATA / "fairseq_random")))
    checkout.write("data/test.en", "s09 s16 s05\ns14 s22\ns09 unheard\n")
    checkout.write("data/test.fr", "t00 t01 t09\nt16 t14\nt00 t01\n")
    pair = {"source": "data/test.en", "target": "data/test.fr"}
    checkout.configure(
        {
            "mirrors": [f"http://{server.host}"],
            "cores": 1,
            "device": "cpu",
            "overrides": {
                "tasks": {"wmt14_en_fr": {"corpus": {"tests": {"newstest2014": [pair]}}}}
            },
        }
    )
    done = checkout.snakemake(f"results/{TASK}/bleu.txt")
    assert done.code == 0, done.said
    assert done.planned["import_released"] == done.planned["download_file"] == 1
    assert not {"train_model", "build_vocabulary", "learn_bpe"} & done.planned.keys()
    assert [answer.path for answer in server.answers] == [ARCHIVE]

    headline = (checkout / f"results/{TASK}/bleu.txt").read_text("utf-8")
    assert "newstest2014: 3 lines; one run (released)" in headline
    model = f"results/{TASK}/models/fconv_wmt_en_fr/released"
    assert checkout.files(model)[0] == f"{model}/model.safetensors"
    rows = (checkout / f"{model}/newstest2014.beam5_fairseq.jsonl").read_text("utf-8").splitlines()
    tokens = [json.loads(row)["source_tokens"] for row in rows]
    assert tokens[:2] == [["s09", "s16", "s05"], ["s14", "s22"]]
    assert len(tokens[2]) > 2
    assert tokens[2][1].endswith("@@")


def test_stage_targets_of_a_released_model_train_nothing(checkout: Checkout) -> None:
    checkout.configure({"tasks": [TASK, "wmt14_en_de_released"]})
    targets = ["download", "prepare", "align", "train", "evaluate", "figures"]
    done = checkout.snakemake("--dry-run", "--quiet", "reason", "--", *targets)
    assert done.code == 0, done.said[-3000:]
    assert done.planned["import_released"] == 2
    assert done.planned["evaluate_bleu"] == 3
    trained = {"train_model", "binarize", "align_words", "plot_learning_curve"}
    assert not trained & done.planned.keys()
    downloads = {"test-full.tgz", "test-filtered.tgz", "fconv-py.tar.bz2"}
    assert all(any(name in done.said for name in downloads) for name in downloads)
    assert "training-parallel" not in done.said
