--[[
  The record of a namespace, and the checks that every script shares. Stands in front of each other script.

  Record: one HASH
    v    schema of the record, 1
    ns   name of the namespace
    sid  store id, <uuid>.<first run>.<T0>.<rate>
    ver  version of the call numbers, 0 to 7
    c    last run leased (the high-water mark), first run - 1 when none was
    t    time of the last write, ms

  A script refuses with one leading word and changes nothing; the adapter maps that word and nothing else:
    EMPTY  no record        CORRUPT  a record or key that no script of ours wrote        VERSION  a schema of another release
    MISUSE a bad argument: a bug of the caller
]]
local SCHEMA = '1'
local RUN_MAX = 2 ^ 30 - 1
local VERSION_MAX = 7
local VERSION_WEIGHT = 2 ^ 30

local function refuse(word, detail)
  return redis.error_reply(word .. ' ' .. detail)
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

local function isAbsentOr(key, kind)
  local found = redis.call('TYPE', key)['ok']
  return found == 'none' or found == kind
end

local function nowMs()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Answers the record, or nil and the refusal.
local function readRecord(key, namespace)
  local kind = redis.call('TYPE', key)['ok']
  if kind == 'none' then return nil, refuse('EMPTY', 'no record') end
  if kind ~= 'hash' then return nil, refuse('CORRUPT', 'the record is a ' .. kind) end
  local field = redis.call('HMGET', key, 'v', 'ns', 'sid', 'ver', 'c', 't')
  if field[1] == false then return nil, refuse('CORRUPT', 'the record has no schema version') end
  if field[1] ~= SCHEMA then return nil, refuse('VERSION', field[1]) end
  if field[2] ~= namespace then return nil, refuse('CORRUPT', 'the record names another namespace') end
  local first = type(field[3]) == 'string' and string.match(field[3], '^[%x-]+%.(%d+)%.%d+%.%d+$')
  local record = {
    sid = field[3],
    first = whole(first, RUN_MAX),
    ver = whole(field[4], VERSION_MAX),
    c = whole(field[5], RUN_MAX),
    t = whole(field[6], 10 ^ 15),
  }
  if not record.first or not record.ver or not record.c or not record.t then
    return nil, refuse('CORRUPT', 'a field of the record is missing or no number')
  end
  if record.ver == 0 and record.c < record.first - 1 then return nil, refuse('CORRUPT', 'the mark is below the first run') end
  if redis.call('TTL', key) ~= -1 then return nil, refuse('CORRUPT', 'the record has a time to live') end
  return record
end
