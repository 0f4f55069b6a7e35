import { Agent, request } from 'node:http';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../../lib';
import { freePort } from '../../../support/free-port';
import { ifBuilt } from '../../support/built-package';
import { describePrivate } from '../../support/private-redis';
import { Program } from '../../support/program';
import { until } from '../../support/until';
import { ProgramFolder } from './program-folder';
import { PROGRAMS } from './programs';

/** ms; a request waits for a lock for up to 30 s, and `close` for a holder for up to 5 s. */
const SHUTDOWN_LIMIT = 15_000;

const SERVERS = PROGRAMS.filter(({ mark }) => mark === 'server');

/** The status of a response; `undefined`: the server closed the connection, or accepts none. */
type Status = number | undefined;

/** A server of a page in a process of its own. */
class ServerProcess extends Program {
  /** Each caller has a connection of its own, which it uses for all its requests. */
  readonly #agents = new Map<string, Agent>();
  readonly #port: number;

  private constructor(script: string, port: number) {
    super([process.execPath, script], { PORT: String(port) });
    this.#port = port;
  }

  static async start(script: string): Promise<ServerProcess> {
    for (;;) {
      const server = new ServerProcess(script, await freePort());
      try {
        await server.prints('listening');
        return server;
      } catch (error) {
        // Somebody else took the port meanwhile.
        if (!String(error).includes('EADDRINUSE')) throw error;
      }
    }
  }

  /** SIGTERM; resolves to how the process ended, an exit code or a signal, and after how many ms. */
  async terminate(limit: number): Promise<{ end: unknown; after: number }> {
    const start = performance.now();
    this.child.kill('SIGTERM');
    await until(() => this.hasExited, { within: limit });
    return { end: this.child.exitCode ?? this.child.signalCode, after: performance.now() - start };
  }

  override async kill(): Promise<void> {
    for (const agent of this.#agents.values()) agent.destroy();
    await super.kill();
  }

  post(path: string, caller: string): Promise<Status> {
    const agent = this.#agents.get(caller) ?? new Agent({ keepAlive: true, maxSockets: 1 });
    this.#agents.set(caller, agent);
    return new Promise((resolve) => {
      const sent = request({ host: '127.0.0.1', port: this.#port, path, method: 'POST', agent }, (response) => {
        response.resume().once('close', () => resolve(response.statusCode));
      });
      sent.once('error', () => resolve(undefined)).end();
    });
  }
}

ifBuilt(describePrivate)('A server that shuts down as docs/frameworks.md says', () => {
  const programs = ProgramFolder.install('shutdown');
  /** Of another process, as far as the server can see. */
  let elsewhere: RedisLockRegistry;
  let server: ServerProcess | undefined;

  beforeEach(() => {
    elsewhere = new RedisLockRegistry(programs.admin, { registryKey: 'shop', lockType: 'pub-sub' });
  });

  afterEach(async () => {
    await server?.kill();
    await elsewhere.close({ timeout: 0 });
  });

  it('The shutdown of a server is shown in Express, and in Nest', () => {
    expect(SERVERS).toHaveLength(2);
  });

  it.each(SERVERS)(
    '(line $line) ends in time after a SIGTERM under load, answers those who wait, and leaves nothing in Redis',
    async (program) => {
      const held = await elsewhere.obtain('cart:held').lock();
      const shop = await ServerProcess.start(await programs.folder.script(program));
      server = shop;

      const waiters = Array.from({ length: 5 }, (_, i) => shop.post('/carts/held', `waiter ${i}`));
      const answers: Status[] = [];
      const load = Array.from({ length: 10 }, async (_, i) => {
        for (let answer: Status = 0; answer !== undefined; answers.push(answer)) {
          answer = await shop.post(`/carts/${i % 2}`, `caller ${i}`);
        }
      });
      // By then the server has read the requests of the waiters, which were sent before.
      await until(() => answers.length >= 30, { within: 15_000 });
      expect(new Set(answers)).toEqual(new Set([201]));

      const { end, after } = await shop.terminate(SHUTDOWN_LIMIT);
      // Nest sends itself the signal again when its hooks are done.
      expect([0, 'SIGTERM']).toContain(end);
      expect(after).toBeLessThan(SHUTDOWN_LIMIT);
      expect(await Promise.all(waiters)).toEqual([503, 503, 503, 503, 503]);
      await Promise.all(load);
      expect([...new Set(answers)].filter((answer) => ![201, 503, undefined].includes(answer))).toEqual([]);
      expect(shop.stderr).toBe('');

      // The mark of those who waited ends by itself.
      await until(async () => (await programs.admin.keys('*')).join() === 'shop:cart:held');
      await held.unlock();
      expect(await programs.admin.keys('*')).toEqual([]);
    },
    60_000,
  );
});
