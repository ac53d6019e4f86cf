"""
The call number in a pasted text: the text itself, or what is around it in a sentence, a link, or a link that a mail filter
rewrote. Pure. A number that is found need not have been issued.
"""

from __future__ import annotations

import re
from typing import List, Optional
from urllib.parse import unquote

from .codec import CALL_NUMBER_LENGTH, CallNumberError, is_call_number, quoted

_SHAPE = re.compile(r"[0-9A-Za-z]{8}")
#: A word such as "archives" or "Download": in a longer text it counts after `message/` only. One of 1,000 call numbers looks so.
_WORD = re.compile(r"[A-Za-z][a-z]{7}")
#: What a spreadsheet leaves of a call number that begins with zeros.
_WITHOUT_ZEROS = re.compile(r"[0-9A-Za-z]{5,7}")
_AFTER_MESSAGE = re.compile(r"message/([0-9A-Za-z]+)", re.ASCII | re.IGNORECASE)
_AFTER_SLASH = re.compile(r"/([0-9A-Za-z]+)")
_ANYWHERE = re.compile(r"([0-9A-Za-z]+)")
_HOST = re.compile(r"https?://[^/?#\s]*", re.IGNORECASE)
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
#: A link that was rewritten twice is escaped three times.
_ESCAPE_DEPTH_MAX = 8
_SHOWN_COUNT_MAX = 5


class UnclearTextError(CallNumberError):
    """A text for which a person must choose one of the `candidates`. None was taken: a guess could be another message's."""

    def __init__(self, message: str, candidates: List[str]) -> None:
        super().__init__("wrong_length", message)
        self.candidates = candidates


def call_number_in(text: str) -> Optional[str]:
    """
    Finds the one call number of a text: eight base62 characters between other characters, once percent-escapes are undone.
    Other words of letters, such as "archives", and hosts do not count. If words follow `message/`, only these count; else
    those that follow a `/` come before all others. Without a call number, returns the last segment that has eight
    characters, so that `decode` can say what is wrong with it, or None.

    Raises UnclearTextError for several call numbers that are equally likely, and for 5 to 7 characters, whose zeros may
    have been dropped. Example: `call_number_in("see https://lists.example.org/message/2VznWE2i.")` is `"2VznWE2i"`.
    """
    trimmed = text.strip()
    if _SHAPE.fullmatch(trimmed):
        return trimmed
    _reject_without_zeros([trimmed])
    plain = _HOST.sub("", _unescaped(trimmed))
    after_message = _AFTER_MESSAGE.findall(plain)
    after_slash = [word for word in _AFTER_SLASH.findall(plain) if not _WORD.fullmatch(word)]
    anywhere = [word for word in _ANYWHERE.findall(plain) if not _WORD.fullmatch(word)]
    for words in [after_message] if after_message else [after_slash, anywhere]:
        found = list(dict.fromkeys(filter(is_call_number, words)))
        if len(found) > 1:
            raise _several_in(text, found)
        if found:
            return str(found[0])
    _reject_without_zeros(after_message)
    mistyped = [word for word in after_slash + after_message if _SHAPE.fullmatch(word)]
    return mistyped[-1] if mistyped else None


def _unescaped(text: str) -> str:
    for _ in range(_ESCAPE_DEPTH_MAX):
        plain = _ESCAPES.sub(lambda match: _unescape(match.group()), text)
        if plain == text:
            break
        text = plain
    return text


def _unescape(escapes: str) -> str:
    """A sequence that is no UTF-8 stays as it is."""
    try:
        return unquote(escapes, errors="strict")
    except UnicodeDecodeError:
        return escapes


def _reject_without_zeros(words: List[str]) -> None:
    for word in words:
        if _WITHOUT_ZEROS.fullmatch(word):
            candidate = word.rjust(CALL_NUMBER_LENGTH, "0")
            length = f"has {len(word)} characters; a call number has {CALL_NUMBER_LENGTH}"
            raise UnclearTextError(f"{quoted(word)} {length}. Did you mean {candidate}?", [candidate])


def _several_in(text: str, candidates: List[str]) -> UnclearTextError:
    shown = ", ".join(candidates[:_SHOWN_COUNT_MAX]) + (", …" if len(candidates) > _SHOWN_COUNT_MAX else "")
    return UnclearTextError(f"{quoted(text)} has {len(candidates)} call numbers: {shown}. Use one of them", candidates)
