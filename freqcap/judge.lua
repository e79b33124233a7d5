-- Judges a list of candidates of one subject, in order, in one atomic step: a
-- candidate is admitted if each of its caps has room or holds its id already,
-- and then takes a slot under every cap that lacks the id. Otherwise nothing is
-- charged for it. Begins with record.lua.
--
-- ARGV[1]     how many candidates are to be taken; 0 is all that have room
-- ARGV[2]     the number of counters
-- then, for each counter:
--   name      of its section
--   span      in milliseconds
--   limit
--   tally     what a section that has one needs
-- then, for each candidate:
--   id        6 bytes
--   channel   2 bytes
--   mode      'reserve', or 'look': nothing is charged for it
--   hold      in milliseconds, after which what was charged lapses; 0 is never
--   n         the number of its caps
--   n pairs   number of the cap's counter, from 1; and its room here
--
-- Result: a flat list of integers: now, and for each candidate in order
--   admitted  0: no; 1: yes, and nothing was charged; 2: yes, and something was;
--             3: it would be, and as many as are to be taken had been
--   n times   used: slots that are taken, the candidate's own included once
--             charged; full: 1 if this cap had no room for the candidate; and
--             three instants in milliseconds, 0 for none: of a full cap, when
--             it will have room, of any other, when its oldest slot comes free;
--             and of one that lets the candidate through only because it
--             holds its id, while more is taken than it has room for by now,
--             when that is forgotten and when there is room again after that
--
-- If the script fails, nothing was charged: it writes once, at the end.

local left, counters, arg = tonumber(ARGV[1]), {}, 3
local taking = left > 0

for i = 1, tonumber(ARGV[2]) do
  local s = section(ARGV[arg], tonumber(ARGV[arg + 1]), ARGV[arg + 3])
  s.limit = tonumber(ARGV[arg + 2])
  counters[i] = s
  arg = arg + 4
end

-- When the nth of the slots that are taken comes free, the first being the 0th.
local function leaves(s, nth)
  if s.kind == 114 then
    return timeAt(s.log, nth * 14 + 1) + s.span
  elseif s.kind == 99 then
    return s.ends
  end
  for i, n in ipairs(s.counts) do
    nth = nth - n
    if nth < 0 then
      return (s.first + i + s.n) * s.width
    end
  end
  return 0
end

local function resets(s, taken, room, full)
  if not full then
    return taken > 0 and leaves(s, 0) or 0
  end
  return room > 0 and leaves(s, taken - room) or 0
end

-- When a held id will be forgotten, and when there is room again after that, if
-- there is a time between the two.
local function lapse(s, taken, room, lapses)
  if not lapses or taken <= room then
    return 0, 0
  end
  local returns = room > 0 and leaves(s, taken - room) or 0
  if returns > 0 and returns <= lapses then
    return 0, 0
  end
  return lapses, returns
end

local result = {now}
local stamp = six(now)

-- Puts a candidate's slot, or its channel's use of one, into a section.
local function take(s, id, tag)
  local at = entryOf(s.log, id)
  if not at then
    charge(s, now, id, tag)
    return true
  end
  if sub(s.log, at + 12, at + 13) == tag or noteOf(s, id, tag, 'uU') then
    return false
  end
  addNote(s, now, id, tag, 'u')
  return true
end

local function judge()
  local id, tag, reserve, length, n = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2] == 'reserve', tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4])
  local from = arg + 5
  arg = from + 2 * n
  local admitted, lapses, full, taken = 1, {}, {}, {}
  for i = 1, n do
    local s, room = counters[tonumber(ARGV[from + 2 * i - 2])], tonumber(ARGV[from + 2 * i - 1])
    local at = entryOf(s.log, id)
    taken[i] = used(s)
    lapses[i] = at and timeAt(s.log, at) + s.span
    full[i] = not at and taken[i] >= room
    if full[i] then
      admitted = 0
    end
  end
  if admitted == 1 and reserve and taking and left == 0 then
    admitted = 3
  elseif admitted == 1 and reserve then
    left = left - 1
    for i = 1, n do
      local s = counters[tonumber(ARGV[from + 2 * i - 2])]
      if take(s, id, tag) then
        admitted = 2
      end
    end
    for i = 1, n do
      taken[i] = used(counters[tonumber(ARGV[from + 2 * i - 2])])
    end
    if admitted == 2 and length > 0 then
      holds[#holds + 1] = {since = now, till = now + length, id = id, tag = tag}
    end
  end
  result[#result + 1] = admitted
  for i = 1, n do
    local s, room, r = counters[tonumber(ARGV[from + 2 * i - 2])], tonumber(ARGV[from + 2 * i - 1]), #result
    result[r + 1], result[r + 2], result[r + 3] = taken[i], full[i] and 1 or 0, resets(s, taken[i], room, full[i])
    result[r + 4], result[r + 5] = lapse(s, taken[i], room, lapses[i])
  end
end

while arg <= #ARGV do
  judge()
end

write()
return result
