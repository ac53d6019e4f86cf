-- The rights of a coordinator on a store in PostgreSQL, and no more. Run this file as a superuser,
-- because the last line needs one, after `callnumber init` has made the tables:
--
--     createuser callnumber --pwprompt
--     psql -d archive -v ON_ERROR_STOP=1 -f coordinator.sql
--
-- If your schema or user has another name, for example numbers and importer, add:
--
--     psql -v schema=numbers -v coordinator=importer …

\if :{?schema} \else \set schema callnumber \endif
\if :{?coordinator} \else \set coordinator callnumber \endif

GRANT USAGE ON SCHEMA :"schema" TO :"coordinator";
GRANT SELECT ON :"schema".store TO :"coordinator";
-- To lock the row of a namespace and write it. `init` and a retention add one.
GRANT SELECT, INSERT, UPDATE ON :"schema".namespaces TO :"coordinator";
GRANT SELECT, INSERT ON :"schema".holders TO :"coordinator";
-- A report updates a lease. A retention that you set (`serve --ledger-dir`) deletes old ones.
GRANT SELECT, INSERT, UPDATE, DELETE ON :"schema".leases TO :"coordinator";
-- To see whether standbys are synchronous. Needed with `init --nodes 2` or more.
GRANT pg_read_all_stats TO :"coordinator";
-- So that requests do not pile up behind a program that locks a table for long: each would keep a
-- connection, until your other programs get none.
ALTER ROLE :"coordinator" SET lock_timeout = '4s';
