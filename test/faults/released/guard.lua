--[[
  What the steps of the guard share; the same checks as src/guard/checks.ts and ceiling.ts, under the same names. Comes after record.lua,
  before each step.

  KEYS of every step  1 record · 2 ledger (STREAM) · 3 holders (HASH)
  ARGV of every step  1 namespace · 2 nonce · 3 store id · 4 the coordinator's clock, ms · 5 eps, ms · 6 gap, ms
                      7 whether a long heartbeat gap is accepted, 0 or 1 · from 8 on: the step's own
  Answers             { nonce, store id, version, mark, t, epoch, generation, nodes, runs granted }; lease.lua has its own
  Guarantees: G2 (docs/guarantees.md).
]]
local BURST_RUNS = 65536
local ROOM_SHARE = 64
local SILENCE_MAX_MS = 30 * 24 * 3600 * 1000
-- 2026-11-01: no clock that shows an earlier time is right.
local RELEASED_AT_MS = 1793491200000

nonce = ARGV[2]
local NAMESPACE, EXPECTED_STORE_ID = ARGV[1], ARGV[3]
local coordinatorMs, epsMs, gapMs = whole(ARGV[4], NUMBER_MAX), whole(ARGV[5], NUMBER_MAX), whole(ARGV[6], NUMBER_MAX)
if not coordinatorMs or not epsMs or not gapMs or not whole(ARGV[7], 1) then
  return refuse('MISUSE', 'every step takes clock, eps, gap and a switch')
end
local isSilenceAccepted = ARGV[7] == '1'

-- The run ceiling: the greatest run of a version that may be leased at an instant.
local whenCeilingReaches
local function firstRunOf(id, version)
  return version == id.ver and id.first or 1
end
local function beginOf(id, version)
  if version <= id.ver then return id.begin end
  return whenCeilingReaches(id, version - 1, RUN_MAX)
end
local function ceilingAt(id, version, time)
  return firstRunOf(id, version) + math.floor(((time - beginOf(id, version)) * id.rate) / 1000) + BURST_RUNS
end
function whenCeilingReaches(id, version, run)
  return beginOf(id, version) + math.ceil(((run - firstRunOf(id, version) - BURST_RUNS) * 1000) / id.rate)
end

-- INFO and TIME in the same step as the write: it can't change in between.
local server = { time = nowMs() }
do
  -- A replica that forgot what it had acknowledged elsewhere comes back in full, or from its RDB in part: both must be noticed.
  local about, replication, stats = infoText('server'), infoText('replication'), infoText('stats')
  local runId, replId = infoField(about, 'run_id'), infoField(replication, 'master_replid')
  local full, partial = infoField(stats, 'sync_full'), infoField(stats, 'sync_partial_ok')
  server.role = infoField(replication, 'role')
  server.replicas = whole(infoField(replication, 'connected_slaves'), NUMBER_MAX)
  if runId and replId and full and partial and server.role and server.replicas then
    server.epoch = table.concat({ runId, replId, full, partial }, ':')
  end
end
local earliestMs = math.min(server.time, coordinatorMs)
local latestMs = math.max(server.time, coordinatorMs)

local function ledgerIdOf(version, run)
  return version * VERSION_WEIGHT + run
end

local function checkLedger()
  if not isAbsentOr(KEYS[2], 'stream') then return 'CORRUPT', 'the ledger is no stream' end
  if not isAbsentOr(KEYS[3], 'hash') then return 'CORRUPT', 'the holders are not a hash' end
end

-- Set by recover.lua for a key of another type, which holds none of our leases.
local isLedgerForeign = false
local function ledgerMark()
  if isLedgerForeign then return 0 end
  local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
  return newest and tonumber(string.match(newest[1], '^%d+')) or 0
end

local function checkServer(nodeCount)
  if not server.epoch then return 'NOEPOCH', '' end
  if server.role ~= 'master' then return 'REPLICA', server.role end
  if server.replicas > nodeCount - 1 then return 'NODES', digits(server.replicas) end
end

local function checkClocks()
  if math.abs(server.time - coordinatorMs) > epsMs then return 'CLOCK', digits(server.time - coordinatorMs) end
  if latestMs < RELEASED_AT_MS then return 'CLOCK', '0' end
end

-- The new store's id is made by the coordinator's clock.
local function checkClockOfMove()
  if coordinatorMs - server.time > epsMs then return 'CLOCK', digits(server.time - coordinatorMs) end
  if coordinatorMs < RELEASED_AT_MS then return 'CLOCK', '0' end
