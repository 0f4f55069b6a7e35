import { SHARED_KINDS, type SharedKind } from '../../api/lock-types';
import { KEPT } from '../../api/owner-name';
import { LockScript } from '../../redis/script';
import { IN_LUA } from '../../redis/server-errors';
import { DIGITS, EXAMINE_ERROR, examineGone, mint, NOW } from '../common/script-parts';

/*
 * A shared lock in Redis: several owners at a time, under a rule. Semaphores and read/write locks have one format. All
 * keys are in one hash slot:
 *
 *   lock      zset     <kind>:<owner> -> when its lease ends, epoch ms; the key expires with the last of them
 *                      <kind>:kept@<owner>: unlocked, and taken until its minHold ends; counts as any lease
 *                      semaphore:held, semaphore:leases -> how many permits are taken, and by how many leases, below 0
 *   waiters   hash     <kind>:<owner> -> a ticket: "<arrival, epoch µs>:<until when its process is waited for>:<until when
 *                                        it is let in without an attempt>:<when its lease would end then>", epoch ms.
 *                                        Its arrival is when its caller called, which may have waited in its process
 *                                        since; 0: a reader that waited when a writer left. The third time of a
 *                                        semaphore: until when its process passes a permit on
 *                      permits        -> "<the number of a semaphore>:<when it was given, epoch ms>", while there are
 *                                        tickets
 *   fence     string   the last fencing token, of writers only
 *
 * A kind is semaphore, read or write. An owner that has several permits ends with `*<number>`. The readers of a process
 * share one owner. Each process has one ticket of each kind at a time, so that the queue is short: a script reads all of
 * it. A waiting process polls, which prolongs its ticket.
 *
 * A script that makes room lets in those at the front of the queue that may enter. The lock is theirs at once where their
 * process was heard of a moment ago, with the ttl that it asked for then; others are asked to come. All of them hear of
 * it by one message: "<ticket>=<when its lease ends>" has the lock, "<ticket>" may come, and `wanted`: a writer waits,
 * also behind those.
 *
 * KEYS of every script: lock, waiters [, fence]. ARGV begins with: kind, owner. Every time is the server's. Every
 * script is idempotent.
 */

/** What every script begins with. */
const LOCK = `
local lock, waiters, kind, owner = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local member = kind .. ':' .. owner
${NOW}
${DIGITS}

-- Whether the lowest member is of an application's sorted set, of which no script removes anything.
local function isForeign(lowest)
  return lowest and not ({ ${SHARED_KINDS.map((kind) => `${kind} = 1`).join(', ')} })[string.match(lowest, '^(%a+):')]
end

local function expireWithLastLease()
  redis.call('PEXPIREAT', lock, redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2])
end`;

/** ms; a ticket that was entered further ahead of the server's clock shows that the clock was set back. */
export const SET_BACK = 1_000;

/** The sums of a semaphore, by score in this order. */
const HELD = 'semaphore:held';
const LEASES = 'semaphore:leases';

/**
 * Who has the lock, the queue, and who may enter. `readHolders` comes first. It removes leases that have ended, which stay
 * in the key while others prolong it, and returns how many there were. It sets:
 *
 *   leases, held  how many there are, and how many permits of a semaphore they have; scripts that change them count on
 *   firstHolder   a member; `wasWritten`: a writer had the lock until now, or has it
 *
 * To add the permits up takes time for each lease. So a semaphore keeps the sums with the leases. They are right while
 * they agree with the number of members: what else may change the leases, also a process with a version before this one,
 * only removes some, or removes the sums too.
 *
 * `readQueue` comes next. It sets:
 *
 *   queue      the tickets, in the order of their arrival; when a writer has left, readers come first
 *   permits    the number that counts for them, given at `givenAt`
 *   isDropped  there were tickets whose process has not polled for too long, which it removes, but not `member`
 *   holders    as `held`, with those in front of a waiter; `isWritten`: a writer has the lock
 *
 * The ticket of an `earlier` attempt, if there was one, becomes that of `member`. Returns whether there was anything in the
 * hash. `settle` is called last.
 */
