"""
The codec: call numbers to and from their parts, and to and from plain numbers. Pure functions of a frozen layout: 47 bits
(version 3, run 30, sequence 14) are shuffled by a fixed table and written as eight base62 characters.
"""

from __future__ import annotations

import json
from typing import Callable, List, NamedTuple, Optional

VERSION_BITS, RUN_BITS, SEQUENCE_BITS = 3, 30, 14
CALL_NUMBER_BITS = VERSION_BITS + RUN_BITS + SEQUENCE_BITS
VERSION_MAX = (1 << VERSION_BITS) - 1
RUN_COUNT = 1 << RUN_BITS
RUN_MAX = RUN_COUNT - 1
SEQUENCE_COUNT = 1 << SEQUENCE_BITS
SEQUENCE_MAX = SEQUENCE_COUNT - 1
NUMBER_MAX = (1 << CALL_NUMBER_BITS) - 1
CALL_NUMBER_LENGTH = 8

#: Output bit i is input bit SHUFFLE[i]; both counted from the most significant.
# fmt: off
SHUFFLE = [
    3, 15, 20, 26, 6, 25, 23, 0, 16, 41, 18, 46, 42, 32, 31, 34,
    1, 12, 7, 38, 33, 24, 2, 10, 14, 37, 5, 43, 13, 29, 27, 35,
    21, 8, 44, 4, 9, 30, 36, 19, 39, 45, 40, 17, 22, 11, 28,
]
# fmt: on
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#: Sequences that are encoded at a time: those that differ in their lowest seven bits.
BLOCK_SIZE = 128
BLOCK_COUNT = SEQUENCE_COUNT // BLOCK_SIZE


class Parts(NamedTuple):
    """The parts of a call number: `version` 0 to 7, `run` 0 to 2^30 - 1, `sequence` 0 to 16,383."""

    version: int
    run: int
    sequence: int