end

local function checkHeartbeat(record)
  local back = record.t - epsMs - latestMs
  if back > 0 then return 'CLOCKBACK', digits(back) end
  if latestMs - record.t > SILENCE_MAX_MS and not isSilenceAccepted then return 'OPERATOR', 'silence' end
end

-- The record, when it is this store's and the server is the master; or nil, word and detail.
local function checkPlace()
  local record, word, detail = readRecord(KEYS[1], NAMESPACE)
  if not record then return nil, word, detail end
  word, detail = checkLedger()
  if word then return nil, word, detail end
  if record.sid ~= EXPECTED_STORE_ID then return nil, 'FOREIGN', record.sid end
  word, detail = checkServer(record.n)
  if word then return nil, word, detail end
  return record
end

-- The same, when it is not sealed and the clocks agree, too.
local function checkOwned()
  local record, word, detail = checkPlace()
  if not record then return nil, word, detail end
  word, detail = checkClocks()
  if word then return nil, word, detail end
  if record.p == SEALED then return nil, refuseSealed(record) end
  word, detail = checkHeartbeat(record)
  if word then return nil, word, detail end
  return record
end

-- The record, when it may get the seal of a move, or has it. Whether the store rolled back is not asked: see checks.ts.
local function checkMovable(seal)
  local record, word, detail = checkPlace()
  if not record then return nil, word, detail end
  word, detail = checkClockOfMove()
  if word then return nil, word, detail end
  if record.p == SEALED and record.ph ~= seal then return nil, refuseSealed(record) end
  return record
end

-- Checks the record against what the caller has seen: word and detail of the refusal, nil when nothing indicates a rollback.
-- `known`: ledger id of the newest ledger entry.
local function checkCheckpoint(record, floor, generationMin, known)
  local generation = digits(record.g)
  if record.g < generationMin then return 'STALEGEN', generation end
  if record.ep ~= server.epoch then
    local runId, syncs = string.match(record.ep, '^([^:]*):?[^:]*:?(.*)$')
    local serverRunId, serverSyncs = string.match(server.epoch, '^([^:]*):?[^:]*:?(.*)$')
    if record.n ~= 1 or runId ~= serverRunId then return 'EPOCH', generation end
    return 'OPERATOR', syncs == serverSyncs and 'epoch' or 'replica'
  end
  if record.p == CLAIMED then return 'PENDING', generation end
  if latestMs - record.t > gapMs then return 'GAP', generation end
  if ledgerIdOf(record.ver, record.c) < math.max(floor, known) then return 'ROLLBACK', generation end
end

-- The record, when nothing indicates that the store rolled back; or nil, word and detail.
local function checkHealthy(floor, generationMin)
  local record, word, detail = checkOwned()
  if not record then return nil, word, detail end
  word, detail = checkCheckpoint(record, floor, generationMin, ledgerMark())
  if word then return nil, word, detail end
  return record
end

-- A greater one could be written, but never be read again.
local function checkGeneration(generation)
  if generation > NUMBER_MAX then return 'CORRUPT', 'the generation has reached its end' end
end

-- The mark after a recovery, or nil, word and detail.
local function markAfterRecovery(id, version, mark, floor)
  local target = ceilingAt(id, version, latestMs + 2 * epsMs)
  -- First: whatever is known of a later version, an advance is the way on.
  if target >= RUN_MAX then return nil, 'EXHAUSTED', digits(version) end
  local known = math.max(ledgerIdOf(version, mark), floor, ledgerMark())
  if known > ledgerIdOf(version, target) then return nil, 'OPERATOR', 'line' end
  return target
end

local function save(record)
  local fields = {
    v = SCHEMA, ns = record.ns, sid = record.sid, ver = digits(record.ver), c = digits(record.c),
    t = digits(math.max(record.t, latestMs)), ep = record.ep, g = digits(record.g), p = digits(record.p),
    n = digits(record.n), rk = record.rk, ph = record.ph,
  }
  local words = { 'k', checksumOf(fields) }
  for _, name in ipairs(FIELDS) do
    words[#words + 1] = name
    words[#words + 1] = fields[name]
  end
  redis.call('HSET', KEYS[1], unpack(words))
  return fields
end

local function answer(fields, runCount)
  return { nonce, fields.sid, fields.ver, fields.c, fields.t, fields.ep, fields.g, fields.n, digits(runCount) }
end
