--[[
  Leases, oldest first, whose last run lies above a ledger id, whether or not the ledger has its record. Reads only.
  KEYS as lua/leases.lua
  ARGV 1 ledger id · 2 how many at the most
  Answers and refuses as lua/leases.lua; and MISUSE.
]]
local word, detail = faultOfNamespace(nil)
if word then return refuse(word, detail) end
local after, limit = whole(ARGV[1], LEDGER_ID_MAX), whole(ARGV[2], NUMBER_MAX)
if not after or not limit then return refuse('MISUSE', 'leases-after takes numbers') end
return leasesAnswer(redis.call('XRANGE', KEYS[2], digits(after + 1) .. '-0', '+', 'COUNT', ARGV[2]))
