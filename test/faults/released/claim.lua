--[[
  The first half of a recovery. The mark stays: before the quorum has the claim, another node may still lease.
  ARGV 8 generation as it was seen · 9 least generation
  Refuses as `checkOwned`, and: RACED <generation>.
  Guarantees: G3 (docs/guarantees.md).
]]
local seen, generationMin = whole(ARGV[8], NUMBER_MAX), whole(ARGV[9], NUMBER_MAX)
if not seen or not generationMin then return refuse('MISUSE', 'claim takes numbers') end
local record, word, detail = checkOwned()
if not record then return refuse(word, detail) end
if record.g ~= seen then return refuse('RACED', digits(record.g)) end
local generation = math.max(record.g, generationMin) + 1
word, detail = checkGeneration(generation)
if word then return refuse(word, detail) end
record.g, record.ep, record.p = generation, server.epoch, CLAIMED
return answer(save(record), 0)
