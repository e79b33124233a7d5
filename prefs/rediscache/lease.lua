-- Grants the right to fill a user's record, or returns what is there.
--
-- KEYS[1]  the record's key
-- ARGV[1]  the lease, as the key would hold it (L<token>)
-- ARGV[2]  least revision that is of use; an older record counts as absent
-- ARGV[3]  how long the lease lasts, in milliseconds
--
-- Returns what the key holds afterwards: ARGV[1] if the lease was granted,
-- somebody else's lease, or a record of the least revision or a newer one.

local held = redis.call('GET', KEYS[1])
if held then
  if string.sub(held, 1, 1) == 'L' then
    return held
  end
  local revision = string.match(held, '^R(%d+) ')
  if revision and tonumber(revision) >= tonumber(ARGV[2]) then
    return held
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return ARGV[1]
