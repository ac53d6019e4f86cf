--[[
  The second half, once the quorum has the claim: moves the mark to the ceiling, past everything that could have been leased and lost.
  ARGV 8 generation of the claim · 9 floor
  Refuses as `checkOwned`, and: RACED <generation>, OPERATOR line, EXHAUSTED.
  Guarantees: G3 (docs/guarantees.md).
]]
local claimed, floor = whole(ARGV[8], NUMBER_MAX), whole(ARGV[9], (VERSION_MAX + 1) * VERSION_WEIGHT)
if not claimed or not floor then return refuse('MISUSE', 'confirm takes numbers') end
local record, word, detail = checkOwned()
if not record then return refuse(word, detail) end
if record.p ~= CLAIMED or record.g ~= claimed or record.ep ~= server.epoch then return refuse('RACED', digits(record.g)) end
local mark
mark, word, detail = markAfterRecovery(record.id, record.ver, record.c, floor)
if not mark then return refuse(word, detail) end
record.c, record.p = mark, OPEN
return answer(save(record), 0)
