// `npm run test:docs`: the site in a real browser. It needs Chromium: CHROMIUM_BIN, or `chromium` on the PATH.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, posix } from 'node:path';
import test, { after, before, describe } from 'node:test';
import { chromium } from 'playwright-core';
import { browserBinary } from '../../support/chromium.mjs';


const DIST = join(import.meta.dirname, 'dist');
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.png': 'image/png', '.yml': 'text/yaml', '.json': 'application/json', '.md': 'text/markdown', '.txt': 'text/plain', '.woff2': 'font/woff2' };
const PAGES = readdirSync(DIST, { recursive: true })
  .filter((file) => file.endsWith('.html') && file !== '404.html')
  .map((file) => file.replaceAll('\\', '/'));

/** A server of files that knows nothing of the site, below a path. */
function serve(path) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const inside = pathname.startsWith(path) ? decodeURIComponent(pathname.slice(path.length)) : undefined;
    const file = inside === undefined ? '' : join(DIST, inside === '' || inside.endsWith('/') ? `${inside}index.html` : inside);
    if (inside === undefined || !file.startsWith(DIST) || !existsSync(file) || extname(file) === '') return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file));
  });
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve({ url: `http://127.0.0.1:${server.address().port}${path}`, close: () => server.close() })),
  );
}

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: browserBinary(), args: ['--no-sandbox'] });
});
after(() => browser.close());

/** A page whose errors and failed requests end the test. */
async function openPage(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const problems = [];
  page.on('pageerror', (error) => problems.push(`${page.url()}: ${error.message}`));
  page.on('console', (message) => message.type() === 'error' && problems.push(`${page.url()}: ${message.text()} ${message.location().url}`));
  page.on('response', (response) => response.status() >= 400 && problems.push(`${page.url()}: ${response.status()} ${response.url()}`));
  return { page, problems, close: () => context.close() };
}

// At the root of a host, and below a path that the build does not know.
for (const path of ['/', '/any/where/']) {
  describe(`The site at ${path}`, () => {
    let site;
    before(async () => {
      site = await serve(path);
    });
    after(() => site.close());

    test('every page shows, without an error, and every link and anchor leads somewhere', async () => {
      const { page, problems, close } = await openPage();
      const anchors = new Map();
      const links = [];
      for (const file of PAGES) {
        await page.goto(site.url + file, { waitUntil: 'load' });
        await page.waitForFunction(() => document.querySelector('#app')?.__vue_app__ !== undefined);
        assert.ok(await page.locator('h1').first().isVisible(), `${file} has no heading`);
        const found = await page.evaluate(() => ({
          ids: [...document.querySelectorAll('[id]')].map(({ id }) => id),
          links: [...document.querySelectorAll('a[href]')].map(({ href }) => href),
        }));
        anchors.set(file, new Set(found.ids));
        for (const href of found.links) links.push([file, href]);
      }
      const broken = links.filter(([, href]) => {
        const url = new URL(href);
        if (url.origin !== new URL(site.url).origin) return false;
        if (!url.pathname.startsWith(path)) return true;
        let file = decodeURIComponent(url.pathname.slice(path.length));
        if (file === '' || file.endsWith('/')) file += 'index.html';
        if (!existsSync(join(DIST, file))) return true;
        return url.hash !== '' && anchors.get(file)?.has(decodeURIComponent(url.hash.slice(1))) === false;
      });
      assert.deepEqual([...new Set(broken.map(([file, href]) => `${file}: ${href}`))], []);
      assert.deepEqual(problems, []);
      assert.ok(PAGES.length > 40, `${PAGES.length} pages`);
      await close();
    });

    test('a click in the sidebar leads to another page, without a load', async () => {
      const { page, problems, close } = await openPage();
      await page.goto(site.url);
      await page.evaluate(() => (window.isSame = true));
      await page.locator('.VPSidebar').getByRole('link', { name: 'Reference', exact: true }).click();
      await page.waitForFunction(() => document.querySelector('h1')?.textContent?.includes('Reference'));
      assert.ok(page.url().startsWith(`${site.url}reference`));
      assert.equal(await page.evaluate(() => window.isSame), true);
      assert.deepEqual(problems, []);
      await close();
    });

    test('the search finds a warning, and leads to it', async () => {
      const { page, problems, close } = await openPage();
      await page.goto(site.url);
      await page.locator('#local-search button').click();
      await page.locator('#localsearch-input').fill('NOTIFICATION_REFUSED');
      const result = page.locator('.results a').first();
      await result.waitFor();
      await page.locator('#localsearch-input').fill('fencing token');
      await page.locator('.results a', { hasText: 'Where tokens come from' }).waitFor();
      assert.doesNotMatch(await result.innerText(), /Interface/, 'guides come before the reference');
      await page.locator('#localsearch-input').fill('NOTIFICATION_REFUSED');
      await page.locator('.results a', { hasText: 'Warnings' }).first().waitFor();
      await result.click();
      await page.waitForFunction(() => document.querySelector('main')?.textContent?.includes('NOTIFICATION_REFUSED'));
      assert.ok(page.url().startsWith(site.url));
      assert.deepEqual(problems, []);
      await close();
    });
  });
}

