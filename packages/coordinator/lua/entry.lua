--[[
  How a lease is written down. Comes before the scripts that add leases.
  Ledger (STREAM): id <ledger id of the lease's last run>-0, fields, in this order: n runs · t time leased, ms · h number of its holder ·
  x nonce. Holders (HASH) are stored once each, under a number, and their number under them: the ledger stays small.
]]
local function addEntry(ledger, holders, id, runs, time, nonce, holder)
  local number = redis.call('HGET', holders, holder)
  if not number then
    number = string.format('%.0f', redis.call('HLEN', holders) / 2 + 1)
    redis.call('HSET', holders, holder, number, number, holder)
  end
  redis.call('XADD', ledger, id .. '-0', 'n', runs, 't', time, 'h', number, 'x', nonce)
end
