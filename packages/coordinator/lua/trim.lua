--[[
  Trims the oldest leases of a ledger, with the reports on them, and notes up to where it was trimmed. In a place that has no record
  yet it only notes how far another store was trimmed. The same decision as src/stores/ledger-decisions.ts. Never the newest lease:
  guard.lua reads it.
  KEYS 1 record · 2 ledger · 3 reports · 4 retention
  ARGV 1 namespace · 2 the most leases · 3 store id · 4 ledger id up to which it was trimmed, as the caller found it · 5 the same from
       now on · 6 when the newest lease up to there was leased (ms) · then for each lease up to there, oldest first: ledger id of its
       last run, time of the last report on it (ms), "-" for none
  Answers 1; 0 when the ledger holds anything else up to there, or was trimmed up to another id: then nothing is changed
  Refuses before it writes anything: CORRUPT, VERSION, FOREIGN, MOVED, FORKED, MISUSE.
]]
local leaseMax, expected, through = whole(ARGV[2], NUMBER_MAX), whole(ARGV[4], LEDGER_ID_MAX), whole(ARGV[5], LEDGER_ID_MAX)
local leasedAt = whole(ARGV[6], NUMBER_MAX)
local isSound = leaseMax and expected and through and leasedAt and expected <= through
isSound = isSound and #ARGV % 2 == 0 and #ARGV <= 6 + 2 * leaseMax
local requested = {}
for at = 7, isSound and #ARGV or 0, 2 do
  local last, reported = whole(ARGV[at], LEDGER_ID_MAX), ARGV[at + 1]
  isSound = isSound and last and last <= through and (reported == '-' or whole(reported, NUMBER_MAX))
  requested[#requested + 1] = { last = last, reported = tonumber(reported) }
end
if not isSound then return refuse('MISUSE', 'trim takes leases up to where it trims') end

local word, detail = faultOfKeys({ 'hash', 'stream', 'hash', 'hash' })
if word then return refuse(word, detail) end
if kindOf(KEYS[1]) ~= 'none' then
  local record
  record, word, detail = readRecord(KEYS[1], ARGV[1])
  if not record then return refuse(word, detail) end
  if record.sid ~= ARGV[3] then return refuse('FOREIGN', record.sid) end
  if record.p == SEALED then return refuse(refuseSealed(record)) end
end
local known = whole(redis.call('HGET', KEYS[4], 'through') or '0', LEDGER_ID_MAX)
if not known then return refuse('CORRUPT', 'where it was trimmed is no ledger id') end
if known ~= expected then return 0 end
if requested[1] then
  local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
  if through >= (newest and idOf(newest) or 0) then return refuse('MISUSE', 'the newest lease is never trimmed') end
end

local fields = {}
local function fieldAt(number)
  if not fields[number] then
    local packed = redis.call('HGET', KEYS[3], digits(number)) or ''
    fields[number] = { packed = packed, places = placesIn(packed) }
  end
  return fields[number]
end

local entries = redis.call('XRANGE', KEYS[2], '-', digits(through) .. '-0', 'COUNT', leaseMax + 1)
if #entries ~= #requested then return 0 end
local ids = {}
for i, lease in ipairs(requested) do
  local field = fieldAt(reportFieldOf(lease.last))
  if not field.places then return refuse('CORRUPT', 'a report is cut short') end
  local at, reported = field.places[lease.last % LEDGER_IDS_PER_FIELD], nil
  if at then
    local _, _, _, _, seconds, ms = struct.unpack(REPORT, field.packed, at)
    reported = seconds * 1000 + ms
  end
  if idOf(entries[i]) ~= lease.last or reported ~= lease.reported then return 0 end
  ids[i] = entries[i][1]
end

redis.call('HSET', KEYS[4], 'through', digits(through), 'leasedAtMs', digits(leasedAt))
for number, field in pairs(fields) do
  local left = {}
  for at = 1, #field.packed, REPORT_BYTES do
    if number * LEDGER_IDS_PER_FIELD + string.byte(field.packed, at) > through then
      left[#left + 1] = string.sub(field.packed, at, at + REPORT_BYTES - 1)
    end
  end
  if left[1] then
    redis.call('HSET', KEYS[3], digits(number), table.concat(left))
  elseif field.packed ~= '' then
    redis.call('HDEL', KEYS[3], digits(number))
  end
end
if ids[1] then redis.call('XDEL', KEYS[2], unpack(ids)) end
return 1
