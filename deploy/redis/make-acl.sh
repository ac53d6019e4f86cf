#!/bin/sh
# Prints Redis's ACL file. It is made and not shipped, since a shipped one would carry a publicly known password;
# Redis keeps the SHA-256 of each password only. For a Redis without compose:
#   CALLNUMBER_REDIS_PASSWORD=... CALLNUMBER_REDIS_OPERATOR_PASSWORD=... sh make-acl.sh > /etc/redis/users.acl
# For a server that others follow, that Sentinels watch, or that is to be in a Cluster also CALLNUMBER_REDIS_REPLICA_PASSWORD,
# CALLNUMBER_REDIS_SENTINEL_PASSWORD and CALLNUMBER_REDIS_CLUSTER_PASSWORD.
set -eu

# The passwords are part of URLs, too, so they are letters, digits, dashes and underscores: openssl rand -hex 32 makes one.
hash_of() {
  eval "password=\${$1:-}"
  case $password in *[!A-Za-z0-9_-]*) refuse "$1 has characters that a URL would change" ;; esac
  [ "${#password}" -ge 32 ] || refuse "$1 is unset or shorter than 32 characters"
  hash=$(printf %s "$password" | sha256) || exit 1
  hash=${hash%% *}
  [ "${#hash}" -eq 64 ] || fail "no SHA-256 could be made of $1"
  echo "$hash"
}

# macOS has shasum, and a small system perhaps openssl alone.
sha256() {
  if command -v sha256sum > /dev/null; then sha256sum
  elif command -v shasum > /dev/null; then shasum -a 256
  elif command -v openssl > /dev/null; then openssl dgst -sha256 -r
  else fail "there is no sha256sum, shasum or openssl on PATH. Install one of them"
  fi
}

# Nothing for a user that is not wanted.
hash_if_given() {
  eval "given=\${$1:-}"
  [ -z "$given" ] || hash_of "$1"
}

refuse() {
  fail "$1. Make one with: openssl rand -hex 32"
}

# Nothing is printed yet: all hashes are made before the first line.
fail() {
  echo "make-acl: $1" >&2
  exit 1
}

coordinator_hash=$(hash_of CALLNUMBER_REDIS_PASSWORD)
operator_hash=$(hash_of CALLNUMBER_REDIS_OPERATOR_PASSWORD)
replica_hash=$(hash_if_given CALLNUMBER_REDIS_REPLICA_PASSWORD)
sentinel_hash=$(hash_if_given CALLNUMBER_REDIS_SENTINEL_PASSWORD)
cluster_hash=$(hash_if_given CALLNUMBER_REDIS_CLUSTER_PASSWORD)

# What the scripts, the ledger and the look before leasing need, and on our keys alone; test/deploy tries that nothing is missing
# and nothing too much. Nothing here deletes, renames or sets a key aside; leases are trimmed off a ledger (XDEL, HDEL), but never its
# newest. For a database other than 0, +select is needed too.
coordinator="+ping +hello +info +time +wait
  +eval +evalsha +script|load
  +type +ttl +hget +hmget +hset +hsetnx +hkeys +hlen
  +xadd +xrange +xrevrange +xdel +hdel
  +cluster|info +cluster|slots"

# To read everything, recover a record (PERSIST, and RENAMENX for a key of another type in its place) or move a store here, take backups
# and shut down. It cannot flush, delete or change the configuration either, nor make this server a copy of another: a lost counter is the
# one thing that must not happen by a slip. Nor can it hold up or cut off other clients: of what concerns connections it has the list alone. CONFIG GET shows it the password of the replicas
# (masterauth), since Redis knows no right to one line of it: its password is worth as much as theirs, which is all that the server holds.
operator="$coordinator
  +@read +client|list +config|get +acl|whoami +acl|list +acl|getuser +role +slowlog +latency +memory|usage
  +persist +renamenx +bgsave +bgrewriteaof +lastsave +shutdown"

# Every client is the default user until it logs in, and none can log in as it: it is off and has no password. Its rights are those of
# the append-only file: Redis 7.0 replays it as this user, and drops without a word every transaction in it that the user may not do.
echo "user default off resetpass ~* &* +@all"
# Unquoted, so that line breaks become spaces: an ACL file has one line for each user.
echo user callnumber on resetpass "#$coordinator_hash" resetkeys "~callnumber:*" resetchannels -@all $coordinator
echo user operator on resetpass "#$operator_hash" resetkeys "~callnumber:*" resetchannels -@all $operator

# Who follows: reads all there is, and asks for nothing else. As masteruser and masterauth in each server's redis.conf.
if [ -n "$replica_hash" ]; then
  echo user replica on resetpass "#$replica_hash" resetkeys resetchannels -@all +ping +replconf +psync
fi

# Who watches, and makes another server the master: what the documentation of Sentinel names, on its own channel and less what only
# clients ask (ROLE). As auth-user and auth-pass in sentinel.conf. It can make this server a copy of any other one: its password is worth
# as much as the operator's. Without CONFIG REWRITE or CLIENT KILL, which are part of the transaction of a promotion, there is none; without CLIENT SETNAME
# the servers refuse something each time that a Sentinel connects. SCRIPT KILL is sent only to a server that answers BUSY for longer than
# down-after-milliseconds: it ends a script that has written nothing yet, and may save a fail-over.
if [ -n "$sentinel_hash" ]; then
  echo user sentinel on resetpass "#$sentinel_hash" resetkeys resetchannels "&__sentinel__:hello" -@all +ping +info +publish \
    +subscribe +multi +exec +slaveof "+config|rewrite" "+client|setname" "+client|kill" "+script|kill"
fi

# Who makes a Cluster of servers, gives a master one more replica and has a replica take over: what redis-cli --cluster sends for that, and
# nothing that moves slots or makes servers forget each other. It can join this Cluster and a foreign one: its password is worth
# as much as the operator's.
if [ -n "$cluster_hash" ]; then
  echo user cluster on resetpass "#$cluster_hash" resetkeys resetchannels -@all +info "+cluster|info" "+cluster|nodes" \
    "+cluster|addslots" "+cluster|set-config-epoch" "+cluster|meet" "+cluster|replicate" "+cluster|failover"
fi
