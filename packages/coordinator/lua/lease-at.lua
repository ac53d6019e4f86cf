--[[
  The lease whose last run is the first one at or after a run: the one that holds the run, when any does. Reads only.
  KEYS as lua/leases.lua
  ARGV 1 namespace · 2 ledger id of the run
  Answers and refuses as lua/leases.lua; and EMPTY, VERSION, FOREIGN, MISUSE.
]]
local word, detail = faultOfNamespace(ARGV[1])
if word then return refuse(word, detail) end
local id = whole(ARGV[2], LEDGER_ID_MAX)
if not id then return refuse('MISUSE', 'lease-at takes a ledger id') end
return leasesAnswer({ entryFrom(KEYS[2], id) })
