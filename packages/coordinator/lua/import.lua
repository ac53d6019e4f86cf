--[[
  Takes over leases of another store's ledger, oldest first, each once. A ledger that has its record is complete: nothing is added.
  The same decision as src/stores/ledger-decisions.ts.
  KEYS 1 record · 2 ledger · 3 holders · 4 reports
  ARGV 1 namespace · then for each lease: ledger id of its last run, runs, time leased (ms), holder as JSON, nonce,
       and of its report: runs from the reported run to the last one, last sequence + 1, state, time (ms); four times "-" for none
  Answers OK. Refuses before it writes anything: FOREIGN (another lease stands there), ALREADY (there is a record), CORRUPT, MISUSE.
]]
local FIELDS_OF_COPY = 9

local word, detail = faultOfKeys({ 'hash', 'stream', 'hash', 'hash' })
if word then return refuse(word, detail) end
if (#ARGV - 1) % FIELDS_OF_COPY ~= 0 then return refuse('MISUSE', 'import takes nine fields for each lease') end

local function isSame(entry, copy)
  local count, time, holder, leaseNonce = fieldsOf(entry)
  return count == copy.count and time == copy.time and leaseNonce == copy.nonce and redis.call('HGET', KEYS[3], holder) == copy.holder
end

local hasRecord = kindOf(KEYS[1]) ~= 'none'
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
newest = newest and idOf(newest) or 0
local toAppend = {}
for at = 2, #ARGV, FIELDS_OF_COPY do
  local copy = {
    last = ARGV[at], count = ARGV[at + 1], time = ARGV[at + 2], holder = ARGV[at + 3], nonce = ARGV[at + 4],
    behind = ARGV[at + 5], used = ARGV[at + 6], state = ARGV[at + 7], reported = ARGV[at + 8],
  }
  local last, count = whole(copy.last, LEDGER_ID_MAX), whole(copy.count, RUN_MAX)
  local isReported = whole(copy.behind, 255) and whole(copy.used, 16384) and whole(copy.state, 4) and whole(copy.reported, NUMBER_MAX)
  if not last or not count or not whole(copy.time, NUMBER_MAX) or not (isReported or copy.behind == '-') then
    return refuse('MISUSE', 'import takes numbers')
  end
  local entry = redis.call('XRANGE', KEYS[2], copy.last .. '-0', copy.last .. '-0')[1]
  if entry and not isSame(entry, copy) or not entry and newest > last - count then
    local name = digits(math.floor(last / VERSION_WEIGHT)) .. '/' .. digits(last % VERSION_WEIGHT)
    return refuse('FOREIGN', 'its ledger holds another lease at run ' .. name)
  end
  if not entry then
    if hasRecord then return refuse('ALREADY', 'the record exists') end
    toAppend[#toAppend + 1] = copy
    newest = last
  end
end

for _, copy in ipairs(toAppend) do
  local holder = redis.call('HGET', KEYS[3], copy.holder)
  if not holder then
    holder = digits(redis.call('HLEN', KEYS[3]) / 2 + 1)
    redis.call('HSET', KEYS[3], copy.holder, holder, holder, copy.holder)
  end
  if copy.behind ~= '-' then
    local last, time = tonumber(copy.last), tonumber(copy.reported)
    local bucket = digits(reportFieldOf(last))
    local report = struct.pack(REPORT, last % LEDGER_IDS_PER_FIELD, tonumber(copy.behind), tonumber(copy.used), tonumber(copy.state),
      math.floor(time / 1000), time % 1000)
    redis.call('HSET', KEYS[4], bucket, (redis.call('HGET', KEYS[4], bucket) or '') .. report)
  end
  redis.call('XADD', KEYS[2], copy.last .. '-0', 'n', copy.count, 't', copy.time, 'h', holder, 'x', copy.nonce)
end
return redis.status_reply('OK')
