"""A deposit at Zenodo, against a stand-in that answers as its API does."""

import json
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

ANSWER = """{"doi": "10.5281/zenodo.2",
"links": {"self": "HOST/api/deposit/depositions/2", "bucket": "HOST/bucket",
          "latest_draft": "HOST/api/deposit/depositions/2"},
"files": [{"links": {"self": "HOST/api/deposit/depositions/2/files/old"}}]}"""
DRAFT = "/api/deposit/depositions/2"


class Zenodo(BaseHTTPRequestHandler):
    """Notes what it is asked, and knows one draft."""

    asked: ClassVar[list[tuple[str, str, bytes]]] = []

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        assert self.headers["Authorization"] == "Bearer secret"
        self.asked.append((self.command, self.path, content))
        body = ANSWER.replace("HOST", f"http://{self.headers['Host']}").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("record", ["", "1"], ids=["first", "new version"])
def test_files_are_deposited_and_published(
    root: Path, tmp_path: Path, record: str
) -> None:
    if not (shutil.which("curl") and shutil.which("jq")):
        pytest.skip("there is no curl or no jq here")
    Zenodo.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Zenodo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    stated = {
        "ZENODO_TOKEN": "secret",
        "ZENODO_RECORD": record,
        "ZENODO_URL": f"http://127.0.0.1:{server.server_port}",
    }
    command = [root / ".ci/zenodo", tmp_path / "model.safetensors"]
    done = subprocess.run(
        command, env={**os.environ, **stated}, capture_output=True, text=True
    )
    server.shutdown()
    server.server_close()
    assert (done.returncode, done.stdout) == (0, "10.5281/zenodo.2\n"), done.stderr
    steps = [(verb, path) for verb, path, _ in Zenodo.asked]
    assert steps[-3:] == [
        ("PUT", "/bucket/model.safetensors"),
        ("PUT", DRAFT),
        ("POST", f"{DRAFT}/actions/publish"),
    ]
    assert Zenodo.asked[-3][2] == b"weights"
    assert (("DELETE", f"{DRAFT}/files/old") in steps) == bool(record)
    described = json.loads(Zenodo.asked[-2][2])["metadata"]
    citation = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    assert described["title"] == citation["title"]
    assert described["version"] == citation["version"]
    assert described["creators"] == [{"name": citation["authors"][0]["name"]}]
