-- Call numbers in SQL, for MariaDB 10.11 and MySQL 8: functions that decode, encode and check them.
--
--     mariadb archive < call-numbers.mariadb.sql
--
-- You can run this file again, because it replaces its own functions only. No function reads or
-- writes a table. Each is one expression, so that every client can send this file, with DELIMITER
-- or without. docs/how-to/store-call-numbers.md shows which column to use.
--
-- NULL gives NULL, and so does a text that is not a call number. For example, it has a wrong length
-- or a wrong character, is beyond dxlGgaI3, or its run is 1.5. Inside the functions case counts,
-- and so do spaces at the end, whatever the collation of the connection is.
--
-- If you compare a result with a literal, write BINARY before the literal. Otherwise the collation
-- of the connection applies, which may take 2vznwe2i for 2VznWE2i. A column of ascii_bin is
-- compared exactly.
--
-- No function here makes a NEW call number. Its version, run and sequence come from a client that
-- leased the run from a coordinator. The functions at the end are of other numbering schemes, which
-- can repeat numbers. Each comment has the odds.

-- All arguments are text, also those that are numbers, because in a lax mode the server changes a
-- number before the function sees it. For example, it makes 2 of 1.5, 0 of any word, and 2VznWE2i
-- of 2VznWE2ii. The functions check the text themselves.

-- A function keeps the mode in which it was made, so this mode does not depend on your session.
SET @callnumber_sql_mode = @@sql_mode;
SET sql_mode = 'STRICT_ALL_TABLES';

