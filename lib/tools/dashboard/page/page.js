// The page asks for what it shows every two seconds, while somebody can see it. Keys and names are data: they become
// text, and never markup. There is nothing here that knows Redis.

const INTERVAL = 2_000;
/** ms; the longest pause after failures. */
const SLOWEST = 15_000;
/** ms without a key or a movement of the pointer, after which nobody reads the row that it is on. */
const LEFT_ALONE = 60_000;
const KEYS = [
  ['/', 'goes to the search'],
  ['↑ ↓', 'go through the locks'],
  ['Enter', 'opens the lock'],
  ['Esc', 'closes it'],
];
const WORDS = [
  ['kept', 'Unlocked, but taken until its minimum hold (minHold) ends. Nobody gets it before.'],
  ['overdue', 'Somebody has waited for over 30 s, or it is held for over 10 s and ten times what is usual for it.'],
];

const byId = (id) => document.getElementById(id);
const body = document.body;

/** What is shown: the place in the list, and what is in the address. Without `sort`, the most urgent come first. */
const wanted = { q: '', sort: '', descending: false, from: 0, lock: '' };
let token = '';
/** What the last answer says. `open`: the lock that it was asked about. */
let view;
/** When the view came, on the monotonic clock: times go on from there. */
let cameAt = 0;
let isPaused = false;
/** Why the last unlock was refused, or may have failed, as long as its lock is open. */
let refusals = [];
let failures = 0;
let timer;
let asking;

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

/** The registryKeys that are known: some locks do not say theirs. */
const prefixes = new Set();

/** The name of a lock, with its registryKey apart. */
function nameOf({ lock }) {
  const prefix = [...prefixes].find((one) => lock.startsWith(one)) ?? '';
  const key = make('span', { className: 'key' }, printable(lock.slice(prefix.length)));
  return make('span', { className: 'name' }, make('span', { className: 'registry' }, printable(prefix)), key);
}

/** The part of the address that says what is shown, after a change. */
function addressOf(change) {
  const { descending, lock, q, sort } = { ...wanted, ...change };
  const parts = Object.entries({ lock, q, sort, descending: descending || '' }).filter(([, value]) => value !== '');
  return `#${new URLSearchParams(parts)}`;
}

function linkTo({ lock }) {
  return make('a', { href: addressOf({ lock }) }, nameOf({ lock }));
}

function termsOf(pairs) {
  return pairs.flatMap(([term, text]) => [make('dt', {}, term), make('dd', { className: term }, text)]);
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
    const made = make('td', { className, role: 'cell' });
    made.dataset.label = label;
    return made;
  };
  const row = make('tr', { role: 'row' });
  const head = make('th', { scope: 'row', role: 'rowheader' });
  const cells = {
    kind: cell('Kind'),
    holder: cell('Holder', 'holder'),
    heldFor: cell('Held for', 'number'),
    remaining: cell('Left', 'number'),
    waiting: cell('Waiting', 'number'),
  };
  row.append(head, ...Object.values(cells));
  return { row, head, cells };
}

function fill({ row, head, cells }, found) {
  whenChanged(head, prefixes.size, () => [linkTo(found)]);
  head.firstChild.href = addressOf({ lock: found.lock });
  head.title = printable(found.lock);
  const type = shortTypeOf(found);
  const isPlain = found.kind === 'lock' && !found.isKept;
  whenChanged(cells.kind, [kindOf(found), type, found.isOverdue], () => [
    isPlain ? type : kindOf(found),
    ...(found.isKept ? [' ', make('span', { className: 'tag' }, type)] : []),
    ...(found.isOverdue ? [make('span', { className: 'hidden' }, 'overdue')] : []),
  ]);
  cells.kind.title = found.isKept ? WORDS[0][1] : `${kindOf(found)} ${typeOf(found)}`;
  cells.holder.title = holderOf(found);
  cells.remaining.title = { true: 'Its holder renews it', false: 'No renewal was seen' }[found.renewed] ?? '';
  whenChanged(cells.holder, [holderOf(found), found.isHere], () => [
    make('span', { className: found.holder === null ? 'dim' : '' }, holderOf(found)),
    ...(found.isHere ? [' ', make('span', { className: 'tag', title: 'this process' }, 'here')] : []),
  ]);
  setText(cells.waiting, found.isGone ? '' : waitingOf(found));
  for (const [element, name, isSo] of [
    [row, 'overdue', found.isOverdue && !found.isGone],
    [row, 'gone', Boolean(found.isGone)],
    [cells.heldFor, 'long', found.isLong],
    [cells.waiting, 'long', found.longestWait > 30_000],
    [cells.waiting, 'dim', !found.waiting],
    [cells.waiting, 'some', found.waiting > 0],
  ]) {
    element.classList.toggle(name, isSo);
  }
  row.ariaCurrent = found.lock === wanted.lock ? 'true' : null;
}

