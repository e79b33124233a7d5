-- Ends the script before it has done anything, unless the user's record is as the
-- caller presumes. So what was decided by a record that is remembered is charged
-- only if it is the record still. Judge.lua begins with this.
--
-- KEYS[2]  the record's key; without it nothing is presumed
-- ARGV[4]  what it has to hold, exactly
--
-- Returns 'refuted' if it holds something else, or nothing.

if KEYS[2] and redis.call('GET', KEYS[2]) ~= ARGV[4] then
  return 'refuted'
end

