--[[
  Raises the mark and writes the ledger entries of leases that were requested at the same moment, in one step: as if each had come
  alone, one after the other, with nothing in between.
  KEYS 2 ledger (entry id <ledger id of the last run>-0)
  ARGV 2 the first lease's nonce
       from 8 on, a word for each lease, its parts separated by spaces: its nonce · floor: greatest ledger id known to be leased · least
       generation · runs requested · ledger id of a run that a holder proved to have, 0 for none · nonce of the request, which only its
       holder knows · holder as JSON
  Answers { store id, version, t, epoch, generation, nodes, and a word for each lease: its nonce, its mark and the runs granted,
       or its nonce, the word and the detail of its own refusal }
  Refuses one as `checkCheckpoint`, and: FORKED, EXHAUSTED, AHEAD <ms to wait>; that changes nothing for the others. Refuses all as
  `checkOwned`: what can't be read for one can't for any. MISUSE, too.

  The record is written first, once, with the last mark; the ledger entries last, without pcall: an error in between discards the runs,
  which is safe; the other order could leave an entry for runs that are leased again.
  Guarantees: G1 (docs/guarantees.md).
]]
local LEDGER_ID_MAX = (VERSION_MAX + 1) * VERSION_WEIGHT
local LEASE = '^(%S+) (%d+) (%d+) (%d+) (%d+) (%S+) ({.*})$'

local function requestIn(text)
  local nonce, floor, generationMin, runs, provenRun, leaseNonce, holder = string.match(text, LEASE)
  local request = {
    nonce = nonce, floor = whole(floor, LEDGER_ID_MAX), generationMin = whole(generationMin, NUMBER_MAX),
    runs = whole(runs, RUN_MAX), provenRun = whole(provenRun, LEDGER_ID_MAX), leaseNonce = leaseNonce, holder = holder,
  }
  local isSound = request.floor and request.generationMin and request.runs and request.runs >= 1 and request.provenRun
  return isSound and request or nil
end

local leases = {}
for at = 8, math.max(#ARGV, 8) do
  local lease = requestIn(ARGV[at] or '')
  if not lease then return refuse('MISUSE', 'lease takes numbers') end
  leases[#leases + 1] = lease
end

local record, word, detail = checkOwned()
if not record then return refuse(word, detail) end
local known = ledgerMark()

local function refusalOf(lease)
  local word, detail = checkCheckpoint(record, lease.floor, lease.generationMin, known)
  if word then return word, detail end
  if ledgerIdOf(record.ver, record.c) < lease.provenRun then return 'FORKED', digits(lease.provenRun) end
  if record.c >= RUN_MAX then return 'EXHAUSTED', digits(record.ver) end
  if ceilingAt(record.id, record.ver, earliestMs) - record.c < 1 then
    return 'AHEAD', digits(whenCeilingReaches(record.id, record.ver, record.c + 1) - earliestMs)
  end
end

local granted, results = {}, {}
for i, lease in ipairs(leases) do
  word, detail = refusalOf(lease)
  if not word then
    -- From the old mark upwards: a range cut short by the end of the run space must not begin below it.
    local headroom = ceilingAt(record.id, record.ver, earliestMs) - record.c
    lease.count = math.min(lease.runs, math.max(math.floor(headroom / ROOM_SHARE), 1), RUN_MAX - record.c)
    record.c = record.c + lease.count
    lease.mark = record.c
    granted[#granted + 1] = lease
    word, detail = digits(lease.mark), digits(lease.count)
  end
  results[i] = table.concat({ lease.nonce, word, detail }, ' ')
end

local head = { record.sid, digits(record.ver), '', record.ep, digits(record.g), digits(record.n) }
if granted[1] then
  head[3] = save(record).t

  -- Holders are stored once each, under a number: the ledger names them by it and stays small.
  local holders, fresh = {}, {}
  for i, lease in ipairs(granted) do holders[i] = lease.holder end
  local numbers = redis.call('HMGET', KEYS[3], unpack(holders))
  local numberOf, count = {}, nil
  for i, lease in ipairs(granted) do
    local number = numbers[i] or numberOf[lease.holder]
    if not number then
      count = (count or redis.call('HLEN', KEYS[3]) / 2) + 1
      number = digits(count)
      numberOf[lease.holder] = number
      for _, text in ipairs({ lease.holder, number, number, lease.holder }) do fresh[#fresh + 1] = text end
    end
    lease.number = number
  end
  if fresh[1] then redis.call('HSET', KEYS[3], unpack(fresh)) end
  for _, lease in ipairs(granted) do
    local id = digits(ledgerIdOf(record.ver, lease.mark)) .. '-0'
    redis.call('XADD', KEYS[2], id, 'n', digits(lease.count), 't', head[3], 'h', lease.number, 'x', lease.leaseNonce)
  end
end
for _, text in ipairs(results) do head[#head + 1] = text end
return head
