"""A real server that speaks the rerank APIs and chat completions, in a process of its own.

``python server.py`` prints its port and serves until it is ended. The first part of the path says how it
behaves: ``/plain/v1/rerank``. A passage's score is its number of words. ``GET /log`` returns every request so far.
"""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOG: list[dict[str, Any]] = []
HUGE = "x" * 17_000_000

Reply = tuple[int, str, dict[str, str]]


def refused(manner: str, seen: int, authorization: str) -> Reply | None:
    """The answers that do not depend on what was asked."""
    match manner:
        case "busy" if seen < 2:
            return 429, '{"error": "slow down"}', {"Retry-After": "0.01"}
        case "closed":
            return 429, '{"error": "come back later"}', {"Retry-After": "120"}
        case "endless":
            return 429, "", {"Retry-After": "86400"}
        case "down":
            return 500, '{"error": "out of memory"}', {}
        case "flaky" if seen < 1:
            return 503, "", {}
        case "refused":
            return 401, json.dumps({"error": f"bad key {authorization}"}), {}
        case "slow":
            time.sleep(3.0)
        case "page":
            return 200, "<html>Welcome</html>", {}
        case "number":
            return 200, "7", {}
        case "huge":
            return 200, HUGE, {}
    return None


def ranked(manner: str, asked: dict[str, Any], key: str, score: str) -> Any:
    items = [{"index": place, score: float(len(text.split()))} for place, text in enumerate(asked[key])]
    items.sort(key=lambda item: -item[score])  # best first, as the servers do
    match manner:
        case "short":
            items = items[1:]
        case "doubled":
            items[0]["index"] = items[-1]["index"]
        case "nan":
            items[0][score] = float("nan")
        case "words":
            items[0][score] = "high"
        case "nameless":
            items = [{"place": item["index"]} for item in items]
    return items


def graded(manner: str, asked: dict[str, Any], seen: int) -> Reply:
    """A chat completion whose text grades each passage by its number of words."""
    shown = asked["messages"][-1]["content"].split("<passage number=")[1:]
    grades = [{"passage": n, "score": len(text.split("\n")[1].split())} for n, text in enumerate(shown, start=1)]
    said = json.dumps({"scores": grades})
    match manner:
        case "schemaless" if "response_format" in asked:
            return 400, '{"error": "response_format is not supported"}', {}
        case "chatty":
            said = f'Let me see {{"scores": []}}… here it is:\n```json\n{said}\n```\nI hope that helps!'
        case "thinking" if seen < 1:
            said = "I would have to think about that."
        case "prose":
            said = "The first one is best."
        case "short":
            said = json.dumps({"scores": grades[1:]})
        case "bare":
            said = json.dumps({"scores": [grade["score"] for grade in grades]})
        case "high":
            said = json.dumps({"scores": [{**grade, "score": 11} for grade in grades]})
        case "mute":
            return 200, json.dumps({"choices": [{"message": {"content": None}}]}), {}
        case "choiceless":
            return 200, json.dumps({"choices": []}), {}
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]}), {}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.reply(200, json.dumps(LOG), {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        seen = sum(entry["path"] == self.path for entry in LOG)
        authorization = self.headers["Authorization"]
        LOG.append({"path": self.path, "authorization": authorization, "asked": asked})
        manner, _, path = self.path.lstrip("/").partition("/")
        if (answer := refused(manner, seen, authorization)) is not None:
            self.reply(*answer)
        elif path.endswith("chat/completions"):
            self.reply(*graded(manner, asked, seen))
        elif path.startswith(("v1/rerank", "v2/rerank")):
            self.reply(200, json.dumps({"results": ranked(manner, asked, "documents", "relevance_score")}), {})
        elif path.startswith("rerank"):
            self.reply(200, json.dumps(ranked(manner, asked, "texts", "score")), {})
        else:
            self.reply(404, '{"detail": "Not Found"}', {})

    def reply(self, status: int, body: str, headers: dict[str, str]) -> None:
        data = body.encode()
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up, as a test wants it to

    def log_message(self, format: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