let usedAt = 0;
let shownFor = '';

/**
 * The locks in their new order. Down to the row that the pointer or the focus is on, all keep their places; what is not in
 * the list any more stays there, dimmed.
 */
function inPlaces(found) {
  const asked = addressOf({ lock: '', from: wanted.from }) + wanted.from;
  const isRead = asked === shownFor && performance.now() - usedAt < LEFT_ALONE;
  shownFor = asked;
  const places = isRead ? [...byId('rows').children] : [];
  const end = places.findLastIndex((row) => row.matches(':hover, :focus-within')) + 1;
  const locks = new Map(found.map((one) => [one.lock, one]));
  const kept = places.slice(0, end).map(({ found: last }) => locks.get(last.lock) ?? { ...last, isGone: true });
  for (const { lock } of kept) locks.delete(lock);
  return [...kept, ...locks.values()];
}

function showRows() {
  const tbody = byId('rows');
  const focused = document.activeElement;
  const list = inPlaces(view.rows);
  const names = new Set(list.map(({ lock }) => lock));
  for (const [name, { row }] of rows) {
    if (names.has(name)) continue;
    row.remove();
    rows.delete(name);
  }
  for (const [i, found] of list.entries()) {
    const made = rows.get(found.lock) ?? rowOf();
    made.row.found = found;
    rows.set(found.lock, made);
    fill(made, found);
    if (tbody.children[i] !== made.row) tbody.insertBefore(made.row, tbody.children[i] ?? null);
  }
  // A row that is moved loses the focus.
  if (document.activeElement !== focused) focused.focus({ preventScroll: true });
  tick();
  const isEmpty = list.length === 0;
  byId('table').hidden = isEmpty;
  byId('empty').hidden = !isEmpty;
  const held = view.missing.length > 0 ? 'No lock was found in the part that could be asked.' : 'No lock is held.';
  const none = wanted.q === '' ? held : `No lock or holder has “${printable(wanted.q)}” in its name.`;
  setText(byId('empty'), view.isAnswered ? none : 'Redis has not answered yet.');
  for (const head of document.querySelectorAll('#table thead th')) {
    const { sort } = head.dataset;
    head.ariaSort = sort !== wanted.sort ? null : wanted.descending ? 'descending' : 'ascending';
    if (sort === 'lock') continue;
    const isBlank = [...rows.values()].every(({ cells }) => /^–?$/.test(cells[sort].textContent));
    head.hidden = isBlank;
    for (const { cells } of rows.values()) cells[sort].hidden = isBlank;
  }
  const isAll = view.matched <= view.rows.length;
  const range = [view.from + 1, view.from + view.rows.length].map((number) => NUMBER.format(number)).join(' to ');
  const order = wanted.sort === '' && view.matched > 1 ? ', the most urgent first' : '';
  byId('pager').hidden = isEmpty;
  setText(byId('range'), `${isAll ? '' : `${range} of `}${count(view.matched, 'lock')}${order}`);
  byId('previous').hidden = isAll;
  byId('next').hidden = isAll;
  byId('previous').disabled = view.from === 0;
  byId('next').disabled = view.from + view.rows.length >= view.matched;
}

/** ms since Redis was looked at. While it, or the server of this page, is away, times stand still. */
function age() {
  return view.problem === null ? view.age + performance.now() - cameAt : 0;
}

function heldFor({ heldFor: ms, isGone, isLong, isOlder, usual }) {
  if (ms === null || isGone) return '';
  const times = isLong ? `, ${NUMBER.format(Math.floor(ms / Math.max(1, usual)))}×` : '';
  return `${isOlder ? '> ' : ''}${shown(ms + age())}${times}`;
}

function left({ holder, isGone, remaining }) {
  if (isGone) return 'gone';
  if (holder === null) return '';
  return remaining === null ? 'no expiry' : shown(remaining - age());
}

function tick() {
  if (view === undefined) return;
  for (const { cells, row } of rows.values()) {
    setText(cells.heldFor, heldFor(row.found));
    setText(cells.remaining, left(row.found));
  }
}

// One lock

