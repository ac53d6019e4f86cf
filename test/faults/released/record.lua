--[[
  The record of a namespace, and the checks that every script shares. Comes before each other script.

  Record: one HASH, all fields text
    v    schema of the record, 2
    ns   name of the namespace
    sid  store id, <uuid>.<first ledger id>.<T0>.<rate>; a ledger id is version * 2^30 + run
    ver  version of the call numbers, 0 to 7
    c    last run leased (the high-water mark), first run - 1 when none was
    t    time of the last write, ms
    ep   epoch under which leasing was last claimed
    g    generation, one more with each claim
    p    0 open, 1 claimed and not yet confirmed, 2 sealed
    n    number of data nodes, this one included
    rk   key of the lease proofs, 64 hex digits
    ph   the seal: "-" for none, "moved" and the store id and place it moved to, or "forked"
    k    checksum: SHA-1 over all other fields, a line each, in this order

  A script refuses with one leading word, the caller's nonce and a detail, and changes nothing; the adapter reads no more:
    EMPTY   no record                     CORRUPT  a record or key that no script of ours wrote
    VERSION a schema of another release   MISUSE   a bad argument: a bug of the caller
  Guarantees: G5 (docs/guarantees.md).
]]
local SCHEMA = '2'
local RUN_MAX = 2 ^ 30 - 1
local VERSION_MAX = 7
local VERSION_WEIGHT = 2 ^ 30
local NUMBER_MAX = 10 ^ 15 - 1
local NODE_COUNT_MAX = 99
local OPEN, CLAIMED, SEALED = 0, 1, 2
local FIELDS = { 'v', 'ns', 'sid', 'ver', 'c', 't', 'ep', 'g', 'p', 'n', 'rk', 'ph' }
local HEX4 = string.rep('[0-9a-f]', 4)
local STORE_ID = '^' .. HEX4 .. HEX4 .. '%-' .. HEX4 .. '%-' .. HEX4 .. '%-' .. HEX4 .. '%-' .. HEX4 .. HEX4 .. HEX4
  .. '%.(%d+)%.(%d+)%.(%d+)$'

-- Set by the scripts that are steps: their callers believe no answer without it.
local nonce = '-'

local function refuse(word, detail)
  return redis.error_reply(word .. ' ' .. nonce .. ' ' .. detail)
end

-- tonumber alone takes 'NaN', '1e3' and '0x10', and NaN passes every comparison with "not".
local function whole(text, max)
  if type(text) ~= 'string' or not string.match(text, '^%d+$') or #text > 15 then return nil end
  local number = tonumber(text)
  if number > max then return nil end
  return number
end

local function digits(number)
  return string.format('%.0f', number)
end

local function kindOf(key)
  return redis.call('TYPE', key)['ok']
end

local function isAbsentOr(key, kind)
  local found = kindOf(key)
  return found == 'none' or found == kind
end

local function nowMs()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- A section of INFO, nil when the user may not read it; and the value of a line in it.
local function infoText(section)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and text or nil
end

-- Found as plain text: as a pattern it would take longer than INFO itself.
local function infoField(text, name)
  local _, last = string.find(text or '', '\n' .. name .. ':', 1, true)
  return last and string.match(text, '^[^\r\n]+', last + 1)
end

local function matchesWhole(text, pattern, lengthMin, lengthMax)
  return type(text) == 'string' and #text >= lengthMin and #text <= lengthMax and string.match(text, pattern) ~= nil
end

-- "moved", or "moved" and what follows it, 1 to 480 characters: <store id>@<place>.
local function isMovedSeal(text)
  return text == 'moved' or matchesWhole(text, '^moved [!-~]+$', 7, 486)
end

local function textOfMove(text)
  return string.sub(text, 7)
end

-- Word and detail for a record that is sealed.
local function refuseSealed(record)
  if isMovedSeal(record.ph) then return 'MOVED', textOfMove(record.ph) end
  return 'FORKED', '0'
end

-- The fields of a store id, or nil.
local function parseStoreId(text)
  if type(text) ~= 'string' then return nil end
  local first, begin, rate = string.match(text, STORE_ID)
  if not first or #first > 10 or #begin > 15 or #rate > 2 then return nil end
  local id = {
    ver = math.floor(tonumber(first) / VERSION_WEIGHT), first = tonumber(first) % VERSION_WEIGHT,
    begin = tonumber(begin), rate = tonumber(rate),
  }
  if id.first < 1 or id.ver > VERSION_MAX or id.rate < 1 or id.rate > 16 then return nil end
  return id
end

local function checksumOf(fields)
  local lines = {}
  for i, name in ipairs(FIELDS) do lines[i] = fields[name] or '' end
  return redis.sha1hex(table.concat(lines, '\n'))
end

local function foundFields(key)
  local names = { 'k' }
  for i, name in ipairs(FIELDS) do names[i + 1] = name end
  local values = redis.call('HMGET', key, unpack(names))
  local fields = {}
  for i, name in ipairs(names) do fields[name] = values[i] or nil end
  return fields
end

-- Answers the record in the fields, or nil and word and detail of the refusal.
local function recordIn(fields, namespace)
  if not fields.v then return nil, 'CORRUPT', 'the record has no schema version' end
  if fields.v ~= SCHEMA then return nil, 'VERSION', fields.v end
  local record = {
    sid = fields.sid,
    id = parseStoreId(fields.sid),
    ns = fields.ns,
    ver = whole(fields.ver, VERSION_MAX),
    c = whole(fields.c, RUN_MAX),
    t = whole(fields.t, NUMBER_MAX),
    ep = fields.ep,
    g = whole(fields.g, NUMBER_MAX),
    p = whole(fields.p, SEALED),
    n = whole(fields.n, NODE_COUNT_MAX),
    rk = fields.rk,
    ph = fields.ph,
  }
  local isSound = record.id and record.ver and record.c and record.t and record.g and record.p and record.n
    and record.n >= 1
    and matchesWhole(fields.ep, '^[0-9a-zA-Z:-]+$', 1, 128)
    and matchesWhole(fields.rk, '^[0-9a-f]+$', 64, 64)
    and (fields.ph == '-' or isMovedSeal(fields.ph) or fields.ph == 'forked')
  if not isSound then return nil, 'CORRUPT', "a field of the record is missing or can't be" end
  if fields.k ~= checksumOf(fields) then return nil, 'CORRUPT', 'the checksum of the record is wrong' end
  if (record.ver - record.id.ver) * VERSION_WEIGHT + record.c < record.id.first - 1 then
    return nil, 'CORRUPT', 'the mark is below the first run'
  end
  if record.ns ~= namespace then return nil, 'FOREIGN', fields.sid end
  return record
end

-- Answers the record, or nil and word and detail of the refusal.
local function readRecord(key, namespace)
  local kind = kindOf(key)
  if kind == 'none' then return nil, 'EMPTY', 'no record' end
  if kind ~= 'hash' then return nil, 'CORRUPT', 'the record is no hash' end
  local record, word, detail = recordIn(foundFields(key), namespace)
  if not record then return nil, word, detail end
  if redis.call('TTL', key) ~= -1 then return nil, 'CORRUPT', 'the record has a time to live' end
  return record
end
