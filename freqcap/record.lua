-- What a subject has been charged, as one string: read, judged, changed and
-- written again in one atomic step. judge.lua and settle.lua begin with this.
--
-- KEYS[1]  the subject's record
--
-- Numbers are unsigned and big-endian; instants are milliseconds of Redis' clock.
--
--   record   '1', 2 bytes number of holds, the holds, the sections
--   hold     6 since, 6 until, 6 id, 2 channel: what was charged for this id on
--            this channel since then lapses, unless delivery is reported before
--   section  2 length of name, the name (its first letter is the kind),
--            6 span: how long an entry is kept, 2 limit that was last judged by,
--            2 number of entries, 1 of notes, 2 length of the tally,
--            the entries by rising time, the notes, the tally
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
local delivered = 2 ^ 47
local most = 65535

local byte, char, sub, find, floor = string.byte, string.char, string.sub, string.find, math.floor

-- Lua would write a large number as 1e+12.
local function whole(n)
  return string.format('%.0f', n)
end

local function two(n)
  return char(floor(n / 256), n % 256)
end

local function six(n)
  local high, low = floor(n / 16777216), n % 16777216
  return char(floor(high / 65536), floor(high / 256) % 256, high % 256, floor(low / 65536), floor(low / 256) % 256, low % 256)
end

local function number(text, at, length)
  local n = 0
  for i = at, at + length - 1 do
    n = n * 256 + byte(text, i)
  end
  return n
end

