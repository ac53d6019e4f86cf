--[[
  Ends leasing: permanently for a store that moves, until `recover` for one of two copies.
  ARGV 8 floor · 9 least generation · 10 seal: "moved" and the store id and place it moves to, or "forked"
  Refuses as `checkHealthy`; a move as `checkMovable`, and: RACED <generation>, to a store that would begin in a version which this one has reached.
  The seal of a move is set again where it is set already: only an answer to this very step proves that the quorum has it.
  Guarantees: G13 (docs/guarantees.md).
]]
local floor, generationMin = whole(ARGV[8], (VERSION_MAX + 1) * VERSION_WEIGHT), whole(ARGV[9], NUMBER_MAX)
local isMove = isMovedSeal(ARGV[10])
if not floor or not generationMin or not (isMove or ARGV[10] == 'forked') then return refuse('MISUSE', 'seal takes numbers and a seal') end
if not isMove then
  local record, word, detail = checkHealthy(floor, generationMin)
  if not record then return refuse(word, detail) end
  record.p, record.ph = SEALED, ARGV[10]
  return answer(save(record), 0)
end
local record, word, detail = checkMovable(ARGV[10])
if not record then return refuse(word, detail) end
local nextId = parseStoreId(string.match(ARGV[10], '^moved ([^@]+)@'))
local known = math.max(ledgerIdOf(record.ver, record.c), floor, ledgerMark())
if record.p ~= SEALED and nextId and nextId.ver <= math.floor(known / VERSION_WEIGHT) then
  return refuse('RACED', digits(record.g))
end
record.ep, record.p, record.ph = server.epoch, SEALED, ARGV[10]
return answer(save(record), 0)
