--[[
  Leases, newest first, whose last run lies below a ledger id. Reads only.
  KEYS as lua/leases.lua
  ARGV 1 namespace · 2 ledger id · 3 how many at the most
  Answers and refuses as lua/leases.lua; and EMPTY, VERSION, FOREIGN, MISUSE.
]]
local word, detail = faultOfNamespace(ARGV[1])
if word then return refuse(word, detail) end
local below, limit = whole(ARGV[2], NUMBER_MAX), whole(ARGV[3], NUMBER_MAX)
if not below or not limit then return refuse('MISUSE', 'leases-below takes numbers') end
local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
-- Where all entries lie above, XREVRANGE would walk through every one of them: what is older was trimmed.
if not oldest or idOf(oldest) >= below then return leasesAnswer({}) end
return leasesAnswer(redis.call('XREVRANGE', KEYS[2], digits(below - 1), '-', 'COUNT', ARGV[3]))
