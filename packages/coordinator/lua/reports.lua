--[[
  Where reports stand. Comes before the scripts that change them; src/stores/redis/ledger.ts reads and makes them.
  Reports (HASH): field = a part of the ledger, value = the reports on its leases, 11 bytes each, of which the first names the lease.
]]
local REPORT_BYTES = 11

-- Where the report with this first byte begins; behind the last one when there is none.
local function placeOf(packed, first)
  for at = 1, #packed, REPORT_BYTES do
    if string.byte(packed, at) == first then return at end
  end
  return #packed + 1
end

local function reportAt(packed, at)
  return string.sub(packed, at, at + REPORT_BYTES - 1)
end

-- "" in place of a report removes it.
local function withReport(packed, at, report)
  return string.sub(packed, 1, at - 1) .. report .. string.sub(packed, at + REPORT_BYTES)
end
