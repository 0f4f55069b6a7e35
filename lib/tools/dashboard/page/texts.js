// What the page says of a lock, as texts.
// biome-ignore-all lint/correctness/noUnusedVariables: page.js follows in the same script

const NUMBER = new Intl.NumberFormat('en');
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

function shown(ms) {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const [minutes, hours, days] = [seconds / 60, seconds / 3_600, seconds / 86_400].map(Math.floor);
  if (minutes < 10) return `${minutes} min ${seconds % 60} s`;
  if (minutes < 60) return `${minutes} min`;
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${days} d ${hours % 24} h`;
}

function count(number, one) {
  return `${NUMBER.format(number)} ${number === 1 ? one : `${one}s`}`;
}

/** Control characters must not move the text around them. */
function printable(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}]/gu, '\ufffd');
}

const KINDS = {
  lock: ({ isKept }) => (isKept ? 'kept' : 'lock'),
  semaphore: ({ holders, permits }) => {
    const taken = holders.reduce((sum, one) => sum + one.permits, 0);
    return `semaphore ${taken}${permits === null ? '' : `/${permits}`}`;
  },
  read: ({ holders }) => count(holders.length, 'reader'),
  write: () => 'writer',
};

function kindOf(found) {
  return KINDS[found.kind](found);
}

function typeOf({ isSure, typeName }) {
  return `${typeName}${isSure ? '' : '?'}`;
}

/** Where the key alone does not tell the type: the first that it may be. */
function shortTypeOf(found) {
  return typeOf(found).replace(/(, .*)? or [^?]*/, '…');
}

/** The process that had it may be gone: another one is to adopt the lease. */
function isDetached({ owner }) {
  return owner?.startsWith('detached@') ?? false;
}

function holderOf(found) {
  const { holder, holders, isKept } = found;
  if (holder === null) return 'nobody';
  const more = holders.length > 1 ? ` and ${holders.length - 1} more` : '';
  const did = isKept ? 'unlocked by ' : isDetached(found) ? 'detached by ' : '';
  return `${did}${printable(holder)}${more}`;
}

function waitingOf({ isLeast, isWaitingExact, longestWait, waiting }) {
  const most = isWaitingExact || waiting === 0 ? '' : '≤ ';
  const many = waiting !== null ? most + NUMBER.format(waiting) : longestWait > 0 ? '≥ 1' : '–';
  return longestWait < 1_000 ? many : `${many}, ${isLeast ? '> ' : ''}${shown(longestWait)}`;
}
