--[[
  Writes a report in the place of the one that was there. Comes after reports.lua.
  KEYS 1 ledger · 2 reports
  ARGV 1 ledger id of the lease's last run · 2 field of the reports · 3 first byte of the report, as a number · 4 the report as it must be,
       "" for none · 5 the report to write
  Answers 1, or 0 when the lease is gone or has another report: then nothing is changed.
]]
local packed = redis.call('HGET', KEYS[2], ARGV[2]) or ''
local at = placeOf(packed, tonumber(ARGV[3]))
local isThere = redis.call('XRANGE', KEYS[1], ARGV[1] .. '-0', ARGV[1] .. '-0')[1]
if not isThere or reportAt(packed, at) ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], withReport(packed, at, ARGV[5]))
return 1
