--[[
  All that a step of the guard depends on, as the server finds it at this moment. Comes before apply.lua; alone, it is how a namespace is
  read. Knows no rule: src/guard/ decides.
  KEYS    1 record (HASH, fields below) · 2 ledger (STREAM) · 3 holders (HASH)
  ARGV    1 nonce, which is answered
  Answers { nonce, 'found', server's clock (ms), types of the keys, "other" for one that is not ours, 1 when the record has a time to live else 0, ledger id of the newest
          entry, 0 for none; then of INFO, nil for what can't be read: role, run id, replication id, full and partial synchronizations,
          connected replicas; the fingerprint of the record: another program may have written it, and not as text; then its fields in the
          order of FIELDS, nil for what is missing }

  Record: one HASH, all fields text
    v    schema of the record, 2
    ns   name of the namespace
    sid  store id, <uuid>.<first ledger id>.<T0>.<rate>; a ledger id is version * 2^30 + run
    ver  version of the call numbers, 0 to 7
    c    last run leased (the high-water mark), first run - 1 when none was
    t    time of the last write, ms
    ep   epoch under which leasing was last claimed
    g    generation, one more with each claim
    p    0 open, 1 claimed and not yet confirmed, 2 sealed
    n    number of data nodes, this one included
    rk   key of the lease proofs, 64 hex digits
    ph   the seal: "-" for none, "moved" and the store id and place it moved to, or "forked"
    k    checksum: SHA-1 over all other fields, a line each, in this order
]]
local FIELDS = { 'v', 'ns', 'sid', 'ver', 'c', 't', 'ep', 'g', 'p', 'n', 'rk', 'ph', 'k' }

local function digits(number) return string.format('%.0f', number) end

-- Found as plain text: as a pattern it would take longer than INFO itself.
local function lineOf(text, name)
  local _, last = string.find(text, '\n' .. name .. ':', 1, true)
  return last and string.match(text, '^[^\r\n]+', last + 1) or false
end

local function info(section)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and text or ''
end

local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
-- A replica that forgot what it had acknowledged elsewhere comes back in full, or from its RDB in part: both must be noticed.
local replication, stats = info('replication'), info('stats')
local server = {
  lineOf(replication, 'role'), lineOf(info('server'), 'run_id'), lineOf(replication, 'master_replid'),
  lineOf(stats, 'sync_full'), lineOf(stats, 'sync_partial_ok'), lineOf(replication, 'connected_slaves'),
}
local kinds = { 'hash', 'stream', 'hash' }
for i, ours in ipairs(kinds) do
  local kind = redis.call('TYPE', KEYS[i])['ok']
  if kind ~= ours then kinds[i] = kind == 'none' and kind or 'other' end
end
local words = kinds[1] == 'hash' and redis.call('HMGET', KEYS[1], unpack(FIELDS)) or {}
local expires = redis.call('TTL', KEYS[1]) >= 0 and '1' or '0'
local newest = kinds[2] == 'stream' and redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local ledgerMark = newest and string.match(newest[1], '^%d+') or '0'

local before = {}
for i = 1, #FIELDS do before[i] = words[i] or '' end
local function fingerprint() return redis.sha1hex(table.concat(before, '\n')) end

local function found()
  local answer = { ARGV[1], 'found', digits(nowMs), kinds[1], kinds[2], kinds[3], expires, ledgerMark }
  for i = 1, 6 do answer[8 + i] = server[i] end
  answer[15] = fingerprint()
  for i = 1, #FIELDS do answer[15 + i] = words[i] or false end
  return answer
end
