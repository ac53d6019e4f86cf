"""The codec against the vectors of the original, and against a plain reading of the specification."""

from __future__ import annotations

import csv
import random
import unittest
from pathlib import Path

from callnumber import CallNumberError, UnclearTextError, call_number_in, decode, encode, from_number, is_call_number, to_number
from callnumber.codec import BLOCK_COUNT, DIGITS, NUMBER_MAX, RUN_MAX, SEQUENCE_COUNT, SEQUENCE_MAX, SHUFFLE, numbers_of_block

VECTORS = Path(__file__).parents[3] / "packages" / "protocol" / "test-vectors" / "v0.csv"


def plain(version: int, run: int, sequence: int) -> str:
    """Bit by bit, as docs/how-to/write-a-client.md shows it."""
    bits, number = version << 44 | run << 14 | sequence, 0
    for source in SHUFFLE:
        number = number << 1 | bits >> 46 - source & 1
    return "".join(DIGITS[number // 62**place % 62] for place in range(7, -1, -1))


class Codec(unittest.TestCase):
    @unittest.skipUnless(VECTORS.exists(), f"{VECTORS} is not there: only the repository has it")
    def test_every_vector_is_encoded_and_decoded(self) -> None:
        with VECTORS.open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 2314)
        for row in rows:
            parts = int(row["version"]), int(row["run"]), int(row["sequence"])
            text = row["callNumber"]
            self.assertEqual((encode(*parts), decode(text), is_call_number(text)), (text, parts, True))
            self.assertEqual(from_number(to_number(text)), text)

    def test_drawn_numbers_agree_with_the_specification(self) -> None:
        draw = random.Random(1)
        drawn = [(draw.randrange(8), draw.randrange(RUN_MAX + 1), draw.randrange(SEQUENCE_COUNT)) for _ in range(2_000)]
        edges = [(version, run, sequence) for version in (0, 7) for run in (0, RUN_MAX) for sequence in (0, SEQUENCE_MAX)]
        single = [(bits >> 44, bits >> 14 & RUN_MAX, bits & SEQUENCE_MAX) for bits in (1 << bit for bit in range(47))]
        for parts in drawn + edges + single:
            text = encode(*parts)
            self.assertEqual((text, decode(text)), (plain(*parts), parts))

    def test_the_blocks_of_a_run_are_all_its_numbers_in_order(self) -> None:
        for version, run in ((0, 99), (7, RUN_MAX), (3, 8452)):
            numbers = [number for block in range(BLOCK_COUNT) for number in numbers_of_block(version, run, block)]
            self.assertEqual(numbers, [encode(version, run, sequence) for sequence in range(SEQUENCE_COUNT)])

    def test_the_greatest_number_is_known_and_the_one_after_it_is_none(self) -> None:
        self.assertEqual((from_number(NUMBER_MAX), to_number("dxlGgaI3"), to_number("00000000")), ("dxlGgaI3", NUMBER_MAX, 0))
        self.assertFalse(is_call_number("dxlGgaI4"))

    def test_a_part_out_of_its_range_is_misuse(self) -> None:
        for parts in ((8, 0, 0), (-1, 0, 0), (0, 2**30, 0), (0, 0, 2**14)):
            with self.assertRaisesRegex(ValueError, "must be a whole number from 0 to"):
                encode(*parts)
        for wrong in (1.0, "1", None, True):
            with self.assertRaises(TypeError):
                encode(0, wrong, 0)  # type: ignore[arg-type]
            with self.assertRaises(TypeError):
                from_number(wrong)  # type: ignore[arg-type]
        for number in (-1, NUMBER_MAX + 1):
            with self.assertRaises(ValueError):
                from_number(number)

    def test_a_text_that_is_not_a_call_number_is_rejected_with_the_reason(self) -> None:
        for text, code, position, message in [
            ("", "wrong_length", None, '"" has 0 characters; a call number has 8'),
            ("2", "wrong_length", None, '"2" has 1 character; a call number has 8'),
            ("2VznWE2i\n", "wrong_length", None, '"2VznWE2i\\n" has 9 characters; a call number has 8'),
            ("2VznWE2_", "wrong_character", 7, '"2VznWE2_" has "_" as character 8; a call number has only 0-9, A-Z and a-z'),
            ("\x1bVznWE2i", "wrong_character", 0, '"\\u001bVznWE2i" has "\\u001b" as character 1'),
            ("２VznWE2i", "wrong_character", 0, '"２VznWE2i" has "２" as character 1'),
            ("zzzzzzzz", "beyond_greatest", None, '"zzzzzzzz" is not a call number: the greatest call number is dxlGgaI3'),
        ]:
            with self.assertRaises(CallNumberError) as caught:
                decode(text)
            self.assertEqual((caught.exception.code, caught.exception.position), (code, position))
            self.assertIn(message, str(caught.exception))
            self.assertFalse(is_call_number(text))
        for wrong in (7, None, b"2VznWE2i"):
            self.assertFalse(is_call_number(wrong))
            with self.assertRaisesRegex(TypeError, "a call number is a string, not"):
                decode(wrong)  # type: ignore[arg-type]

    def test_a_call_number_is_found_in_what_people_paste(self) -> None:
        link = "https://lists.example.org/message/2VznWE2i"
        for text, found in [
            (" 2VznWE2i\n", "2VznWE2i"),
            (f"see <{link}/raw?from=dxlGgaI3#03KOE60u>.", "2VznWE2i"),
            ("https://lists.example.org/2VznWE2i?from=dxlGgaI3", "2VznWE2i"),
            ("HTTPS://lists.example.org/2%56znWE2i", "2VznWE2i"),
            ("https://lists.example.org/message/archives", "archives"),
            ("https://lists.example.org/zzzzzzz9", "zzzzzzz9"),
            ("see archives", None),
            ("me\u017f\u017fage/2VznWE2i", "2VznWE2i"),
        ]:
            self.assertEqual(call_number_in(text), found)
        for text, candidates in [("03KOE60u or 2VznWE2i", ["03KOE60u", "2VznWE2i"]), (" 9NKUO8", ["009NKUO8"])]:
            with self.assertRaises(UnclearTextError) as caught:
                call_number_in(text)
            self.assertEqual(caught.exception.candidates, candidates)


if __name__ == "__main__":
    unittest.main()
