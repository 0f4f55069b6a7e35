// The page asks for what it shows every two seconds, while somebody can see it. Keys and names are data: they become
// text, and never markup. There is nothing here that knows Redis.

const INTERVAL = 2_000;
/** ms; the longest pause after failures. */
const SLOWEST = 15_000;

const byId = (id) => document.getElementById(id);
const body = document.body;

/** What is shown: the place in the list, and the lock in the address. */
const wanted = { q: '', sort: 'lock', descending: false, from: 0, lock: '' };
let token = '';
let view;
/** When the view came, on the monotonic clock: times go on from there. */
let cameAt = 0;
let isPaused = false;
let failures = 0;
let timer;
let asking;

// Texts

const NUMBER = new Intl.NumberFormat('en');
const CLOCK = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

function shown(ms) {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const [minutes, hours, days] = [seconds / 60, seconds / 3_600, seconds / 86_400].map(Math.floor);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${days} d ${hours % 24} h`;
}

function count(number, one, many = `${one}s`) {
  return `${NUMBER.format(number)} ${number === 1 ? one : many}`;
}

/** Control characters must not move the text around them. */
function printable(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}]/gu, '\ufffd');
}

function kindOf({ kind, holders, permits, isKept }) {
  const taken = holders.reduce((sum, one) => sum + one.permits, 0);
  if (kind === 'semaphore') return `semaphore ${taken}${permits === null ? '' : ` of ${permits}`}`;
  if (kind === 'read') return count(holders.length, 'reader');
  if (kind === 'write') return 'writer';
  return isKept ? 'kept' : 'lock';
}

function typeOf({ format, isSure, type, types }) {
  if (format === 'shared') return '';
  return `${type ?? (types.length > 2 ? format : types.join(' or '))}${isSure ? '' : '?'}`;
}

function holderOf({ holder, holders, isKept }) {
  if (holder === null) return 'nobody';
  const more = holders.length > 1 ? ` and ${holders.length - 1} more` : '';
  return `${isKept ? 'unlocked by ' : ''}${printable(holder)}${more}`;
}

// Elements

/** An element with these properties and children. A text stays a text. */
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setHidden(element, isHidden) {
  if (element.hidden !== isHidden) element.hidden = isHidden;
}

/** The registryKeys that are known: some locks do not say theirs. */
const prefixes = new Set();

/** The name of a lock, with its registryKey apart. */
function nameOf({ lock }) {
  const prefix = [...prefixes].find((one) => lock.startsWith(one)) ?? '';
  const key = make('span', { className: 'key' }, printable(lock.slice(prefix.length)));
  return make('span', { className: 'name' }, make('span', { className: 'registry' }, printable(prefix)), key);
}

function linkTo(found) {
  return make('a', { href: `#lock=${encodeURIComponent(found.lock)}` }, nameOf(found));
}

/** Calls `remake` only when what it shows is another: so that focus and selections stay. */
function whenChanged(element, shows, remake) {
  const now = JSON.stringify(shows);
  if (element.shows === now) return;
  element.shows = now;
  element.replaceChildren(...remake());
}

// The table

const rows = new Map();

function rowOf() {
  const cell = (label, className = '') => {
    const made = make('td', { className });
    made.setAttribute('role', 'cell');
    made.dataset.label = label;
    return made;
  };
  const row = make('tr');
  const head = make('th', { scope: 'row' });
  row.setAttribute('role', 'row');
  head.setAttribute('role', 'rowheader');
  const cells = {
    kind: cell('Kind'),
    holder: cell('Holder', 'holder'),
    heldFor: cell('Held for', 'number'),
    remaining: cell('Left', 'number'),
    renewed: cell('Renewed'),
    waiting: cell('Waiting', 'number'),
  };
  row.append(head, ...Object.values(cells));
  return { row, head, cells };
}

