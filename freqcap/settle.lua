-- Takes reports of what became of notifications of one subject, in order, in one
-- atomic step. Follows record.lua and slots.lua, and write.lua ends it.
--
-- ARGV, for each report:
--   what      'delivered', or 'failed': slots that it took are given back;
--             'confirm': what a short hold holds is kept, or held as long as a
--             hold is, all of it or, if something has lapsed, nothing; 'drop': it
--             is dropped
--   id        6 bytes
--   channel   2 bytes, or '': every channel
--   at        when that was, in milliseconds; 0 is now. A failure is of an attempt
--             before if that is more than 10 s before the slot was taken. Of
--             'confirm', when the hold began
--   hold      in milliseconds, to confirm; 0 is for good
--   token     of the short hold that is dropped
--   n         the number of caps that the report names, or that are confirmed
--   n fours   name, span, limit and tally of their counters: a delivery is
--             counted in each that knows nothing of it
--
-- Result: a flat list, for each report in order
--   status    0: nothing is known of the id; 1: what was taken stays taken;
--             2: slots were given back; 3: no cap counts that moment any more;
--             4: the same was reported before
--   now
--   over      how many caps were full when the delivery was counted
--   n         how many other subjects hold slots for the id
--   n names   of sections that say so

local arg = 1

-- Clocks of those who report may be behind by so much.
local tolerance = 10000

-- Whether what happened at some time counts in a section.
local function counts(s, at)
  if s.kind == 98 then
    return floor(at / s.width) >= s.bucket
  elseif s.kind == 99 then
    return at >= s.since
  end
  return at > now - s.span
end

local function deliver(seen, s, id, tag, at)
  local entry = entryOf(s.log, id)
  local mine = entry and (tag == '' or sub(s.log, entry + 12, entry + 13) == tag)
  if mine and byte(s.log, entry) >= 128 then
    seen.before = true
  elseif mine then
    s.log = sub(s.log, 1, entry - 1) .. six(timeAt(s.log, entry) + delivered) .. sub(s.log, entry + 6)
    s.dirty, changed, seen.settled = true, true, true
  end
  local note, counted = noteOf(s, id, tag, 'u'), noteOf(s, id, tag, 'U')
  if not note and not counted and not mine then
    note = noteOf(s, id, tag, 'gl')
  end
  if note and entry then -- another channel has the slot
    local channel = sub(s.note, note + 12, note + 13)
    rare.unnote(s, note)
    rare.addNote(s, timeAt(s.log, entry), id, channel, 'U')
    seen.settled = true
  elseif note and counts(s, at) then
    local channel = sub(s.note, note + 12, note + 13)
    rare.unnote(s, note)
    if used(s) >= s.limit and s.kind ~= 62 then
      seen.over = seen.over + 1
    end
    charge(s, at, six(at + delivered), id, channel)
    seen.settled = true
  elseif note then
    seen.late = true
  end
  if counted and not note and not mine then
    seen.before = true
  end
  return entry or note
end

local function giveBack(seen, s, id, tag, at)
  local entry = entryOf(s.log, id)
  local known = entry or noteOf(s, id, tag, 'uUgl')
  while entry and (tag == '' or sub(s.log, entry + 12, entry + 13) == tag) do
    if byte(s.log, entry) >= 128 or at and timeAt(s.log, entry) > at + tolerance then
      seen.before = true
      if byte(s.log, entry) < 128 then
        seen.ignored = true
      end
      return known
    end
    local channel = sub(s.log, entry + 12, entry + 13)
    rare.unhold(s.name, id .. channel)
    if rare.release(s, entry, id, channel, 'g') then
      seen.back = true
    else
      seen.settled = true
    end
    if tag ~= '' then
      return known
    end
    entry = entryOf(s.log, id)
  end
  local note = entry and noteOf(s, id, tag, 'u')
  if note and at and timeAt(s.note, note) > at + tolerance then
    seen.before, seen.ignored = true, true
  elseif note then
    local channel = sub(s.note, note + 12, note + 13)
    rare.unhold(s.name, id .. channel)
    rare.unnote(s, note)
    rare.addNote(s, timeAt(s.log, entry), id, channel, 'g')
    seen.settled = true
  elseif noteOf(s, id, tag, 'uUgl') then
    seen.before = true
  end
  return known
