--[[
  Makes the record of a namespace, once.
  ARGV 8 nodes · 9 key of the lease proofs
  Refuses: ALREADY, CORRUPT (a ledger without its record: something was lost, nothing may begin here), NOEPOCH, REPLICA, NODES, CLOCK.
]]
local nodes = whole(ARGV[8], NODE_COUNT_MAX)
local id = parseStoreId(EXPECTED_STORE_ID)
if not id then return refuse('MISUSE', 'not a store id') end
if not nodes or nodes < 1 or not matchesWhole(ARGV[9], '^[0-9a-f]+$', 64, 64) then return refuse('MISUSE', 'init takes numbers and a key') end
if kindOf(KEYS[1]) ~= 'none' then return refuse('ALREADY', 'the record exists') end
if kindOf(KEYS[2]) ~= 'none' then return refuse('CORRUPT', 'there is a ledger, but no record') end
local word, detail = checkServer(nodes)
if not word then word, detail = checkClocks() end
if word then return refuse(word, detail) end
return answer(save({
  ns = NAMESPACE, sid = EXPECTED_STORE_ID, ver = id.ver, c = id.first - 1, t = 0, ep = server.epoch, g = 0, p = OPEN, n = nodes,
  rk = ARGV[9], ph = '-',
}), 0)
