-- Fills a user's record, if the lease still stands. It does not if the lease
-- ran out, if the key was evicted, or if a change has written the record since:
-- whatever was read before any of these may be old.
--
-- KEYS[1]  the record's key
-- ARGV[1]  the lease, as the key holds it (L<token>)
-- ARGV[2]  the record, as the key will hold it (R<revision> <body>)
-- ARGV[3]  how long the record lasts, in milliseconds
--
-- Returns 1 if it was filled, 0 if not.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
