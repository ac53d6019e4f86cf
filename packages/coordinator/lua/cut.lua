--[[
  Lets go of leases that stand in archive files, with the reports on them, and notes up to where the ledger is archived; in a place
  that has no record yet it only notes. The same decision as src/stores/cut-decision.ts. Never the newest lease: guard.lua looks at it.
  KEYS 1 record · 2 ledger · 3 reports · 4 archived
  ARGV 1 namespace · 2 the most leases · 3 store id · 4 ledger id up to which it is archived, as the caller found it · 5 the same from
       now on · then for each lease: ledger id of its last run, time of the last report on it (ms), "-" for none; one that was
       reported on at another time stays
  Answers { 1, or 0 when it was archived up to another id: then nothing is changed; ledger id up to which it is; leases that are gone }
  Refuses before it writes anything: CORRUPT, VERSION, FOREIGN, MOVED, FORKED, MISUSE.
]]
local leaseMax, expected, through = whole(ARGV[2], NUMBER_MAX), whole(ARGV[4], LEDGER_ID_MAX), whole(ARGV[5], LEDGER_ID_MAX)
local isSound = leaseMax and expected and through and expected <= through and #ARGV % 2 == 1 and #ARGV <= 5 + 2 * leaseMax
local asked = {}
for at = 6, isSound and #ARGV or 0, 2 do
  local last, reported = whole(ARGV[at], LEDGER_ID_MAX), ARGV[at + 1]
  isSound = isSound and last and last <= through and (reported == '-' or whole(reported, NUMBER_MAX))
  asked[#asked + 1] = { last = last, reported = tonumber(reported) }
end
if not isSound then return refuse('MISUSE', 'cut takes leases up to where it cuts') end

local word, detail = faultOfKeys({ 'hash', 'stream', 'hash', 'hash' })
if word then return refuse(word, detail) end
if kindOf(KEYS[1]) ~= 'none' then
  local record
  record, word, detail = readRecord(KEYS[1], ARGV[1])
  if not record then return refuse(word, detail) end
  if record.sid ~= ARGV[3] then return refuse('FOREIGN', record.sid) end
  if record.p == SEALED then return refuse(refusalOfSeal(record)) end
end
local known = archivedThrough(KEYS[4])
if not known then return refuse('CORRUPT', 'how much is archived is no ledger id') end
if known ~= expected then return { '0', digits(known), '0' } end
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
if through >= (newest and idOf(newest) or 0) then return refuse('MISUSE', 'the newest lease is never cut') end

local fields = {}
local function fieldAt(number)
  if not fields[number] then
    local packed = redis.call('HGET', KEYS[3], digits(number)) or ''
    fields[number] = { packed = packed, places = placesIn(packed), isGone = {} }
  end
  return fields[number]
end

local ids = {}
for _, lease in ipairs(asked) do
  local field = fieldAt(reportFieldOf(lease.last))
  if not field.places then return refuse('CORRUPT', 'a report is cut short') end
  local at, reported = field.places[lease.last % LEDGER_IDS_PER_FIELD], nil
  if at then
    local _, _, _, _, seconds, ms = struct.unpack(REPORT, field.packed, at)
    reported = seconds * 1000 + ms
  end
  if reported == lease.reported then
    ids[#ids + 1] = digits(lease.last) .. '-0'
    if at then field.isGone[at] = true end
  end
end

redis.call('HSET', KEYS[4], 'through', digits(through))
for number, field in pairs(fields) do
  if next(field.isGone) then
    local left = {}
    for at = 1, #field.packed, REPORT_BYTES do
      if not field.isGone[at] then left[#left + 1] = string.sub(field.packed, at, at + REPORT_BYTES - 1) end
    end
    if left[1] then
      redis.call('HSET', KEYS[3], digits(number), table.concat(left))
    else
      redis.call('HDEL', KEYS[3], digits(number))
    end
  end
end
local count = ids[1] and redis.call('XDEL', KEYS[2], unpack(ids)) or 0
return { '1', digits(through), digits(count) }
