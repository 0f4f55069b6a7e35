import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../support/redis';
import { BUILT_PACKAGE, ifBuilt } from '../../support/built-package';
import { describePrivate, untilTheEnd } from '../../support/private-redis';
import { Program } from '../../support/program';
import { until } from '../../support/until';

/** The machine may have none. */
const HAS_IPV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));

ifBuilt(describePrivate)('redis-locks ui', () => {
  const main = join(BUILT_PACKAGE, 'dist/cli/main.js');
  let redis: RedisServer;
  let program: Program | undefined;

  beforeAll(async () => {
    redis = await untilTheEnd(startRedis({ port: true }));
  }, 120_000);

  afterEach(() => program?.kill());

  /** The program, and the first text that it prints. */
  const start = async (...options: string[]) => {
    const { port } = redis.address as { port: number };
    const started = new Program([process.execPath, main, 'ui', '--url', `redis://127.0.0.1:${port}`, ...options]);
    program = started;
    const text = await until(() => started.lines[0] ?? (started.stderr.includes('\n') && started.stderr));
    return { program: started, text: String(text) };
  };

  it('serves the page on loopback, with a token in the URL that it prints, until a signal', async () => {
    const { program, text } = await start();
    const [, address = '', token = ''] =
      /^The locks are shown at (http:\/\/127\.0\.0\.1:\d+\/)#token=([\w-]{22})$/.exec(text) ?? [];
    const html = await fetch(address);
    expect(html.headers.get('content-security-policy')).toContain("script-src 'sha256-");
    expect(await html.text()).toContain('<title>Locks</title>');
    expect((await fetch(`${address}?view=locks`)).status).toBe(401);
    const view = await fetch(`${address}?view=locks`, { headers: { authorization: `Bearer ${token}` } });
    expect(await view.json()).toMatchObject({ rows: [], problem: null, actions: false });
    program.child.kill('SIGTERM');
    expect(await program.ended).toBe(0);
  });

  it('listens where it is told to, with the token that it is given', async () => {
    const { text } = await start('--host', '0.0.0.0', '--token', 'a token of 16 characters', '--actions', '--json');
    const { url } = JSON.parse(text) as { url: string };
    expect(url).toMatch(/^http:\/\/0\.0\.0\.0:\d+\/#token=a%20token%20of%2016%20characters$/);
    const { origin } = new URL(url);
    const headers = { authorization: 'Bearer a token of 16 characters' };
    const view = await fetch(`${origin.replace('0.0.0.0', '127.0.0.1')}/?view=locks`, { headers });
    expect(await view.json()).toMatchObject({ actions: true });
  });

  (HAS_IPV6 ? it : it.skip)('prints a URL that a browser takes, also of an IPv6 address', async () => {
    const { text } = await start('--host', '::1', '--json');
    const { url } = JSON.parse(text) as { url: string };
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+\/#token=[\w-]{22}$/);
    expect(await (await fetch(url)).text()).toContain('<title>Locks</title>');
  });

  it('refuses a port that is none', async () => {
    const { program, text } = await start('--port', '70000');
    expect(text).toMatch(/--port takes a whole number from 0 to 65535/);
    expect(await program.ended).toBe(64);
  });
});