function fill({ row, head, cells }, found) {
  whenChanged(head, prefixes.size, () => [linkTo(found)]);
  const type = typeOf(found);
  whenChanged(cells.kind, [kindOf(found), type], () => [
    kindOf(found),
    ...(type === '' ? [] : [' ', make('span', { className: 'tag' }, type)]),
  ]);
  whenChanged(cells.holder, [holderOf(found), found.isHere], () => [
    make('span', { className: found.holder === null ? 'dim' : '' }, holderOf(found)),
    ...(found.isHere ? [' ', make('span', { className: 'tag here' }, 'this process')] : []),
  ]);
  setText(cells.renewed, found.renewed === null ? '' : found.renewed ? 'yes' : 'not seen');
  whenChanged(cells.waiting, found.waiting, () =>
    found.waiting === null
      ? [make('span', { ariaHidden: 'true' }, '–'), make('span', { className: 'hidden' }, 'not known')]
      : [NUMBER.format(found.waiting)],
  );
  cells.waiting.classList.toggle('dim', !found.waiting);
  cells.waiting.classList.toggle('some', found.waiting > 0);
  if (found.lock === wanted.lock) row.setAttribute('aria-current', 'true');
  else row.removeAttribute('aria-current');
}

function showRows() {
  const tbody = byId('rows');
  const names = new Set(view.rows.map(({ lock }) => lock));
  for (const [name, { row }] of rows) {
    if (names.has(name)) continue;
    row.remove();
    rows.delete(name);
  }
  for (const [i, found] of view.rows.entries()) {
    const known = rows.get(found.lock);
    const made = known ?? rowOf();
    made.found = found;
    rows.set(found.lock, made);
    fill(made, found);
    if (tbody.children[i] !== made.row) tbody.insertBefore(made.row, tbody.children[i] ?? null);
  }
  const isEmpty = view.rows.length === 0;
  setHidden(byId('table'), isEmpty);
  setHidden(byId('empty'), !isEmpty);
  const none = wanted.q === '' ? 'No lock is held.' : `No lock or holder has “${printable(wanted.q)}” in its name.`;
  setText(byId('empty'), view.isAnswered ? none : 'Redis has not answered yet.');
  for (const head of document.querySelectorAll('#table thead th')) {
    if (head.dataset.sort === wanted.sort)
      head.setAttribute('aria-sort', wanted.descending ? 'descending' : 'ascending');
    else head.removeAttribute('aria-sort');
  }
  const end = view.from + view.rows.length;
  setHidden(byId('pager'), view.matched <= view.rows.length);
  setText(byId('range'), `${NUMBER.format(view.from + 1)} to ${NUMBER.format(end)} of ${NUMBER.format(view.matched)}`);
  byId('previous').disabled = view.from === 0;
  byId('next').disabled = end >= view.matched;
}

/** ms since Redis was looked at. While it is away, times stand still. */
function age() {
  return view.problem === null ? view.age + performance.now() - cameAt : 0;
}

function heldFor(found) {
  if (found.heldFor === null) return '';
  return `${found.isOlder ? '> ' : ''}${shown(found.heldFor + age())}`;
}

function left({ holder, remaining }) {
  if (holder === null) return '';
  return remaining === null ? 'no expiry' : shown(remaining - age());
}

function tick() {
  if (view === undefined) return;
  for (const { cells, found } of rows.values()) {
    setText(cells.heldFor, heldFor(found));
    setText(cells.remaining, left(found));
  }
}

// One lock

