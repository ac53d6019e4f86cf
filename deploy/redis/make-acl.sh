#!/bin/sh
# Prints the ACL file of your Redis: a user for coordinators, one for the operator, and no other.
# You make the file yourself, because a shipped one would have a publicly known password. It has the
# SHA-256 of each password only.
#
#     export CALLNUMBER_REDIS_PASSWORD="$(openssl rand -hex 32)"
#     export CALLNUMBER_REDIS_OPERATOR_PASSWORD="$(openssl rand -hex 32)"
#     sh make-acl.sh > /etc/redis/users.acl
#
# If the server has replicas, Sentinels or is part of a Cluster, set
# CALLNUMBER_REDIS_REPLICA_PASSWORD, CALLNUMBER_REDIS_SENTINEL_PASSWORD and
# CALLNUMBER_REDIS_CLUSTER_PASSWORD, too. docs/how-to/secure.md has an example.
set -eu

# Passwords have only letters, digits, dashes and underscores, because they are part of URLs, too.
hash_of() {
  eval "password=\${$1:-}"
  case $password in *[!A-Za-z0-9_-]*) reject "$1 has characters that a URL would change" ;; esac
  [ "${#password}" -ge 32 ] || reject "$1 is unset or shorter than 32 characters"
  hash=$(printf %s "$password" | sha256) || exit 1
  hash=${hash%% *}
  [ "${#hash}" -eq 64 ] || fail "no SHA-256 could be made of $1"
  echo "$hash"
}

# macOS has shasum instead of sha256sum, and a small system may have openssl only.
sha256() {
  if command -v sha256sum > /dev/null; then sha256sum
  elif command -v shasum > /dev/null; then shasum -a 256
  elif command -v openssl > /dev/null; then openssl dgst -sha256 -r
  else fail "there is no sha256sum, shasum or openssl on PATH. Install one of them"
  fi
}

# Prints nothing without a password, so that the user is not created.
hash_if_given() {
  eval "given=\${$1:-}"
  [ -z "$given" ] || hash_of "$1"
}

reject() {
  fail "$1. Make one with: openssl rand -hex 32"
}

# Ends before the first line is printed, so that no file is made in part.
fail() {
  echo "make-acl: $1" >&2
  exit 1
}

coordinator_hash=$(hash_of CALLNUMBER_REDIS_PASSWORD)
operator_hash=$(hash_of CALLNUMBER_REDIS_OPERATOR_PASSWORD)
replica_hash=$(hash_if_given CALLNUMBER_REDIS_REPLICA_PASSWORD)
sentinel_hash=$(hash_if_given CALLNUMBER_REDIS_SENTINEL_PASSWORD)
cluster_hash=$(hash_if_given CALLNUMBER_REDIS_CLUSTER_PASSWORD)

# What a coordinator needs: its scripts, the ledger and the check of the server before leasing. No
# command here deletes or renames a key. XDEL and HDEL trim old leases from a ledger. If your URL
# names another database than 0, add +select.
coordinator="+ping +hello +info +time +wait
  +eval +evalsha +script|load
  +type +ttl +hget +hmget +hset +hsetnx +hkeys +hlen
  +xadd +xrange +xrevrange +xdel +hdel
  +cluster|info +cluster|slots"

# What you need to read everything, to recover or move a store, to back up and to shut down. PERSIST
# and RENAMENX repair a record, for example if a key of another type is in its place.
#
# This user cannot flush, delete, change the configuration or make this server a replica of another
# one, because no slip may lose the last run. It can list connections, but not pause or close them.
# It sees the password of the replicas (masterauth), because Redis cannot grant single lines of
# CONFIG GET. So protect its password as you protect all data of the server.
operator="$coordinator
  +@read +client|list +config|get +acl|whoami +acl|list +acl|getuser +role +slowlog +latency +memory|usage
  +persist +renamenx +bgsave +bgrewriteaof +lastsave +shutdown"

# No client can log in as the default user, because it is off and has no password. It keeps all
# rights, because Redis 7.0 replays the append-only file as this user. It would silently drop each
# transaction for which the user lacks a right.
echo "user default off resetpass ~* &* +@all"
# Unquoted, so that line breaks become spaces, because an ACL file has one line for each user.
echo user callnumber on resetpass "#$coordinator_hash" resetkeys "~callnumber:*" resetchannels -@all $coordinator
echo user operator on resetpass "#$operator_hash" resetkeys "~callnumber:*" resetchannels -@all $operator

# The user of replicas: copies all data, and may do nothing else. Name it as masteruser and
# masterauth in redis.conf of each server.
if [ -n "$replica_hash" ]; then
  echo user replica on resetpass "#$replica_hash" resetkeys resetchannels -@all +ping +replconf +psync
fi

# The user of Sentinels, with the rights that their documentation names, on their own channel only.
# ROLE is left out, because only clients send it. Name it as auth-user and auth-pass in
# sentinel.conf. It can make this server a replica of any other one, so protect its password like
# the operator's.
#
# CONFIG REWRITE and CLIENT KILL are needed, because they are part of the transaction of a
# promotion. CLIENT SETNAME is needed, because each Sentinel sends it when it connects. SCRIPT KILL
# goes only to a server that answers BUSY for longer than down-after-milliseconds. It ends a script
# that has written nothing yet, and can save a failover.
if [ -n "$sentinel_hash" ]; then
  echo user sentinel on resetpass "#$sentinel_hash" resetkeys resetchannels "&__sentinel__:hello" -@all +ping +info +publish \
    +subscribe +multi +exec +slaveof "+config|rewrite" "+client|setname" "+client|kill" "+script|kill"
fi

# The user who sets up a Cluster, adds replicas and fails over. It has what `redis-cli --cluster`
# sends for that, but cannot move slots or remove nodes. It can join this Cluster with another one,
# so protect its password like the operator's.
if [ -n "$cluster_hash" ]; then
  echo user cluster on resetpass "#$cluster_hash" resetkeys resetchannels -@all +info "+cluster|info" "+cluster|nodes" \
    "+cluster|addslots" "+cluster|set-config-epoch" "+cluster|meet" "+cluster|replicate" "+cluster|failover"
fi
