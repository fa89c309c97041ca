"""A stand-in of the Hugging Face Hub on the loopback interface: one repository, kept in memory."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPOSITORY = "somebody/model"
COMMIT = "c" * 40
_LARGE = (".safetensors", ".bin")


class Hub(ThreadingHTTPServer):
    """The server: the files of ``REPOSITORY``, and what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.files: dict[str, bytes] = {}
        # Files that are sent with their last byte changed.
        self.damaged: set[str] = set()
        self.asked: list[str] = []
        self.commits: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def siblings(self) -> list[dict[str, object]]:
        """What the Hub says of each file: of a large one its SHA-256, of another one git's name."""
        rows = []
        for name, body in self.files.items():
            digest, size = _digest(name, body), len(body)
            row: dict[str, object] = {"rfilename": name, "size": size, "blobId": digest}
            if name.endswith(_LARGE):
                row["lfs"] = {"size": size, "sha256": digest, "pointerSize": 134}
            rows.append(row)
        return rows


def _digest(name: str, body: bytes) -> str:
    if name.endswith(_LARGE):
        return hashlib.sha256(body).hexdigest()
    return hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._file()

    def do_GET(self) -> None:
        if not self.path.startswith(f"/api/models/{REPOSITORY}"):
            self._file()
        elif "/revision/" in self.path and not self.path.split("?")[0].endswith(COMMIT):
            self._answer(404, {"X-Error-Code": "RevisionNotFound"})
        else:
            siblings = self.server.siblings()
            self._say({"id": REPOSITORY, "sha": COMMIT, "siblings": siblings})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/api/validate-yaml":
            self._say({"errors": [], "warnings": []})
        elif REPOSITORY not in self.path:
            self._answer(404, {"X-Error-Code": "RepoNotFound"})
        elif "/preupload/" in self.path:
            files = json.loads(body)["files"]
            mode = {"uploadMode": "regular", "shouldIgnore": False}
            self._say({"files": [{"path": file["path"], **mode} for file in files]})
        else:
            for row in map(json.loads, body.splitlines()):
                self._change(row["key"], row["value"])
            url = f"{self.server.address}/{REPOSITORY}/commit/{COMMIT}"
            self._say({"commitUrl": url, "commitOid": COMMIT})

    def _change(self, kind: str, value: dict[str, str]) -> None:
        if kind == "header":
            self.server.commits.append(value["summary"])
        elif kind == "deletedFile":
            del self.server.files[value["path"]]
        else:
            self.server.files[value["path"]] = base64.b64decode(value["content"])

    def _file(self) -> None:
        revision = "main" if "/resolve/main/" in self.path else COMMIT
        place, _, name = self.path.partition(f"/resolve/{revision}/")
        if place != f"/{REPOSITORY}" or name not in self.server.files:
            self._answer(404, {"X-Error-Code": "RepoNotFound"})
            return
        body = self.server.files[name]
        headers = {"ETag": f'"{_digest(name, body)}"', "X-Repo-Commit": COMMIT}
        if self.command == "GET":
            self.server.asked.append(name)
        if name in self.server.damaged:
            body = body[:-1] + bytes([body[-1] ^ 1])
        self._answer(200, headers, body)

    def _say(self, content: object) -> None:
        headers = {"Content-Type": "application/json"}
        self._answer(200, headers, json.dumps(content).encode())

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
