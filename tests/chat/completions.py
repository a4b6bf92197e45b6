"""A real chat server on a free port of this machine, which behaves as the model's name says.

``log`` holds every request, ``release`` ends a request that hangs. An answer repeats the last line of the user message.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECES = ("You said: ", "", "\u2028", "über ", "🦡 ")


def said(asked: dict[str, Any]) -> str:
    return str(asked["messages"][-1]["content"].splitlines()[-1])


def chunk(text: str | None, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}, ensure_ascii=False).encode() + b"\n\n"


class Completions(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.log: list[dict[str, Any]] = []
        self.release = threading.Event()
        self.gone = threading.Event()  # a client went away in the middle

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Completions

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.log.append({"path": self.path, "authorization": self.headers["Authorization"], **asked})
        manner = asked["model"]
        try:
            if manner == "hangs":
                self.server.release.wait(60)
            elif manner in REFUSALS:
                self.whole(*REFUSALS[manner])
            elif manner == "refuses":
                self.whole(401, json.dumps({"error": f"bad key {self.headers['Authorization']}"}))
            elif asked["stream"] and manner != "never-streams":
                self.streamed(manner, asked)
            else:
                message = {"role": "assistant", "content": f"You said: {said(asked)}"}
                if manner == "parts":
                    message["content"] = [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]  # type: ignore[assignment]
                self.whole(200, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}))
        except (BrokenPipeError, ConnectionResetError):
            self.server.gone.set()
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def whole(self, status: int, body: str, kind: str = "application/json") -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def streamed(self, manner: str, asked: dict[str, Any]) -> None:
        chunked = manner != "breaks-quietly"
        self.send_response(200)
        self.send_header(
            "Content-Type", "text/event-stream; charset=latin-1" if manner == "odd" else "text/event-stream"
        )
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Connection", "close")))
        self.end_headers()
        self.close_connection = not chunked

        def send(data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
            self.wfile.flush()

        send(b": a comment\n\n")
        if manner == "endless":
            while True:
                send(chunk("on and on "))
        if manner == "silent":
            send(chunk("", "tool_calls"))
        elif manner == "junk":
            send(chunk("half ") + b"data: {not json\n\n")
        elif manner == "gives-up":
            send(chunk("half ") + b'data: {"error": {"message": "out of memory"}}\n\n')
        elif manner.startswith("breaks"):
            send(chunk("half an ") + chunk("answer"))
            self.close_connection = True
            return  # neither [DONE] nor the last chunk
        elif manner == "stalls":
            send(chunk("half an ") + chunk("answer"))
            self.server.release.wait(60)
            return
        else:
            body = b"".join([chunk(piece) for piece in PIECES]) + chunk(said(asked)) + chunk(None, "stop")
            body += b'data: {"choices": [], "usage": {"total_tokens": 3}}\n\n'
            body += b"" if manner == "no-done" else b"data: [DONE]\n\n"
            body = body.replace(b"\n\n", b"\r\n\r\n") if manner == "odd" else body
            for at in range(0, len(body), 7):  # in the middle of lines, and of characters
                send(body[at : at + 7])
        send(b"")


REFUSALS: dict[str, tuple[int, str, str]] = {
    "down": (500, '{"error": "out of memory"}', "application/json"),
    "traceback": (500, 'File "/opt/models/serve.py", line 3: out of memory', "text/plain"),
    "busy": (429, "", "text/plain"),
    "moved": (307, "elsewhere", "text/plain"),
    "page": (200, "<html>Welcome</html>", "application/json"),
    "list": (200, "[1, 2]", "application/json"),
    "choiceless": (200, '{"choices": "none"}', "application/json"),
    "wordless": (200, '{"choices": [{"message": {"content": null}, "finish_reason": "length"}]}', "application/json"),
    "nothing": (200, "{}", "application/json"),
}


@contextmanager
def serving() -> Iterator[Completions]:
    server = Completions()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        thread.join()
        server.server_close()
