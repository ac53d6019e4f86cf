--[[
  How much of the ledger stands in archive files, whether or not it has a record. Reads only.
  KEYS 1 record · 2 archived
  ARGV 1 namespace
  Answers { store id, empty for no record; ledger id }. Refuses: CORRUPT, VERSION, FOREIGN.
]]
local word, detail = faultOfKeys({ 'hash', 'hash' })
if word then return refuse(word, detail) end
local sid = ''
if kindOf(KEYS[1]) ~= 'none' then
  local record
  record, word, detail = readRecord(KEYS[1], ARGV[1])
  if not record then return refuse(word, detail) end
  sid = record.sid
end
local through = archivedThrough(KEYS[2])
if not through then return refuse('CORRUPT', 'how much is archived is no ledger id') end
return { sid, digits(through) }