function showDetails() {
  const { selected: found, actions } = view;
  const isOpen = wanted.lock !== '';
  setHidden(byId('details'), !isOpen);
  byId('main').classList.toggle('selected', isOpen);
  if (!isOpen) return;
  whenChanged(byId('details-title'), [wanted.lock, prefixes.size], () => [nameOf(wanted)]);
  const facts = found === null ? [['State', 'free: nobody holds it or waits in a queue']] : factsOf(found);
  whenChanged(byId('facts'), facts, () =>
    facts.flatMap(([term, text]) => [make('dt', {}, term), make('dd', {}, text)]),
  );
  const { holders = [], queue = null } = found ?? {};
  const many = holders.length > 1 ? holders : [];
  const listed = many.map(({ holder, remaining, permits }) => {
    const more = permits > 1 ? `, ${count(permits, 'permit')}` : '';
    return `${printable(holder)}${more}, ${remaining === null ? 'no expiry' : `${shown(remaining)} left`}`;
  });
  const waiters = (queue ?? []).map(({ waiter, kind, waitingFor }) => {
    const what = kind === 'lock' || kind === found.kind ? '' : ` to ${kind}`;
    return `${printable(waiter)}${what}${waitingFor === null ? '' : `, for ${shown(waitingFor)}`}`;
  });
  for (const [id, lines] of [
    ['holders', listed],
    ['queue', waiters],
  ]) {
    setHidden(byId(id), lines.length === 0);
    setHidden(byId(`${id}-title`), lines.length === 0);
    whenChanged(byId(id), lines, () => lines.map((line) => make('li', {}, line)));
  }
  setHidden(byId('force'), !actions || !found?.owner || !found.isSure);
}

function factsOf(found) {
  const { fencingToken, heldFor: held, isKept, isSure, owner, remaining, renewed, waiting, waitingHere } = found;
  return [
    ['Kind', `${kindOf(found)}${typeOf(found) === '' ? '' : `, ${typeOf(found)}`}`],
    ['', isSure ? '' : 'It only has the form of a lock: it may be data of an application, which is not shown.'],
    ['Holder', holderOf(found)],
    ['', isKept ? 'Its work is over. Nobody gets it before its minimum hold ends.' : ''],
    ['Owner', owner === null || !isSure ? '' : printable(owner)],
    ['Held for', held === null ? '' : heldFor(found)],
    ['Left', owner === null ? '' : `${left(found)}${isKept || remaining === null ? '' : ', unless it is renewed'}`],
    ['Renewed', renewed === null ? '' : renewed ? 'yes' : 'not seen yet'],
    ['Fencing token', fencingToken === null ? '' : String(fencingToken)],
    ['Waiting', waiting === null ? 'not known' : NUMBER.format(waiting)],
    ['', waitingHere > 0 ? `${count(waitingHere, 'caller')} of this process` : ''],
  ].filter(([, text]) => text !== '');
}

// Below the table

function showActivity() {
  const { changes, hot, waits } = view;
  whenChanged(byId('changes'), changes, () =>
    changes.length === 0
      ? [make('li', { className: 'note' }, 'Nothing since this page was opened.')]
      : changes.map((change) => {
          const { at, by, what, reason } = change;
          const time = make('time', { dateTime: new Date(at).toISOString() }, CLOCK.format(at));
          const said = make('span', { className: what.split(' ')[0] }, what);
          const who = [reason, by && printable(by)].filter(Boolean).join(', ');
          return make(
            'li',
            {},
            time,
            said,
            make('span', {}, linkTo(change), make('span', { className: 'by' }, who && ` ${who}`)),
          );
        }),
  );
  const cells = (...texts) => texts.map((text) => make('td', { className: 'number' }, text));
  const hottest = hot.map((one) => [one, NUMBER.format(one.calls), shown(one.waited), shown(one.longest)]);
  fillSmall('hot', hottest, (found, ...texts) => [make('th', { scope: 'row' }, linkTo(found)), ...cells(...texts)]);
  setText(byId('hot-note'), hot.length > 0 ? 'Of the last two minutes at most.' : 'No lock was taken here lately.');
  const longest = waits.map((one) => [one, one.waitsFor, shown(one.since)]);
  fillSmall('waits', longest, (found, waitsFor, since) => [
    make('th', { scope: 'row' }, linkTo(found)),
    make('td', {}, waitsFor),
    ...cells(since),
  ]);
  setText(byId('waits-note'), waits.length > 0 ? '' : 'No call waits here.');
}

function fillSmall(id, lines, cellsOf) {
  setHidden(byId(id), lines.length === 0);
  const tbody = byId(id).tBodies[0];
  whenChanged(tbody, lines, () => lines.map((line) => make('tr', {}, ...cellsOf(...line))));
}

// Everything

