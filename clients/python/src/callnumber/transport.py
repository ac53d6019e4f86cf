"""
Requests to a coordinator: one POST for each call, never a retry. A request has one time limit, to the last byte of its
response: a server that sends a byte now and then does not prolong it.
"""

from __future__ import annotations

# Where a request imported a module, a child that was forked in that moment would wait forever for the lock of the import.
import encodings.idna  # noqa: F401
import http.client
import io
import json
import re
import socket
import ssl
import sys
import time
from typing import Any, Callable, Dict, Optional, Tuple, Union, cast

from .codec import described, quoted
from .errors import CODES, ClientError

#: A token, or a function that returns one: called before each request, so that a token can be exchanged.
Token = Union[str, Callable[[], str]]

#: A lease and a report have less than 1 kB, the longest error a few.
_RESPONSE_BYTES_MAX = 65_536
_TOKEN = re.compile(r"[A-Za-z0-9_.~+/-]+=*")
_URL = re.compile(r'((?i:https?))://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?((?:/[!"$->A-~]*)?)', re.ASCII)
_PORT_MAX = 65_535
#: Without the characters of a token or a password, and so shown in messages: a host, or a URL of one.
_HOST = re.compile(r"[a-z\d.:\[\]-]+", re.ASCII)
_HOST_URL = re.compile(r"[A-Za-z]+:/*[a-z\d.:/\[\]-]*", re.ASCII)
#: How a server that expects TLS fails with plain HTTP; a server that stops fails the same way.
_HANGS_UP = (http.client.HTTPException, ConnectionResetError, BrokenPipeError)
_NO_TLS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST")


