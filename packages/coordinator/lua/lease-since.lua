--[[
  The oldest lease of a time or later, by halving: times rise with ledger ids. Reads only.
  KEYS as lua/leases.lua
  ARGV 1 namespace · 2 time, ms
  Answers and refuses as lua/leases.lua, with one lease or none; and EMPTY, VERSION, FOREIGN, MISUSE.
]]
local word, detail = faultOfNamespace(ARGV[1])
if word then return refuse(word, detail) end
local wanted = whole(ARGV[2], 10 ^ 15)
if not wanted then return refuse('MISUSE', 'lease-since takes a time') end

local function isTooOld(entry)
  local _, time = fieldsOf(entry)
  return (tonumber(time) or 0) < wanted
end

local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
if not newest or isTooOld(newest) then return leasesAnswer({}) end
-- Always true: entries below `low` are too old; `found` is the first entry at or after `high`, and not too old.
local low, high, found = 0, idOf(newest), newest
while low < high do
  local middle = math.floor((low + high) / 2)
  local entry = entryFrom(KEYS[2], middle)
  if isTooOld(entry) then
    low = idOf(entry) + 1
  else
    found, high = entry, middle
  end
end
return leasesAnswer({ found })
