--[[
  Makes the record of a namespace, once.
  KEYS 1 record · 2 ledger
  ARGV 1 namespace · 2 store id · 3 last run leased (first run - 1) · 4 time of init, ms
  Answers OK. Refuses: ALREADY, CORRUPT (a ledger without its record: something was lost, nothing may begin here), MISUSE.
]]
if not whole(ARGV[3], RUN_MAX) or not whole(ARGV[4], 10 ^ 15) then return refuse('MISUSE', 'init takes numbers') end
if redis.call('EXISTS', KEYS[1]) == 1 then return refuse('ALREADY', 'the record exists') end
if redis.call('EXISTS', KEYS[2]) == 1 then return refuse('CORRUPT', 'there is a ledger, but no record') end
redis.call('HSET', KEYS[1], 'v', SCHEMA, 'ns', ARGV[1], 'sid', ARGV[2], 'ver', '0', 'c', ARGV[3], 't', ARGV[4])
return redis.status_reply('OK')
