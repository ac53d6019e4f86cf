--[[
  Continues in the next version, at run 1 of it, once the ceiling of this one has passed its last run. A store that may have rolled back is
  left to be claimed, and its recovery goes to the ceiling of the next version.
  ARGV 8 floor · 9 least generation · 10 version as it was seen
  Refuses as `checkOwned`, and: RACED <generation>, EXHAUSTED (the last version), EARLY <ms until then>, OPERATOR epoch.
  Guarantees: G12 (docs/guarantees.md).
]]
local floor, generationMin = whole(ARGV[8], (VERSION_MAX + 1) * VERSION_WEIGHT), whole(ARGV[9], NUMBER_MAX)
local version = whole(ARGV[10], VERSION_MAX)
if not floor or not generationMin or not version then return refuse('MISUSE', 'advance takes numbers') end
local record, word, detail = checkOwned()
if not record then return refuse(word, detail) end
if record.ver ~= version then return refuse('RACED', digits(record.g)) end
if version >= VERSION_MAX then return refuse('EXHAUSTED', digits(version)) end
local early = whenCeilingReaches(record.id, version, RUN_MAX) - earliestMs
if early > 0 then return refuse('EARLY', digits(early)) end
local fault
fault, detail = checkCheckpoint(record, floor, generationMin, ledgerMark())
if fault == 'OPERATOR' then return refuse(fault, detail) end
local generation = math.max(record.g, generationMin) + 1
word, detail = checkGeneration(generation)
if word then return refuse(word, detail) end
record.ver, record.c, record.g = version + 1, 0, generation
record.ep, record.p = server.epoch, fault and CLAIMED or OPEN
return answer(save(record), 0)