function showDetails() {
  const { actions } = view;
  const isKnown = view.open === wanted.lock;
  const found = isKnown ? view.selected : null;
  const isOpen = wanted.lock !== '';
  byId('details').hidden = !isOpen;
  byId('main').classList.toggle('selected', isOpen);
  if (!isOpen) return;
  byId('close').href = addressOf({ lock: '' });
  whenChanged(byId('details-title'), [wanted.lock, prefixes.size], () => [nameOf(wanted)]);
  const isFree = isKnown && view.isAnswered && view.isLookedFor && view.missing.length === 0;
  const state = isFree ? 'no lock and no queue has this name' : 'not known';
  const facts = found === null ? [['State', state]] : factsOf(found);
  whenChanged(byId('facts'), facts, () => termsOf(facts));
  const { holders = [], queue = null } = found ?? {};
  const many = holders.length > 1 ? holders : [];
  const listed = many.map((one) => {
    const more = one.permits > 1 ? `, ${count(one.permits, 'permit')}` : '';
    const held = heldFor(one);
    const left = one.remaining === null ? 'no expiry' : `${shown(one.remaining)} left`;
    return `${printable(one.holder)}${more}${held === '' ? '' : `, for ${held}`}, ${left}`;
  });
  const waiters = (queue ?? []).map(({ waiter, kind, waitingFor }) => {
    const what = kind === 'lock' || kind === found.kind ? '' : ` to ${kind}`;
    return `${printable(waiter)}${what}${waitingFor === null ? '' : `, for ${shown(waitingFor)}`}`;
  });
  for (const [id, lines] of [
    ['holders', listed],
    ['queue', waiters],
  ]) {
    byId(id).hidden = lines.length === 0;
    byId(`${id}-title`).hidden = lines.length === 0;
    whenChanged(byId(id), lines, () => lines.map((line) => make('li', {}, line)));
  }
  for (const id of ['ask-for', 'force']) byId(id).hidden = !actions || !found?.owner || !found.isSure;
}

function factsOf(found) {
  const { fencingToken, isKept, isSure, owner, remaining, renewed, usual, waitingHere } = found;
  const waiting = waitingOf(found);
  return [
    ['Kind', [kindOf(found), typeOf(found)].filter(Boolean).join(', ')],
    ['', isSure ? '' : 'It only has the form of a lock: it may be data of an application, which is not shown.'],
    ['Holder', holderOf(found)],
    ['', isKept ? WORDS[0][1] : ''],
    ['Owner', owner === null || !isSure ? '' : printable(owner)],
    ['Held for', heldFor(found)],
    ['Usually', usual === null ? '' : shown(usual)],
    [
      'Left',
      owner === null
        ? ''
        : `${left(found)}${isKept || remaining === null ? '' : `, unless it is ${isDetached(found) ? 'adopted' : 'renewed'}`}`,
    ],
    ['Renewed', renewed === null ? '' : renewed ? 'yes' : 'not seen yet'],
    ['Fencing token', fencingToken === null ? '' : String(fencingToken)],
    ['Waiting', waiting === '–' ? 'not known' : waiting],
    ['', waitingHere > 0 ? `${count(waitingHere, 'caller')} of this process` : ''],
  ].filter(([, text]) => text !== '');
}

// Below the table

function showActivity() {
  const { here } = view;
  const isOfOne = wanted.lock !== '';
  const changes = view.changes.filter(({ lock }) => !isOfOne || lock === wanted.lock);
  setText(byId('changes-title'), isOfOne ? 'What changed here lately' : 'What changed lately');
  whenChanged(byId('changes'), [changes, addressOf()], () => {
    if (changes.length === 0) return [make('li', { className: 'note' }, 'Nothing since this page was opened.')];
    const times = changes.map(({ at }) => CLOCK.format(at));
    return changes.map((change, i) => {
      const { at, by, reason, times: often, what } = change;
      const time = make('time', { dateTime: new Date(at).toISOString() }, times[i] === times[i - 1] ? '' : times[i]);
      const said = make('span', { className: what.split(' ')[0] }, `${what}${often > 1 ? ` × ${often}` : ''} `);
      const who = make('span', { className: 'by' }, [reason, by && printable(by)].filter(Boolean).join(', '));
      return make('li', {}, time, make('span', {}, said, ...(isOfOne ? [] : [linkTo(change), ' ']), who));
    });
  });
  byId('here').hidden = here === null;
  const cells = (...texts) => texts.map((text) => make('td', { className: 'number' }, text));
  whenChanged(byId('busiest'), [here, addressOf()], () =>
    (here ?? []).map((one) => {
      const { callers, calls, longest, waited, waits, waitsFor } = one;
      const now = callers > 0 ? `${NUMBER.format(callers)}, ${shown(waits)}, for ${waitsFor}` : '';
      const times = [NUMBER.format(calls), shown(waited), shown(longest), now];
      return make('tr', {}, make('th', { scope: 'row' }, linkTo(one)), ...cells(...times));
    }),
  );
}

