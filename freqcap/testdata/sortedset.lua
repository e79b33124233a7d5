-- Judges a list of candidates of one user, in order, in one atomic step: a
-- candidate is admitted if each of its caps has room or holds its id already,
-- and then takes a slot under every cap that lacks the id. Otherwise nothing
-- is charged for it.
--
-- A cap's log is a sorted set: member = notification id, score = the instant
-- of the charge in milliseconds of Redis' clock. An entry counts while its
-- score is later than now - window, so that one exactly a window old has left
-- and a clock that steps back frees nothing.
--
-- KEYS        the logs that the candidates touch, each once, all of one slot
-- ARGV[1]...  for each of KEYS its window in milliseconds
-- then, for each candidate:
--   id        of the notification
--   mode      'reserve', or 'look': nothing is charged for it
--   n         the number of its caps
--   n pairs   number of the cap's log within KEYS, from 1; and its limit here
--
-- Result: a flat list of integers, for each candidate in order
--   admitted  1 or 0
--   n times   used: entries that count, the candidate's own included once
--             charged; full: 1 if this cap had no room for the candidate; and
--             three instants in milliseconds, 0 for none: of a full log, when
--             it will have room, of any other, when its oldest entry leaves;
--             and of one that lets the candidate through only because it
--             holds its id, while more are in it than the limit is by now,
--             when that entry leaves and when there is room again after that
--
-- Every log that is found or made has a TTL afterwards. Expired entries are
-- removed from a log that is charged.
--
-- If the script fails, nothing was charged: each key is read before the first
-- write, which finds one that is no log, and the first write is a ZADD, which
-- a Redis that is out of memory refuses. Later ones it no longer would.

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

-- A key outlives its newest entry by this much, in milliseconds, so that a
-- small step back of the clock does not find it gone.
local slack = 5000

-- Lua would write a large number as 1e+12.
local function whole(n)
  return string.format('%.0f', n)
end

local stamp = whole(now)
local logs = {}
for i, key in ipairs(KEYS) do
  local window = tonumber(ARGV[i])
  local expired = whole(now - window)
  logs[i] = {
    key = key,
    window = window,
    expired = expired, -- the latest score that no longer counts
    after = '(' .. expired, -- scores beyond it, as a range begins
    used = redis.call('ZCOUNT', key, '(' .. expired, '+inf'),
  }
end

-- When the candidate's own entry leaves, or nothing where none counts.
local function own(log, id)
  local score = log.used > 0 and redis.call('ZSCORE', log.key, id)
  if score and tonumber(score) > tonumber(log.expired) then
    return tonumber(score) + log.window
  end
end

-- When the nth of the entries that count leaves, the oldest being the 0th.
local function leaves(log, nth)
  if nth == 0 and log.first then
    return log.first
  end
  local entry = redis.call('ZRANGEBYSCORE', log.key, log.after, '+inf', 'WITHSCORES', 'LIMIT', whole(nth), 1)
  local at = tonumber(entry[2]) + log.window
  if nth == 0 then
    log.first = at
  end
  return at
end

-- A candidate may name one log twice; it is charged once.
local function charge(log, id)
  if log.charged == id then
    return
  end
  redis.call('ZADD', log.key, stamp, id)
  log.charged = id
  if log.used == 0 then
    log.newest = now
  end
  if log.used == 0 or log.first and log.first > now + log.window then
    log.first = now + log.window
  end
  log.used = log.used + 1
end

local function resets(log, limit, full)
  if not full then
    return log.used > 0 and leaves(log, 0) or 0
  end
  return limit > 0 and leaves(log, log.used - limit) or 0
end

-- When a held entry will have lapsed, and when there is room again after that,
-- if there is a time between the two.
local function lapse(log, limit, lapses)
  if not lapses or log.used <= limit then
    return 0, 0
  end
  local returns = limit > 0 and leaves(log, log.used - limit) or 0
  if returns > 0 and returns <= lapses then
    return 0, 0
  end
  return lapses, returns
end

local result = {}
local arg = #KEYS + 1

local function judge()
  local id, reserve, n = ARGV[arg], ARGV[arg + 1] == 'reserve', tonumber(ARGV[arg + 2])
  arg = arg + 3
  local caps, admitted = {}, true
  for i = 1, n do
    local log, limit = logs[tonumber(ARGV[arg])], tonumber(ARGV[arg + 1])
    arg = arg + 2
    local held = own(log, id)
    caps[i] = {log = log, limit = limit, held = held, full = not held and log.used >= limit}
    admitted = admitted and not caps[i].full
  end
  if reserve and admitted then
    for _, cap in ipairs(caps) do
      if not cap.held then
        charge(cap.log, id)
      end
    end
  end
  result[#result + 1] = admitted and 1 or 0
  for _, cap in ipairs(caps) do
    result[#result + 1] = cap.log.used
    result[#result + 1] = cap.full and 1 or 0
    result[#result + 1] = resets(cap.log, cap.limit, cap.full)
    result[#result + 1], result[#result + 2] = lapse(cap.log, cap.limit, cap.held)
  end
end

while arg <= #ARGV do
  judge()
end

for _, log in ipairs(logs) do
  if log.charged then
    redis.call('ZREMRANGEBYSCORE', log.key, '-inf', log.expired)
  end
  if log.charged or redis.call('PTTL', log.key) == -1 then
    -- The newest entry may be of a time that the clock has stepped back from.
    local newest = log.newest or redis.call('ZRANGE', log.key, -1, -1, 'WITHSCORES')[2]
    local left = math.max(tonumber(newest) + log.window - now, 0)
    redis.call('PEXPIRE', log.key, whole(left + slack))
  end
end

return result
