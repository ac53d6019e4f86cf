--[[
  Lifts a seal, if nothing has moved since it was set; then no jump is needed.
  ARGV 8 secret · 9 mark as ledger id, as it was sealed · 10 generation as it was sealed · 11 nodes from now on, 0: as before
  Refuses as `ours`, and: RACED <generation>.
]]
local mark, sealed = whole(ARGV[9], (VERSION_MAX + 1) * VERSION_WEIGHT), whole(ARGV[10], NUMBER_MAX)
local nodes = whole(ARGV[11], NODE_COUNT_MAX)
if not mark or not sealed or not nodes then return refuse('MISUSE', 'resume takes numbers') end
local record, word, detail = ours(true, nodes > 0 and nodes or nil)
if not record then return refuse(word, detail) end
local isAsSealed = record.p == SEALED and record.ph == redis.sha1hex(ARGV[8]) and record.g == sealed
  and ledgerIdOf(record.ver, record.c) == mark
if not isAsSealed then return refuse('RACED', digits(record.g)) end
word, detail = faultOfGeneration(record.g + 1)
if word then return refuse(word, detail) end
record.g, record.ep, record.p, record.ph = record.g + 1, server.epoch, OPEN, '-'
if nodes > 0 then record.n = nodes end
return answer(save(record), 0)
