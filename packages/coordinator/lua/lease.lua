--[[
  Raises the mark and writes the ledger entry, in one step.
  KEYS 2 ledger (entry id <ledger id of the last run>-0)
  ARGV 8 floor: greatest ledger id known to be leased · 9 least generation · 10 runs asked · 11 ledger id of a run that a holder
       proved to have, 0 for none · 12 holder as JSON · 13 nonce of the lease, which only its holder knows
  Refuses as `undoubted`, and: FORKED, EXHAUSTED, AHEAD <ms to wait>.

  The record is written first, the ledger entry last, without pcall: an error in between burns the runs, which is safe;
  the other order could leave an entry for runs that are leased again.
  Guarantees: G1 (docs/guarantees.md).
]]
local LEDGER_ID_MAX = (VERSION_MAX + 1) * VERSION_WEIGHT
local floor, generationMin = whole(ARGV[8], LEDGER_ID_MAX), whole(ARGV[9], NUMBER_MAX)
local asked, held = whole(ARGV[10], RUN_MAX), whole(ARGV[11], LEDGER_ID_MAX)
if not floor or not generationMin or not asked or asked < 1 or not held then return refuse('MISUSE', 'lease takes numbers') end

local record, word, detail = undoubted(floor, generationMin)
if not record then return refuse(word, detail) end
if ledgerIdOf(record.ver, record.c) < held then return refuse('FORKED', digits(held)) end
if record.c >= RUN_MAX then return refuse('EXHAUSTED', digits(record.ver)) end
local room = lineAt(record.id, record.ver, earliestMs) - record.c
if room < 1 then return refuse('AHEAD', digits(whenLineReaches(record.id, record.ver, record.c + 1) - earliestMs)) end

-- From the old mark upwards: a range cut short by the end of the run space must not begin below it.
local count = math.min(asked, math.max(math.floor(room / ROOM_SHARE), 1), RUN_MAX - record.c)
record.c = record.c + count
local fields = save(record)

-- Holders stand once each, under a number: the ledger names them by it and stays small.
local holder = redis.call('HGET', KEYS[3], ARGV[12])
if not holder then
  holder = digits(redis.call('HLEN', KEYS[3]) / 2 + 1)
  redis.call('HSET', KEYS[3], ARGV[12], holder, holder, ARGV[12])
end
redis.call('XADD', KEYS[2], digits(ledgerIdOf(record.ver, record.c)) .. '-0', 'n', digits(count), 't', fields.t, 'h', holder, 'x', ARGV[13])
return answer(fields, count)
