-- Sees to it that a stream has an entry, so that whoever begins to follow it
-- has one to begin from: an empty stream looks the same as one that was lost.
--
-- KEYS[1]  the stream
--
-- Returns the id of the stream's last entry and its message, which is empty
-- for the mark that is left here.

local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if not last[1] then
  return {redis.call('XADD', KEYS[1], '*', 'm', '', 'p', '0-0'), ''}
end
local message = ''
for i = 1, #last[1][2], 2 do
  if last[1][2][i] == 'm' then
    message = last[1][2][i + 1]
  end
end
return {last[1][1], message}
