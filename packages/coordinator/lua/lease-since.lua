--[[
  The oldest ledger entry of a time or later, by halving: times rise with ledger ids. Reads only.
  KEYS 1 ledger
  ARGV 1 time, ms
  Answers the id of the entry, or nil.
]]
local wanted = whole(ARGV[1], 10 ^ 15)
if not wanted then return refuse('MISUSE', 'lease-since takes a time') end
if not isAbsentOr(KEYS[1], 'stream') then return refuse('CORRUPT', 'the ledger is no stream') end

local function idOf(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end
local function timeOf(entry)
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 't' then return tonumber(entry[2][i + 1]) end
  end
end

local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not newest or timeOf(newest) < wanted then return false end
-- Always true: entries below `low` are too old; `found` is the first entry at or after `high`, and not too old.
local low, high, found = 0, idOf(newest), newest
while low < high do
  local middle = math.floor((low + high) / 2)
  local entry = redis.call('XRANGE', KEYS[1], digits(middle) .. '-0', '+', 'COUNT', 1)[1]
  if timeOf(entry) >= wanted then
    found, high = entry, middle
  else
    low = idOf(entry) + 1
  end
end
return found[1]
