--[[
  Appends leases of another store to a ledger that has no record yet, oldest first. Comes after
  entry.lua and reports.lua.
  KEYS 1 record · 2 ledger · 3 holders · 4 reports
  ARGV 1 ledger id that the newest entry must have, 0 for none · then for each lease "<ledger id of its last run> <runs> <time leased, ms>
       <nonce> <field of its report> <holder as JSON>" and its report, "" for none
  Answers 1, or 0 when the newest entry is another, or there is a record: then nothing is changed.
]]
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local found, expected = newest and newest[1] or '0-0', ARGV[1] .. '-0'
local kind = redis.call('TYPE', KEYS[1])['ok']
if found ~= expected or kind ~= 'none' then return 0 end
-- A key of another type ends the script before it has changed anything.
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[4])
for at = 2, #ARGV, 2 do
  local id, runs, time, nonce, field, holder = string.match(ARGV[at], '^(%d+) (%d+) (%d+) (%S+) (%d+) ({.*})$')
  -- First: an id that is not above all before it ends the script.
  addEntry(KEYS[2], KEYS[3], id, runs, time, nonce, holder)
  local report = ARGV[at + 1]
  if report ~= '' then
    local packed = redis.call('HGET', KEYS[4], field) or ''
    redis.call('HSET', KEYS[4], field, withReport(packed, placeOf(packed, string.byte(report)), report))
  end
end
return 1