const QUEUE = `
local queue, permits, givenAt, isDropped, holders, isWritten = {}, nil, nil, false, 0, false
local leases, held, firstHolder, wasWritten, isSemaphore, hasEntered, earlier
local notedLeases, notedHeld = 0, 0

-- How many permits an owner has, or asks for.
local function permitsOf(ticket) return tonumber(string.match(ticket, '%*(%d+)$') or 1) end

local function sortQueue()
  table.sort(queue, function(one, other)
    if one.arrival == other.arrival then return one.ticket < other.ticket end
    return one.arrival < other.arrival
  end)
end

-- A lease came to the lock, or (-1) has left it.
local function count(owner, sign) held, leases = held + sign * permitsOf(owner), leases + sign end

-- Returns whether there was one, as 1 or 0.
local function removeLease(owner)
  local found = redis.call('ZREM', lock, owner)
  if found == 1 then count(owner, -1) end
  return found
end

-- Beside the sums, which have scores below 0.
local function firstLease()
  local index = notedLeases > 0 and 2 or 0
  return unpack(redis.call('ZRANGE', lock, index, index, 'WITHSCORES'))
end

local function readHolders()
  local lowest = redis.call('ZRANGE', lock, 0, 1, 'WITHSCORES')
  if isForeign(lowest[1]) then return nil end
  leases = redis.call('ZCARD', lock)
  held, firstHolder = leases, lowest[1]
  wasWritten = string.sub(firstHolder or '', 1, 6) == 'write:'
  if firstHolder == '${HELD}' and lowest[3] == '${LEASES}' and leases - 2 == -lowest[4] then
    held, leases = -lowest[2], leases - 2
    notedHeld, notedLeases = held, leases
  elseif string.sub(firstHolder or '', 1, 10) == 'semaphore:' then
    leases = leases - redis.call('ZREM', lock, '${HELD}', '${LEASES}')
    held = 0
    for _, holder in ipairs(redis.call('ZRANGE', lock, 0, -1)) do held = held + permitsOf(holder) end
  end
  local ended, first, firstEnd = 0, firstLease()
  while first and tonumber(firstEnd) <= now do
    ended = ended + removeLease(first)
    first, firstEnd = firstLease()
  end
  if leases == 0 and firstHolder then
    redis.call('DEL', lock)
    firstHolder, notedHeld, notedLeases = nil, 0, 0
  end
  isSemaphore = string.sub(firstHolder or member, 1, 10) == 'semaphore:'
  return ended
end

-- The expiry comes last: the key may end by that, and what was written later would have none.
local function settle()
  if isSemaphore and (held ~= notedHeld or leases ~= notedLeases) then
    if leases == 0 then
      redis.call('DEL', lock)
    else
      redis.call('ZADD', lock, digits(-held), '${HELD}', digits(-leases), '${LEASES}')
    end
    notedHeld, notedLeases = held, leases
  end
  if hasEntered then expireWithLastLease() end
end

local function readQueue()
  holders = held
  isWritten = leases > 0 and wasWritten
  local fields = redis.call('HGETALL', waiters)
  for i = 1, #fields, 2 do
    local ticket, value = fields[i], fields[i + 1]
    if ticket == earlier and earlier ~= member then
      -- The new one comes first: a key without fields is deleted.
      redis.call('HSET', waiters, member, value)
      redis.call('HDEL', waiters, ticket)
      ticket = member
    end
    local first, second, rest = string.match(value, '^(%d+):(%d+)(.*)$')
    local enterUntil, leaseEnd = string.match(rest, '^:(%d+):(%d+)$')
    -- It was entered before the clock was set back. If alive, its process enters it again.
    local isAhead = enterUntil and enterUntil - now > ${SET_BACK}
    if ticket == 'permits' then
      permits, givenAt = tonumber(first), tonumber(second)
    elseif ticket == member or tonumber(second) > now and not isAhead then
      local waiter = { ticket = ticket, kind = string.match(ticket, '^%a+'), arrival = tonumber(first) }
      waiter.seenUntil, waiter.enterUntil, waiter.leaseEnd = second, enterUntil, leaseEnd
      if wasWritten and holders == 0 and waiter.kind == 'read' then
        waiter.arrival = 0
        redis.call('HSET', waiters, ticket, '0:' .. second .. rest)
      end
      queue[#queue + 1] = waiter
    else
      redis.call('HDEL', waiters, ticket)
      isDropped = true
    end
  end
  sortQueue()
  return #fields > 0
end

local function mayEnter(waiter)
  -- One that takes all: the number of permits was lowered.
  if waiter.kind == 'semaphore' then return holders == 0 or holders + permitsOf(waiter.ticket) <= (permits or 1) end
  if waiter.kind == 'read' then return not isWritten end
  return holders == 0
end

-- Lets in those at the front of the queue that may enter: \`own\`, and with a \`channel\` all others. \`enters\`: they have the
-- lock at once where that is possible. Returns -1 when the server refused to publish, else 0.
local isWanted
local function letIn(own, channel, enters)
  local waiting, message, isOpen = {}, {}, true
  isWanted = false
  for _, waiter in ipairs(queue) do
    -- One that may not enter stops those behind it. One that may, and does not yet, counts as if it had entered.
    isOpen = isOpen and mayEnter(waiter)
    local isHere = isOpen and (waiter == own or (enters and waiter.leaseEnd ~= '0' and now < tonumber(waiter.enterUntil or 0)))
    if isOpen then
      holders = holders + permitsOf(waiter.ticket)
      isWritten = waiter.kind == 'write'
      if channel and waiter ~= own then message[#message + 1] = waiter.ticket .. (isHere and '=' .. waiter.leaseEnd or '') end
    end
    if isHere then
      hasEntered = true
      waiter.hasEntered = true
      if waiter.seenUntil then redis.call('HDEL', waiters, waiter.ticket) end
      redis.call('ZADD', lock, waiter.leaseEnd, waiter.ticket)
      count(waiter.ticket, 1)
    else
      waiting[#waiting + 1] = waiter
      isWanted = isWanted or waiter.kind == 'write'
    end
  end
  queue = waiting
  if #message == 0 then return 0 end
  if isWanted then message[#message + 1] = 'wanted' end
  -- pcall: else a user without rights on channels could not release.
  return type(redis.pcall('PUBLISH', channel, table.concat(message, ' '))) == 'table' and -1 or 0
end`;

