-- Notes that a gate sweeps, and lists those that do.
--
-- KEYS[1]  the gates, by when each last said so (Redis' clock, milliseconds)
-- ARGV[1]  the gate's name
-- ARGV[2]  how long a gate counts, in milliseconds
--
-- Returns the names of all gates that count.

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. now, '+inf') -- by another clock
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZRANGE', KEYS[1], 0, -1)
