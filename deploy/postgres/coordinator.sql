-- What a coordinator may do with a store in PostgreSQL, and no more. Run it as the owner of the schema, after
-- `callnumber init` has made the tables and you have made the user:
--
--   createuser callnumber --pwprompt
--   psql -d archive -f coordinator.sql
--
-- For another schema or user: psql -v schema=numbers -v coordinator=importer …

\if :{?schema} \else \set schema callnumber \endif
\if :{?coordinator} \else \set coordinator callnumber \endif

GRANT USAGE ON SCHEMA :"schema" TO :"coordinator";
GRANT SELECT ON :"schema".store TO :"coordinator";
-- A step locks the row of a namespace and writes it. A name is added where `init` or a retention needs it.
GRANT SELECT, INSERT, UPDATE ON :"schema".namespaces TO :"coordinator";
GRANT SELECT, INSERT ON :"schema".holders TO :"coordinator";
-- A report updates a lease; a retention that you set (`serve --ledger-dir`) deletes old ones.
GRANT SELECT, INSERT, UPDATE, DELETE ON :"schema".leases TO :"coordinator";
-- To see whether standbys are synchronous: needed with `init --nodes 2` or more.
GRANT pg_read_all_stats TO :"coordinator";
