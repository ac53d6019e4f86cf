--[[
  Leases by the ledger ids of their last runs, in one direction, from a ledger id or a time on. Reads only.
  KEYS    1 record · 2 ledger · 3 holders · 4 reports
  ARGV    1 namespace, or "" to read the ledger whether or not it has its record · 2 how many at the most ·
          3 "oldest_first" or "newest_first", then 4 ledger id; or "since", then 4 time, ms: oldest first
  Answers { leases, holders }. Leases: for each a line of its entry, "<ledger id of its last run> <runs> <time leased, ms>
          <number of its holder> <nonce>", and when it was reported on, " <runs from the reported run to the last one>
          <last sequence + 1> <state> <time reported, ms>" behind that. Holders: each number and, behind it, the JSON, "" for
          one that is lost; a holder of many leases stands there once. Lines and not lists: others wait while the server takes an answer apart.
  Refuses CORRUPT, MISUSE; with a namespace EMPTY, VERSION, FOREIGN, too.
]]
if ARGV[1] ~= '' then
  local record, word, detail = readRecord(KEYS[1], ARGV[1])
  if not record then return refuse(word, detail) end
end
local word, detail = faultOfKeys({ 'hash', 'stream', 'hash', 'hash' })
if word then return refuse(word, detail) end
local limit, direction, from = ARGV[2], ARGV[3], whole(ARGV[4], NUMBER_MAX)
local isKnown = direction == 'oldest_first' or direction == 'newest_first' or direction == 'since'
if not whole(limit, NUMBER_MAX) or not from or not isKnown then return refuse('MISUSE', 'leases takes numbers and a direction') end

local function entriesFrom(id)
  return redis.call('XRANGE', KEYS[2], digits(id) .. '-0', '+', 'COUNT', limit)
end

local function entriesBelow(id)
  local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
  -- Where all entries lie above, XREVRANGE would walk through every one of them: what is older was trimmed.
  if not oldest or idOf(oldest) > id then return {} end
  return redis.call('XREVRANGE', KEYS[2], digits(id), '-', 'COUNT', limit)
end

-- By halving: times rise with ledger ids.
local function entriesSince(wanted)
  local function isTooOld(entry)
    local _, time = fieldsOf(entry)
    return (tonumber(time) or 0) < wanted
  end
  local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
  if not newest or isTooOld(newest) then return {} end
  -- Always true: entries below `low` are too old, and the first entry at or after `high` is not.
  local low, high = 0, idOf(newest)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = entryFrom(KEYS[2], middle)
    if isTooOld(entry) then low = idOf(entry) + 1 else high = middle end
  end
  return entriesFrom(high)
end

local function reportsIn(number)
  local packed = redis.call('HGET', KEYS[4], digits(number)) or ''
  return { packed = packed, places = placesIn(packed) }
end

local function leasesAnswer(entries)
  local lines, holders, isListed, reports = {}, {}, {}, {}
  for i, entry in ipairs(entries) do
    local count, time, holder, leaseNonce = fieldsOf(entry)
    if not count then return refuse('CORRUPT', 'entry ' .. entry[1] .. ' of the ledger is none of ours') end
    if not isListed[holder] then
      isListed[holder] = true
      holders[#holders + 1] = holder
      holders[#holders + 1] = redis.call('HGET', KEYS[3], holder) or ''
    end
    local last = idOf(entry)
    local number = reportFieldOf(last)
    local field = reports[number]
    if not field then
      field = reportsIn(number)
      if not field.places then return refuse('CORRUPT', 'a report is cut short') end
      reports[number] = field
    end
    local line = digits(last) .. ' ' .. count .. ' ' .. time .. ' ' .. holder .. ' ' .. leaseNonce
    local at = field.places[last % LEDGER_IDS_PER_FIELD]
    if at then
      local _, behind, used, state, seconds, ms = struct.unpack(REPORT, field.packed, at)
      line = string.format('%s %d %d %d %.0f', line, behind, used, state, seconds * 1000 + ms)
    end
    lines[i] = line
  end
  return { lines, holders }
end

if direction == 'since' then return leasesAnswer(entriesSince(from)) end
return leasesAnswer(direction == 'oldest_first' and entriesFrom(from) or entriesBelow(from))
