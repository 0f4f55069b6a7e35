// `npm run test:page`: the page in a real browser. With PICTURES=docs it writes the pictures of docs/operations.md. It needs
// Chromium: CHROMIUM_BIN, or `chromium` on the PATH.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import test, { after, before, beforeEach, describe } from 'node:test';
import { chromium } from 'playwright-core';
import { createClient } from 'redis';
import { browserBinary } from '../../support/chromium.mjs';

const require = createRequire(import.meta.url);
const { dashboard, toNode } = require('../../dist/dashboard');
const { RedisLockRegistry } = require('../../dist');
const { startRedis } = require('../../support/redis.ts');
const { freePort } = require('../../support/free-port.ts');

// As `openssl rand -base64` makes them.
const TOKEN = 'a+token/for+the/tests+of+the/page==';
/** The folder that gets pictures, from the root; by default they are made and thrown away. */
const { PICTURES } = process.env;
const DESKTOP = { width: 1280, height: 740 };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
/** ms; a busy machine takes its time. */
const LIMIT = 30_000;

let redis;
let port;
let browser;
let client;
/** What a test has opened. */
const open = [];

before(async () => {
  port = await freePort();
  redis = await startRedis({ port });
  browser = await chromium.launch({ executablePath: browserBinary(), args: ['--no-sandbox'] });
  client = await createClient({ url: `redis://localhost:${port}`, disableOfflineQueue: true })
    .on('error', () => undefined)
    .connect();
});
after(async () => {
  client.destroy();
  await browser.close();
  await redis.stop();
});
beforeEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
  await client.flushAll();
});

async function serve({ from = client, ...options } = {}) {
  const actions = [];
  const page = dashboard(from, { token: TOKEN, onAction: (action) => actions.push(action), ...options });
  const server = createServer(toNode(page)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(() => {
    page[Symbol.dispose]();
    server.close().closeAllConnections();
  });
  return { url: `http://127.0.0.1:${server.address().port}/locks`, actions };
}

/** A page whose errors end the test. */
async function show(url, options = {}) {
  const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce', ...options });
  open.push(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT);
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('request', (request) => new URL(request.url()).origin === new URL(url).origin || problems.push(request.url()));
  await page.goto(`${url}#token=${TOKEN}`);
  return { page, problems };
}

/** A process that holds locks. */
async function start(name, ...jobs) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'holder.cjs'), name, String(port), ...jobs], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  open.push(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  await once(child.stdout, 'data');
}

function registryOf(options = {}) {
  const registry = new RedisLockRegistry(client, { registryKey: 'shop', lockType: 'fair', name: 'web-1:4121', ...options });
  open.push(() => registry.close({ timeout: 0 }));
  return registry;
}

