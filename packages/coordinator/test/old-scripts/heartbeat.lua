--[[
  Writes the time, so that no gap arises while a coordinator runs.
  ARGV 8 floor · 9 least generation
  Refuses as `checkHealthy`.
]]
local floor, generationMin = whole(ARGV[8], (VERSION_MAX + 1) * VERSION_WEIGHT), whole(ARGV[9], NUMBER_MAX)
if not floor or not generationMin then return refuse('MISUSE', 'heartbeat takes numbers') end
local record, word, detail = checkHealthy(floor, generationMin)
if not record then return refuse(word, detail) end
return answer(save(record), 0)
