--[[
  Reads server and record a moment after a step: is it the same server and epoch, without another claim?
  KEYS 1 record
  ARGV 1 nonce
  Answers { nonce, role, epoch, generation }; "-" for what can't be read.
]]
local about, replication, stats = infoText('server'), infoText('replication'), infoText('stats')
local generation = kindOf(KEYS[1]) == 'hash' and redis.call('HGET', KEYS[1], 'g') or '-'
local epoch = table.concat({
  infoField(about, 'run_id') or '-', infoField(replication, 'master_replid') or '-',
  infoField(stats, 'sync_full') or '-', infoField(stats, 'sync_partial_ok') or '-',
}, ':')
return { ARGV[1], infoField(replication, 'role') or '-', epoch, generation }
