-- Reads the clock of the Redis that a key belongs to.
--
-- KEYS[1]  any key of the partition; it is not touched
--
-- Returns microseconds since 1970.

local time = redis.call('TIME')
return tonumber(time[1]) * 1000000 + tonumber(time[2])
