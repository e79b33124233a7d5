-- Judges a list of candidates of one subject, in order, in one atomic step: a
-- candidate is admitted if each of its caps has room or holds its id already,
-- and then takes a slot under every cap that lacks the id. Otherwise nothing is
-- charged for it. Begins with presumed.lua and record.lua.
--
-- ARGV[1]     how many candidates are to be taken; 0 is all that have room
-- ARGV[2]     6 bytes, the token of short holds
-- ARGV[3]     the number of counters
-- ARGV[4]     what is presumed, if there is a KEYS[2]: see presumed.lua
-- then, for each counter:
--   name      of its section
--   span      in milliseconds
--   limit
--   tally     what a section that has one needs; of kinds b and c alone
-- then, for each candidate:
--   id        6 bytes
--   channel   2 bytes
--   hold      in milliseconds, after which what was charged lapses; 0 is never.
--             -1 says that the candidate only looks: nothing is charged. Less than
--             that is a short hold of so long, which waits to be confirmed
--   n         the number of its caps
--   n pairs   number of the cap's counter, from 1; and its room here
--
-- Result: a flat list of integers: now, and for each candidate in order
--   admitted  0: no; 1: yes, and nothing was charged; 2: yes, and something was,
--             or is renewed by confirming it; 3: it would be, and as many as are
--             to be taken had been
--   n times   used: slots that are taken, the candidate's own included once
--             charged; full: 1 if this cap had no room for the candidate, 2 if it
--             lets it through only because it holds its id, while no room would
--             be left for it by now, 3 if the candidate's short hold has a slot
--             of it that comes free when it is dropped, 4 if both; and an instant
--             in milliseconds, 0 for none: of a full cap, when it will have room,
--             of any other, when its oldest slot comes free. After a 2 or 4, two
--             more: when the id is forgotten, and when there is room again after
--             that
--
-- If the script fails, nothing was charged: it writes once, at the end.

local left, token, counters, arg = tonumber(ARGV[1]), ARGV[2], {}, KEYS[2] and 5 or 4
local taking = left > 0

for i = 1, tonumber(ARGV[3]) do
  local name, limit = ARGV[arg], tonumber(ARGV[arg + 2])
  local kind = byte(name)
  local tallied = kind == 98 or kind == 99
  local s = section(name, tonumber(ARGV[arg + 1]), tallied and ARGV[arg + 3])
  if s.limit ~= limit then
    s.limit, s.head = limit, nil
  end
  counters[i] = s
  arg = arg + (tallied and 4 or 3)
end

-- When the nth of the slots that are taken comes free, the first being the 0th.
local function leaves(s, nth)
  if s.kind == 114 then
    return (nth == 0 and s.first or timeAt(s.log, nth * 14 + 1)) + s.span
  elseif s.kind == 99 then
    return s.ends
  end
  for i, n in ipairs(s.counts) do
    nth = nth - n
    if nth < 0 then
      return (s.bucket + i + s.n) * s.width
    end
  end
  return 0
end

-- When a cap that has no room for a candidate will have it; 0 is never.
local function opens(s, taken, room)
  return room > 0 and leaves(s, taken - room) or 0
end

local result = {now}
local stamp = six(now)

local function judge()
  local id, tag, length, n = ARGV[arg], ARGV[arg + 1], tonumber(ARGV[arg + 2]), tonumber(ARGV[arg + 3])
  local from, reserve, admitted = arg + 4, length ~= -1, 1
  arg = from + 2 * n
  local states = {} -- of each cap: its section, its room, and where its entry of the id begins, if it has one
  for i = 1, 3 * n, 3 do
    local s, room = counters[tonumber(ARGV[from])], tonumber(ARGV[from + 1])
    from = from + 2
    local at = entryOf(s.log, id)
    states[i], states[i + 1], states[i + 2] = s, room, at or false
    if not at and used(s) >= room then
      admitted = 0
    end
  end
  if admitted == 1 and reserve and taking and left == 0 then
    admitted = 3
  elseif admitted == 1 and reserve then
    left = left - 1
    for i = 1, 3 * n, 3 do
      local s, at = states[i], states[i + 2]
      local mine, since, till = true, nil, nil -- to hold, if anything is held; from and until when, if not from now on
      if not at then
        mine = s.charged ~= id
        if mine then
          if holds[1] then
            rare.forsake(s, id .. tag)
          end
          charge(s, now, stamp, id, tag)
          s.charged = id
        end
      elseif sub(s.log, at + 12, at + 13) ~= tag and not noteOf(s, id, tag, 'uU') then
        if holds[1] then
          rare.forsake(s, id .. tag)
        end
        rare.addNote(s, now, id, tag, 'u')
        since = 0 -- the slot is another channel's
      elseif holds[1] then
        local renews
        mine, renews, since, till = rare.takeOver(s, at, id, tag, length)
        if renews then
          admitted = 2
        end
      else
        mine = false
      end
      if mine then
        admitted = 2
        if length ~= 0 then
          rare.hold(s.name, id .. tag, length < 0, since or now, till or now + math.abs(length), token)
        end
      end
    end
  end
  local r = #result + 1
  result[r] = admitted
  for i = 1, 3 * n, 3 do
    local s, room, at = states[i], states[i + 1], states[i + 2]
    local taken, flag, resets = used(s), 0, 0
    if not at and s.charged ~= id and taken >= room then
      flag, resets = 1, opens(s, taken, room)
    elseif taken > 0 then
      resets = leaves(s, 0)
    end
    if at and (taken > room or taken == room and s.kind ~= 114) then
      local lapses, returns = timeAt(s.log, at) + s.span, opens(s, taken, room)
      if returns == 0 or returns > lapses then
        flag = 2
        result[r + 4], result[r + 5] = lapses, returns
      end
    end
    local after = flag == 2 and 5 or 3
    if length < -1 and admitted == 2 and (s.charged == id or s.fresh == id) then
      if flag == 2 then
        flag = 4
      else
        flag = 3
      end
    end
    result[r + 1], result[r + 2], result[r + 3] = taken, flag, resets
    r = r + after
  end
end

while arg <= #ARGV do
  judge()
end