end

-- Keeps what a hold holds, for good or as long as it says; and renews what was
-- held for longer. Another ask of the same id may have taken over what it held: all
-- that matters is that it is there. If something has lapsed, nothing is kept.
local function confirm(seen, id, tag, at, length, from, n)
  for i = from, from + 4 * n - 1, 4 do
    local s = byName[ARGV[i]]
    local entry = s and entryOf(open(s).log, id)
    local there = entry and (sub(s.log, entry + 12, entry + 13) == tag or noteOf(s, id, tag, 'uU'))
    if not there and not rare.holdOf(ARGV[i], id .. tag) then
      return
    end
  end
  seen.settled = true
  for i = from, from + 4 * n - 1, 4 do
    local hold = rare.unhold(ARGV[i], id .. tag)
    if hold and length > 0 then
      local till = at + length
      if not hold.short then
        till = max(till, hold.till)
      end
      rare.hold(ARGV[i], id .. tag, false, hold.since, till, '......')
    end
  end
end

-- Drops the short hold that has a token.
local function drop(seen, id, tag, token)
  for _, hold in ipairs(rare.holdsFor(id, tag)) do
    if hold.short and hold.token == token then
      rare.drop(hold, nil)
      seen.back = true
    end
  end
end

local result = {}

local function settle()
  local what, id, tag, at, length, n = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2], tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4]), tonumber(ARGV[arg + 6])
  local token, from = ARGV[arg + 5], arg + 7
  arg = from + 4 * n
  local seen, others = {over = 0}, {}
  local dated = at > 0 and at
  if at == 0 or at > now then
    at = now
  end
  if what == 'confirm' then
    confirm(seen, id, tag, at, length, from, n)
    n = 0
  elseif what == 'drop' then
    drop(seen, id, tag, token)
    n = 0
  elseif what == 'delivered' then
    for _, s in ipairs(sections) do
      if deliver(seen, open(s), id, tag, at) and s.kind == 62 then
        others[#others + 1] = s.name
      end
    end
    if holds[1] then
      for _, hold in ipairs(rare.holdsFor(id, tag)) do
        rare.endHold(hold)
        seen.settled = true
      end
    end
  else
    for _, s in ipairs(sections) do
      if giveBack(seen, open(s), id, tag, dated) and s.kind == 62 then
        others[#others + 1] = s.name
      end
    end
    if holds[1] and not seen.ignored then
      for _, hold in ipairs(rare.holdsFor(id, tag)) do -- of what has left, or is forgotten
        seen.settled = true
        if rare.drop(hold, 'g') then
          seen.back = true
        end
      end
    end
  end
  for i = 1, n do
    local p = from + 4 * i - 4
    local s = section(ARGV[p], tonumber(ARGV[p + 1]), ARGV[p + 3])
    s.limit, s.head = tonumber(ARGV[p + 2]), nil
    if entryOf(s.log, id) then
      seen.before = true
    elseif counts(s, at) then
      if used(s) >= s.limit and s.kind ~= 62 then
        seen.over = seen.over + 1
      end
      charge(s, at, six(at + delivered), id, tag)
      seen.settled = true
    else
      seen.late = true
    end
  end
  local status = 0
  if seen.back then
    status = 2
  elseif seen.settled then
    status = 1
  elseif seen.before then
    status = 4
  elseif seen.late then
    status = 3
  end
  local r = #result
  result[r + 1], result[r + 2], result[r + 3], result[r + 4] = status, now, seen.over, #others
  for i, name in ipairs(others) do
    result[r + 4 + i] = name
  end
end

while arg <= #ARGV do
  settle()
end
