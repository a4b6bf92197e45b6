"""A real embeddings server in a process of its own, which behaves as the model's name says.

``python endpoint.py`` prints its port and serves until it is ended. A text's vector is its length, its first letter's
code and 1. ``GET /log`` returns every request received so far.
"""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOG: list[dict[str, Any]] = []


def vector(text: str) -> list[float]:
    return [float(len(text)), float(ord(text[0])), 1.0]


def items(texts: list[str]) -> list[dict[str, Any]]:
    return [{"index": place, "embedding": vector(text)} for place, text in enumerate(texts)]


def answer(model: str, texts: list[str], seen: int) -> tuple[int, str, dict[str, str]]:
    """Status, body and headers; ``seen`` counts the earlier requests for this model."""
    data = items(texts)
    headers: dict[str, str] = {}
    status = 200
    match model.split("-")[0]:
        case "busy" if seen < 2:
            return 429, '{"error": "slow down"}', {"Retry-After": "0.01"}
        case "down":
            return 500, '{"error": "out of memory"}', headers
        case "flaky" if seen < 1:
            return 503, "", headers
        case "refused":
            return 401, json.dumps({"error": f"bad key {LOG[-1]['authorization']}"}), headers
        case "slow":
            time.sleep(1.0)
        case "shuffled":
            data = data[::-1]
        case "unnumbered":
            data = [{"embedding": item["embedding"]} for item in data]
        case "short":
            data = data[:-1]
        case "doubled":
            data = [{**item, "index": 0} for item in data]
        case "nan":
            data[0]["embedding"][1] = float("nan")
        case "ragged":
            data[0]["embedding"] = [1.0]
        case "growing" if seen:
            data = [{**item, "embedding": [*item["embedding"], 1.0]} for item in data]
        case "page":
            return 200, "<html>Welcome</html>", headers
        case "list":
            return 200, "[1, 2]", headers
        case "empty":
            data = [{**item, "embedding": []} for item in data]
        case "zero":
            data = [{**item, "embedding": [0.0, 0.0, 0.0]} for item in data]
    return status, json.dumps({"object": "list", "data": data, "model": model}), headers


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.reply(200, json.dumps(LOG), {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        seen = sum(entry["model"] == asked["model"] for entry in LOG)
        LOG.append({"path": self.path, "authorization": self.headers["Authorization"], **asked})
        self.reply(*answer(asked["model"], asked["input"], seen))

    def reply(self, status: int, body: str, headers: dict[str, str]) -> None:
        data = body.encode()
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up waiting, as a test wants it to

    def log_message(self, format: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
