--[[
  Writes what the guard decided, if what it decided on still holds: the only script that writes a record. Knows no rule: it compares, adds,
  writes and answers. src/guard/step-store.ts does the same for the stores in the coordinator's process. Comes after
  observe.lua and entry.lua.
  KEYS    1 record · 2 ledger · 3 holders · from 4 on, for each key that ARGV 6 names, an unused one to which it is renamed first
  ARGV    1 nonce · 2 what must be the same: role, epoch, types of the keys, whether the record expires
          3 most replicas · 4 earliest and 5 latest time of the server (ms) · 6 numbers of the keys to be renamed, and
          p when the record shall not expire any more: an operator's user alone may do either
          7 the fingerprint of the record as it must be; 8 the record as it is written, a field a line, without its checksum
          If leases of others are no harm, 7 is the record as it must be, a field a line, mark, time and checksum are empty in both, and
          9 the coordinator's clock (ms) · 10 least and 11 greatest time since the last write (ms) · 12 ledger id that the mark must have
          reached · 13 greatest mark to write · 14 1 when the mark must have reached the newest entry, too; else "-", and 12 the newest
          entry's ledger id
          15 ledger id of run 0 of the version · from 16 on, for each lease its runs, its nonce and its holder as JSON
  Answers { nonce, 'done', mark, time }, or what was found.

  The record is written first, once, with the last mark; the ledger entries last, without pcall: an error in between discards the runs,
  which is safe; the other order could leave an entry for runs that are leased again.
  Guarantees: G1 (docs/guarantees.md).
]]
local MARK, TIME, CHECKSUM = 5, 6, 13
local role, runId, replId, full, partial, replicas = unpack(server)
local epoch = table.concat({ runId or '', replId or '', full or '', partial or '' }, ':')
local same = table.concat({ role or '', epoch, kinds[1], kinds[2], kinds[3], expires }, ' ')
local isFit = same == ARGV[2] and tonumber(replicas) <= tonumber(ARGV[3])
  and nowMs >= tonumber(ARGV[4]) and nowMs <= tonumber(ARGV[5])
if not isFit then return found() end

-- tonumber alone takes 'NaN', '1e3' and '0x10'.
local function whole(text) return #text <= 15 and string.match(text, '^%d+$') and tonumber(text) end

local after = {}
for text in string.gmatch(ARGV[8] .. '\n', '(.-)\n') do after[#after + 1] = text end
local isRising = ARGV[9] ~= '-'
local leases = {}
local mark, base = 0, tonumber(ARGV[15])
local isSame
if isRising then
  local still = { unpack(before, 1, CHECKSUM - 1) }
  if before[CHECKSUM] ~= redis.sha1hex(table.concat(still, '\n')) then return found() end
  local markBefore, timeBefore = whole(before[MARK]), whole(before[TIME])
  if not markBefore or not timeBefore then return found() end
  still[MARK], still[TIME], still[CHECKSUM] = '', '', ''
  local writtenAt = math.max(nowMs, tonumber(ARGV[9]))
  local age = writtenAt - timeBefore
  mark = markBefore
  for at = 16, #ARGV do
    local runs, nonce, holder = string.match(ARGV[at], '^(%d+) (%S+) ({.*})$')
    mark = mark + tonumber(runs)
    leases[#leases + 1] = { id = digits(base + mark), runs = runs, nonce = nonce, holder = holder }
  end
  isFit = age >= tonumber(ARGV[10]) and age <= tonumber(ARGV[11]) and mark <= tonumber(ARGV[13])
    and base + markBefore >= tonumber(ARGV[12]) and (ARGV[14] == '0' or base + markBefore >= tonumber(ledgerMark))
  after[MARK], after[TIME] = digits(mark), digits(math.max(timeBefore, writtenAt))
  isSame = table.concat(still, '\n') == ARGV[7]
else
  isFit = ledgerMark == ARGV[12]
  isSame = fingerprint() == ARGV[7]
end
if not isFit or not isSame then return found() end

-- First, so that a user without the right to it changes nothing. Never deletes, and never writes over a key.
local to = 4
for number in string.gmatch(ARGV[6], '%d') do
  redis.call('RENAMENX', KEYS[tonumber(number)], KEYS[to])
  to = to + 1
end
if string.find(ARGV[6], 'p', 1, true) then redis.call('PERSIST', KEYS[1]) end
after[CHECKSUM] = redis.sha1hex(table.concat(after, '\n'))
local written = {}
for i, name in ipairs(FIELDS) do
  written[2 * i - 1], written[2 * i] = name, after[i]
end
redis.call('HSET', KEYS[1], unpack(written))

for _, lease in ipairs(leases) do
  addEntry(KEYS[2], KEYS[3], lease.id, lease.runs, after[TIME], lease.nonce, lease.holder)
end
return { ARGV[1], 'done', after[MARK], after[TIME] }