class Coordinator:
    """The coordinator at a URL. Safe for use by several threads: it holds no connection between requests."""

    def __init__(self, url: str, token: Optional[Token], name: str) -> None:
        """`name`: what errors call the URL. Raises ValueError for an invalid URL or token, TypeError for another type."""
        self.base, self._host, self._port, self._path = _parsed(url, name)
        self._token = token
        if not callable(token):
            _authorization(token)
        # Reads the authorities of the system, or of SSL_CERT_FILE.
        self._tls = ssl.create_default_context() if self.base.startswith("https:") else None

    def post(self, path: str, body: Dict[str, object], timeout_s: float) -> object:
        """
        Sends `body` as JSON and returns the JSON of a response with status 2xx. Raises ClientError with the coordinator's
        code, `coordinator_unreachable` (also after `timeout_s`), `certificate_rejected` or `invalid_response`.
        """
        headers = {"content-type": "application/json", "accept": "application/json", "connection": "close"}
        headers.update(self._authorization())
        limit = _TimeLimit(timeout_s)
        connection = self._connection()
        try:
            connection.sock = self._socket(limit)
            connection.request("POST", self._path + path, json.dumps(body).encode(), headers)
            response, content = _read(connection, limit)
            limit.left_s()  # A response that is late is never used.
        except (OSError, http.client.HTTPException) as error:
            if self._tls is None and isinstance(error, _HANGS_UP) and self._speaks_tls(limit):
                reason = "it speaks TLS. Use https:// in the URL"
                raise ClientError("invalid_response", f"{self.base} can't be used: {reason}") from error
            raise _failure(self.base, error, timeout_s) from error
        finally:
            connection.close()
        parsed = _json_in(content)
        if 200 <= response.status < 300 and parsed is not None:
            return parsed
        raise self._response_error(response, parsed, len(content) > _RESPONSE_BYTES_MAX)

    def _authorization(self) -> Dict[str, str]:
        if not callable(self._token):
            return _authorization(self._token)
        try:
            token: Optional[str] = self._token()
        except (Exception, SystemExit) as error:
            text = f"the token function failed ({type(error).__name__}: {error})"
            raise ClientError("internal_error", text) from error
        if token is None:
            raise ClientError("internal_error", "the token function returned None. Let it return a token, or pass token=None")
        return _authorization(token)

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port)
        return http.client.HTTPSConnection(self._host, self._port, context=self._tls)

    def _socket(self, limit: _TimeLimit) -> socket.socket:
        """
        Connected to the first address of the host that answers. Each gets an even part of the time that is left: http.client would give
        all of it to an address where nothing answers, and lose the lease that the next one returns too late.
        """
        port = self._port or (80 if self._tls is None else 443)
        found = socket.getaddrinfo(self._host, port, type=socket.SOCK_STREAM)
        for others, (_, _, _, _, address) in zip(range(len(found) - 1, -1, -1), found):
            try:
                connected = socket.create_connection(address[:2], limit.left_s() / (others + 1))
            except OSError:
                if others == 0:
                    raise
            else:
                return self._secured(connected, limit)
        raise OSError(f"{self._host} has no address")

    def _secured(self, connected: socket.socket, limit: _TimeLimit) -> socket.socket:
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.settimeout(limit.left_s())
            return connected if self._tls is None else self._tls.wrap_socket(connected, server_hostname=self._host)
        except BaseException:
            connected.close()
            raise

    def _speaks_tls(self, limit: _TimeLimit) -> bool:
        """As a handshake shows, whatever the certificate: nothing else is sent."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with socket.create_connection((self._host, self._port or 80), limit.left_s()) as connection:
                with context.wrap_socket(connection, server_hostname=self._host):
                    return True
        except (OSError, ValueError):
            return False

    def _response_error(self, response: http.client.HTTPResponse, content: object, is_too_long: bool) -> ClientError:
        error: Dict[str, Any] = content if isinstance(content, dict) else {}
        code, message, reason = error.get("code"), error.get("message"), error.get("reason")
        wait_ms: Any = error.get("retryAfterMs")
        # An int of JSON may be greater than any float.
        is_wait = type(wait_ms) in (int, float) and 0 <= wait_ms <= sys.float_info.max
        retry_after_s = wait_ms / 1000 if is_wait else _header_s(response)
        is_rejection = isinstance(code, str) and isinstance(message, str) and (is_wait or wait_ms is None)
        if is_rejection and code in CODES:
            hint = f". Leave {self._path} out of the coordinator's URL" if code == "not_found" and self._path else ""
            reason = reason if isinstance(reason, str) else None
            return ClientError(str(code), f"{message}{hint}", reason=reason, retry_after_s=retry_after_s)
        # From a newer coordinator, a proxy in between, or another program at this URL.
        other = "longer than a coordinator does" if is_too_long else "not as a coordinator does"
        what = f"{quoted(str(code))}: {quoted(str(message))}" if is_rejection else other
        text = f"{self.base} returned status {response.status}, {what}. Check that it is the URL of a coordinator"
        # What a proxy returns while its coordinator is down. 500 and 501 are what other programs return.
        is_transient = response.status > 501 or response.status in (408, 429)
        other_code = "coordinator_unreachable" if is_transient else "invalid_response"
        return ClientError(other_code, text, retry_after_s=retry_after_s)


class _TimeLimit:
    """
    The time that is left for a request. It begins again when its end comes half of it too late or more: then this process
    had no time to read a response, as on a machine where it and its coordinator wait for the processor.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def left_s(self) -> float:
        """Raises socket.timeout when no time is left."""
        now = time.monotonic()
        if now >= self._end + self._seconds / 2:
            self._end = now + self._seconds
        if now >= self._end:
            raise socket.timeout("timed out")
        return self._end - now