// Everything

/** For those who listen to the page: only what is news. */
function announce(text) {
  setText(byId('live'), text);
}

function show() {
  const parts = Object.entries(view.counts).filter(([what, number]) => what === 'held' || number > 0);
  whenChanged(byId('counts'), parts, () =>
    parts.flatMap(([what, number], i) => {
      const title = Object.fromEntries(WORDS)[what] ?? '';
      const part = make('span', { className: what, title }, make('b', {}, NUMBER.format(number)), ` ${what}`);
      return i > 0 ? [' · ', part] : [part];
    }),
  );
  showPlace();
  const at = CLOCK.format(view.at);
  const away = `${failures > 0 ? 'The server of this page' : 'Redis'} does not answer (${view.problem}).`;
  if (view.problem === null) showState('live', [...refusals, ...view.missing]);
  else showState('away', [view.isAnswered ? `${away} What is shown is of ${at}.` : away]);
  setText(byId('updated'), view.problem === null ? `${isPaused ? 'Paused' : 'Live'}, as of ${at}` : `As of ${at}`);
  for (const { registryKey } of view.rows) if (registryKey) prefixes.add(`${registryKey}:`);
  byId('main').hidden = false;
  showRows();
  showDetails();
  showActivity();
}

/** Which Redis it is: two tabs must not look the same. */
function showPlace() {
  const { counts, database, missing, problem, searched, server } = view;
  if (searched.length === 0) return;
  const place = printable(searched[0]) + (searched.length > 1 ? ` and ${searched.length - 1} more` : '');
  const part = missing.length > 0 ? 'incomplete' : '';
  const about = [part, database === null ? '' : `database ${database}`, server].filter(Boolean).join(' · ');
  setText(byId('place'), place);
  setText(byId('about'), about);
  byId('place').parentElement.title = [...searched, about].join(', ');
  const news = problem !== null ? 'away: ' : counts.overdue > 0 ? `(${counts.overdue}) ` : '';
  document.title = `${news}${place}${database ? `/${database}` : ''}${part && ` ${part}`} · Locks`;
}

/** `live`, or `away`: what is shown is old. */
function showState(state, problems) {
  if (body.className !== state && body.className !== '') announce(state === 'away' ? 'Redis is away' : 'Redis is back');
  body.className = state;
  byId('problems').hidden = problems.length === 0;
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
    view = { ...answer, open: wanted.lock };
    cameAt = performance.now();
    failures = 0;
    show();
  } catch (error) {
    if (mine.signal.aborted) return undefined;
    failures++;
    const problem = error.message;
    if (view === undefined) showState('away', [`The server of this page does not answer (${problem}).`]);
    else {
      view.problem = problem;
      show();
    }
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
  byId('main').hidden = true;
  setText(byId('updated'), 'Not looking');
  byId('entry').hidden = false;
  byId('token').focus();
  byId('wrong').hidden = token === '';
  if (token !== '') announce('The token is not the right one');
}

// Actions

function openQuestion() {
  const { selected: found } = view;
  const { holder, isKept, lock, owner, waiting } = found;
  setText(byId('question-title'), `Unlock ${printable(lock)} by force?`);
  const held = found.heldFor === null ? '' : ` for ${found.isOlder ? 'over ' : ''}${shown(found.heldFor + age())}`;
  const lines = isKept
    ? [`${printable(holder)} has unlocked it, and it is kept until its minimum hold ends. Its job may run once more.`]
    : isDetached(found)
      ? [`${printable(holder)} has detached its lease: the process that is to adopt it will find that it was lost.`]
      : [
          `${holderOf(found)} holds it${held}, and may still be at work.`,
          'Its process learns of it at its next renewal at the latest. Until then two tasks may run at the same time.',
        ];
  if (waiting > 0) {
    const many = `${found.isWaitingExact ? '' : 'up to '}${NUMBER.format(waiting)}`;
    lines.push(`${many} ${waiting === 1 ? 'process waits' : 'processes wait'}: the next one gets the lock at once.`);
  }
  if (!found.isCertain)
    lines.unshift('It only has the form of a lock: it may be data of an application, which is deleted.');
  byId('question-text').replaceChildren(...lines.map((line) => make('p', {}, line)));
  const dialog = byId('question');
  dialog.returnValue = '';
  dialog.onclose = () => dialog.returnValue === 'confirm' && act({ act: 'unlock', lock, owner });
  dialog.showModal();
}

