#!/bin/sh
# The PostgreSQL image of docker-compose.yml runs this once, when its data directory is empty. It
# makes a user without special rights and the database that this user owns, so that
# `callnumber init` can make its schema there.
set -eu
psql --username "$POSTGRES_USER" --dbname postgres --set ON_ERROR_STOP=1 --set password="$CALLNUMBER_POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE callnumber LOGIN PASSWORD :'password';
CREATE DATABASE callnumber OWNER callnumber ENCODING 'UTF8' TEMPLATE template0;
GRANT pg_read_all_stats TO callnumber;
ALTER ROLE callnumber SET lock_timeout = '4s';
SQL
