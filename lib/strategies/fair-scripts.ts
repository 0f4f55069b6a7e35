import { LockScript, Script } from '../redis/script';
import { deleteBy, FENCE_LIFE, isFound } from './string-key';

/*
 * The fair lock in Redis, all keys in one hash slot:
 *
 *   lock     string   the owner, as for spin and pub-sub: on one name the types exclude each other
 *   queue    zset     ticket -> score, the order of arrival; a ticket is the owner value of who waits
 *   tickets  hash     ticket -> "end of its life in ms : ttl it asks for : how it is told"; besides
 *                     "granted" -> the ticket that was granted last and has not claimed it yet,
 *                     "absent:<process>" -> let a grant run out: passed over until it is heard of again
 *   fence    string   the last fencing token
 *
 * A ticket is "<process>:<number>". KEYS of every script: lock, queue, tickets [, fence]. ARGV of every script begins
 * with PUBLISH or SPUBLISH, and a ticket of the process that asks.
 *
 * Every script bears being executed twice. Times of the server are in microseconds.
 */

/** ms for which a grant stands until it is claimed: never longer than the ttl that was asked for. */
export const CLAIM_WINDOW = 1_000;

/** ms that a ticket outlives the moment at which its process is due to be heard of. */
export const TICKET_GRACE = 10_000;

/** How a ticket is told that the lock is its own. */
export const TOLD = { byMessage: 'm', byPolling: 'p', never: 'n' } as const;

/** Among so many tickets behind a grant, another process is looked for that is to see to it. */
const DEPUTY_AMONG = 1_000;

/** So many tickets are read at a time. */
const BATCH = 50;

const NAMES = `
local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local publish = ARGV[1]
`;

const TIME = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
`;

/** The next token: max(last + 1, server time in microseconds), as for the other types. Without a fence it is empty. */
const MINT = `
local token = ''
if fence then
  token = string.format('%.0f', math.max((tonumber(redis.call('GET', fence)) or 0) + 1, now))
  redis.call('SET', fence, token, 'PX', ${FENCE_LIFE})
end`;

/** After what a script does where nobody waits: Lua makes functions anew at every call. */
const FUNCTIONS = `
-- Lua prints no more than 14 digits by itself.
local function digits(number) return string.format('%.0f', number) end

local function processOf(ticket) return string.match(ticket, '^(.*):') end

-- The process that asks.
local me = processOf(ARGV[2])

local function forget(ticket)
  redis.call('ZREM', queue, ticket)
  redis.call('HDEL', tickets, ticket)
end

-- Who asks is alive.
local function hear() redis.call('HDEL', tickets, 'absent:' .. me) end

`;

/** The lock is the ticket's already: it was granted unheard, or the reply that said so was lost. Makes it last. */
const TAKE = `
local function claim(ticket, ttl)
  if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end
  if redis.call('HGET', tickets, 'granted') == ticket then redis.call('HDEL', tickets, 'granted') end
  forget(ticket)
end
`;

const HAND_ON = `${TIME}${FUNCTIONS}${TAKE}
local function mint()
  ${MINT}
  return token
end

-- Of what is held already. A counter that was lost is begun anew.
local function lastToken() return fence and (redis.call('GET', fence) or mint()) or '' end

-- PEXPIRE first: when it is out of memory, Redis refuses SET to a script that has not written yet.
local function give(ticket, life)
  redis.call('PEXPIRE', lock, life)
  redis.call('SET', lock, ticket, 'PX', life)
  forget(ticket)
end

-- Tells a process of a grant, or that it is to look again; how many of its connections heard it.
local function tell(process, message)
  local heard = redis.pcall(publish, string.gsub(queue, 'queue$', 'grants:') .. process, message)
  return type(heard) == 'number' and heard or 0
end

-- The last ticket may just have left the hash, and its life with it.
local function note(field, value)
  redis.call('HSET', tickets, field, value)
  if redis.call('PTTL', tickets) < 0 then redis.call('PEXPIRE', tickets, ${TICKET_GRACE}) end
end

-- Gives the lock, which is free or about to be, to the first ticket that is alive. Returns the ticket and its token when
-- it is one of the process that asks, which learns it from the reply; true when it is another's; false when there is none.
local function handOn()
  local unclaimed = redis.call('HGET', tickets, 'granted')
  if unclaimed then
    redis.call('HDEL', tickets, 'granted')
    -- A frozen host with a hundred tickets would cost a hundred windows.
    if processOf(unclaimed) ~= me then note('absent:' .. processOf(unclaimed), 1) end
  end
  local deaf, kept, grantee, granted, window, token = {}, 0, nil, false, nil, nil
  while true do
    local batch = redis.call('ZRANGE', queue, kept, kept + ${BATCH - 1})
    if #batch == 0 then return granted, token end
    for _, ticket in ipairs(batch) do
      local process = processOf(ticket)
      local life, ttl, told
      if not (grantee and (process == grantee or deaf[process])) then
        life, ttl, told = string.match(redis.call('HGET', tickets, ticket) or '', '^(%d+):(%d+):(%a)$')
      end
      if grantee and (process == grantee or deaf[process]) then
        kept = kept + 1
        if kept > ${DEPUTY_AMONG} then return granted, token end
      elseif not life then
        forget(ticket)
      elseif grantee then
        -- No script runs when the grant ends unclaimed, or its holder dies: then another process is to look.
        if told == '${TOLD.byMessage}' and tell(process, 'look:' .. window) > 0 then return granted, token end
        deaf[process] = true
        kept = kept + 1
      elseif process == me then
        local before = redis.call('PTTL', lock)
        give(ticket, ttl)
        grantee, granted, window, token = process, ticket, ttl, mint()
        -- Whoever waits knows when the life of the key ends; unless it ends earlier now.
        if before <= tonumber(ttl) then return granted, token end
      else
        local isOver = tonumber(life) * 1000 < now
        local isReached = false
        if not deaf[process] and redis.call('HEXISTS', tickets, 'absent:' .. process) == 0 then
          window = math.min(${CLAIM_WINDOW}, tonumber(ttl))
          token = token or mint()
          -- One that polls cannot be told, and finds out when it asks.
          isReached = told == '${TOLD.byPolling}' and not isOver
            or tell(process, 'grant:' .. ticket .. ':' .. digits(now) .. ':' .. window .. ':' .. token) > 0
        end
        if isReached then
          give(ticket, window)
          note('granted', ticket)
          grantee, granted = process, true
        elseif isOver then
          forget(ticket)
        else
          -- Its process is dead, frozen, or only reconnecting: it is passed over, and keeps its place.
          deaf[process] = true
          kept = kept + 1
        end
      end
    end
  end