/** Sets `score`. A key of another type is the key of another owner: returns `others` then. Returns any other error. */
const readScore = (others: string) => `
local score = redis.pcall('ZSCORE', lock, member)
if type(score) == 'table' then
  if string.find(score.err, '${IN_LUA.wrongType}', 1, true) then return ${others} end
  return score
end`;

/**
 * Enters, or takes a position in the queue. Before that ends a lease of its process, if one is to end: so a lease that ends
 * and the next caller need one script. Takes over what an earlier attempt has, since each has an owner value of its own.
 *
 * ARGV: as above, then channel, ttl in ms, permits, ms since they were given, ms by which they have to be later than
 * those there ('': another process gave them), 1 to queue or 0, arrival or '' when it is not known, µs since the call, ms
 * for which the ticket is kept, ms for which it may be let in without an attempt, or of a semaphore for which its process
 * passes a permit on, the owner of the earlier attempt, the owner whose lease ends, or ''
 * Returns { 1 that lease was released, 0 there was none; -1 when the server refused to publish, else 0; and when the
 * owner has entered, 1, or 2 when a writer waits, of a semaphore the number of permits, or with a fence the token as text;
 * else 0, ms until the first lease ends, or until the first ticket is dropped; the owner of that lease or ''; arrival or
 * ''; the number of permits, 0 for others than semaphores; when its lease will end if it is let in without another
 * attempt }.
 */
