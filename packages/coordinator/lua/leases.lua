--[[
  What the scripts that show leases share: one answer with all that is known of them. Stands behind ledger.lua in front of them.
  KEYS of each  1 record · 2 ledger · 3 holders · 4 reports
  Answers       { leases, holders }: of each lease { ledger id of its last run, runs, time leased (ms), number of its holder, nonce }
                and, when it was reported on, { …, runs from the reported run to the last one, last sequence + 1, state,
                time reported (ms) }; of each holder its number and, behind it, its JSON. A holder of many leases stands there once.
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

local function leasesAnswer(entries)
  local leases, holders, isKnown, reports = {}, {}, {}, {}
  for i, entry in ipairs(entries) do
    local last, fields = idOf(entry), fieldsOf(entry)
    if not (fields.n and fields.t and fields.h and fields.x) then
      return refuse('CORRUPT', 'entry ' .. entry[1] .. ' of the ledger lacks a field')
    end
    if not isKnown[fields.h] then
      isKnown[fields.h] = true
      local json = redis.call('HGET', KEYS[3], fields.h)
      if not json then return refuse('CORRUPT', 'holder ' .. fields.h .. ' is missing') end
      holders[#holders + 1] = fields.h
      holders[#holders + 1] = json
    end
    local field = reportFieldOf(last)
    if not reports[field] then
      local packed = redis.call('HGET', KEYS[4], field) or ''
      reports[field] = { packed = packed, places = placesIn(packed) }
      if not reports[field].places then return refuse('CORRUPT', 'a report is cut short') end
    end
    local lease = { last, fields.n, fields.t, fields.h, fields.x }
    local at = reports[field].places[last % LEDGER_IDS_PER_FIELD]
    if at then
      local _, behind, used, state, seconds, ms = struct.unpack(REPORT, reports[field].packed, at)
      lease[6], lease[7], lease[8], lease[9] = behind, used, state, seconds * 1000 + ms
    end
    leases[i] = lease
  end
  return { leases, holders }
end