/** Waits until a text, or what a function returns, is as wanted. */
async function until(look, isGood) {
  for (const end = performance.now() + LIMIT; ; ) {
    const seen = await look();
    if (isGood(seen)) return seen;
    if (performance.now() > end) assert.fail(`still ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const rowOf = (page, name) => page.locator('#rows tr', { has: page.getByRole('rowheader', { name, exact: true }) });
const picture = (page, name) =>
  page.screenshot(PICTURES && { path: join(import.meta.dirname, '../..', PICTURES, `dashboard-${name}.png`) });

/** An owner value, of a `fair` hold that began some ms ago. */
const ownerOf = (name, number, ago) => `${name}:${'x'.repeat(22)}:${number}${ago === undefined ? '' : `@${microseconds(ago)}`}`;
const microseconds = (ago) => Math.round((Date.now() - ago) * 1_000);

/** A lock that is held, and has been waited for by four processes, for some ms. */
async function stuck(key, ago) {
  await client.set(`shop:${key}`, ownerOf('web-4:5120', 7, ago + 2_000), { PX: 600_000 });
  const waiters = ['web-1:4121', 'web-2:880', 'web-3:912', 'worker-1:77'];
  await client.zAdd(`{shop:${key}}:queue`, waiters.map((name, i) => ({ score: microseconds(ago - i * 9_000), value: ownerOf(name, i) })));
}

/** Locks of several processes, of all kinds; and what this process does with locks. */
async function aShop(registry) {
  await stuck('payout', 95_000);
  await start('web-2:880', 'contend=order:42', 'hold=invoice:2026-11', 'enter=render');
  await start('web-3:912', 'contend=order:42', 'enter=render', 'read=prices');
  await start('worker-1:77', 'keep=cron:nightly', 'enter=render', 'read=prices', 'hold=stock:{7}');
  await registry.obtain('customer:1009').lock();
  for (let i = 0; i < 25; i++) await registry.run(`cart:${i % 3}`, () => undefined);
  void registry.run('order:42', () => undefined).catch(() => undefined);
  void registry
    .obtain('invoice:2026-11')
    .lock()
    .catch(() => undefined);
}

describe('The page', () => {
  test('shows who holds what, the queues, and what changes, while processes contend', async () => {
    const registry = registryOf();
    const { url } = await serve();
    const { page, problems } = await show(url);
    await aShop(registry);
    await rowOf(page, 'shop:order:42').waitFor();
    await until(() => rowOf(page, 'shop:order:42').locator('.holder').innerText(), (text) => /web-[23]:\d+/.test(text));
    const rows = [
      ['shop:render', /semaphore 2\/2/],
      ['shop:cron:nightly', /kept.*unlocked by worker-1:77/s],
      ['shop:prices', /2 readers/],
      ['shop:customer:1009', /web-1:4121\s*here/],
    ];
    for (const [name, text] of rows) await until(() => rowOf(page, name).innerText(), (shown) => text.test(shown));
    await until(() => rowOf(page, 'shop:order:42').locator('td').last().innerText(), (text) => Number.parseInt(text, 10) >= 1);
    await until(() => page.locator('#changes').innerText(), (text) => /order:42 web-[23]/.test(text) && /acquired/.test(text));
    assert.match(await page.locator('#rows tr').first().innerText(), /payout.*1 min \d+ s.*4, 1 min \d+ s/s, 'what hurts comes first');
    assert.match(await page.locator('#counts').innerText(), /· 1 overdue/);
    assert.equal(await page.locator('#rows .overdue').count(), 1);
    await until(() => page.locator('#here').innerText(), (text) => /invoice:2026-11.*1, \d.*for another process/.test(text) && /cart:\d/.test(text));
    await rowOf(page, 'shop:invoice:2026-11').getByRole('link').click();
    await page.waitForURL(/#lock=shop%3Ainvoice%3A2026-11$/);
    const details = page.locator('#details');
    await until(() => details.innerText(), (text) => /web-1:4121, for \d/.test(text));
    await page.getByText('What changed here lately').waitFor();
    assert.doesNotMatch(await page.locator('#changes').innerText(), /order:42|cart/, 'only of the lock that is open');
    assert.match(await details.innerText(), /Owner\s+web-2:880:\S+:\d+/);
    assert.equal(await details.getByRole('button').count(), 0, 'it only reads');
    await picture(page, 'light');
    await page.emulateMedia({ colorScheme: 'dark' });
    await picture(page, 'dark');
    // The link alone leads there too.
    const other = await page.context().newPage();
    await other.goto(`${page.url()}&token=${TOKEN}`);
    await other.locator('#details').getByText('invoice:2026-11').waitFor();
    assert.ok(!other.url().includes(TOKEN));
    assert.deepEqual(problems, []);
  });

  test('opens a lock wherever its row is clicked, lights it up as a whole, and moves nothing', async () => {
    const registry = registryOf();
    for (const key of ['a', 'b', 'c:with-a-key-that-is-too-long-for-its-column:0123456789']) await registry.obtain(key).lock();
    const { url } = await serve();
    const { page } = await show(url);
    await rowOf(page, 'shop:b').waitFor();
    const places = () => page.locator('#rows :is(th, td)').evaluateAll((cells) => cells.map((cell) => {
      const { x, y, width, height } = cell.getBoundingClientRect();
      return [x, y, width, height];
    }));
    const before = await places();
    for (const cell of ['.holder', 'td:nth-child(4)', 'th']) {
      await rowOf(page, 'shop:b').locator(cell).click({ position: { x: 60, y: 25 } });
      await page.locator('#details').getByText('shop:b').waitFor();
      assert.deepEqual(await places(), before);
      const colours = await rowOf(page, 'shop:b').evaluate((row) => [row, ...row.cells].map((one) => getComputedStyle(one).backgroundColor));
      assert.notEqual(colours[0], 'rgba(0, 0, 0, 0)');
      assert.deepEqual(new Set(colours.slice(1)), new Set(['rgba(0, 0, 0, 0)']), 'the cells have no colour of their own');
      await page.keyboard.press('Escape');
      await page.locator('#details').waitFor({ state: 'hidden' });
    }
  });

  test('keeps the row under the pointer, or with the focus, in its place', async () => {
    // Nobody waits for these: they are in the order of their names.
    const hold = (key) => client.set(`shop:${key}`, ownerOf('web-1:1', key.charCodeAt(0), 1_000), { PX: 600_000 });
    for (const key of ['b', 'c', 'd', 'e']) await hold(key);
    const { url } = await serve();
    const { page } = await show(url);
    await rowOf(page, 'shop:c').waitFor();
    const names = () => page.locator('#rows th').allInnerTexts();
    const pinned = [() => rowOf(page, 'shop:d').locator('.holder').hover(), () => rowOf(page, 'shop:d').getByRole('link').focus()];
    for (const pin of pinned) {
      await until(names, (now) => now.join() === 'shop:b,shop:c,shop:d,shop:e');
      await pin();
      const place = await rowOf(page, 'shop:d').boundingBox();
      await stuck('z', 95_000);
      await hold('a');
      await client.del('shop:b');
      await until(names, (now) => now.length === 6);
      assert.deepEqual(await names(), ['shop:b', 'shop:c', 'shop:d', 'shop:z', 'shop:a', 'shop:e']);
      assert.deepEqual(await rowOf(page, 'shop:d').boundingBox(), place);
      assert.match(await rowOf(page, 'shop:b').innerText(), /gone/);
      await page.mouse.move(5, 400);
      await page.evaluate(() => document.activeElement.blur());
      await until(names, (now) => now.join() === 'shop:z,shop:a,shop:c,shop:d,shop:e');
      await client.del(['shop:z', 'shop:a', '{shop:z}:queue']);
      await hold('b');
    }
  });

  test('has which Redis it is in its head and its title, and the search, the order and the lock in its address', async () => {
    await stuck('order:42', 95_000);
    for (const key of ['order:7', 'order:8', 'invoice']) await client.set(`shop:${key}`, ownerOf('web-1:1', key.length), { PX: 600_000 });
    const { url } = await serve();
    const { page } = await show(url);
    await rowOf(page, 'shop:invoice').waitFor();
    assert.match(await page.locator('h1').innerText(), new RegExp(`localhost:${port}\\s+database 0 · (Redis|Valkey) \\d`));
    assert.equal(await page.title(), `(1) localhost:${port} · Locks`);
    await page.keyboard.press('/');
    await page.keyboard.type('order');
    const names = () => page.locator('#rows th').allInnerTexts();
    await until(names, (now) => now.length === 3);
    await page.getByRole('button', { name: 'Lock', exact: true }).click();
    await until(names, (now) => now[0] === 'shop:order:42');
    await page.getByRole('button', { name: 'Lock', exact: true }).click();
    await until(names, (now) => now[0] === 'shop:order:8');
    await rowOf(page, 'shop:order:7').locator('.holder').click();
    await page.locator('#details').getByText('order:7').waitFor();
    const look = async () => [page.url().split('#')[1], await page.locator('#query').inputValue(), await names(), await page.locator('#details').isVisible()];
    const before = await look();
    assert.equal(before[0], 'lock=shop%3Aorder%3A7&q=order&sort=lock&descending=true');
    await page.reload();
    await rowOf(page, 'shop:order:7').waitFor();
    assert.deepEqual(await look(), before);
    await page.getByRole('link', { name: 'Close the details' }).click();
    await page.waitForURL(/#q=order&sort=lock&descending=true$/);
    await page.goBack();
    await page.locator('#details').getByText('order:7').waitFor();
    // Once more: the most urgent first again.
    await page.getByRole('button', { name: 'Lock', exact: true }).click();
    await until(names, (now) => now[0] === 'shop:order:42');
    assert.equal(await page.locator('th[aria-sort]').count(), 0);
  });

  test('links to the busiest locks with the search as it is now', async () => {
    const { url } = await serve();
    await registryOf().run('cart', () => undefined);
    const { page } = await show(url);
    const link = page.locator('#busiest a');
    await link.waitFor();
    await page.locator('#query').fill('order');
    await until(() => link.getAttribute('href'), (href) => href === '#lock=shop%3Acart&q=order');
  });

  test('leaves out columns that are empty in all rows, and explains its keys and words', async () => {
    await client.set('shop:a', ownerOf('web-1:1', 1), { PX: 600_000 });
    await client.set('shop:cron', `kept@${ownerOf('web-1:1', 1)}`, { PX: 600_000 });
    const { url } = await serve();
    const { page } = await show(url);
    await rowOf(page, 'shop:a').waitFor();
    const columns = () => page.getByRole('columnheader').allInnerTexts();
    // For how long a lock without a time is held shows from the second look on.
    const known = await until(columns, (now) => now.includes('Held for'));
    assert.deepEqual(known, ['Lock', 'Kind', 'Holder', 'Held for', 'Left']);
    await stuck('b', 40_000);
    await until(columns, (now) => now.includes('Waiting'));
    assert.match(await rowOf(page, 'shop:cron').locator('td').first().getAttribute('title'), /until its minimum hold/);
    for (const head of await page.getByRole('columnheader').all()) assert.match(await head.getAttribute('title'), /\.$/);
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keys and words' });
    await help.getByText(/until its minimum hold/).waitFor();
    assert.match(await help.innerText(), /goes to the search.*Somebody has waited for over 30 s/s);
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'hidden' });
  });

  test('shows an empty server, Redis away, and back', async () => {
    const { url } = await serve();
    const { page, problems } = await show(url);
    await page.getByText('No lock is held.').waitFor();
    const registry = registryOf();
    await registry.obtain('order:1').lock();
    await rowOf(page, 'shop:order:1').waitFor();
    await redis.stop();
    await page.getByText('Redis is away').waitFor({ state: 'attached' });
    await page.locator('#problems:visible').waitFor();
    assert.match(await page.locator('#updated').innerText(), /^As of \d\d:\d\d:\d\d$/);
    assert.equal(await page.locator('#rows tr').count(), 1, 'what was known stays');
    await picture(page, 'away');
    redis = await startRedis({ port });
    await page.getByText('Redis is back').waitFor({ state: 'attached' });
    await until(() => page.locator('#problems').isVisible(), (isVisible) => !isVisible);
    await until(() => client.isReady, Boolean);
    assert.deepEqual(problems, []);
  });

  test('does not say that no lock is held where a part could not be asked', async () => {
    await client.sendCommand(['ACL', 'SETUSER', 'few', 'on', 'nopass', '~*', '&*', '+@all', '-getrange']);
    const from = await createClient({ url: `redis://few:any@localhost:${port}` }).on('error', () => undefined).connect();
    open.push(() => from.destroy());
    await client.set('shop:a', ownerOf('web-1:1', 1), { PX: 600_000 });
    const { page } = await show((await serve({ from })).url);
    await page.getByText('No lock was found in the part that could be asked.').waitFor();
    assert.match(await page.locator('#problems').innerText(), /NOPERM|user executing the script can't/);
    await page.goto(`${page.url()}#lock=shop:a`);
    await until(() => page.locator('#facts').innerText(), (text) => /State\s+not known/.test(text));
  });

  test('does not call itself live, its times stand still, and it knows no other lock, while its own server is away', async () => {
    await client.set('shop:a', ownerOf('web-1:1', 1, 60_000), { PX: 600_000 });
    await client.set('shop:b', ownerOf('web-1:2', 1, 60_000), { PX: 600_000 });
    const { page } = await show((await serve()).url);
    await rowOf(page, 'shop:a').click();
    await page.locator('#facts', { hasText: 'web-1:1' }).waitFor();
    await page.route('**/*view=locks*', (route) => route.abort());
    await page.getByText('The server of this page does not answer').waitFor();
    assert.match(await page.locator('#updated').innerText(), /^As of \d\d:\d\d:\d\d$/);
    assert.match(await page.title(), /^away: /);
    const before = await rowOf(page, 'shop:a').innerText();
    await page.waitForTimeout(2_500);
    assert.equal(await rowOf(page, 'shop:a').innerText(), before);
    assert.match(await page.locator('#problems').innerText(), /The server of this page/);
    await rowOf(page, 'shop:b').click();
    await until(() => page.locator('#facts').innerText(), (facts) => facts === 'State\nnot known');
  });

  test('unlocks by force after a question that says who holds it', async () => {
    await start('web-2:880', 'hold=order:42');
    await start('web-3:912', 'hold=order:42');
    const { url, actions } = await serve({ actions: true });
    const { page, problems } = await show(`${url}`);
    await rowOf(page, 'shop:order:42').getByRole('link').click();
    const force = page.getByRole('button', { name: 'Force unlock' });
    await until(() => page.locator('body').getAttribute('class'), (state) => state === 'live');
    assert.equal(await page.locator('#here:visible').count(), 0, 'this process has called no lock');
    const before = await page.locator('#updated').innerText();
    await until(() => page.locator('#updated').innerText(), (text) => text !== before);
    assert.equal(await page.locator('#problems:visible').count(), 0);
    assert.equal(await page.locator('#live').textContent(), '', 'it was never away');
    await force.click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/web-2:880 holds it/).waitFor();
    await dialog.getByText(/1 process waits/).waitFor();
    await picture(page, 'question');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'cancel');
    await page.keyboard.press('Escape');
    assert.deepEqual(actions, []);
    await force.click();
    await dialog.getByRole('button', { name: 'Unlock by force' }).click();
    await until(() => rowOf(page, 'shop:order:42').locator('.holder').innerText(), (text) => text === 'web-3:912');
    await page.locator('#changes .forced').waitFor();
    assert.match(await page.locator('#live').textContent(), /unlocked by force; web-2:880 held it/);
    assert.deepEqual(actions.map(({ lock, holder }) => [lock, holder]), [['shop:order:42', 'web-2:880']]);
    assert.ok(actions[0].at instanceof Date);
    assert.deepEqual(problems, []);
  });

  test('does not unlock a lock that somebody else holds by then', async () => {
    const registry = registryOf();
    const first = await registry.obtain('order:42').lock();
    const { url, actions } = await serve({ actions: true });
    const { page } = await show(`${url}`);
    await rowOf(page, 'shop:order:42').getByRole('link').click();
    await page.getByRole('button', { name: 'Force unlock' }).click();
    await first.unlock();
    await registryOf({ name: 'web-9:1' }).obtain('order:42').lock();
    await page.getByRole('dialog').getByRole('button', { name: 'Unlock by force' }).click();
    await until(() => page.locator('#live').textContent(), (text) => /by now web-9:1 holds it/.test(text));
    const before = await page.locator('#updated').innerText();
    await until(() => page.locator('#updated').innerText(), (text) => text !== before);
    assert.match(await page.locator('#problems:visible').innerText(), /by now web-9:1 holds it/, 'it stays while the lock is open');
    await page.keyboard.press('Escape');
    await page.locator('#problems').waitFor({ state: 'hidden' });
    assert.deepEqual(actions, []);
  });

  test('does not say that a process holds a lock whose lease it has detached', async () => {
    await client.set('shop:travels', `detached@${ownerOf('web-1:1', 1)}`, { PX: 600_000 });
    const { page } = await show((await serve({ actions: true })).url);
    await until(() => rowOf(page, 'shop:travels').locator('.holder').innerText(), (text) => text === 'detached by web-1:1');
    await rowOf(page, 'shop:travels').getByRole('link').click();
    await until(() => page.locator('#facts').innerText(), (text) => /, unless it is adopted/.test(text));
    await page.getByRole('button', { name: 'Force unlock' }).click();
    assert.match(await page.locator('#question-text').innerText(), /^web-1:1 has detached its lease: the process that is to/);
  });

  test('says that it is not known whether it was unlocked, as long as the lock is open', async () => {
    await registryOf().obtain('order:42').lock();
    const { url } = await serve({ actions: true });
    const { page } = await show(`${url}`);
    await page.route('**/*act=unlock*', (route) => route.abort());
    await rowOf(page, 'shop:order:42').getByRole('link').click();
    await page.getByRole('button', { name: 'Force unlock' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unlock by force' }).click();
    await page.locator('#problems').getByText('It is not known whether that was done').waitFor();
    const before = await page.locator('#updated').innerText();
    await until(() => page.locator('#updated').innerText(), (text) => text !== before);
    assert.match(await page.locator('#problems:visible').innerText(), /It is not known whether that was done/);
  });

  test('does not say for how long somebody has a permit where that is not known', async () => {
    const members = ['web-1', 'web-2'].map((name) => ({ score: Date.now() + 600_000, value: `semaphore:${ownerOf(name, 1)}` }));
    await client.zAdd('shop:jobs', members);
    const { url } = await serve();
    const { page } = await show(url);
    await page.goto(`${url}#lock=shop%3Ajobs`);
    const holders = () => page.locator('#holders').innerText();
    assert.doesNotMatch(await until(holders, (text) => /web-1/.test(text)), /for ,/);
  });

  test('shows nothing of a key that may be data of an application, and does not unlock it', async () => {
    const secret = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';
    await client.set('session:7', secret, { PX: 600_000 });
    await registryOf().obtain('order:42').lock();
    const { url } = await serve({ actions: true });
    const { page } = await show(url);
    await rowOf(page, 'session:7').getByRole('link').click();
    await page.locator('#details').getByText('may be data of an application').waitFor();
    assert.doesNotMatch(await page.content(), new RegExp(secret.slice(0, 4)));
    const force = page.getByRole('button', { name: 'Force unlock' });
    assert.equal(await force.count(), 0);
    await rowOf(page, 'shop:order:42').getByRole('link').click();
    await force.waitFor();
  });

  test('shows keys and names as they are, and never runs them', async () => {
    const evil = '<img src=x onerror="document.title=\'taken\'"><script>document.title="taken"</script>';
    const registry = registryOf({ name: '<b>bold</b>' });
    await registry.obtain(evil).lock();
    await registry.obtain('javascript:alert(1)').lock();
    await registry.obtain('right-to-left \u202eevil').lock();
    const { url } = await serve();
    const { page, problems } = await show(url);
    await rowOf(page, `shop:${evil}`).waitFor();
    await rowOf(page, 'shop:right-to-left \ufffdevil').waitFor();
    await rowOf(page, `shop:${evil}`).getByRole('link').click();
    await page.locator('#details').getByText('onerror').waitFor();
    assert.match(await page.title(), / · Locks$/);
    assert.equal(await page.locator('#rows img, #rows b, #details img, #changes script').count(), 0);
    assert.match(await rowOf(page, 'shop:javascript:alert(1)').innerText(), /<b>bold<\/b>/);
    assert.deepEqual(problems, []);
  });

  test('stays usable with 10,000 locks', { timeout: 180_000 }, async () => {
    const owner = (i) => `web-${i % 40}:77:${'x'.repeat(22)}:${i}`;
    for (let i = 0; i < 10_000; i += 500) {
      const set = client.multi();
      for (let j = i; j < i + 500; j++) set.set(`shop:order:${String(j).padStart(5, '0')}`, owner(j), { PX: 600_000 + 1_000 * j });
      await set.exec();
    }
    const { url } = await serve();
    const { page, problems } = await show(url);
    await rowOf(page, 'shop:order:00000').waitFor();
    assert.equal(await page.locator('#rows tr').count(), 100);
    assert.equal(await page.locator('#range').innerText(), '1 to 100 of 10,000 locks, the most urgent first');
    await page.getByRole('button', { name: 'Next' }).click();
    await rowOf(page, 'shop:order:00100').waitFor();
    await page.getByRole('button', { name: 'Left' }).click();
    await rowOf(page, 'shop:order:09999').waitFor();
    assert.equal(await page.locator('th[aria-sort]').innerText(), 'Left');
    await page.keyboard.press('/');
    await page.keyboard.type('order:0777');
    await rowOf(page, 'shop:order:07779').waitFor();
    await until(() => page.locator('#rows tr').count(), (rows) => rows === 10);
    await page.locator('#query').fill('web-7:77');
    await until(() => page.locator('#range').innerText(), (text) => text.endsWith('of 250 locks'));
    // Its own work: with a page of 100 rows it does not depend on the number of locks.
    assert.ok((await page.evaluate(() => document.querySelectorAll('*').length)) < 3_000);
    assert.deepEqual(problems, []);
  });

  test('is worked by keyboard', async () => {
    const registry = registryOf();
    for (const key of ['a', 'b', 'c']) await registry.obtain(key).lock();
    const { url } = await serve();
    const { page } = await show(url);
    await rowOf(page, 'shop:c').waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
    await page.keyboard.press('Enter');
    const columns = await page.locator('#table thead button:visible').count();
    for (let i = 0; i <= columns; i++) await page.keyboard.press('Tab');
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    assert.equal(await focused(), 'shop:a');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    assert.equal(await focused(), 'shop:c');
    await page.keyboard.press('Enter');
    await until(() => page.evaluate(() => document.activeElement.id), (id) => id === 'details-title');
    await page.keyboard.press('Escape');
    await until(focused, (text) => text === 'shop:c');
    // The focus stays where it is while the page is renewed.
    const before = await page.locator('#updated').innerText();
    await until(() => page.locator('#updated').innerText(), (text) => text !== before);
    assert.equal(await focused(), 'shop:c');
  });

  test('is a table with names for screen readers, in both themes and on a phone', async () => {
    const registry = registryOf();
    await aShop(registry);
    const { url } = await serve();
    const { page, problems } = await show(url, PHONE);
    await rowOf(page, 'shop:order:42').waitFor();
    const tree = await page.locator('#held').ariaSnapshot();
    assert.match(tree, /table "Locks that are held, or waited for"/);
    assert.match(tree, /columnheader "Held for"/);
    assert.match(tree, /rowheader "shop:order:42"/);
    assert.match(tree, /cell "fair"/);
    assert.equal(await page.getByRole('searchbox', { name: 'Search in locks and holders' }).count(), 1);
    const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    assert.ok(content <= screen, `it is ${content} wide on ${screen}`);
    const bottoms = await page.locator('#rows tr').evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().bottom));
    assert.ok(bottoms.filter((bottom) => bottom <= 844).length >= 6, `the rows end at ${bottoms}`);
    await picture(page, 'phone');
    await rowOf(page, 'shop:order:42').locator('.holder').tap();
    await page.locator('#details').getByText('order:42').waitFor();
    await picture(page, 'phone-details');
    await page.getByRole('link', { name: 'Close the details' }).tap();
    await page.locator('#details').waitFor({ state: 'hidden' });
    const contrast = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const system = await contrast();
    const button = page.getByRole('button', { name: /^Theme/ });
    await button.click();
    assert.equal(await contrast(), system);
    await button.click();
    assert.notEqual(await contrast(), system);
    await page.reload();
    await rowOf(page, 'shop:order:42').waitFor();
    assert.notEqual(await contrast(), system, 'the choice stays');
    assert.deepEqual(problems, []);
  });

  test('asks for the token where it has none, or not the right one', async () => {
    await registryOf().obtain('secret').lock();
    const { url } = await serve();
    const { page } = await show(url);
    await rowOf(page, 'shop:secret').waitFor();
    const other = await browser.newContext();
    open.push(() => other.close());
    const stranger = await other.newPage();
    await stranger.goto(`${url}#token=wrong`);
    await stranger.getByText('This page needs its token').waitFor();
    await stranger.getByText('That is not the right token').waitFor();
    assert.doesNotMatch(await stranger.content(), /secret/);
    await stranger.getByLabel('Token').fill(TOKEN);
    await stranger.getByRole('button', { name: 'Show the locks' }).click();
    await rowOf(stranger, 'shop:secret').waitFor();
  });

  test('obeys no page of another origin', async () => {
    const lease = await registryOf().obtain('order:42').lock();
    const { url, actions } = await serve({ actions: true, token: undefined, authorize: () => true });
    const attacker = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<p>hello</p>'));
    attacker.listen(0, '127.0.0.1');
    await once(attacker, 'listening');
    open.push(() => attacker.close());
    const context = await browser.newContext();
    open.push(() => context.close());
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${attacker.address().port}/`);
    const { owner } = await registryOf().obtain('order:42').inspect();
    const act = `${url}?${new URLSearchParams({ act: 'unlock', lock: 'shop:order:42', owner })}`;
    const results = await page.evaluate(async ([address, data]) => {
      const tries = [
        () => fetch(address, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }),
        () => fetch(address, { method: 'POST', mode: 'no-cors', body: '{}' }),
        () => fetch(data).then((response) => response.text()),
      ];
      return Promise.all(tries.map((attempt) => attempt().then((r) => r.type ?? r, () => 'failed')));
    }, [act, `${url}?view=locks`]);
    assert.deepEqual(results, ['failed', 'failed', 'failed']);
    // A form, as a navigation.
    await page.evaluate((address) => {
      const form = document.body.appendChild(Object.assign(document.createElement('form'), { action: address, method: 'POST' }));
      form.submit();
    }, act);
    await page.waitForURL(/act=unlock/);
    assert.match(await page.content(), /other origins/);
    assert.deepEqual(actions, []);
    lease.assertHeld();
  });
});
