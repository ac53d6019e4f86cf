--[[
  Notes how far a holder got in a lease. Progress never goes back, and a closed lease stays closed.
  KEYS 1 record · 2 ledger · 3 reports (HASH: field = floor(ledger id / 64), value = packed reports of those leases)
  ARGV 1 namespace · 2 ledger id of the run · 3 nonce of the lease · 4 last sequence + 1 (0: none) · 5 state, 0 open 1 exhausted 2 closed
  Answers OK. Refuses: EMPTY, CORRUPT, VERSION, NOTLEASED, NOTHOLDER, MISUSE.

  A report is 11 bytes, big endian: entry's offset in its field (1), runs from the reported run to the last one (1),
  last sequence + 1 (2), state (1), time: seconds (4), milliseconds (2).
]]
local REPORT = '>BBHBI4H'
local REPORT_BYTES = 11
local LEASES_PER_FIELD = 64
local CLOSED = 2

local record, word, detail = readRecord(KEYS[1], ARGV[1])
if not record then return refuse(word, detail) end
if not isAbsentOr(KEYS[2], 'stream') then return refuse('CORRUPT', 'the ledger is no stream') end
if not isAbsentOr(KEYS[3], 'hash') then return refuse('CORRUPT', 'the reports are no hash') end
local id = whole(ARGV[2], (VERSION_MAX + 1) * VERSION_WEIGHT)
local used = whole(ARGV[4], 16384)
local state = whole(ARGV[5], CLOSED)
if not id or not used or not state then return refuse('MISUSE', 'report takes numbers') end

local entry = redis.call('XRANGE', KEYS[2], ARGV[2] .. '-0', '+', 'COUNT', 1)[1]
if not entry then return refuse('NOTLEASED', ARGV[2]) end
local last = tonumber(string.match(entry[1], '^%d+'))
local field = {}
for i = 1, #entry[2], 2 do field[entry[2][i]] = entry[2][i + 1] end
if id <= last - tonumber(field.n) then return refuse('NOTLEASED', ARGV[2]) end
if field.x ~= ARGV[3] then return refuse('NOTHOLDER', ARGV[2]) end

local bucket = digits(math.floor(last / LEASES_PER_FIELD))
local offset = last % LEASES_PER_FIELD
local packed = redis.call('HGET', KEYS[3], bucket) or ''
if #packed % REPORT_BYTES ~= 0 then return refuse('CORRUPT', 'a report is cut short') end
local at = #packed
for i = 0, #packed - 1, REPORT_BYTES do
  if string.byte(packed, i + 1) == offset then at = i end
end

local behind = last - id
local time = nowMs()
if at < #packed then
  local _, knownBehind, knownUsed, knownState, seconds, ms = struct.unpack(REPORT, packed, at + 1)
  time = math.max(time, seconds * 1000 + ms)
  if knownBehind < behind or (knownBehind == behind and knownUsed > used) then
    behind, used, state = knownBehind, knownUsed, (state == CLOSED and CLOSED or knownState)
  end
  if knownState == CLOSED then state = CLOSED end
end
local report = struct.pack(REPORT, offset, behind, used, state, math.floor(time / 1000), time % 1000)
redis.call('HSET', KEYS[3], bucket, string.sub(packed, 1, at) .. report .. string.sub(packed, at + REPORT_BYTES + 1))
return redis.status_reply('OK')
