-- What a subject has been charged, as one string: read, judged, changed and
-- written again in one atomic step. A script is this, slots.lua, judge.lua or
-- settle.lua, and write.lua, one after the other.
--
-- KEYS[1]  the subject's record
--
-- Numbers are unsigned and big-endian; instants are milliseconds of Redis' clock.
--
--   record   '1', 2 bytes number of holds, the holds, the sections
--   hold     1 kind, 6 since, 6 until, 6 token, 6 id, 2 channel, 1 number of
--            sections, and for each 2 length of name and the name: in these what
--            was charged for this id on this channel lapses then. A long one (l)
--            waits for delivery to be reported; a short one (s) waits for whoever
--            has the token to say whether other subjects had room, too. since is
--            when it was charged, 0 if the slot was another channel's already
--   section  2 length of name, the name (its first letter is the kind),
--            5 span: how long an entry is kept, 2 limit that was last judged by,
--            2 number of entries, 1 of notes, the entries by rising time, the
--            notes, and of kinds b and c the tally
--   entry    6 time and, in its highest bit, whether delivery was reported;
--            6 id, 2 channel. One for each notification that takes a slot
--   note     an entry and 1 letter: u, the channel uses the id's slot as well
--            (U, and has delivered); g, the slot was given back; l, its hold has
--            lapsed
--   tally    of kind b (buckets): 6 width of one, 1 how many are a window,
--            6 number of the first since 1970, 2 each count of them and one more.
--            of kind c (calendar): 4 label, 6 since when it is counted,
--            6 when it ends, 2 count
--
-- A slot is an entry that counts: of kind r (rolling) every one that is not a
-- span old; of the others the tally counts, and entries only remember ids.
-- Kind > counts nothing: its entries say that another subject, which it names,
-- holds slots for the id.

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

-- A record outlives what is in it by this much, in milliseconds, so that a small
-- step back of the clock does not find it gone.
local slack = 5000

-- No record is of use for longer than this: one that says so is damaged.
local longest = 100 * 86400000
local delivered = 2 ^ 47

-- How many entries a section has at most, how many of them where they only
-- remember ids, how many notes, and how many holds a record.
local mostEntries, mostIDs, mostNotes, mostHolds = 65535, 10000, 250, 3000

local byte, char, sub, find, floor, max, call = string.byte, string.char, string.sub, string.find, math.floor, math.max, redis.call

local function six(n)
  local high, low = floor(n / 16777216), n % 16777216
  return char(floor(high / 65536), floor(high / 256) % 256, high % 256, floor(low / 65536), floor(low / 256) % 256, low % 256)
end