class CallNumberError(ValueError):
    """
    A text that encodes no call number. `code` is `wrong_length`, `wrong_character` or `beyond_greatest`. `position` is the
    index of the first wrong character, where there is one. A valid call number need not have been issued.
    """

    def __init__(self, code: str, message: str, position: Optional[int] = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.position = position

    def __str__(self) -> str:
        return self.message


def encode(version: int, run: int, sequence: int) -> str:
    """
    Encodes a version (0 to 7), run (0 to 2^30 - 1) and sequence (0 to 16,383).

    Raises ValueError for a part out of its range, TypeError for one that is no whole number.
    Example: `encode(0, 99, 345)` is `"2VznWE2i"`.
    """
    require_within("version", version, 0, VERSION_MAX)
    require_within("run", run, 0, RUN_MAX)
    require_within("sequence", sequence, 0, SEQUENCE_MAX)
    return _text_of(_shuffled(version, run, sequence))


def decode(text: str) -> Parts:
    """
    Decodes a call number to its version, run and sequence. Every call number has exactly one encoding.

    Raises CallNumberError, a ValueError, when the text encodes none; TypeError when it is no string.
    Example: `decode("2VznWE2i")` is `Parts(version=0, run=99, sequence=345)`.
    """
    rest, sequence = divmod(_permuted(_UNSHUFFLE, to_number(text)), SEQUENCE_COUNT)
    version, run = divmod(rest, RUN_COUNT)
    return Parts(version, run, sequence)


def is_call_number(text: object) -> bool:
    """
    Returns whether `text` is a string that encodes a call number; not whether it was ever issued.

    Example: `is_call_number("zzzzzzzz")` is False, because it is above `dxlGgaI3`, the greatest.
    """
    return _number_in(text) is not None


def to_number(text: str) -> int:
    """
    Decodes a call number to its plain number, 0 to 2^47 - 1, for an integer column. Raises as `decode` does.

    Example: `to_number("2VznWE2i")` is 8860652339216.
    """
    number = _number_in(text)
    if number is None:
        raise _decoding_error(text)
    return number


def from_number(number: int) -> str:
    """
    Encodes a plain number, 0 to 2^47 - 1: the inverse of `to_number`.

    Raises ValueError for a number out of range, TypeError for what is no whole number.
    """
    require_within("number", number, 0, NUMBER_MAX)
    return _text_of(number)


def numbers_of_block(version: int, run: int, block: int) -> List[str]:
    """
    Returns the call numbers of sequences `block` * 128 to `block` * 128 + 127, in order. Checks no range.

    The shuffle gives each bit a place of its own, so a number is the block's part plus the part of the lowest seven bits.
    """
    base = _shuffled(version, run, block * BLOCK_SIZE)
    return [_text_of(base + part) for part in _PARTS_OF_BLOCK]


def require_within(name: str, value: object, least: int, greatest: int) -> None:
    """Raises ValueError that names `name` and its value unless it is in the range; TypeError for what is not a whole number."""
    if type(value) is not int:
        raise TypeError(f"{name} must be a whole number from {least} to {greatest}, not {described(value)}")
    if not least <= value <= greatest:
        raise ValueError(f"{name} must be a whole number from {least} to {greatest}, not {value}")


def described(value: object) -> str:
    """Describes an untrusted value for a message: a string quoted and cut, of other values no more than the type."""
    if isinstance(value, str):
        return quoted(value)
    return "None" if value is None else f"a value of type {type(value).__name__}"


def quoted(text: str) -> str:
    """Returns a text in quotes, cut to 40 characters, without characters that a terminal would act on."""
    short = json.dumps(f"{text[:40]}…" if len(text) > 40 else text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\u{{{ord(each):x}}}" for each in short)


def _byte_tables(place: Callable[[int], int]) -> List[List[int]]:
    """
    Returns a table for each byte of a number, the least significant first: what each value of the byte adds to the permuted
    number. `place`: where a bit goes; both count from the most significant, as the layout does.
    """
    weights = [1 << (CALL_NUMBER_BITS - 1 - place(bit)) for bit in reversed(range(CALL_NUMBER_BITS))]
    tables = []
    for first in range(0, CALL_NUMBER_BITS, 8):
        sums = [0]
        for weight in weights[first : first + 8]:
            sums += [weight + each for each in sums]
        tables.append(sums)
    return tables


def _permuted(tables: List[List[int]], bits: int) -> int:
    number = 0
    for table in tables:
        number += table[bits & 0xFF]
        bits >>= 8
    return number


def _shuffled(version: int, run: int, sequence: int) -> int:
    return _permuted(_SHUFFLE, (version * RUN_COUNT + run) * SEQUENCE_COUNT + sequence)


def _text_of(number: int) -> str:
    upper, lower = divmod(number, _HALF_COUNT)
    first, second = divmod(upper, _PAIR_COUNT)
    third, fourth = divmod(lower, _PAIR_COUNT)
    return _PAIRS[first] + _PAIRS[second] + _PAIRS[third] + _PAIRS[fourth]


def _number_in(text: object) -> Optional[int]:
    if not isinstance(text, str) or len(text) != CALL_NUMBER_LENGTH:
        return None
    number = 0
    for character in text:
        digit = _DIGIT_OF.get(character)
        if digit is None:
            return None
        number = number * len(DIGITS) + digit
    return number if number <= NUMBER_MAX else None


def _decoding_error(text: object) -> Exception:
    if not isinstance(text, str):
        return TypeError(f"a call number is a string, not {described(text)}")
    if len(text) != CALL_NUMBER_LENGTH:
        count = "1 character" if len(text) == 1 else f"{len(text)} characters"
        return CallNumberError("wrong_length", f"{quoted(text)} has {count}; a call number has {CALL_NUMBER_LENGTH}")
    for position, character in enumerate(text):
        if character not in _DIGIT_OF:
            where = f"{quoted(text)} has {quoted(character)} as character {position + 1}"
            message = f"{where}; a call number has only 0-9, A-Z and a-z"
            return CallNumberError("wrong_character", message, position)
    greatest = f"the greatest call number is {from_number(NUMBER_MAX)}"
    return CallNumberError("beyond_greatest", f"{quoted(text)} is not a call number: {greatest}")


_DIGIT_OF = {digit: value for value, digit in enumerate(DIGITS)}
_PAIRS = [first + second for first in DIGITS for second in DIGITS]
_PAIR_COUNT = len(_PAIRS)
_HALF_COUNT = _PAIR_COUNT**2
_SHUFFLE = _byte_tables(SHUFFLE.index)
_UNSHUFFLE = _byte_tables(SHUFFLE.__getitem__)
_PARTS_OF_BLOCK = [_shuffled(0, 0, sequence) for sequence in range(BLOCK_SIZE)]
