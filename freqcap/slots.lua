-- Slots: opening a section, taking a slot in it, and holds that lapse. Follows
-- record.lua.

-- Reads the rest of a section, without what is older than its span. first is the
-- time of the oldest entry, if there is one.
function open(s)
  if s.log then
    return s
  end
  local kind = byte(s.name)
  s.kind, s.log, s.note = kind, '', ''
  if s.from then
    local log, span = sub(held, s.body, s.notesAt - 1), s.span
    local first, left = log ~= '' and timeAt(log, 1), false
    if first and first <= now - span then
      log = sub(log, rare.expired(log, span) * 14 + 1)
      first, left = log ~= '' and timeAt(log, 1), true
    end
    s.log, s.first = log, first
    if s.notesAt < s.tallyAt then
      local at = s.notesAt
      while at < s.tallyAt and timeAt(held, at) <= now - span do
        at = at + 15
      end
      s.note = sub(held, at, s.tallyAt - 1)
      if left then
        rare.forgetUses(s)
      end
    end
    if kind == 98 then
      rare.openBuckets(s, rare.number(held, s.tallyAt, 6), byte(held, s.tallyAt + 6))
    elseif kind == 99 then
      rare.openCalendar(s)
    end
  end
  return s
end

-- Finds or makes a section, as it is judged now. tally says what kinds that have
-- one need: the width of buckets and how many they are, or the periods.
local function section(name, span, tally)
  local s = byName[name]
  if not s then
    s = {name = name, limit = 0, span = span, kind = nil, log = nil, note = nil, first = nil, dirty = nil}
    sections[#sections + 1], byName[name] = s, s
  end
  if s.span ~= span then
    s.span, s.head = byte(name) == 114 and span or max(s.span, span), nil
  end
  open(s)
  if s.kind == 98 and not s.counts then
    local width, n = string.match(tally, '^(%d+) (%d+)$')
    rare.openBuckets(s, tonumber(width), tonumber(n))
  elseif s.kind == 99 then
    if not s.label then
      rare.openCalendar(s)
    end
    rare.turn(s, tally)
  end
  return s
end

-- Takes a slot for an id at some time, which stamp is as it is written. Where there
-- are more than can be written, the oldest is forgotten.
local function charge(s, time, stamp, id, tag)
  local log = s.log
  if #log >= (s.kind == 114 and mostEntries or mostIDs) * 14 then
    log = sub(log, 15)
    s.first = timeAt(log, 1)
  end
  if log == '' or timeAt(log, #log - 13) <= time then
    s.log = log .. stamp .. id .. tag
  else
    local at = #log - 13
    while at > 1 and timeAt(log, at - 14) > time do
      at = at - 14
    end
    s.log = sub(log, 1, at - 1) .. stamp .. id .. tag .. sub(log, at)
  end
  if not s.first or s.first > time then
    s.first = time
  end
  if s.kind ~= 114 then
    rare.tally(s, time, 1)
  end
  s.dirty, changed = true, true
end

-- Lets holds lapse that are over. That need not be written for its own sake.
if holds[1] then
  for _, hold in ipairs(holds) do
    if hold.till <= now then
      rare.drop(rare.openHold(hold), 'l')
    end
  end
  changed = false
end
