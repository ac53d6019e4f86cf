--[[
  How a ledger is written down, for the scripts that read it and for those that write reports. Comes after record.lua in front
  of them.

  Entry of the ledger (STREAM): id <ledger id of the lease's last run>-0, fields, in this order: n runs · t time leased, ms ·
    h number of the holder · x nonce.
  Reports (HASH): field = floor(ledger id of the last run / 128), value = the reports on those leases, 11 bytes each, big endian:
    ledger id of the last run modulo 128 (1), runs from the reported run to the last one (1), last sequence + 1 (2), state, 0 open
    1 exhausted 2 closed 3 discarded (1), time: seconds (4), milliseconds (2).
  Retention (HASH): fields days = how long leases stay, 0 or none for all of them · through = ledger id up to which leases were trimmed:
    none is left up to there · leasedAtMs = when the newest of those was leased. In a key of its own, not in the record: the guard
    does not know it.
]]
local LEDGER_ID_MAX = (VERSION_MAX + 1) * VERSION_WEIGHT
local REPORT = '>BBHBI4H'
local REPORT_BYTES = 11
-- So that two leases of the greatest size still share a field, which takes more memory than the reports in it. Not more: each
-- report writes its whole field again.
local LEDGER_IDS_PER_FIELD = 128

local function faultOfKeys(kinds)
  for i, kind in ipairs(kinds) do
    if not isAbsentOr(KEYS[i], kind) then return 'CORRUPT', 'a key of the namespace has another type' end
  end
end

-- The first entry at or after a ledger id.
local function entryFrom(key, id)
  return redis.call('XRANGE', key, digits(id) .. '-0', '+', 'COUNT', 1)[1]
end

local function idOf(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end

-- Runs, time, number of the holder and nonce, all text; or nothing for an entry that no script of ours wrote.
local function fieldsOf(entry)
  local f = entry[2]
  if f[1] == 'n' and f[3] == 't' and f[5] == 'h' and f[7] == 'x' then return f[2], f[4], f[6], f[8] end
end

-- Number of the field of the reports that holds the one on a lease.
local function reportFieldOf(last)
  return math.floor(last / LEDGER_IDS_PER_FIELD)
end

-- Where in the value of their field each report begins, by its first byte; nil for a value that no script of ours wrote.
local function placesIn(packed)
  if #packed % REPORT_BYTES ~= 0 then return nil end
  local places = {}
  for at = 1, #packed, REPORT_BYTES do places[string.byte(packed, at)] = at end
  return places
end
