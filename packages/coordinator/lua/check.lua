--[[
  How the store stands a moment after a step: the same server, in the same life, with nobody else's claim?
  KEYS 1 record
  ARGV 1 nonce
  Answers { nonce, role, epoch, generation }; "-" for what can't be read.
]]
local function info(section, name)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and string.match(text, '\n' .. name .. ':([^\r\n]+)') or '-'
end
local generation = kindOf(KEYS[1]) == 'hash' and redis.call('HGET', KEYS[1], 'g') or '-'
local epoch = table.concat({
  info('server', 'run_id'), info('replication', 'master_replid'), info('stats', 'sync_full'), info('stats', 'sync_partial_ok'),
}, ':')
return { ARGV[1], info('replication', 'role'), epoch, generation }