-- The time of the entry that begins at some place of a log.
local function timeAt(log, at)
  local a, b, c, d, e, f = byte(log, at, at + 5)
  return ((((a % 128 * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end

local held = call('GET', KEYS[1])
local holds, latest, standing = {}, nil, 0 -- latest: by id and channel; standing: how many have not been ended
local sections, byName = {}, {}
local changed = false -- the record has to be written

-- Where the entry of an id begins in a log, or nothing.
local function entryOf(log, id)
  local at = log ~= '' and find(log, id, 7, true)
  while at and (at - 7) % 14 ~= 0 do
    at = find(log, id, at + 1, true)
  end
  return at and at - 6
end

-- Where a note of an id begins that satisfies a channel, '' for any, and one of
-- some letters.
local function noteOf(s, id, tag, letters)
  if s.note == '' then
    return nil
  end
  for at = 1, #s.note, 15 do
    if sub(s.note, at + 6, at + 11) == id and (tag == '' or sub(s.note, at + 12, at + 13) == tag)
      and find(letters, sub(s.note, at + 14, at + 14), 1, true) then
      return at
    end
  end
end

-- The slots that are taken.
local function used(s)
  if s.kind == 114 then
    return #s.log / 14
  elseif s.kind == 98 then
    local sum = 0
    for _, n in ipairs(s.counts) do
      sum = sum + n
    end
    return sum
  elseif s.kind == 99 then
    return s.ends > now and s.count or 0
  end
  return 0
end

-- What is rarely needed is made when it is, all at once: making a function takes
-- as long as many a call of one.
local rare, open
local function make()
  local function number(text, at, length)
    local n = 0
    for i = at, at + length - 1 do
      n = n * 256 + byte(text, i)
    end
    return n
  end

  local function two(n)
    return char(floor(n / 256), n % 256)
  end

  rare.number, rare.two, latest = number, two, {}

  -- A record that is not understood is left alone, but not for ever.
  function rare.bad(why)
    if call('PTTL', KEYS[1]) == -1 then
      call('PEXPIRE', KEYS[1], 31 * 86400000)
    end
    error('the record of caps ' .. why)
  end

  local function list(hold)
    hold.before = latest[hold.who]
    latest[hold.who] = hold
    holds[#holds + 1], standing = hold, standing + 1
  end

  -- Reads as many holds as it says from some place on, as far as it takes to see
  -- which are over; and tells where the sections begin.
  function rare.readHolds(at, n)
    for _ = 1, n do
      local kind, names = byte(held, at), byte(held, at + 27)
      if names == nil or names == 0 or kind ~= 108 and kind ~= 115 then
        rare.bad('has a hold that is not understood')
      end
      local hold = {till = timeAt(held, at + 7), who = sub(held, at + 19, at + 26), from = at, to = nil, before = nil, names = nil}
      at = at + 28
      for _ = 1, names do
        local high, low = byte(held, at, at + 1)
        if not low then
          rare.bad('ends early')
        end
        at = at + 2 + high * 256 + low
      end
      hold.to = at - 1
      list(hold)
    end
    return at
  end

  -- Reads the rest of a hold. names is empty once it has ended; from is nothing
  -- once it is not as it was.
  local function openHold(hold)
    if hold.names then
      return hold
    end
    local at = hold.from + 28
    hold.short, hold.since, hold.token, hold.names = byte(held, at - 28) == 115, timeAt(held, at - 27), sub(held, at - 15, at - 10), {}
    for i = 1, byte(held, at - 1) do
      local length = number(held, at, 2)
      hold.names[i] = sub(held, at + 2, at + 1 + length)
      at = at + 2 + length
    end
    return hold
  end

  rare.openHold = openHold

  local function writeHold(hold)
    local parts = {(hold.short and 's' or 'l') .. six(hold.since) .. six(hold.till) .. hold.token .. hold.who .. char(#hold.names)}
    for _, name in ipairs(hold.names) do
      parts[#parts + 1] = two(#name) .. name
    end
    return table.concat(parts)
  end

  -- Writes the holds that stand. Those that are as they were are taken over, as
  -- many at once as stand together.
  function rare.writeHolds()
    local parts, from, to = {}, 1, 0
    for _, hold in ipairs(holds) do
      if hold.from and hold.from == to + 1 then
        to = hold.to
      else
        if to >= from then
          parts[#parts + 1] = sub(held, from, to)
        end
        from, to = 1, 0
        if hold.from then
          from, to = hold.from, hold.to
        elseif #hold.names > 0 then
          parts[#parts + 1] = writeHold(hold)
        end
      end
    end
    if to >= from then
      parts[#parts + 1] = sub(held, from, to)
    end
    return table.concat(parts)
  end

  -- Holds what was charged in a section since some time for an id on a channel,
  -- which are who, beside what has just been held for it in the same way.
  function rare.hold(name, who, short, since, till, token)
    local hold = latest[who]
    changed = true
    if hold and #openHold(hold).names > 0 and #hold.names < 255 and hold.short == short and hold.since == since and hold.till == till and hold.token == token then
      hold.names[#hold.names + 1], hold.from = name, nil
    elseif standing >= mostHolds then
      error('a subject has too many holds')
    else
      list({short = short, since = since, till = till, token = token, who = who, names = {name}})
    end
  end

  -- The hold that has a section for an id on a channel, and the place of its name
  -- there; or nothing.
  function rare.holdOf(name, who)
    local hold = latest[who]
    while hold do
      for i, has in ipairs(openHold(hold).names) do
        if has == name then
          return hold, i
        end
      end
      hold = hold.before
    end
  end

  -- Takes a section out of the hold that has it, and returns what that was.
  function rare.unhold(name, who)
    local hold, i = rare.holdOf(name, who)
    if hold then
      table.remove(hold.names, i)
      hold.from, changed = nil, true
      if #hold.names == 0 then
        standing = standing - 1
      end
    end
    return hold
  end

  -- The holds of an id on a channel, '' for every one, that stand.
  function rare.holdsFor(id, tag)
    local found = {}
    for _, hold in ipairs(holds) do
      if sub(hold.who, 1, 6) == id and (tag == '' or sub(hold.who, 7) == tag) and #openHold(hold).names > 0 then
        found[#found + 1] = hold
      end
    end
    return found
  end

  function rare.endHold(hold)
    hold.names, hold.from, standing, changed = {}, nil, standing - 1, true
  end

  -- What an ask holds that finds its slot held already, by itself before or by
  -- another: whether anything; whether confirming it renews what is held, which is
  -- of a short hold that finds a long one; since when; and until when. Never is
  -- what was held for longer cut short.
  function rare.takeOver(s, at, id, tag, length)
    local hold = rare.holdOf(s.name, id .. tag)
    if not hold then
      return false
    elseif length < 0 and not hold.short then
      return false, true
    end
    local till = max(hold.till, now + math.abs(length))
    if length > 0 and not hold.short and till == hold.till then
      return false
    end
    if sub(s.log, at + 12, at + 13) == tag and not noteOf(s, id, '', 'uU') then
      s.fresh = id
    end
    rare.unhold(s.name, id .. tag)
    return true, false, hold.since, till
  end

  -- Makes way for an id on a channel that is charged anew in a section, which no
  -- longer knows it, though a hold of it stands: what that has is dropped.
  function rare.forsake(s, who)
    local hold = rare.unhold(s.name, who)
    while hold do
      rare.tally(s, hold.since, -1)
      hold = rare.unhold(s.name, who)
    end
  end

  -- How many entries of a log are older than their span: they are in front.
  function rare.expired(log, span)
    local low, high = 0, #log / 14 -- entries before low are, from high on they are not
    local latest = now - span
    while low < high do
      local middle = floor((low + high) / 2)
      if timeAt(log, middle * 14 + 1) > latest then
        high = middle
      else
        low = middle + 1
      end
    end
    return low
  end

  -- The tally of buckets, moved on to now.
  function rare.openBuckets(s, width, n)
    if width < 1 or n < 1 then
      rare.bad('has buckets of no width')
    end
    local first, counts = floor(now / width) - n, {}
    if s.tallyAt and s.tallyAt <= s.till then
      local was = number(held, s.tallyAt + 7, 6)
      first = max(first, was)
      for i = first - was, n do
        counts[#counts + 1] = number(held, s.tallyAt + 13 + 2 * i, 2)
      end
    end
    while #counts <= n do
      counts[#counts + 1] = 0
    end
    s.width, s.n, s.bucket, s.counts = width, n, first, counts
  end

  function rare.openCalendar(s)
    if s.tallyAt and s.tallyAt <= s.till then
      s.label, s.since = number(held, s.tallyAt, 4), number(held, s.tallyAt + 4, 6)
      s.ends, s.count = number(held, s.tallyAt + 10, 6), number(held, s.tallyAt + 16, 2)
    else
      s.label, s.since, s.ends, s.count = 0, 0, 0, 0
    end
  end

  -- Holds a tally of the calendar against the periods around now, of which there
  -- are three: each its label and start, and the end of the last. A greater label
  -- than the stored one begins anew; a smaller one, of a user who has moved west,
  -- does not.
  function rare.turn(s, periods)
    local p = {}
    for n in string.gmatch(periods, '%d+') do
      p[#p + 1] = tonumber(n)
    end
    if now < p[2] or now >= p[7] then
      error('the clocks of the gate and of Redis are days apart')
    end
    local ends = s.ends
    for i = 1, 5, 2 do
      local label, from, till = p[i], p[i + 1], p[i + 3] or p[7]
      if i == 5 then
        till = p[7]
      end
      if label == s.label then
        s.ends = till
      elseif label > s.label and now >= from and now < till then
        local begins = max(from, ends)
        s.label, s.ends, s.count, s.since = label, till, 0, math.min(begins, now)
        for at = 1, #s.log, 14 do -- delivered in this period, and reported before anybody asked in it
          if begins <= now and timeAt(s.log, at) >= begins then
            s.count = s.count + 1
          end
        end
      end
    end
  end

  -- Forgets uses of slots that have left.
  function rare.forgetUses(s)
    for at = #s.note - 14, 1, -15 do
      if find('uU', sub(s.note, at + 14, at + 14), 1, true) and not entryOf(s.log, sub(s.note, at + 6, at + 11)) then
        s.note = sub(s.note, 1, at - 1) .. sub(s.note, at + 15)
      end
    end
  end

  function rare.unnote(s, at)
    s.note = sub(s.note, 1, at - 1) .. sub(s.note, at + 15)
    s.dirty, changed = true, true
  end

  -- Notes stand by rising time. The oldest make way for new ones.
  function rare.addNote(s, time, id, tag, letter)
    local at = #s.note + 1
    while at > 1 and timeAt(s.note, at - 15) > time do
      at = at - 15
    end
    s.note = sub(s.note, 1, at - 1) .. six(time) .. id .. tag .. letter .. sub(s.note, at)
    if #s.note > mostNotes * 15 then -- of those that are least needed the oldest
      at = 1
      while at < #s.note and find('uU', sub(s.note, at + 14, at + 14), 1, true) do
        at = at + 15
      end
      if at >= #s.note then
        at = 1
        local entry = entryOf(s.log, sub(s.note, 7, 12))
        if entry and byte(s.log, entry) < 128 then -- who uses the slot is not known any more: it is not given back
          s.log = sub(s.log, 1, entry - 1) .. six(timeAt(s.log, entry) + delivered) .. sub(s.log, entry + 6)
        end
      end
      s.note = sub(s.note, 1, at - 1) .. sub(s.note, at + 15)
    end
    s.dirty, changed = true, true
  end

  function rare.tally(s, time, by)
    if s.kind == 98 then
      local i = math.min(floor(time / s.width) - s.bucket, s.n) + 1
      if i < 1 and by > 0 then -- the clock has stepped back
        i = 1
      end
      if i >= 1 then
        s.counts[i] = max(0, math.min(s.counts[i] + by, 65535))
      end
    elseif s.kind == 99 then
      if by > 0 then
        s.since = math.min(s.since, time)
      end
      if time >= s.since then
        s.count = max(0, math.min(s.count + by, 65535))
      end
    end
  end

  -- Takes a channel off the slot of an id, and tells whether that is free now:
  -- whether no other channel uses it. letter is what is noted, or nothing.
  function rare.release(s, at, id, tag, letter)
    local time = timeAt(s.log, at)
    local other = noteOf(s, id, '', 'uU')
    if other then
      local stamp = time
      if sub(s.note, other + 14, other + 14) == 'U' then
        stamp = time + delivered
      end
      local channel = sub(s.note, other + 12, other + 13)
      s.log = sub(s.log, 1, at - 1) .. six(stamp) .. id .. channel .. sub(s.log, at + 14)
      rare.unnote(s, other)
    else
      s.log = sub(s.log, 1, at - 1) .. sub(s.log, at + 14)
      s.first = s.log ~= '' and timeAt(s.log, 1)
      rare.tally(s, time, -1)
    end
    s.dirty, changed = true, true
    if letter then
      rare.addNote(s, time, id, tag, letter)
    end
    return not other
  end

  -- Drops what a hold holds, and ends it; and tells whether a slot came free.
  -- letter is what is noted, or nothing.
  function rare.drop(hold, letter)
    local id, tag, free = sub(hold.who, 1, 6), sub(hold.who, 7, 8), false
    for _, name in ipairs(hold.names) do
      local s = byName[name]
      local at = s and entryOf(open(s).log, id)
      local note = at and noteOf(s, id, tag, 'u')
      if at and sub(s.log, at + 12, at + 13) == tag then
        if byte(s.log, at) < 128 and rare.release(s, at, id, tag, letter) then
          free = true
        end
      elseif note then
        rare.unnote(s, note)
        if letter then
          rare.addNote(s, timeAt(s.log, at), id, tag, letter)
        end
      elseif s and not at and s.kind ~= 114 then -- the id is forgotten already, its slot is not
        rare.tally(s, hold.since, -1)
        s.dirty, free = true, true
      end
    end
    rare.endHold(hold)
    return free
  end

  function rare.encodeTally(s)
    if s.kind == 98 then
      local parts = {six(s.width), char(s.n), six(s.bucket)}
      for i = 1, s.n + 1 do
        parts[#parts + 1] = two(s.counts[i])
      end
      return table.concat(parts)
    elseif s.kind == 99 then
      return two(floor(s.label / 65536)) .. two(s.label % 65536) .. six(s.since) .. six(s.ends) .. two(s.count)
    end
    return ''
  end
end
rare = setmetatable({}, {__index = function(made, name)
  make()
  return rawget(made, name)
end})

if held then
  local form, high, low = byte(held, 1, 3)
  if form ~= 49 or not low then
    rare.bad('has a form that is not known')
  end
  local at, last = 4, #held
  if high + low > 0 then
    at = rare.readHolds(at, high * 256 + low)
  end
  local n = 0
  while at <= last do
    local high, low, kind = byte(held, at, at + 2)
    local p = at + high * 256 + (low or 0) + 2
    local s1, s2, s3, s4, s5, l1, l2, n1, n2, notes = byte(held, p, p + 9)
    if not notes then
      rare.bad('ends early')
    end
    local notesAt = p + 10 + (n1 * 256 + n2) * 14
    local tallyAt = notesAt + notes * 15
    local name, till = sub(held, at + 2, p - 1), tallyAt - 1
    if kind == 98 then
      till = tallyAt + 14 + 2 * (byte(held, tallyAt + 6) or 0)
    elseif kind == 99 then
      till = tallyAt + 17
    elseif kind ~= 114 and kind ~= 62 then
      rare.bad('has a section of a kind that is not known')
    end
    local s = {
      name = name, span = (((s1 * 256 + s2) * 256 + s3) * 256 + s4) * 256 + s5, limit = l1 * 256 + l2,
      from = at, head = p + 6, body = p + 10, notesAt = notesAt, tallyAt = tallyAt, till = till,
      -- and what open and others set
      kind = nil, log = nil, note = nil, first = nil, dirty = nil,
    }
    n = n + 1
    sections[n], byName[name] = s, s
    at = till + 1
  end
  if at ~= last + 1 then
    rare.bad('ends early')
  end
end