/** For those who listen to the page: only what is news. */
function announce(text) {
  setText(byId('live'), text);
}

function show() {
  const { held, kept, waiting } = view.counts;
  const parts = [
    [held, 'held'],
    [waiting, 'waiting'],
    [kept, 'kept'],
  ].filter(([number], i) => i < 2 || number > 0);
  whenChanged(byId('counts'), parts, () =>
    parts.flatMap(([number, what], i) => [i > 0 ? ' · ' : '', make('b', {}, NUMBER.format(number)), ` ${what}`]),
  );
  const at = CLOCK.format(view.at);
  const away = `Redis does not answer (${view.problem}). What is shown is of ${at}.`;
  if (view.problem === null) showState('live', view.missing);
  else showState('away', [view.isAnswered ? away : `Redis does not answer (${view.problem}).`]);
  setText(byId('updated'), view.problem === null ? `${isPaused ? 'Paused' : 'Live'}, as of ${at}` : `As of ${at}`);
  setText(byId('searched'), view.searched.length > 0 ? `Looked for on ${view.searched.join(', ')}.` : '');
  for (const { registryKey } of view.rows) if (registryKey) prefixes.add(`${registryKey}:`);
  setHidden(byId('main'), false);
  showRows();
  showDetails();
  showActivity();
  tick();
}

/** `live`, or `away`: what is shown is old. */
function showState(state, problems) {
  if (body.className !== state && body.className !== '') announce(state === 'away' ? 'Redis is away' : 'Redis is back');
  body.className = state;
  setHidden(byId('problems'), problems.length === 0);
  setText(byId('problems'), problems.map(printable).join(' · '));
}

async function ask(query, options = {}) {
  const headers = { accept: 'application/json', ...(token === '' ? {} : { authorization: `Bearer ${token}` }) };
  const address = `${location.pathname}?${new URLSearchParams(query)}`;
  return fetch(address, { cache: 'no-store', ...options, headers: { ...headers, ...options.headers } });
}

/** Asks once. Only the answer to the last question is shown. */
async function refresh() {
  clearTimeout(timer);
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  try {
    const limit = AbortSignal.any([mine.signal, AbortSignal.timeout(20_000)]);
    const response = await ask({ view: 'locks', ...wanted }, { signal: limit });
    if (response.status === 401) return askForToken();
    if (!response.ok) throw new Error(`The server of this page answered ${response.status}`);
    const answer = await response.json();
    if (mine.signal.aborted) return undefined;
    view = answer;
    cameAt = performance.now();
    failures = 0;
    show();
  } catch (error) {
    if (mine.signal.aborted) return undefined;
    failures++;
    showState('away', [`The server of this page does not answer (${error.message}). What is shown is old.`]);
  }
  return next();
}

/** The next look, if anybody can see it. */
function next() {
  clearTimeout(timer);
  if (isPaused || document.hidden) return;
  timer = setTimeout(refresh, Math.min(INTERVAL * 2 ** failures, SLOWEST));
}

function askForToken() {
  setHidden(byId('main'), true);
  setHidden(byId('entry'), false);
  byId('token').focus();
  if (token !== '') announce('The token is not the right one');
}

// Actions

function openQuestion() {
  const { selected: found } = view;
  const { holder, isKept, lock, owner, waiting } = found;
  setText(byId('question-title'), `Unlock ${printable(lock)} by force?`);
  const held = found.heldFor === null ? '' : ` for ${heldFor(found).replace('>', 'over')}`;
  const lines = isKept
    ? [`${printable(holder)} has unlocked it, and it is kept until its minimum hold ends. Its job may run once more.`]
    : [
        `${holderOf(found)} holds it${held}, and may still be at work.`,
        'Its process learns of it at its next renewal at the latest. Until then two tasks may run at the same time.',
      ];
  if (waiting > 0) lines.push(`${count(waiting, 'waiter')}: the next one gets the lock at once.`);
  byId('question-text').replaceChildren(...lines.map((line) => make('p', {}, line)));
  const dialog = byId('question');
  dialog.returnValue = '';
  dialog.onclose = () => dialog.returnValue === 'confirm' && unlock(lock, owner);
  dialog.showModal();
}

