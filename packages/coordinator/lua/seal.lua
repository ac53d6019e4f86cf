--[[
  Ends leasing until `resume` or `recover`.
  ARGV 8 floor · 9 least generation · 10 seal: the SHA-1 of a secret, "moved" or "forked"
  Refuses as `undoubted`.
]]
local floor, generationMin = whole(ARGV[8], (VERSION_MAX + 1) * VERSION_WEIGHT), whole(ARGV[9], NUMBER_MAX)
local isSeal = ARGV[10] == 'moved' or ARGV[10] == 'forked' or matchesWhole(ARGV[10], '^[0-9a-f]+$', 40, 40)
if not floor or not generationMin or not isSeal then return refuse('MISUSE', 'seal takes numbers and a seal') end
local record, word, detail = undoubted(floor, generationMin)
if not record then return refuse(word, detail) end
record.p, record.ph = SEALED, ARGV[10]
return answer(save(record), 0)
