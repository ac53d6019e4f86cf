--[[
  Finds the first lease at a time or later, by halving: times rise with ledger ids,
  unless a clock was ahead. Reads only.
  KEYS 1 ledger
  ARGV 1 time, ms
  Answers the id of its entry, or nil.
]]
local function isTooOld(entry)
  return (tonumber(entry[2][4]) or 0) < tonumber(ARGV[1])
end

local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not newest or isTooOld(newest) then return false end
-- Always true: entries below `low` are too old, and the first entry at or after `high` is not.
local low, high = 0, tonumber(string.match(newest[1], '^%d+'))
while low < high do
  local middle = math.floor((low + high) / 2)
  local entry = redis.call('XRANGE', KEYS[1], string.format('%.0f', middle) .. '-0', '+', 'COUNT', 1)[1]
  if isTooOld(entry) then low = tonumber(string.match(entry[1], '^%d+')) + 1 else high = middle end
end
return string.format('%.0f', high)
