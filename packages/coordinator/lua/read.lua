--[[
  Reads the record of a namespace, with all checks.
  KEYS 1 record
  ARGV 1 namespace
  Answers { store id, version, last run leased, time of the last write in ms }. Refuses: EMPTY, CORRUPT, VERSION.
]]
local record, refusal = readRecord(KEYS[1], ARGV[1])
if not record then return refusal end
return { record.sid, digits(record.ver), digits(record.c), digits(record.t) }
