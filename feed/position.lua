-- Appends a position's mark to the change stream of a partition, and publishes
-- it as a change is published, so that every entry that a follower hears names
-- the one that it heard before.
--
-- KEYS[1]  the partition's stream; fields m (the mark) and p (id before)
-- ARGV[1]  the mark, `#` and the position's token
-- ARGV[2]  about how many entries the stream keeps
-- ARGV[3]  the channel to publish on
-- ARGV[4]  the partition's number
--
-- Returns the mark's id.

local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local previous = '0-0'
if last[1] then
  previous = last[1][1]
end
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'm', ARGV[1], 'p', previous)
redis.call('PUBLISH', ARGV[3], ARGV[4] .. ' ' .. id .. ' ' .. previous .. ' ' .. ARGV[1])
return id
