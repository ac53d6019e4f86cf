--[[
  Leases by the ledger ids of their last runs, from a ledger id on, in one direction. Reads only.
  KEYS as lua/leases.lua
  ARGV 1 namespace, or "" to read the ledger whether or not it has its record · 2 ledger id · 3 how many at the most ·
       4 "oldest_first" or "newest_first"
  Answers and refuses as lua/leases.lua; with a namespace EMPTY, VERSION, FOREIGN, too; and MISUSE.
]]
local word, detail = faultOfNamespace(ARGV[1] ~= '' and ARGV[1] or nil)
if word then return refuse(word, detail) end
local from, limit = whole(ARGV[2], NUMBER_MAX), whole(ARGV[3], NUMBER_MAX)
local isForward = ARGV[4] == 'oldest_first'
if not from or not limit or not (isForward or ARGV[4] == 'newest_first') then
  return refuse('MISUSE', 'leases-from takes numbers and a direction')
end
if isForward then
  return leasesAnswer(redis.call('XRANGE', KEYS[2], digits(from) .. '-0', '+', 'COUNT', ARGV[3]))
end
local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
-- Where all entries lie above, XREVRANGE would walk through every one of them: what is older was trimmed.
if not oldest or idOf(oldest) > from then return leasesAnswer({}) end
return leasesAnswer(redis.call('XREVRANGE', KEYS[2], digits(from), '-', 'COUNT', ARGV[3]))