export const ENTER = new LockScript(
  'enter (shared)',
  `${LOCK}${QUEUE}
-- Without effect: for a key of another type, or without memory, it fails before anything was written.
redis.call('ZADD', lock, 'XX', 0, '')
local ended = readHolders()
-- The error for a key of another type.
if not ended then return redis.pcall('GET', lock) end
local ending = ARGV[14]
earlier = kind .. ':' .. ARGV[13]
local leaseEnd = earlier ~= member and redis.call('ZSCORE', lock, earlier)
if leaseEnd then
  -- The new one comes first: a key without members is deleted.
  redis.call('ZADD', lock, leaseEnd, member)
  redis.call('ZREM', lock, earlier)
end
local found = ending ~= '' and removeLease(kind .. ':' .. ending) or 0
local channel, ttl, given, age, laterBy = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local queues, arrival, keptFor, entersFor = ARGV[8] == '1', tonumber(ARGV[9]), tonumber(ARGV[11]), tonumber(ARGV[12])
local hadQueue = readQueue()

for _, other in ipairs({ firstHolder or member, queue[1] and queue[1].ticket or member }) do
  if (string.sub(other, 1, 10) == 'semaphore:') ~= (kind == 'semaphore') then
    local isHere, isThere = 'a semaphore', 'a read/write lock'
    if kind ~= 'semaphore' then isHere, isThere = isThere, isHere end
    return redis.error_reply('WRONGKIND It is ' .. isThere .. ' in Redis, and it is used as ' .. isHere .. ' here')
  end
end

-- The number that was given last counts. A time to come is from before the clock was set back.
local stored = permits
local isGiven = not stored or laterBy and (now - age - laterBy >= givenAt or givenAt > now)
if isGiven then permits, givenAt = given, now - age end

local score = redis.call('ZSCORE', lock, member)
local own
local hadWriter, isMovedBack = false, false
for _, waiter in ipairs(queue) do
  if waiter.ticket == member then own = waiter end
  hadWriter = hadWriter or waiter.kind == 'write'
end
if score then
  -- It is ours already. A late repetition must not shorten a renewed lease.
  if tonumber(score) < now + ttl then redis.call('ZADD', lock, digits(now + ttl), member) end
  hasEntered = true
else
  if not own then
    own = { ticket = member, kind = kind }
    queue[#queue + 1] = own
  end
  -- One that lies ahead is of before the clock was set back. A reader that comes first stays there.
  local micros = time[1] * 1000000 + time[2]
  if not arrival or arrival > micros then arrival = micros - ARGV[10] end
  isMovedBack = own.arrival and 0 < own.arrival and own.arrival < arrival
  if own.arrival ~= 0 then own.arrival = arrival end
  own.leaseEnd = digits(now + ttl)
  sortQueue()
  -- A process that gives a permit back goes on with it if those before its caller are served by their own processes.
  if kind == 'semaphore' and found == 1 and entersFor == 0 and mayEnter(own) then
    local place = 1
    while queue[place] ~= own and now < tonumber(queue[place].enterUntil or 0) do place = place + 1 end
    if queue[place] == own then table.insert(queue, 1, table.remove(queue, place)) end
  end
end
local makesRoom = found == 1 or ended > 0 or isDropped or isMovedBack or stored and permits > stored
local published = letIn(own, makesRoom and channel, makesRoom)
settle()

local granted, refusal
if score or own.hasEntered then
  granted = kind == 'semaphore' and permits or isWanted and 2 or 1
else
  arrival = digits(own.arrival)
  if queues then
    -- Without an end of its lease it is not let in.
    local leaseEnd = kind ~= 'semaphore' and entersFor > 0 and own.leaseEnd or '0'
    local lasts = digits(now + keptFor) .. ':' .. digits(now + entersFor) .. ':' .. leaseEnd
    redis.call('HSET', waiters, member, arrival .. ':' .. lasts)
    -- The readers of other processes let nobody in from now on.
    if kind == 'write' and not hadWriter and holders > 0 then redis.pcall('PUBLISH', channel, 'wanted') end
  end
  local first, firstEnd = firstLease()
  local ends = firstEnd or queue[1] ~= own and queue[1].seenUntil or now + 1
  refusal = { math.max(0, ends - now), first and string.match(first, ':(.*)$') or '', arrival, permits, own.leaseEnd }
end

if #queue == 0 or #queue == 1 and queue[1] == own and not queues then
  if hadQueue then redis.call('DEL', waiters) end
else
  if kind == 'semaphore' and isGiven then
    redis.call('HSET', waiters, 'permits', digits(permits) .. ':' .. digits(givenAt))
  end
  -- Last: see script-parts.ts.
  if redis.call('PTTL', waiters) < keptFor then redis.call('PEXPIRE', waiters, keptFor) end
end
if granted and KEYS[3] then
  local last = redis.call('GET', KEYS[3])
  if score and last then
    granted = last
  else
    granted = (function() ${mint('KEYS[3]')} end)()
  end
end
if granted then return { found, published, granted } end
return { found, published, 0, unpack(refusal) }`,
  true,
  (reply) => Array.isArray(reply) && reply.length === 3,
);

/**
 * Releases what the owner has, and takes it out of the queue. Lets in those that may enter. Where it has to stay taken
 * until its `minHold` ends, those that could enter without that are asked to come: the reply to their next attempt says
 * when it ends.
 *
 * ARGV: as above, then channel; to keep it also: ms left by the local clock, minHold and ttl of the acquisition in ms
 * Returns { 1 released, 0 there was no lease, -1 the key is of another type; -1 when the server refused to
 * publish, else 0 }.
 */
