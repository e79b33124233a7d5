-- Writes the record if it has been changed, in one command, and ends the script
-- with its result. What is of no more use leaves; a record without a TTL is given
-- one in any case.

-- When nothing of a section is of use any more.
local function over(s)
  local last, kind = 0, byte(s.name)
  if s.dirty then
    if s.log ~= '' then
      last = timeAt(s.log, #s.log - 13) + s.span
    end
    if s.note ~= '' then
      last = max(last, timeAt(s.note, #s.note - 14) + s.span)
    end
    if kind == 98 and used(s) > 0 then
      last = max(last, (s.bucket + 2 * s.n + 1) * s.width)
    elseif kind == 99 and s.count > 0 then
      last = max(last, s.ends)
    end
  elseif s.from then
    if s.body < s.notesAt then
      last = timeAt(held, s.notesAt - 14) + s.span
    end
    if s.notesAt < s.tallyAt then
      last = max(last, timeAt(held, s.tallyAt - 15) + s.span)
    end
    if kind == 98 then
      local width, n = rare.number(held, s.tallyAt, 6), byte(held, s.tallyAt + 6)
      last = max(last, (rare.number(held, s.tallyAt + 7, 6) + 2 * n + 1) * width)
    elseif kind == 99 then
      last = max(last, rare.number(held, s.tallyAt + 10, 6))
    end
  end
  return last
end

if not changed then
  if held and call('PTTL', KEYS[1]) == -1 then
    local last = now
    for _, s in ipairs(sections) do
      last = max(last, s.from and over(s) or 0)
    end
    call('PEXPIRE', KEYS[1], math.min(last - now + slack, longest))
  end
  return result
end

local parts, n, last, gone = {'', ''}, 2, 0, false
for i = 1, #sections do
  local s = sections[i]
  local leaves = over(s)
  if leaves + slack <= now then
    byName[s.name], gone = nil, true
  else
    last = max(last, leaves)
    if s.dirty then
      local head = s.head and sub(held, s.from, s.head) or rare.two(#s.name) .. s.name .. sub(six(s.span), 2) .. rare.two(s.limit)
      local entries, counted = #s.log / 14, s.kind ~= 114 and rare.encodeTally(s) or ''
      n = n + 1
      parts[n] = head .. char(floor(entries / 256), entries % 256, #s.note / 15) .. s.log .. s.note .. counted
    elseif s.from then
      n = n + 1
      parts[n] = sub(held, s.from, s.till)
    end
  end
end
if n == 2 then
  call('PEXPIRE', KEYS[1], 0)
  return result
end
if gone and holds[1] then -- those of which nothing is left
  for _, hold in ipairs(holds) do
    local left = false
    for _, name in ipairs(rare.openHold(hold).names) do
      if byName[name] then
        left = true
      end
    end
    if not left and #hold.names > 0 then
      rare.endHold(hold)
    end
  end
end
parts[1] = char(49, floor(standing / 256), standing % 256)
if standing > 0 then
  parts[2] = rare.writeHolds()
end
call('SET', KEYS[1], table.concat(parts), 'PX', math.min(max(last - now, 0) + slack, longest))
return result
