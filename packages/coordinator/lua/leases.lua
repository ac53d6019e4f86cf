--[[
  What the scripts that show leases share: one answer with all that is known of them. Stands behind ledger.lua in front of them.
  KEYS of each  1 record · 2 ledger · 3 holders · 4 reports
  Answers       { leases, holders }. Leases: for each a line of its entry, "<ledger id of its last run> <runs> <time leased, ms>
                <number of its holder> <nonce>", and when it was reported on, " <runs from the reported run to the last one>
                <last sequence + 1> <state> <time reported, ms>" behind that. Holders: each number and, behind it, the JSON; a holder
                of many leases stands there once. Lines and not lists: others wait while the server takes an answer apart.
  Refuses       CORRUPT; with a namespace as readRecord does, too.
]]
-- Word and detail of the refusal, or nothing. Without a namespace the ledger is shown as it stands, whether or not it has a record.
local function faultOfNamespace(namespace)
  if namespace then
    local record, word, detail = readRecord(KEYS[1], namespace)
    if not record then return word, detail end
  end
  return faultOfKeys({ 'hash', 'stream', 'hash', 'hash' })
end

local function reportsIn(number)
  local packed = redis.call('HGET', KEYS[4], digits(number)) or ''
  return { packed = packed, places = placesIn(packed) }
end

local function leasesAnswer(entries)
  local lines, holders, isKnown, reports = {}, {}, {}, {}
  for i, entry in ipairs(entries) do
    local count, time, holder, leaseNonce = fieldsOf(entry)
    if not count then return refuse('CORRUPT', 'entry ' .. entry[1] .. ' of the ledger is none of ours') end
    if not isKnown[holder] then
      isKnown[holder] = true
      local json = redis.call('HGET', KEYS[3], holder)
      if not json then return refuse('CORRUPT', 'holder ' .. holder .. ' is missing') end
      holders[#holders + 1] = holder
      holders[#holders + 1] = json
    end
    local last = idOf(entry)
    local number = reportFieldOf(last)
    local field = reports[number]
    if not field then
      field = reportsIn(number)
      if not field.places then return refuse('CORRUPT', 'a report is cut short') end
      reports[number] = field
    end
    local line = digits(last) .. ' ' .. count .. ' ' .. time .. ' ' .. holder .. ' ' .. leaseNonce
    local at = field.places[last % LEDGER_IDS_PER_FIELD]
    if at then
      local _, behind, used, state, seconds, ms = struct.unpack(REPORT, field.packed, at)
      line = string.format('%s %d %d %d %.0f', line, behind, used, state, seconds * 1000 + ms)
    end
    lines[i] = line
  end
  return { lines, holders }
end