describe('The site', () => {
  let site;
  before(async () => {
    site = await serve('/');
  });
  after(() => site.close());

  test('has a tab for each client', async () => {
    const { page, close } = await openPage();
    await page.goto(`${site.url}get-started.html`);
    const group = page.locator('.vp-code-group').first();
    assert.deepEqual(await group.locator('.tabs label').allTextContents(), ['node-redis', 'ioredis', 'valkey-glide', 'Bun']);
    const shown = () => group.locator('.blocks .active').innerText();
    assert.match(await shown(), /from 'redis'/);
    for (const [name, text] of [['ioredis', /fromIoredis/], ['valkey-glide', /fromGlide/], ['Bun', /fromBun/]]) {
      await group.locator('.tabs label', { hasText: name }).click();
      assert.match(await shown(), text);
    }
    await close();
  });

  test('has a dark mode, by the system and by a switch', async () => {
    const { page, close } = await openPage({ colorScheme: 'dark' });
    await page.goto(site.url);
    const isDark = () => page.evaluate(() => document.documentElement.classList.contains('dark'));
    assert.equal(await isDark(), true);
    await page.locator('.VPNavBarAppearance .VPSwitchAppearance').click();
    assert.equal(await isDark(), false);
    await close();
  });

  test('fits a phone', async () => {
    const { page, close } = await openPage({ viewport: { width: 375, height: 700 } });
    for (const file of ['index.html', 'get-started.html', 'redis.html', 'reference.html', 'coming-from.html']) {
      await page.goto(site.url + file);
      const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
      assert.ok(content <= screen, `${file} is ${content} wide`);
    }
    await page.locator('.VPLocalNav .menu').click();
    assert.ok(await page.locator('.VPSidebar').getByRole('link', { name: 'Recipes' }).isVisible());
    await close();
  });

  test('has Markdown beside each page, and a list of it', () => {
    for (const file of PAGES) assert.ok(existsSync(join(DIST, file.replace(/\.html$/, '.md'))), file);
    const links = [...readFileSync(join(DIST, 'llms.txt'), 'utf8').matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link);
    assert.ok(links.length > 20);
    for (const link of links) assert.ok(existsSync(join(DIST, posix.normalize(link))), link);
  });

  test('names no machine', () => {
    const texts = readdirSync(DIST, { recursive: true }).filter((file) => /\.(html|js|css|md|txt)$/.test(file));
    const root = join(import.meta.dirname, '../..');
    assert.deepEqual(texts.filter((file) => readFileSync(join(DIST, file), 'utf8').includes(root)), []);
  });
});
