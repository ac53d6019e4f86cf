--[[
  Makes the record again at the ceiling, and leaves it to be claimed by the next coordinator. For an operator.
  KEYS 4 to 6 free names, to which a key of another type under the first three is renamed: it is another program's, and stays
  ARGV 8 floor · 9 least generation · 10 nodes, 0: as before · 11 key of the lease proofs, for a record that is gone
  Answers  as every step, then the keys that were renamed
  Refuses: CORRUPT, FOREIGN, VERSION, NOEPOCH, REPLICA, NODES, CLOCK, CLOCKBACK, MOVED, OPERATOR, EXHAUSTED.
]]
local floor, generationMin = whole(ARGV[8], (VERSION_MAX + 1) * VERSION_WEIGHT), whole(ARGV[9], NUMBER_MAX)
local nodes = whole(ARGV[10], NODE_COUNT_MAX)
local id = parseStoreId(EXPECTED_STORE_ID)
if not id then return refuse('MISUSE', 'not a store id') end
if not floor or not generationMin or not nodes or not matchesWhole(ARGV[11], '^[0-9a-f]+$', 64, 64) then
  return refuse('MISUSE', 'recover takes numbers and a key')
end

local foreign = {}
for i, kind in ipairs({ 'hash', 'stream', 'hash' }) do
  if not isAbsentOr(KEYS[i], kind) then foreign[#foreign + 1] = i end
end
isLedgerForeign = not isAbsentOr(KEYS[2], 'stream')

local function written(record)
  -- First, so that a user without the right to it changes nothing. Never deletes, and never writes over a key.
  for _, i in ipairs(foreign) do redis.call('RENAMENX', KEYS[i], KEYS[i + 3]) end
  -- Fields that are not ours do no harm; a time to live does.
  redis.call('PERSIST', KEYS[1])
  local answered = answer(save(record), 0)
  for _, i in ipairs(foreign) do answered[#answered + 1] = KEYS[i + 3] end
  return answered
end

local kept, word, detail
if kindOf(KEYS[1]) == 'hash' then
  local fields = foundFields(KEYS[1])
  kept, word, detail = recordIn(fields, NAMESPACE)
  if kept and kept.sid ~= EXPECTED_STORE_ID then return refuse('FOREIGN', kept.sid) end
  -- A record that was edited may be recovered only as the store that it still names.
  if not kept and word ~= 'CORRUPT' then return refuse(word, detail) end
  -- What names no store may be another program's.
  if not kept and not parseStoreId(fields.sid) then table.insert(foreign, 1, 1)
  elseif not kept and fields.sid ~= EXPECTED_STORE_ID then return refuse('FOREIGN', fields.sid) end
end

local nodeCount = nodes > 0 and nodes or (kept and kept.n or 1)
word, detail = checkServer(nodeCount)
if not word then word, detail = checkClocks() end
if word then return refuse(word, detail) end
if kept and isMovedSeal(kept.ph) then
  if redis.call('TTL', KEYS[1]) == -1 and #foreign == 0 then return refuse('MOVED', textOfMove(kept.ph)) end
  -- Moved it stays. Only what every other step refuses goes.
  kept.ep = server.epoch
  return written(kept)
end
if kept then
  word, detail = checkHeartbeat(kept)
  if word then return refuse(word, detail) end
end

local floorVersion = math.floor(floor / VERSION_WEIGHT)
local versionKnown = math.floor(math.max(floor, ledgerMark()) / VERSION_WEIGHT)
-- A greater one could be written, but never be read again.
if versionKnown > VERSION_MAX then return refuse('OPERATOR', 'line') end
local record = kept or {
  ns = NAMESPACE, sid = EXPECTED_STORE_ID, id = id, ver = math.max(versionKnown, id.ver),
  c = versionKnown <= id.ver and id.first - 1 or 0,
  t = 0, g = 0, rk = ARGV[11],
}
if floorVersion > record.ver then record.ver, record.c = floorVersion, 0 end
local mark
mark, word, detail = markAfterRecovery(record.id, record.ver, record.c, floor)
if not mark then return refuse(word, detail) end
local generation = math.max(record.g + 1, generationMin + 1, latestMs)
word, detail = checkGeneration(generation)
if word then return refuse(word, detail) end
record.c, record.g = mark, generation
record.ep, record.p, record.n, record.ph = server.epoch, CLAIMED, nodeCount, '-'
return written(record)
