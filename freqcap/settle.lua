-- Takes reports of what became of notifications of one subject, in order, in one
-- atomic step. Follows record.lua and slots.lua, and write.lua ends it.
--
-- ARGV, for each report:
--   what      'delivered', or 'failed': slots that it took are given back;
--             'confirm': what a short hold holds is kept, or held as long as a
--             hold is; 'drop': it is dropped
--   id        6 bytes
--   channel   2 bytes, or '': every channel
--   at        when that was, in milliseconds; 0 is now. A failure is of an attempt
--             before if that is 10 s or more before the slot was taken. Of
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
  local note = noteOf(s, id, tag, 'u') or not mine and noteOf(s, id, tag, 'gl')
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
  if not note and not mine and noteOf(s, id, tag, 'U') then
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
      seen.ignored = byte(s.log, entry) < 128
      return known
    end
    if rare.release(s, entry, id, sub(s.log, entry + 12, entry + 13), 'g') then
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
  if note and not (at and timeAt(s.note, note) > at + tolerance) then
    local channel = sub(s.note, note + 12, note + 13)
    rare.unnote(s, note)
    rare.addNote(s, timeAt(s.log, entry), id, channel, 'g')
    seen.settled = true
  elseif noteOf(s, id, tag, 'uUgl') then
    seen.before = true
  end
  return known
end

-- Makes a short hold a long one, or none. Another ask of the same id may have
-- taken over what it held; all that matters is that it is there.
local function confirm(seen, id, tag, at, length, from, n)
  local names = {}
  seen.settled = true
  for i = 1, n do
    local name = ARGV[from + 4 * i - 4]
    local s = byName[name]
    if not s or not entryOf(open(s).log, id) then
      seen.settled = false
    elseif rare.unhold(name, id, tag, true) then
      names[#names + 1] = name
    end
  end
  if length > 0 then
    rare.hold({short = false, since = at, till = at + length, token = '......', id = id, tag = tag, names = names})
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
    for h = #holds, 1, -1 do
      local hold = holds[h]
      if hold.short and hold.token == token and hold.id == id and hold.tag == tag then
        table.remove(holds, h)
        rare.drop(hold, nil)
        seen.back, changed = true, true
      end
    end
    n = 0
  elseif what == 'delivered' then
    for _, s in ipairs(sections) do
      if deliver(seen, open(s), id, tag, at) and s.kind == 62 then
        others[#others + 1] = s.name
      end
    end
    seen.settled = rare.endHolds(id, tag) or seen.settled
  else
    for _, s in ipairs(sections) do
      if giveBack(seen, open(s), id, tag, dated) and s.kind == 62 then
        others[#others + 1] = s.name
      end
    end
    seen.settled = not seen.ignored and rare.endHolds(id, tag) or seen.settled
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
