--[[
  Trims the oldest leases of a ledger, with the reports on them, and notes up to where it was trimmed. Comes after reports.lua.
  KEYS 1 record · 2 ledger · 3 reports · 4 retention
  ARGV 1 store id, phase and seal of the record, a field a line, empty for none · 2 ledger id up to which it was trimmed · 3 the same from
       now on · 4 when the newest lease up to there was leased (ms) · then for each lease up to there, oldest first, "<id of its
       entry> <field of its report> <first byte of it>" and the report, "" for none
  Answers 1, or 0 when anything of this is not so, or no lease lies above: then nothing is changed.
  Retention (HASH): days = how long leases stay, 0 or none for all of them · through = ledger id up to which leases were trimmed ·
    leasedAtMs = when the newest of those was leased. In a key of its own, not in the record: the guard does not know it.
]]
local record = redis.call('HMGET', KEYS[1], 'sid', 'p', 'ph')
for i = 1, 3 do record[i] = record[i] or '' end
local recordText = table.concat(record, '\n')
local trimmed = redis.call('HGET', KEYS[4], 'through') or '0'
if recordText ~= ARGV[1] or trimmed ~= ARGV[2] then return 0 end

local count, through = (#ARGV - 4) / 2, tonumber(ARGV[3])
local entries = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', count + 1)
local above = entries[count + 1] and tonumber(string.match(entries[count + 1][1], '^%d+'))
if not above and count > 0 or above and above <= through then return 0 end
local ids, fields = {}, {}
for i = 1, count do
  local id, field, first = string.match(ARGV[3 + 2 * i], '^(%S+) (%d+) (%d+)$')
  fields[field] = fields[field] or redis.call('HGET', KEYS[3], field) or ''
  local at = placeOf(fields[field], tonumber(first))
  local found, report = entries[i][1], ARGV[4 + 2 * i]
  if found ~= id or reportAt(fields[field], at) ~= report then return 0 end
  fields[field] = withReport(fields[field], at, '')
  ids[i] = found
end

redis.call('HSET', KEYS[4], 'through', ARGV[3], 'leasedAtMs', ARGV[4])
for field, packed in pairs(fields) do
  if packed == '' then redis.call('HDEL', KEYS[3], field) else redis.call('HSET', KEYS[3], field, packed) end
end
if count > 0 then redis.call('XDEL', KEYS[2], unpack(ids)) end
return 1
