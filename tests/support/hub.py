"""A stand-in of the Hugging Face Hub on the loopback interface: one repository, kept in memory."""

import base64
import hashlib
import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPOSITORY = "somebody/model"
COMMIT = "c" * 40


class Hub:
    """The server: the files of ``REPOSITORY``, and what it was asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.large: dict[str, bytes] = {}  # by their SHA-256, as Git LFS has them
        # Files that are sent with their last byte changed.
        self.damaged: set[str] = set()
        self.asked: list[str] = []
        self.commits: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def siblings(self) -> list[dict[str, object]]:
        """What the Hub says of each file: of a large one its SHA-256, of another one git's name."""
        return [
            {
                "rfilename": name,
                "size": len(body),
                "blobId": git_id(body),
                **lfs_of(name, body),
            }
            for name, body in self.files.items()
        ]


def is_large(name: str) -> bool:
    return name.endswith((".safetensors", ".bin"))


def git_id(body: bytes) -> str:
    return hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()


def lfs_of(name: str, body: bytes) -> dict[str, object]:
    if not is_large(name):
        return {}
    digest = hashlib.sha256(body).hexdigest()
    return {"lfs": {"size": len(body), "sha256": digest, "pointerSize": 134}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, hub: Hub, *arguments: object) -> None:
        self.hub = hub
        super().__init__(*arguments)  # type: ignore[arg-type]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._file(has_body=False)

    def do_GET(self) -> None:
        if not self.path.startswith(f"/api/models/{REPOSITORY}"):
            self._file(has_body=True)
        elif "/revision/" in self.path and not self.path.split("?")[0].endswith(COMMIT):
            self._answer(404, {"X-Error-Code": "RevisionNotFound"})
        else:
            said = {"id": REPOSITORY, "sha": COMMIT, "siblings": self.hub.siblings()}
            self._say(said)

    def do_PUT(self) -> None:
        body = self._body()
        self.hub.large[hashlib.sha256(body).hexdigest()] = body
        self._answer(200, {})

    def do_POST(self) -> None:
        body = self._body()
        if self.path == "/api/validate-yaml":
            self._say({"errors": [], "warnings": []})
        elif REPOSITORY not in self.path:
            self._answer(404, {"X-Error-Code": "RepoNotFound"})
        elif "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = {name: "lfs" if is_large(name) else "regular" for name in names}
            files = [
                {"path": n, "uploadMode": m, "shouldIgnore": False}
                for n, m in modes.items()
            ]
            self._say({"files": files})
        elif self.path.endswith("/info/lfs/objects/batch"):
            objects = [
                one
                | {
                    "actions": {
                        "upload": {"href": f"{self.hub.address}/put/{one['oid']}"}
                    }
                }
                for one in json.loads(body)["objects"]
            ]
            self._say({"transfer": "basic", "objects": objects})
        else:
            self._commit([json.loads(line) for line in body.splitlines()])

    def _commit(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            value = row["value"]
            if "content" in value:
                self.hub.files[value["path"]] = base64.b64decode(value["content"])
            elif "oid" in value:
                self.hub.files[value["path"]] = self.hub.large[value["oid"]]
            elif row["key"] == "deletedFile":
                del self.hub.files[value["path"]]
            else:
                self.hub.commits.append(value["summary"])
        url = f"{self.hub.address}/{REPOSITORY}/commit/{COMMIT}"
        self._say({"commitUrl": url, "commitOid": COMMIT})

    def _file(self, *, has_body: bool) -> None:
        revision = "main" if "/resolve/main/" in self.path else COMMIT
        place, _, name = self.path.partition(f"/resolve/{revision}/")
        if place != f"/{REPOSITORY}" or name not in self.hub.files:
            self._answer(404, {"X-Error-Code": "RepoNotFound"})
            return
        body = self.hub.files[name]
        tag = hashlib.sha256(body).hexdigest() if is_large(name) else git_id(body)
        if has_body:
            self.hub.asked.append(name)
        if name in self.hub.damaged:
            body = body[:-1] + bytes([body[-1] ^ 1])
        headers = {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}
        self._answer(200, headers, body, has_body=has_body)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _say(self, content: object) -> None:
        self._answer(
            200, {"Content-Type": "application/json"}, json.dumps(content).encode()
        )

    def _answer(
        self,
        status: int,
        headers: dict[str, str],
        body: bytes = b"",
        *,
        has_body: bool = True,
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if has_body:
            self.wfile.write(body)
