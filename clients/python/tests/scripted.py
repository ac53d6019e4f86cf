"""A coordinator that a test plays: leases rise from run 1, and a test may refuse, forge, cut or delay single responses."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional

#: Gets the lease that would be right, and the connection. Returns the whole response, or None after it sent one itself.
Answer = Callable[[Dict[str, Any], socket.socket], Optional[bytes]]


class ScriptedCoordinator:
    def __init__(self) -> None:
        self.answers: Deque[Answer] = deque()
        self.always: Answer = lambda lease, _: created(lease)
        self.store_id = "store-1"
        self.mark = 0
        self.requests: List[Dict[str, Any]] = []
        self.headers: List[Dict[str, str]] = []
        #: Those in lease requests, too.
        self.reports: List[Dict[str, Any]] = []
        #: Sent by requests of their own.
        self.own_reports: List[Dict[str, Any]] = []
        self.in_flight_max = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> ScriptedCoordinator:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # It is closed already.
        self._socket.close()

    @property
    def run_counts(self) -> List[int]:
        return [request["runCount"] for request in self.requests]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            path = stream.readline().decode().split(" ")[1]
            headers: Dict[str, str] = {}
            for line in iter(stream.readline, b"\r\n"):
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            body = json.loads(stream.read(int(headers["content-length"])))
            if path.endswith("/report"):
                report = {"run": int(path.split("/")[-2]), **body}
                with self._lock:
                    self.reports.append(report)
                    self.own_reports.append(report)
                return connection.sendall(response(200, {"noted": True}))
            try:
                content = self._lease(path, headers, body, connection)
            except OSError:
                content = None  # The client has left.
            # Before the response: after it, the client may send the next request at once.
            with self._lock:
                self._in_flight -= 1
            if content is not None:
                with contextlib.suppress(OSError):
                    connection.sendall(content)

    def _lease(
        self, path: str, headers: Dict[str, str], body: Dict[str, Any], connection: socket.socket
    ) -> Optional[bytes]:
        with self._lock:
            self._in_flight += 1
            self.in_flight_max = max(self.in_flight_max, self._in_flight)
            self.requests.append(body)
            self.headers.append({**headers, "path": path})
            if "report" in body:
                self.reports.append(body["report"])
            lease = {
                "namespace": path.split("/")[3],
                "storeId": self.store_id,
                "version": 0,
                "firstRun": self.mark + 1,
                "runCount": body["runCount"],
                "leasedAtMs": 1,
                "nonce": body["nonce"],
                "proof": str(self.mark + body["runCount"]).rjust(43, "r"),
            }
            self.mark += body["runCount"]
            answer = self.answers.popleft() if self.answers else self.always
        return answer(lease, connection)


def response(status: int, content: object, *headers: str) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    lines = [f"HTTP/1.1 {status} x", f"content-length: {len(body)}", "connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def created(lease: Dict[str, Any]) -> bytes:
    return response(201, lease)


def with_fields(**fields: object) -> Answer:
    return lambda lease, _: created({**lease, **fields})


def refusal(code: str, retry_after_ms: Optional[int] = None, status: int = 503) -> Answer:
    error: Dict[str, object] = {"code": code, "message": f"refused: {code}"}
    if retry_after_ms is not None:
        error["retryAfterMs"] = retry_after_ms
    return lambda *_: response(status, error)


def raw(content: bytes) -> Answer:
    return lambda *_: content
