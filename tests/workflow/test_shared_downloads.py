"""Two checkouts that share their downloads: what one has brought, the other does not remove."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.checkout import check_out
from tests.support.downloads import BODY
from tests.support.loopback import LoopbackServer, Served
from tests.support.user_task import TASK


def test_checkouts_that_share_downloads(
    root: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    url = server.serve("/corpus.tgz", Served(BODY, pause=0.4))
    file = tmp_path / "shared" / server.host / "corpus.tgz"
    checkouts = []
    for name in ("one", "two"):
        checkouts.append(check_out(root, tmp_path / name))
        scale = checkouts[-1] / "config/scales/paper.yaml"
        shared = f"downloads_dir: {tmp_path}/shared"
        scale.write_text(
            scale.read_text().replace("downloads_dir: results/downloads", shared)
        )
        checkouts[-1].write("config/tasks/shared.yaml", TASK.replace("train.en", url))
        checkouts[-1].configure({"scale": "paper"})
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(one.shell, f"snakemake {file}") for one in checkouts]
        for done in (run.result() for run in runs):
            done.succeeded()
    assert file.read_bytes() == BODY
    assert len(server.answers) == 1
    # The other had planned to bring it, and starts when it is there.
    server.files.clear()
    checkouts[1].snakemake("--forcerun", "download_file", "--", str(file)).succeeded()
    assert file.read_bytes() == BODY
