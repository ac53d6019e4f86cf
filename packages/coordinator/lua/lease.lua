--[[
  Raises the mark and writes the ledger entry, in one step.
  KEYS 1 record · 2 ledger (STREAM, entry id <ledger id of the last run>-0) · 3 holders (HASH)
  ARGV 1 namespace · 2 runs asked · 3 floor: greatest ledger id known to the caller · 4 nonce · 5 holder as JSON
  Answers { store id, version, first run, number of runs, time of the lease in ms }.
  Refuses, with nothing changed: EMPTY, CORRUPT, VERSION, ROLLBACK <mark> (the mark is below the floor or the ledger),
  EXHAUSTED <version>, MISUSE.

  The record is written first, the ledger entry last, without pcall: an error in between burns the runs, which is safe;
  the other order could leave an entry for runs that are leased again.
]]
local record, refusal = readRecord(KEYS[1], ARGV[1])
if not record then return refusal end
if not isAbsentOr(KEYS[2], 'stream') then return refuse('CORRUPT', 'the ledger is no stream') end
if not isAbsentOr(KEYS[3], 'hash') then return refuse('CORRUPT', 'the holders are no hash') end

local asked = whole(ARGV[2], RUN_MAX)
local floor = whole(ARGV[3], (VERSION_MAX + 1) * VERSION_WEIGHT)
if not asked or asked < 1 or not floor then return refuse('MISUSE', 'lease takes numbers') end

local mark = record.ver * VERSION_WEIGHT + record.c
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local ledgerMark = newest and tonumber(string.match(newest[1], '^%d+')) or 0
if mark < floor or mark < ledgerMark then return refuse('ROLLBACK', digits(mark)) end

-- From the old mark upwards: a range cut short by the end of the run space must not begin below it.
local count = math.min(asked, RUN_MAX - record.c)
if count < 1 then return refuse('EXHAUSTED', digits(record.ver)) end
local first = record.c + 1
local last = record.c + count
local time = math.max(nowMs(), record.t)

redis.call('HSET', KEYS[1], 'c', digits(last), 't', digits(time))

-- Holders stand once each, under a number: the ledger names them by it and stays small.
local holder = redis.call('HGET', KEYS[3], ARGV[5])
if not holder then
  holder = digits(redis.call('HLEN', KEYS[3]) / 2 + 1)
  redis.call('HSET', KEYS[3], ARGV[5], holder, holder, ARGV[5])
end
redis.call('XADD', KEYS[2], digits(record.ver * VERSION_WEIGHT + last) .. '-0',
  'n', digits(count), 't', digits(time), 'h', holder, 'x', ARGV[4])
return { record.sid, digits(record.ver), digits(first), digits(count), digits(time) }
