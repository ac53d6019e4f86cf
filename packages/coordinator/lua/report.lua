--[[
  Notes how far a holder got in a lease. Progress never goes back, and a closed lease stays closed.
  KEYS 1 record · 2 ledger · 3 reports
  ARGV 1 namespace · 2 ledger id of the run · 3 nonce of the lease · 4 last sequence + 1 (0: none) · 5 state, 0 open 1 exhausted 2 closed
       3 discarded
  Answers OK. Refuses: EMPTY, CORRUPT, VERSION, NOTLEASED, NOTHOLDER, MISUSE.
]]
local CLOSED, DISCARDED = 2, 3

local record, word, detail = readRecord(KEYS[1], ARGV[1])
if not record then return refuse(word, detail) end
word, detail = faultOfKeys({ 'hash', 'stream', 'hash' })
if word then return refuse(word, detail) end
local id = whole(ARGV[2], LEDGER_ID_MAX)
local used = whole(ARGV[4], 16384)
local state = whole(ARGV[5], DISCARDED)
if not id or not used or not state then return refuse('MISUSE', 'report takes numbers') end

local entry = entryFrom(KEYS[2], id)
if not entry then return refuse('NOTLEASED', ARGV[2]) end
local last = idOf(entry)
local count, _, _, leaseNonce = fieldsOf(entry)
if not count then return refuse('CORRUPT', 'entry ' .. entry[1] .. ' of the ledger is none of ours') end
if id <= last - tonumber(count) then return refuse('NOTLEASED', ARGV[2]) end
if leaseNonce ~= ARGV[3] then return refuse('NOTHOLDER', ARGV[2]) end

local bucket = digits(reportFieldOf(last))
local offset = last % LEDGER_IDS_PER_FIELD
local packed = redis.call('HGET', KEYS[3], bucket) or ''
local places = placesIn(packed)
if not places then return refuse('CORRUPT', 'a report is cut short') end
local at = places[offset] or #packed + 1

local behind = last - id
local time = nowMs()
if at <= #packed then
  local _, knownBehind, knownUsed, knownState, seconds, ms = struct.unpack(REPORT, packed, at)
  -- A holder's report takes precedence over a coordinator's "discarded", whichever came first.
  if state == DISCARDED and knownState ~= DISCARDED then return redis.status_reply('OK') end
  time = math.max(time, seconds * 1000 + ms)
  local isFarther = knownBehind < behind or (knownBehind == behind and knownUsed > used)
  if knownState ~= DISCARDED and isFarther then
    behind, used, state = knownBehind, knownUsed, (state == CLOSED and CLOSED or knownState)
  end
  if knownState == CLOSED then state = CLOSED end
end
local report = struct.pack(REPORT, offset, behind, used, state, math.floor(time / 1000), time % 1000)
redis.call('HSET', KEYS[3], bucket, string.sub(packed, 1, at - 1) .. report .. string.sub(packed, at + REPORT_BYTES))
return redis.status_reply('OK')
