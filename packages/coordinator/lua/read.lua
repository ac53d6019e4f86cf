--[[
  Reads the record of a namespace, with all checks of the record and none of the guard.
  KEYS 1 record
  ARGV 1 namespace
  Answers { store id, version, mark, t, generation, phase, nodes, key of the lease proofs, seal }. Refuses: EMPTY, CORRUPT, VERSION, FOREIGN.
]]
local record, word, detail = readRecord(KEYS[1], ARGV[1])
if not record then return refuse(word, detail) end
return {
  record.sid, digits(record.ver), digits(record.c), digits(record.t), digits(record.g), digits(record.p), digits(record.n), record.rk,
  record.ph,
}
