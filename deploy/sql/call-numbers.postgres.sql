-- Call numbers in SQL, for PostgreSQL 14 or later: functions that decode and encode them, and a
-- type for your columns.
--
--     psql -d archive -f call-numbers.postgres.sql
--
-- For example, with the number 2VznWE2i of version 0, run 99 and sequence 345:
--
--     CREATE TABLE messages (call_number callnumber PRIMARY KEY, message text NOT NULL);
--     SELECT callnumber_encode(0, 99, 345);            -- 2VznWE2i
--     SELECT * FROM callnumber_decode('2VznWE2i');     -- 0 | 99 | 345
--
-- You can run this file again, because it replaces its own functions only. No function reads or
-- writes a table. NULL gives NULL, and so does a text that is not a call number, because a query
-- over old data must not end at the first bad row. That is a text of a wrong length, with a wrong
-- character, or beyond dxlGgaI3. Case counts, whatever the collation of the column is.
--
-- No function here makes a NEW call number. Its version, run and sequence come from a client that
-- leased the run from a coordinator. A lease inside your own transaction would repeat numbers when
-- you roll back.

-- The number, 0 to 2^47 - 1, that a call number encodes in base62. Use it for a bigint column.
CREATE OR REPLACE FUNCTION callnumber_to_number(spelling text) RETURNS bigint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (
    SELECT CASE WHEN spelling COLLATE "C" ~ '^[0-9A-Za-z]{8}$' AND sum(digit * place) < 1::bigint << 47
      THEN sum(digit * place)::bigint END
    FROM (
      SELECT strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', substr(spelling COLLATE "C", at::integer, 1)) - 1, place
      FROM unnest('{3521614606208,56800235584,916132832,14776336,238328,3844,62,1}'::bigint[]) WITH ORDINALITY AS places(place, at)
    ) AS digits(digit, place));

-- The eight characters of a number from callnumber_to_number.
CREATE OR REPLACE FUNCTION callnumber_from_number(number bigint) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN number >= 0 AND number < 1::bigint << 47 THEN (
    SELECT string_agg(substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', (number / place % 62)::integer + 1, 1), '' ORDER BY at)
    FROM unnest('{3521614606208,56800235584,916132832,14776336,238328,3844,62,1}'::bigint[]) WITH ORDINALITY AS places(place, at)) END;

-- Version (0 to 7), run (0 to 2^30 - 1) and sequence (0 to 2^14 - 1) of a call number. Bit i of its
-- number is bit T[i] of the three, both counted from the most significant of 47. The list below is
-- T.
CREATE OR REPLACE FUNCTION callnumber_decode(spelling text, OUT version integer, OUT run integer, OUT sequence integer)
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
  SELECT (bits >> 44)::integer, (bits >> 14 & 1073741823)::integer, (bits & 16383)::integer
  FROM (
    SELECT bit_or((callnumber_to_number(spelling) >> (47 - at)::integer & 1) << 46 - bit)
    FROM unnest('{3,15,20,26,6,25,23,0,16,41,18,46,42,32,31,34,1,12,7,38,33,24,2,10,14,37,5,43,13,29,27,35,21,8,44,4,9,30,36,19,39,45,40,17,22,11,28}'::integer[])
      WITH ORDINALITY AS bits_of(bit, at)
  ) AS shuffled(bits);
END;

-- The eight characters of a version, run and sequence.
CREATE OR REPLACE FUNCTION callnumber_encode(version integer, run integer, sequence integer) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN CASE WHEN version BETWEEN 0 AND 7 AND run BETWEEN 0 AND 1073741823 AND sequence BETWEEN 0 AND 16383 THEN (
    SELECT callnumber_from_number(bit_or((((version::bigint << 44) | (run::bigint << 14) | sequence) >> 46 - bit & 1) << (47 - at)::integer))
    FROM unnest('{3,15,20,26,6,25,23,0,16,41,18,46,42,32,31,34,1,12,7,38,33,24,2,10,14,37,5,43,13,29,27,35,21,8,44,4,9,30,36,19,39,45,40,17,22,11,28}'::integer[])
      WITH ORDINALITY AS bits_of(bit, at)) END;

-- A type for columns: text that has the form of a call number, compared byte by byte.
DO $$ BEGIN
  CREATE DOMAIN callnumber AS text COLLATE "C"
    CONSTRAINT written_like_a_call_number CHECK (VALUE IS NULL OR callnumber_to_number(VALUE) IS NOT NULL);
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