class _Reader(io.RawIOBase):
    """What arrives on a socket, within a time limit for all of it."""

    def __init__(self, sock: socket.socket, limit: _TimeLimit) -> None:
        super().__init__()
        self._socket = sock
        self._limit = limit
        self.has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        while True:
            self._socket.settimeout(self._limit.left_s())
            try:
                count = self._socket.recv_into(buffer)
            except socket.timeout:
                continue  # The limit decides.
            self.has_ended = count == 0
            return count

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What http.client asks of a socket."""
        return io.BufferedReader(self)


class _Response(http.client.HTTPResponse):
    """http.client takes a chunk size of -1 for a body that goes on to the end of the connection."""

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:
            raise http.client.HTTPException(f"a chunk has the size {size}")
        return size


def _read(connection: http.client.HTTPConnection, limit: _TimeLimit) -> Tuple[http.client.HTTPResponse, bytes]:
    """Returns the response and its body, of which at most one byte more than allowed is read. Half a response raises."""
    reader = _Reader(connection.sock, limit)
    response = _Response(cast(socket.socket, reader), method="POST")
    try:
        response.begin()
    except http.client.BadStatusLine as error:
        raise http.client.IncompleteRead(b"") if reader.has_ended else error
    # http.client takes a head that was cut for a whole one.
    if reader.has_ended:
        raise http.client.IncompleteRead(b"")
    content = response.read(_RESPONSE_BYTES_MAX + 1)
    if response.length and len(content) <= _RESPONSE_BYTES_MAX:
        raise http.client.IncompleteRead(content, response.length)
    return response, content


def _failure(base: str, error: Exception, timeout_s: float) -> ClientError:
    """Why a request failed, and whether it may succeed later."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = f"its certificate is rejected ({error.verify_message}). Renew it, or name its authority in SSL_CERT_FILE"
        return ClientError("certificate_rejected", f"{base} can't be used: {reason}")
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        return ClientError("invalid_response", f"{base} can't be used: it does not speak TLS. Use http:// in the URL")
    if isinstance(error, http.client.HTTPException) and not isinstance(error, (http.client.IncompleteRead, OSError)):
        return ClientError("invalid_response", f"{base} can't be used: it does not speak HTTP. Check the URL")
    if isinstance(error, socket.timeout):
        return ClientError("coordinator_unreachable", f"the coordinator did not answer within {round(timeout_s * 1000)} ms")
    cause = "the response ended early" if isinstance(error, http.client.IncompleteRead) else str(error)
    return ClientError(
        "coordinator_unreachable", f'no coordinator answers at {base} ({cause}); is "callnumber serve" running there?'
    )


def _parsed(url: object, name: str) -> Tuple[str, str, Optional[int], str]:
    """The base, host, port and path of a URL. Messages show no URL that may contain a password."""
    match = _URL.fullmatch(url) if isinstance(url, str) else None
    if match is not None and _is_name(match[2]):
        scheme, host, port, path = match.groups(default="")
        if port and not 1 <= int(port) <= _PORT_MAX:
            raise ValueError(f"{name} must have a port from 1 to {_PORT_MAX}, not {port}")
        base_path = path.rstrip("/")
        port_and_colon = f":{port}" if port else ""
        base = f"{scheme.lower()}://{host}{port_and_colon}{base_path}"
        return base, host.strip("[]"), int(port) if port else None, base_path
    is_host = isinstance(url, str) and _HOST.fullmatch(url) is not None
    rule = f"{name} must be an address such as http://{url if is_host else '127.0.0.1:7300'}"
    if not isinstance(url, str):
        raise TypeError(f"{rule}, not {described(url)}")
    if is_host or _HOST_URL.fullmatch(url):
        raise ValueError(f"{rule}, not {quoted(url)}")
    found = next((character for character in "@?# \t\r\n" if character in url), None)
    hidden = "a value that is not shown, as it may be secret" if found is None else f"a value with {quoted(found)}"
    if found is None and not url.isascii():
        hidden = "a value with a character outside of ASCII"
    raise ValueError(f"{rule}, without user, password, query or fragment, not {hidden}")


def _is_name(host: str) -> bool:
    """As a socket requires it, which converts each name: without an empty part or one of more than 63 characters."""
    try:
        host.strip("[]").encode("idna")
        return True
    except UnicodeError:
        return False


def _authorization(token: Optional[str]) -> Dict[str, str]:
    """Without the white space around a token, such as the line end of a file. The message does not show it."""
    if token is None:
        return {}
    trimmed = token.strip() if isinstance(token, str) else ""
    if _TOKEN.fullmatch(trimmed):
        return {"authorization": f"Bearer {trimmed}"}
    rule = "token must have one or more of the characters A-Z, a-z, 0-9, -._~+/ and no white space inside"
    raise (ValueError if isinstance(token, str) else TypeError)(f"{rule}. Pass the token alone")


def _json_in(content: bytes) -> object:
    try:
        return cast(object, json.loads(content.decode()))
    except (ValueError, RecursionError):
        return None


def _header_s(response: http.client.HTTPResponse) -> Optional[float]:
    text = response.getheader("retry-after") or ""
    return float(text) if re.fullmatch(r"[0-9]{1,6}", text) else None
