-- Announces a user's state: puts the record into the cache, appends the
-- message to the change stream of the user's partition, and publishes it.
--
-- KEYS[1]  the record's key (R<revision> <body>, L<token>, or nothing)
-- KEYS[2]  the partition's stream; fields m (the message) and p (id before)
-- ARGV[1]  the state's revision
-- ARGV[2]  the record, as the key will hold it
-- ARGV[3]  how long the record lasts, in milliseconds
-- ARGV[4]  the message
-- ARGV[5]  about how many entries the stream keeps
-- ARGV[6]  the channel to publish on
-- ARGV[7]  the partition's number
-- ARGV[8]  Redis' clock when the state was read from the store, microseconds
-- ARGV[9]  how old that reading may be, in microseconds
--
-- Returns the entry's id; 'older' if the key holds a newer revision, where
-- nothing is done; 'stale' if the state was read too long ago.

local time = redis.call('TIME')
local age = tonumber(time[1]) * 1000000 + tonumber(time[2]) - tonumber(ARGV[8])
if math.abs(age) > tonumber(ARGV[9]) then
  return 'stale'
end

local held = redis.call('GET', KEYS[1])
local revision = held and string.match(held, '^R(%d+) ')
if revision and tonumber(revision) > tonumber(ARGV[1]) then
  return 'older'
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])

local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
local previous = '0-0'
if last[1] then
  previous = last[1][1]
end
local id = redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[5], '*', 'm', ARGV[4], 'p', previous)
redis.call('PUBLISH', ARGV[6], ARGV[7] .. ' ' .. id .. ' ' .. previous .. ' ' .. ARGV[4])
return id
