-- Takes reports of what became of notifications of one subject, in order, in one
-- atomic step. Follows record.lua and slots.lua, and write.lua ends it.
--
-- ARGV, for each report:
--   what      'delivered', or 'failed': slots that it took are given back;
--             'confirm': what a short hold holds is kept, or held as long as a
--             hold is; 'drop': it is dropped
--   id        6 bytes
--   channel   2 bytes, or '': every channel
--   at        when that was, in milliseconds; 0 is now. Of 'confirm' and 'drop',
--             when the hold began
--   hold      in milliseconds, to confirm; 0 is for good
--   n         the number of caps that the report names
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

-- Takes the holds of an id off that satisfy a channel and began between two
-- times.
local function unhold(id, tag, from, by)
  local kept, found = {}, false
  for _, hold in ipairs(holds) do
    if hold.id == id and (tag == '' or hold.tag == tag) and hold.since >= from and hold.since <= by then
      found, changed = true, true
    else
      kept[#kept + 1] = hold
    end
  end
  holds = kept
  return found
end

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
    if byte(s.log, entry) >= 128 or timeAt(s.log, entry) > at then
      seen.before = true
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
  if note and timeAt(s.note, note) <= at then
    local channel = sub(s.note, note + 12, note + 13)
    rare.unnote(s, note)
    rare.addNote(s, timeAt(s.log, entry), id, channel, 'g')
    seen.settled = true
  elseif noteOf(s, id, tag, 'uUgl') then
    seen.before = true
  end
  return known
end

local result = {}

local function settle()
  local what, id, tag, at, length, n = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2], tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4]), tonumber(ARGV[arg + 5])
  local from = arg + 6
  arg = from + 4 * n
  local seen, others = {over = 0}, {}
  if at == 0 or at > now then
    at = now
  end
  if what == 'confirm' then
    for _, hold in ipairs(holds) do
      seen.settled = seen.settled or hold.id == id and hold.tag == tag and hold.since == at
    end
    if seen.settled then
      rare.renew(id, tag, at, length)
    end
  elseif what == 'drop' then
    rare.drop({id = id, tag = tag, since = at}, nil)
    seen.back = unhold(id, tag, at, at)
  else
    local does = what == 'delivered' and deliver or giveBack
    for _, s in ipairs(sections) do
      if does(seen, open(s), id, tag, at) and s.kind == 62 then
        others[#others + 1] = s.name
      end
    end
    if unhold(id, tag, 0, what == 'delivered' and now or at) then
      seen.settled = true
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