end
`;

/**
 * ARGV ticket, ttl, score or 0, how it is told or "${TOLD.never}" (it does not wait), for each ticket that asks.
 * A ticket that was dropped sends its first score again and has its old place.
 * Returns the token, or 1 without a fence, when the lock was free and nobody waited; else { ticket of the process that
 * has the lock now or "", its token, life of the lock's key in ms, server time, score of each ticket that asked }.
 */
export const ASK = new LockScript(`${NAMES}
local holder = redis.call('GET', lock)
if not holder and #ARGV == 5 and redis.call('EXISTS', queue) == 0 then
  redis.call('SET', lock, ARGV[2], 'PX', ARGV[3])
  if not fence then return 1 end
  ${TIME}${MINT}
  return token
end
${HAND_ON}
local mine, token, scores = '', '', {}
local life = math.max(0, redis.call('PTTL', lock)) + ${TICKET_GRACE}
for i = 2, #ARGV, 4 do
  local ticket, ttl, score, told = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  if ticket == holder then
    claim(ticket, ttl)
    mine, token = ticket, lastToken()
  elseif told ~= '${TOLD.never}' then
    -- A ticket that had its place keeps it also when the server is out of memory: Redis lets a script go on that has
    -- written something.
    if score ~= '0' then hear() end
    if score == '0' then
      local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
      score = redis.call('ZSCORE', queue, ticket) or digits(math.max((tonumber(last) or 0) + 1, now))
    end
    redis.call('ZADD', queue, 'NX', score, ticket)
    redis.call('HSET', tickets, ticket, digits(now / 1000 + life) .. ':' .. ttl .. ':' .. told)
  end
  scores[#scores + 1] = score
end
for _, key in ipairs({ queue, tickets }) do
  if redis.call('PTTL', key) < life then redis.call('PEXPIRE', key, life) end
end
hear()
if not holder then
  local granted, minted = handOn()
  if granted == false then
    -- Nobody who waits is alive, and who asks does not wait.
    give(ARGV[2], ARGV[3])
    granted, minted = ARGV[2], mint()
  end
  if granted ~= true then mine, token = granted, minted end
end
return { mine, token, redis.call('PTTL', lock), digits(now), unpack(scores) }`);

/**
 * ARGV ticket, command that deletes, channels of spin and pub-sub. Takes the ticket out, and passes on the lock if it is
 * the ticket's: the release of a holder, and of a grant that nobody waits for any more.
 * Returns 1 or 2 when it was the ticket's and nobody waited (2: deleted by DEL); else { 1 or 2 the same, 0 nobody's,
 * -1 another's; then as ASK, without scores }.
 */
export const LEAVE = new LockScript(
  `${NAMES}
local ticket = ARGV[2]
local holder = redis.call('GET', lock)
if holder == ticket and redis.call('EXISTS', queue, tickets) == 0 then
  ${deleteBy('ARGV[3]')}
  for i = 4, #ARGV do redis.pcall('PUBLISH', ARGV[i], lock) end
  return deleted
end
${HAND_ON}
if redis.call('HGET', tickets, 'granted') == ticket then redis.call('HDEL', tickets, 'granted') end
forget(ticket)
hear()
local answer, mine, token = holder == ticket and 1 or holder and -1 or 0, '', ''
if answer >= 0 then
  local granted, minted = handOn()
  if type(granted) == 'string' then
    mine, token = granted, minted
  elseif not granted and answer == 1 then
    ${deleteBy('ARGV[3]')}
    answer = deleted
    for i = 4, #ARGV do redis.pcall('PUBLISH', ARGV[i], lock) end
  end
end
return { answer, mine, token, redis.call('PTTL', lock), digits(now) }`,
  (reply) => isFound(Array.isArray(reply) ? reply[0] : reply),
);

/**
 * ARGV ticket, ttl. Makes a grant last as long as was asked for.
 * Returns { life of the lock's key in ms, or -1 nobody's, -2 another's; server time }.
 */
export const CLAIM = new Script(`${NAMES}${TIME}${FUNCTIONS}${TAKE}
local holder = redis.call('GET', lock)
if holder ~= ARGV[2] then return { holder and -2 or -1, digits(now) } end
claim(ARGV[2], ARGV[3])
hear()
return { redis.call('PTTL', lock), digits(now) }`);