function askFor() {
  const { holder, lock, owner } = view.selected;
  const why = prompt(`Why should ${printable(holder)} end early? Its task may read it.`);
  if (why !== null) void act({ act: 'ask', lock, owner, why });
}

async function act(what) {
  byId('force').disabled = true;
  try {
    const headers = { 'content-type': 'application/json' };
    const response = await ask(what, { method: 'POST', headers, body: '{}' });
    const { message } = await response.json();
    announce(message);
    refusals = response.ok ? [] : [message];
  } catch (error) {
    // The page shows it beside what the next look finds.
    refusals = [`It is not known whether that was done: ${error.message}`];
    announce(refusals[0]);
  }
  byId('force').disabled = false;
  byId('details-title').focus();
  await refresh();
}

function openHelp() {
  const columns = [...document.querySelectorAll('#table thead th')].map((head) => [head.textContent, head.title]);
  byId('words').replaceChildren(...termsOf([...KEYS, ...columns, ...WORDS]));
  byId('help').showModal();
}

// What people do

function readAddress() {
  // The token stands there as it is. In what the page writes, a + is a space.
  const hash = location.hash.slice(1).replace(/(?<![^&])token=[^&]*/, (token) => token.replaceAll('+', '%2B'));
  const address = new URLSearchParams(hash);
  const given = address.get('token');
  if (given !== null) {
    token = given;
    sessionStorage.setItem('redis-locks-token', token);
    address.delete('token');
    history.replaceState(null, '', address.size > 0 ? `#${address}` : location.pathname + location.search);
  }
  for (const name of ['lock', 'q', 'sort']) wanted[name] = address.get(name) ?? '';
  wanted.descending = address.has('descending');
  if (byId('query').value.trim() !== wanted.q) byId('query').value = wanted.q;
}

function setTheme(theme) {
  document.documentElement.style.colorScheme = theme === 'auto' ? '' : theme;
  localStorage.setItem('redis-locks-theme', theme);
  setText(byId('theme-name'), theme);
  byId('theme').ariaLabel = `Theme: ${theme}`;
}

function look(change) {
  Object.assign(wanted, { from: 0 }, change);
  history.replaceState(null, '', addressOf());
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
    if (wanted.sort !== sort) void look({ sort, descending: first });
    else if (wanted.descending === first) void look({ descending: !first });
    else void look({ sort: '', descending: false });
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
  const now = THEMES.indexOf(byId('theme-name').textContent);
  setTheme(THEMES[(now + 1) % THEMES.length]);
});
byId('force').addEventListener('click', openQuestion);
byId('ask-for').addEventListener('click', askFor);
byId('ask').addEventListener('click', openHelp);
byId('rows').addEventListener('click', ({ target }) => {
  // A click that ends a selection is none on the row.
  if (target.closest('a') === null && String(getSelection()) === '') target.closest('tr').querySelector('a').click();
});
for (const event of ['pointermove', 'pointerdown', 'keydown'])
  addEventListener(event, () => (usedAt = performance.now()));
byId('entry').addEventListener('submit', (event) => {
  event.preventDefault();
  token = byId('token').value;
  sessionStorage.setItem('redis-locks-token', token);
  byId('entry').hidden = true;
  void refresh();
});
document.addEventListener('visibilitychange', () => {
  if (document.hidden) clearTimeout(timer);
  else if (!isPaused) void refresh();
});
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.tagName === 'INPUT' || document.querySelector('dialog[open]') !== null;
  if (event.key === 'Escape' && wanted.lock !== '' && !isTyping) byId('close').click();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/') {
    event.preventDefault();
    byId('query').focus();
  }
  if (event.key === '?') openHelp();
  const at = [...byId('rows').children].indexOf(event.target.closest('#rows tr'));
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (at < 0 || step === undefined) return;
  event.preventDefault();
  byId('rows').children[at + step]?.querySelector('a').focus();
});
addEventListener('hashchange', async () => {
  const before = wanted.lock;
  readAddress();
  if (wanted.lock !== before) refusals = [];
  await refresh();
  if (wanted.lock === before) return;
  const opener = rows.get(before)?.row.querySelector('a') ?? byId('table');
  // The table stays where it is.
  (wanted.lock === '' ? opener : byId('details-title')).focus({ preventScroll: true });
});

token = sessionStorage.getItem('redis-locks-token') ?? '';
readAddress();
setTheme(localStorage.getItem('redis-locks-theme') ?? 'auto');
setInterval(tick, 1_000);
void refresh();