-- The time of the entry that begins at some place of a log.
local function timeAt(log, at)
  local a, b, c, d, e, f = byte(log, at, at + 5)
  return ((((a % 128 * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end

local function isDelivered(log, at)
  return byte(log, at) >= 128
end

local held = redis.call('GET', KEYS[1])
local holds, sections, byName = {}, {}, {}
local changed = false -- the record has to be written

local function parse()
  if byte(held, 1) ~= 49 then
    error('the record of caps has a form that is not known')
  end
  local at = 4
  for i = 1, number(held, 2, 2) do
    holds[i] = {since = number(held, at, 6), till = number(held, at + 6, 6), id = sub(held, at + 12, at + 17), tag = sub(held, at + 18, at + 19)}
    at = at + 20
  end
  local last = #held
  while at <= last do
    local high, low = byte(held, at, at + 1)
    local p = at + high * 256 + low + 2
    local s1, s2, s3, s4, s5, s6, l1, l2, n1, n2, notes, t1, t2 = byte(held, p, p + 12)
    local s = {
      name = sub(held, at + 2, p - 1),
      span = ((((s1 * 256 + s2) * 256 + s3) * 256 + s4) * 256 + s5) * 256 + s6,
      limit = l1 * 256 + l2, entries = n1 * 256 + n2, notes = notes, from = at, body = p + 13,
    }
    s.notesAt = s.body + s.entries * 14
    s.tallyAt = s.notesAt + notes * 15
    at = s.tallyAt + t1 * 256 + t2
    s.till = at - 1
    sections[#sections + 1] = s
    byName[s.name] = s
  end
  if at ~= last + 1 then
    error('the record of caps ends early')
  end
end

if held then
  parse()
end

-- The tally of buckets, moved on to now.
local function openBuckets(s, width, n)
  local first, counts = floor(now / width) - n, {}
  if s.tallyAt and s.tallyAt <= s.till then
    local was = number(held, s.tallyAt + 7, 6)
    first = math.max(first, was)
    for i = first - was, n do
      counts[#counts + 1] = number(held, s.tallyAt + 13 + 2 * i, 2)
    end
  end
  while #counts <= n do
    counts[#counts + 1] = 0
  end
  s.width, s.n, s.first, s.counts = width, n, first, counts
end

local function openCalendar(s)
  if s.tallyAt and s.tallyAt <= s.till then
    s.label, s.since = number(held, s.tallyAt, 4), number(held, s.tallyAt + 4, 6)
    s.ends, s.count = number(held, s.tallyAt + 10, 6), number(held, s.tallyAt + 16, 2)
  else
    s.label, s.since, s.ends, s.count = 0, 0, 0, 0
  end
end

-- How many entries of a log are older than their span: they are in front.
local function expired(log, span)
  local low, high = 0, #log / 14 -- entries before low are, from high on they are not
  local latest = now - span
  if high == 0 or timeAt(log, 1) > latest then
    return 0
  end
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

-- Reads the rest of a section, without what is older than its span.
local function open(s)
  if s.log then
    return s
  end
  s.kind = byte(s.name)
  s.log, s.note = '', ''
  if s.from then
    s.log = sub(held, s.body, s.notesAt - 1)
    local gone = expired(s.log, s.span)
    if gone > 0 then
      s.log = sub(s.log, gone * 14 + 1)
    end
    local at = s.notesAt
    while at < s.tallyAt and timeAt(held, at) <= now - s.span do
      at = at + 15
    end
    s.note = sub(held, at, s.tallyAt - 1)
    if s.kind == 98 then
      openBuckets(s, number(held, s.tallyAt, 6), byte(held, s.tallyAt + 6))
    elseif s.kind == 99 then
      openCalendar(s)
    end
  end
  return s
end

-- Holds a tally of the calendar against the periods around now, of which there
-- are three: each its label and start, and the end of the last. A greater label
-- than the stored one begins anew; a smaller one, of a user who has moved west,
-- does not.
local function turn(s, periods)
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
      local begins = math.max(from, ends)
      s.label, s.ends, s.count, s.since = label, till, 0, math.min(begins, now)
      for at = 1, #s.log, 14 do -- delivered in this period, and reported before anybody asked in it
        if begins <= now and timeAt(s.log, at) >= begins then
          s.count = s.count + 1
        end
      end
    end
  end
end

-- Finds or makes a section, as it is judged now. tally says what kinds that have
-- one need: the width of buckets and how many they are, or the periods.
local function section(name, span, tally)
  local s = byName[name]
  if not s then
    s = {name = name, limit = 0}
    sections[#sections + 1], byName[name] = s, s
  end
  s.span = byte(name) == 62 and s.span and math.max(s.span, span) or span
  open(s)
  if s.kind == 98 and not s.counts then
    local width, n = string.match(tally, '^(%d+) (%d+)$')
    openBuckets(s, tonumber(width), tonumber(n))
  elseif s.kind == 99 then
    if not s.label then
      openCalendar(s)
    end
    turn(s, tally)
  end
  return s
end

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
  for at = 1, #s.note, 15 do
    if sub(s.note, at + 6, at + 11) == id and (tag == '' or sub(s.note, at + 12, at + 13) == tag)
      and find(letters, sub(s.note, at + 14, at + 14), 1, true) then
      return at
    end
  end
end

local function unnote(s, at)
  s.note = sub(s.note, 1, at - 1) .. sub(s.note, at + 15)
  s.dirty, changed = true, true
end

-- Notes stand by rising time. The oldest make way for new ones.
local function addNote(s, time, id, tag, letter)
  local at = #s.note + 1
  while at > 1 and timeAt(s.note, at - 15) > time do
    at = at - 15
  end
  s.note = sub(s.note, 1, at - 1) .. six(time) .. id .. tag .. letter .. sub(s.note, at)
  if #s.note > 64 * 15 then
    s.note = sub(s.note, 16)
  end
  s.dirty, changed = true, true
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

local function tally(s, time, by)
  if s.kind == 98 then
    local i = math.min(floor(time / s.width) - s.first, s.n) + 1
    if i >= 1 then
      s.counts[i] = math.max(0, math.min(s.counts[i] + by, most))
    end
  elseif s.kind == 99 and time >= s.since then
    s.count = math.max(0, math.min(s.count + by, most))
  end
end

-- Takes a slot for an id at some time. Nothing is taken beyond what can be
-- written.
local function charge(s, time, id, tag)
  if #s.log >= most * 14 then
    return
  end
  local stale = noteOf(s, id, '', 'uU') -- of a slot that was taken before, and has left
  while stale do
    unnote(s, stale)
    stale = noteOf(s, id, '', 'uU')
  end
  local at = #s.log + 1
  while at > 1 and timeAt(s.log, at - 14) > time % delivered do
    at = at - 14
  end
  s.log = sub(s.log, 1, at - 1) .. six(time) .. id .. tag .. sub(s.log, at)
  tally(s, time % delivered, 1)
  s.dirty, changed = true, true
end

-- Takes a channel off the slot of an id, and tells whether that is free now:
-- whether no other channel uses it. letter is what is noted, or nothing.
local function release(s, at, id, tag, letter)
  local time = timeAt(s.log, at)
  local other = noteOf(s, id, '', 'uU')
  if other then
    local stamp = time
    if sub(s.note, other + 14, other + 14) == 'U' then
      stamp = time + delivered
    end
    s.log = sub(s.log, 1, at - 1) .. six(stamp) .. id .. sub(s.note, other + 12, other + 13) .. sub(s.log, at + 14)
    unnote(s, other)
  else
    s.log = sub(s.log, 1, at - 1) .. sub(s.log, at + 14)
    tally(s, time, -1)
  end
  s.dirty, changed = true, true
  if letter then
    addNote(s, time, id, tag, letter)
  end
  return not other
end

-- Drops what was charged for an id on a channel since some time.
local function drop(hold, letter)
  for _, s in ipairs(sections) do
    open(s)
    local at = entryOf(s.log, hold.id)
    if at and sub(s.log, at + 12, at + 13) == hold.tag and timeAt(s.log, at) >= hold.since then
      release(s, at, hold.id, hold.tag, letter)
    else
      local note = noteOf(s, hold.id, hold.tag, 'u')
      if note and timeAt(s.note, note) >= hold.since then
        local time = timeAt(s.note, note)
        unnote(s, note)
        if letter then
          addNote(s, time, hold.id, hold.tag, letter)
        end
      end
    end
  end
end

-- Lets holds lapse that are over.
local standing = {}
for _, hold in ipairs(holds) do
  if hold.till > now then
    standing[#standing + 1] = hold
  else
    drop(hold, 'l')
  end
end
holds = standing

-- What has lapsed need not be written for its own sake.
changed = false

local function encode(s)
  local written = {
    two(#s.name), s.name, six(s.span), two(s.limit), two(#s.log / 14), char(#s.note / 15),
  }
  local counted = ''
  if s.kind == 98 then
    local parts = {six(s.width), char(s.n), six(s.first)}
    for i = 1, s.n + 1 do
      parts[#parts + 1] = two(s.counts[i])
    end
    counted = table.concat(parts)
  elseif s.kind == 99 then
    counted = two(floor(s.label / 65536)) .. two(s.label % 65536) .. six(s.since) .. six(s.ends) .. two(s.count)
  end
  written[#written + 1] = two(#counted)
  written[#written + 1] = s.log
  written[#written + 1] = s.note
  written[#written + 1] = counted
  return table.concat(written)
end

-- When nothing of a section is of use any more.
local function over(s)
  local last = 0
  if s.dirty then
    if #s.log > 0 then
      last = timeAt(s.log, #s.log - 13) + s.span
    end
    if #s.note > 0 then
      last = math.max(last, timeAt(s.note, #s.note - 14) + s.span)
    end
    if s.kind == 98 and used(s) > 0 then
      last = math.max(last, (s.first + 2 * s.n + 1) * s.width)
    elseif s.kind == 99 and s.count > 0 then
      last = math.max(last, s.ends)
    end
    return last
  end
  if not s.from then
    return 0
  end
  if s.entries > 0 then
    last = timeAt(held, s.notesAt - 14) + s.span
  end
  if s.notes > 0 then
    last = math.max(last, timeAt(held, s.tallyAt - 15) + s.span)
  end
  local kind = byte(s.name)
  if kind == 98 then
    local width, n = number(held, s.tallyAt, 6), byte(held, s.tallyAt + 6)
    last = math.max(last, (number(held, s.tallyAt + 7, 6) + 2 * n + 1) * width)
  elseif kind == 99 then
    last = math.max(last, number(held, s.tallyAt + 10, 6))
  end
  return last
end

-- Writes what was changed; what is of no more use leaves. A record without a TTL
-- is given one in any case.
local function write()
  if not changed then
    if held and redis.call('PTTL', KEYS[1]) == -1 then
      local last = now
      for _, s in ipairs(sections) do
        if s.from then
          last = math.max(last, over(s))
        end
      end
      redis.call('PEXPIRE', KEYS[1], whole(last - now + slack))
    end
    return
  end
  local parts, last = {'', ''}, 0
  for _, s in ipairs(sections) do
    local leaves = over(s)
    if leaves + slack > now then
      last = math.max(last, leaves)
      parts[#parts + 1] = s.dirty and encode(s) or s.from and sub(held, s.from, s.till) or nil
    end
  end
  if last == 0 then
    redis.call('PEXPIRE', KEYS[1], 0)
    return
  end
  parts[1] = '1' .. two(#holds)
  for i, hold in ipairs(holds) do
    holds[i] = six(hold.since) .. six(hold.till) .. hold.id .. hold.tag
  end
  parts[2] = table.concat(holds)
  redis.call('SET', KEYS[1], table.concat(parts), 'PX', whole(last - now + slack))
end