-- The number, 0 to 2^47 - 1, that a call number encodes in base62. Use it for a BIGINT column. It
-- sorts like the call number.
DROP FUNCTION IF EXISTS call_number_to_number;
CREATE FUNCTION call_number_to_number(spelling LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
  RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN call_number_in_range(IF(CHAR_LENGTH(spelling) = 8,
        (NULLIF(LOCATE(SUBSTRING(spelling, 1, 1), _utf8mb4'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE utf8mb4_bin), 0) - 1) * 3521614606208
      + (NULLIF(LOCATE(SUBSTRING(spelling, 2, 1), _utf8mb4'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE utf8mb4_bin), 0) - 1) * 56800235584
      + (NULLIF(LOCATE(SUBSTRING(spelling, 3, 1), _utf8mb4'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE utf8mb4_bin), 0) - 1) * 916132832
      + (NULLIF(LOCATE(SUBSTRING(spelling, 4, 1), _utf8mb4'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE utf8mb4_bin), 0) - 1) * 14776336
      + (NULLIF(LOCATE(SUBSTRING(spelling, 5, 1), _utf8mb4'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE utf8mb4_bin), 0) - 1) * 238328
      + (NULLIF(LOCATE(SUBSTRING(spelling, 6, 1), _utf8mb4'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE utf8mb4_bin), 0) - 1) * 3844
      + (NULLIF(LOCATE(SUBSTRING(spelling, 7, 1), _utf8mb4'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE utf8mb4_bin), 0) - 1) * 62
      + (NULLIF(LOCATE(SUBSTRING(spelling, 8, 1), _utf8mb4'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' COLLATE utf8mb4_bin), 0) - 1),
    NULL));

-- The eight characters of a number from call_number_to_number.
DROP FUNCTION IF EXISTS call_number_from_number;
CREATE FUNCTION call_number_from_number(number LONGTEXT CHARACTER SET utf8mb4)
  RETURNS CHAR(8) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN call_number_spelling(call_number_in_range(call_number_whole(number)));

-- The eight characters of a version (0 to 7), run (0 to 2^30 - 1) and sequence (0 to 2^14 - 1).
DROP FUNCTION IF EXISTS call_number_encode;
CREATE FUNCTION call_number_encode(
    version LONGTEXT CHARACTER SET utf8mb4, run LONGTEXT CHARACTER SET utf8mb4, sequence LONGTEXT CHARACTER SET utf8mb4)
  RETURNS CHAR(8) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN call_number_spelling(call_number_shuffle(IF(
    call_number_whole(version) <= 7 AND call_number_whole(run) <= 1073741823 AND call_number_whole(sequence) <= 16383,
    call_number_whole(version) << 44 | call_number_whole(run) << 14 | call_number_whole(sequence), NULL)));

DROP FUNCTION IF EXISTS call_number_version;
CREATE FUNCTION call_number_version(spelling LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
  RETURNS TINYINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN call_number_unshuffle(call_number_to_number(spelling)) >> 44;

DROP FUNCTION IF EXISTS call_number_run;
CREATE FUNCTION call_number_run(spelling LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
  RETURNS INT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN (call_number_unshuffle(call_number_to_number(spelling)) >> 14) & 1073741823;

DROP FUNCTION IF EXISTS call_number_sequence;
CREATE FUNCTION call_number_sequence(spelling LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
  RETURNS SMALLINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN call_number_unshuffle(call_number_to_number(spelling)) & 16383;

-- 1 if the text has the form of a call number, else 0. It does not show whether that number was
-- ever issued.
DROP FUNCTION IF EXISTS call_number_is_valid;
CREATE FUNCTION call_number_is_valid(spelling LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
  RETURNS TINYINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN IF(spelling IS NULL, NULL, call_number_to_number(spelling) IS NOT NULL);

-- Parts of the functions above. You need not call them yourself.

DROP FUNCTION IF EXISTS call_number_in_range;
CREATE FUNCTION call_number_in_range(number BIGINT UNSIGNED)
  RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN IF(number <= 140737488355327, number, NULL);

-- A whole number from 0 to 10^18 - 1 that is written in digits only. NULL for anything else.
DROP FUNCTION IF EXISTS call_number_whole;
CREATE FUNCTION call_number_whole(number LONGTEXT CHARACTER SET utf8mb4)
  RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN IF(CHAR_LENGTH(number) BETWEEN 1 AND 18 AND number NOT REGEXP '[^0-9]', CAST(number AS UNSIGNED), NULL);

DROP FUNCTION IF EXISTS call_number_spelling;
CREATE FUNCTION call_number_spelling(number BIGINT UNSIGNED)
  RETURNS CHAR(8) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN CONCAT(
    SUBSTRING('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (number DIV 3521614606208) MOD 62 + 1, 1),
    SUBSTRING('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (number DIV 56800235584) MOD 62 + 1, 1),
    SUBSTRING('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (number DIV 916132832) MOD 62 + 1, 1),
    SUBSTRING('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (number DIV 14776336) MOD 62 + 1, 1),
    SUBSTRING('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (number DIV 238328) MOD 62 + 1, 1),
    SUBSTRING('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (number DIV 3844) MOD 62 + 1, 1),
    SUBSTRING('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (number DIV 62) MOD 62 + 1, 1),
    SUBSTRING('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', number MOD 62 + 1, 1));

-- Bit i of the shuffled number is bit T[i] of version, run and sequence, both counted from the most
-- significant of 47. This is T:
--
--     3 15 20 26 6 25 23 0 16 41 18 46 42 32 31 34 1 12 7 38 33 24 2 10
--     14 37 5 43 13 29 27 35 21 8 44 4 9 30 36 19 39 45 40 17 22 11 28
DROP FUNCTION IF EXISTS call_number_shuffle;
CREATE FUNCTION call_number_shuffle(value BIGINT UNSIGNED)
  RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN
      (((value >> 43) & 1) << 46) | (((value >> 31) & 1) << 45) | (((value >> 26) & 1) << 44) | (((value >> 20) & 1) << 43)
    | (((value >> 40) & 1) << 42) | (((value >> 21) & 1) << 41) | (((value >> 23) & 1) << 40) | (((value >> 46) & 1) << 39)
    | (((value >> 30) & 1) << 38) | (((value >> 5) & 1) << 37) | (((value >> 28) & 1) << 36) | (((value >> 0) & 1) << 35)
    | (((value >> 4) & 1) << 34) | (((value >> 14) & 1) << 33) | (((value >> 15) & 1) << 32) | (((value >> 12) & 1) << 31)
    | (((value >> 45) & 1) << 30) | (((value >> 34) & 1) << 29) | (((value >> 39) & 1) << 28) | (((value >> 8) & 1) << 27)
    | (((value >> 13) & 1) << 26) | (((value >> 22) & 1) << 25) | (((value >> 44) & 1) << 24) | (((value >> 36) & 1) << 23)
    | (((value >> 32) & 1) << 22) | (((value >> 9) & 1) << 21) | (((value >> 41) & 1) << 20) | (((value >> 3) & 1) << 19)
    | (((value >> 33) & 1) << 18) | (((value >> 17) & 1) << 17) | (((value >> 19) & 1) << 16) | (((value >> 11) & 1) << 15)
    | (((value >> 25) & 1) << 14) | (((value >> 38) & 1) << 13) | (((value >> 2) & 1) << 12) | (((value >> 42) & 1) << 11)
    | (((value >> 37) & 1) << 10) | (((value >> 16) & 1) << 9) | (((value >> 10) & 1) << 8) | (((value >> 27) & 1) << 7)
    | (((value >> 7) & 1) << 6) | (((value >> 1) & 1) << 5) | (((value >> 6) & 1) << 4) | (((value >> 29) & 1) << 3)
    | (((value >> 24) & 1) << 2) | (((value >> 35) & 1) << 1) | (((value >> 18) & 1) << 0);

DROP FUNCTION IF EXISTS call_number_unshuffle;
CREATE FUNCTION call_number_unshuffle(value BIGINT UNSIGNED)
  RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN
      (((value >> 46) & 1) << 43) | (((value >> 45) & 1) << 31) | (((value >> 44) & 1) << 26) | (((value >> 43) & 1) << 20)
    | (((value >> 42) & 1) << 40) | (((value >> 41) & 1) << 21) | (((value >> 40) & 1) << 23) | (((value >> 39) & 1) << 46)
    | (((value >> 38) & 1) << 30) | (((value >> 37) & 1) << 5) | (((value >> 36) & 1) << 28) | (((value >> 35) & 1) << 0)
    | (((value >> 34) & 1) << 4) | (((value >> 33) & 1) << 14) | (((value >> 32) & 1) << 15) | (((value >> 31) & 1) << 12)
    | (((value >> 30) & 1) << 45) | (((value >> 29) & 1) << 34) | (((value >> 28) & 1) << 39) | (((value >> 27) & 1) << 8)
    | (((value >> 26) & 1) << 13) | (((value >> 25) & 1) << 22) | (((value >> 24) & 1) << 44) | (((value >> 23) & 1) << 36)
    | (((value >> 22) & 1) << 32) | (((value >> 21) & 1) << 9) | (((value >> 20) & 1) << 41) | (((value >> 19) & 1) << 3)
    | (((value >> 18) & 1) << 33) | (((value >> 17) & 1) << 17) | (((value >> 16) & 1) << 19) | (((value >> 15) & 1) << 11)
    | (((value >> 14) & 1) << 25) | (((value >> 13) & 1) << 38) | (((value >> 12) & 1) << 2) | (((value >> 11) & 1) << 42)
    | (((value >> 10) & 1) << 37) | (((value >> 9) & 1) << 16) | (((value >> 8) & 1) << 10) | (((value >> 7) & 1) << 27)
    | (((value >> 6) & 1) << 7) | (((value >> 5) & 1) << 1) | (((value >> 4) & 1) << 6) | (((value >> 3) & 1) << 29)
    | (((value >> 2) & 1) << 24) | (((value >> 1) & 1) << 35) | (((value >> 0) & 1) << 18);

-- Two other schemes, whose numbers SQL can make by itself. Use them to read numbers that an archive
-- has, and to compare. Both CAN REPEAT.
--
-- Each scheme has three forms:
--
-- - A number (BIGINT UNSIGNED), or NULL if it does not fit.
-- - Twenty digits (`_padded`). Store this form if you need text.
-- - The form in which it was first published (`_as_written`), without the zeros. Two numbers of the
--   second scheme can be equal in this form.

-- 13 digits of milliseconds since 2011-01-01 00:00:00 UTC, 6 random digits, 1 digit for the server.
DROP FUNCTION IF EXISTS mysql_bigint_13_6_1;
CREATE FUNCTION mysql_bigint_13_6_1(
    time_ms LONGTEXT CHARACTER SET utf8mb4, random LONGTEXT CHARACTER SET utf8mb4, server LONGTEXT CHARACTER SET utf8mb4)
  RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN mysql_scheme_number_of_20(mysql_bigint_13_6_1_padded(time_ms, random, server));

DROP FUNCTION IF EXISTS mysql_bigint_13_6_1_padded;
CREATE FUNCTION mysql_bigint_13_6_1_padded(
    time_ms LONGTEXT CHARACTER SET utf8mb4, random LONGTEXT CHARACTER SET utf8mb4, server LONGTEXT CHARACTER SET utf8mb4)
  RETURNS CHAR(20) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN CONCAT(mysql_scheme_digits(time_ms, 13), mysql_scheme_digits(random, 6), mysql_scheme_digits(server, 1));

-- In the form of the published code: the milliseconds without zeros in front.
DROP FUNCTION IF EXISTS mysql_bigint_13_6_1_as_written;
CREATE FUNCTION mysql_bigint_13_6_1_as_written(
    time_ms LONGTEXT CHARACTER SET utf8mb4, random LONGTEXT CHARACTER SET utf8mb4, server LONGTEXT CHARACTER SET utf8mb4)
  RETURNS VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN CONCAT(CAST(mysql_scheme_digits(time_ms, 13) AS UNSIGNED), mysql_scheme_digits(random, 6), mysql_scheme_digits(server, 1));

-- A number of the current time. It repeats: two numbers of the same millisecond and server digit
-- are equal once in 1,000,000. All rows of one statement have the same millisecond, because the
-- time is that at which the statement began. For example, with 1,000 rows a statement, 39 of 100
-- statements have two equal numbers. With more than 1,000,000 rows, each statement has. A clock
-- that is set back gives earlier milliseconds again. With more than ten servers, some share a
-- digit.
DROP FUNCTION IF EXISTS mysql_bigint_13_6_1_now;
CREATE FUNCTION mysql_bigint_13_6_1_now(server LONGTEXT CHARACTER SET utf8mb4)
  RETURNS BIGINT UNSIGNED NOT DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN mysql_bigint_13_6_1(
    -- In UTC, because a local clock shows one hour of the year twice.
    TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'2011-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000,
    FLOOR(RAND() * 1000000), server);

-- 11 digits of seconds since 2011-01-01 05:00:00 UTC (midnight in New York), then 9 digits of a
-- UUID. They are the last decimal digits of its first eight hexadecimal digits, padded with zeros.
DROP FUNCTION IF EXISTS mysql_sql_11_9;
CREATE FUNCTION mysql_sql_11_9(
    seconds LONGTEXT CHARACTER SET utf8mb4, uuid_first_8 LONGTEXT CHARACTER SET utf8mb4)
  RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN mysql_scheme_number_of_20(mysql_sql_11_9_padded(seconds, uuid_first_8));

DROP FUNCTION IF EXISTS mysql_sql_11_9_padded;
CREATE FUNCTION mysql_sql_11_9_padded(
    seconds LONGTEXT CHARACTER SET utf8mb4, uuid_first_8 LONGTEXT CHARACTER SET utf8mb4)
  RETURNS CHAR(20) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN CONCAT(mysql_scheme_digits(seconds, 11), LPAD(mysql_scheme_right_9_of_hex(uuid_first_8), 9, '0'));

-- As published, without LPAD. If the right part has fewer than nine digits, the id is shorter, and
-- sorts and compares wrongly. For example, second 1 with 110000000 and second 11 with 10000000 both
-- give 1110000000.
DROP FUNCTION IF EXISTS mysql_sql_11_9_as_written;
CREATE FUNCTION mysql_sql_11_9_as_written(
    seconds LONGTEXT CHARACTER SET utf8mb4, uuid_first_8 LONGTEXT CHARACTER SET utf8mb4)
  RETURNS VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN CONCAT(CAST(mysql_scheme_digits(seconds, 11) AS UNSIGNED), mysql_scheme_right_9_of_hex(uuid_first_8));

-- A number of the current time. It repeats, because the eight hexadecimal digits count 100 ns of
-- the clock, and do not contain the server. One server alone repeats none within a second. Two
-- servers that make r numbers each in the same second make r * r / 10,000,000 equal ones on
-- average. For example, with 1,000 each, they make one in ten seconds.
--
-- All rows of one statement have the second at which it began, and the nine digits repeat every 100
-- seconds. So a statement that takes longer can repeat numbers. A clock that is set back gives
-- earlier seconds again.
DROP FUNCTION IF EXISTS mysql_sql_11_9_now;
CREATE FUNCTION mysql_sql_11_9_now()
  RETURNS BIGINT UNSIGNED NOT DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN mysql_sql_11_9(
    TIMESTAMPDIFF(SECOND, TIMESTAMP'2011-01-01 05:00:00', UTC_TIMESTAMP()), LEFT(UUID(), 8));

-- Parts of the functions above. You need not call them yourself.

-- The number in as many digits. NULL if it is not whole, or has more digits.
DROP FUNCTION IF EXISTS mysql_scheme_digits;
CREATE FUNCTION mysql_scheme_digits(number LONGTEXT CHARACTER SET utf8mb4, digit_count TINYINT UNSIGNED)
  RETURNS VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN IF(CHAR_LENGTH(call_number_whole(number)) <= digit_count, LPAD(call_number_whole(number), digit_count, '0'), NULL);

DROP FUNCTION IF EXISTS mysql_scheme_right_9_of_hex;
CREATE FUNCTION mysql_scheme_right_9_of_hex(hex_digits LONGTEXT CHARACTER SET utf8mb4)
  RETURNS VARCHAR(9) CHARACTER SET ascii COLLATE ascii_bin DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN IF(CHAR_LENGTH(hex_digits) = 8 AND hex_digits NOT REGEXP '[^0-9A-Fa-f]', RIGHT(CONV(hex_digits, 16, 10), 9), NULL);

DROP FUNCTION IF EXISTS mysql_scheme_number_of_20;
CREATE FUNCTION mysql_scheme_number_of_20(digits CHAR(20) CHARACTER SET ascii COLLATE ascii_bin)
  RETURNS BIGINT UNSIGNED DETERMINISTIC NO SQL SQL SECURITY INVOKER
  RETURN IF(digits <= '18446744073709551615', CAST(digits AS UNSIGNED), NULL);

SET sql_mode = @callnumber_sql_mode;
