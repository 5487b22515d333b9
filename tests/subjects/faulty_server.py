"""A server on loopback that speaks the chat interface, and fails as servers do: refusals, silence, broken replies."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Faults:
    """How often it refuses (429), stays silent and answers what is no reply; and what it was asked."""

    def __init__(self, refused=0.0, silent=0.0, malformed=0.0, seed=0, silence=1.0):
        self.chance = random.Random(seed)
        self.shares = (refused, silent, malformed)
        self.silence = silence
        self.answered: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    def kind(self) -> str:
        drawn = self.chance.random()
        for name, share in zip(("refused", "silent", "malformed"), self.shares):
            if drawn < share:
                return name
            drawn -= share
        return "right"


@contextmanager
def serving(faults: Faults, reply=lambda text: text.upper(), status: int = 200, refusal=None):
    """The server's address; ``reply`` makes the reply out of the last message."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            return

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = request["messages"][-1]["content"]
            with faults.lock:
                kind = faults.kind()
                faults.asked[text] += 1
                faults.at_once += 1
                faults.most_at_once = max(faults.most_at_once, faults.at_once)
            try:
                self.answer(kind, text)
            finally:
                with faults.lock:
                    faults.at_once -= 1

        def answer(self, kind: str, text: str) -> None:
            if kind == "silent":
                time.sleep(faults.silence)
                self.close_connection = True
                return
            if kind == "refused":
                self.send(429, {"error": {"message": "slow down"}}, {"retry-after": "0"})
                return
            if status != 200:
                self.send(status, refusal or {"error": {"message": "no such model"}})
                return
            if kind == "malformed":
                self.send(200, {"choices": []} if faults.chance.random() < 0.5 else "<html>busy</html>")
                return
            with faults.lock:
                faults.answered[text] += 1
            message = {"role": "assistant", "content": reply(text)}
            self.send(200, {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
                {"index": 0, "finish_reason": "stop", "message": message}
            ]})  # fmt: skip

        def send(self, code: int, document: object, headers: dict[str, str] | None = None) -> None:
            content = document.encode() if isinstance(document, str) else json.dumps(document).encode()
            self.send_response(code)
            for name, value in ({"content-type": "application/json"} | (headers or {})).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