export const RELEASE = new LockScript(
  'release (shared)',
  `${LOCK}${QUEUE}
local channel, left, minHold, ttl = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
${readScore('{ -1, 0 }')}
redis.call('HDEL', waiters, member)
local kept = kind .. ':${KEPT}' .. owner
local wasKept = left and redis.call('ZSCORE', lock, kept)
if not readHolders() then return { -1, 0 } end
local found = removeLease(member)
local keeps = left and found == 1
local published = 0
if redis.call('EXISTS', waiters) == 1 then
  readQueue()
  published = letIn(nil, channel, not keeps)
  if #queue == 0 then redis.call('DEL', waiters) end
end

-- Kept already, and the reply was lost: a late attempt may have entered once more.
if wasKept then
  found = 1
elseif keeps then
  -- The time since the acquisition, by the clock of the server: see leftToKeep in script-parts.ts.
  local age = ttl - (score - now)
  redis.call('ZADD', lock, digits(now + math.max(1, math.ceil(math.min(left, minHold - age)))), kept)
  count(kept, 1)
  hasEntered = true
end
settle()
return { found, published }`,
);

/**
 * Renews a lease. Never shortens it.
 *
 * ARGV: as above, then ttl in ms
 * Returns 1 it has the ttl; { remaining ms } it lasts longer; 0 there is none; -1 the key is of another type.
 */
export const RENEW = new LockScript(
  'renew (shared)',
  `${LOCK}
local ttl = tonumber(ARGV[3])
${readScore('-1')}
if not score or tonumber(score) <= now then
  -- Raises READONLY on a replica, where it says nothing that there is none.
  redis.call('ZREM', lock, member)
  return 0
end
if score - now >= ttl then return { score - now } end
-- Changes nothing. Out of memory: see script-parts.ts.
redis.call('ZREM', lock, '')
redis.call('ZADD', lock, 'XX', digits(now + ttl), member)
expireWithLastLease()
return 1`,
);

/**
 * Whether `owner` has a live lease of this kind. In Lua: sets `state`, nil when it has. Other owners hold the lock too,
 * so the command that writes touches nothing but the owner's member.
 */
export const memberHeld = (kind: SharedKind) => `
local member = '${kind}:' .. owner
${NOW}
local found = redis.pcall('ZSCORE', lock, member)
if type(found) == 'table' then ${EXAMINE_ERROR}
elseif not found or tonumber(found) <= now then
${examineGone("'ZREM', lock, member")}
end`;

/** What a shared lock looks like, for people. See `inspectionScripts`. */
export const INSPECTION = {
  /**
   * KEYS: lock, waiters [, fence]
   * Returns { the owner whose lease lasts longest or '', ms until it ends, the token of a writer or '', tickets, leases,
   * or permits that are taken; the members with spaces between them }.
   */
  inspect: new LockScript(
    'inspect (shared)',
    `${LOCK}
if isForeign(redis.call('ZRANGE', lock, 0, 0)[1]) then return redis.pcall('GET', lock) end
local leases = redis.call('ZRANGEBYSCORE', lock, '(' .. digits(now), '+inf', 'WITHSCORES')
local count = #leases / 2
local holder = count > 0 and string.match(leases[#leases - 1], ':(.*)$')
local remaining = count > 0 and leases[#leases] - now or 0
local isWritten = holder and string.sub(leases[#leases - 1], 1, 6) == 'write:'
local token = isWritten and KEYS[3] and redis.call('GET', KEYS[3]) or ''
local waiting = redis.call('HLEN', waiters) - redis.call('HEXISTS', waiters, 'permits')
local members = {}
for i = 1, #leases, 2 do
  members[#members + 1] = leases[i]
  count = count + tonumber(string.match(leases[i], '%*(%d+)$') or 1) - 1
end
return { holder or '', remaining, token, waiting, count, table.concat(members, ' ') }`,
  ),

  /**
   * Ends all leases that were inspected.
   *
   * KEYS: as above
   * ARGV: the members, '', '', channel
   * Returns 1, or 0 when there were none of them any more.
   */
  forceUnlock: new LockScript(
    'unlock by force (shared)',
    `${LOCK}${QUEUE}
local ended = 0
if not readHolders() then return 0 end
-- By force: the holders did not ask for this.
for seen in string.gmatch(ARGV[1], '%S+') do ended = ended + removeLease(seen) end
if ended == 0 then return 0 end
readQueue()
letIn(nil, ARGV[4], true)
settle()
return 1`,
  ),
};