async function unlock(lock, owner) {
  byId('force').disabled = true;
  try {
    const headers = { 'content-type': 'application/json' };
    const response = await ask({ act: 'unlock', lock, owner }, { method: 'POST', headers, body: '{}' });
    const { message } = await response.json();
    announce(message);
    if (!response.ok) showState('live', [message]);
  } catch (error) {
    showState('away', [`It is not known whether it was unlocked: ${error.message}`]);
  }
  byId('force').disabled = false;
  byId('details-title').focus();
  await refresh();
}

// What people do

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  const given = address.get('token');
  if (given !== null) {
    token = given;
    sessionStorage.setItem('redis-locks-token', token);
    address.delete('token');
    history.replaceState(null, '', address.size > 0 ? `#${address}` : location.pathname + location.search);
  }
  wanted.lock = address.get('lock') ?? '';
}

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  localStorage.setItem('redis-locks-theme', theme);
  setText(byId('theme-name'), theme);
  byId('theme').ariaLabel = `Theme: ${theme}`;
}

function look(change) {
  Object.assign(wanted, { from: 0 }, change);
  return refresh();
}

let typing;
byId('query').addEventListener('input', ({ target }) => {
  clearTimeout(typing);
  typing = setTimeout(() => look({ q: target.value.trim() }), 200);
});
for (const head of document.querySelectorAll('#table thead th')) {
  head.firstElementChild.addEventListener('click', () => {
    const { sort } = head.dataset;
    // What lasts longest, or waits most, is of interest first.
    const first = head.classList.contains('number');
    void look({ sort, descending: wanted.sort === sort ? !wanted.descending : first });
  });
}
byId('previous').addEventListener('click', () => look({ from: Math.max(0, view.from - view.size) }));
byId('next').addEventListener('click', () => look({ from: view.from + view.size }));
byId('pause').addEventListener('click', ({ target }) => {
  isPaused = !isPaused;
  target.setAttribute('aria-pressed', String(isPaused));
  setText(target, isPaused ? 'Go on' : 'Pause');
  if (isPaused) next();
  else void refresh();
  if (view !== undefined) show();
});
const THEMES = ['auto', 'light', 'dark'];
byId('theme').addEventListener('click', () => {
  const now = THEMES.indexOf(document.documentElement.dataset.theme ?? 'auto');
  setTheme(THEMES[(now + 1) % THEMES.length]);
});
byId('force').addEventListener('click', openQuestion);
byId('entry').addEventListener('submit', (event) => {
  event.preventDefault();
  token = byId('token').value;
  sessionStorage.setItem('redis-locks-token', token);
  setHidden(byId('entry'), true);
  void refresh();
});
document.addEventListener('visibilitychange', () => {
  if (document.hidden) clearTimeout(timer);
  else if (!isPaused) void refresh();
});
document.addEventListener('keydown', (event) => {
  const isTyping = /^(INPUT|TEXTAREA)$/.test(event.target.tagName) || byId('question').open;
  if (event.key === 'Escape' && wanted.lock !== '' && !isTyping) byId('close').click();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/') {
    event.preventDefault();
    byId('query').focus();
  }
  const at = [...byId('rows').children].indexOf(event.target.closest('#rows tr'));
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (at < 0 || step === undefined) return;
  event.preventDefault();
  byId('rows').children[at + step]?.querySelector('a').focus();
});
addEventListener('hashchange', async () => {
  const before = wanted.lock;
  readAddress();
  if (wanted.lock === before) return;
  await refresh();
  const opener = rows.get(before)?.row.querySelector('a') ?? byId('table');
  (wanted.lock === '' ? opener : byId('details-title')).focus();
});

token = sessionStorage.getItem('redis-locks-token') ?? '';
readAddress();
setTheme(localStorage.getItem('redis-locks-theme') ?? 'auto');
setInterval(tick, 1_000);
void refresh();
