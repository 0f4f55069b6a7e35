import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import { ifBuilt } from '../../support/built-package';
import { machineDelay } from '../../support/machine-delay';
import { describePrivate } from '../../support/private-redis';
import { Program } from '../../support/program';
import { until } from '../../support/until';
import { ProgramFolder } from './program-folder';
import { PROGRAMS } from './programs';

const RECIPES = PROGRAMS.filter(({ mark }) => mark === 'recipe');

/** ms, for a test that waits for the end of a ttl and for processes to start. */
const TEST_LIMIT = 60_000;

ifBuilt(describePrivate)('A recipe of docs/recipes.md, in several processes:', () => {
  const programs = ProgramFolder.install('recipes');
  const processes: Program[] = [];

  afterEach(async () => {
    await Promise.all(processes.splice(0).map((one) => one.kill()));
  });

  /** Starts processes of the recipe whose program has this text. */
  async function start(text: string, count: number, env?: Record<string, string>): Promise<Program[]> {
    const recipe = RECIPES.find(({ code }) => code.includes(text)) as (typeof RECIPES)[number];
    const script = await programs.folder.script(recipe);
    const started = Array.from({ length: count }, () => new Program([process.execPath, script], env));
    processes.push(...started);
    return started;
  }

  /** What as many processes of the recipe print, when all of them have succeeded. */
  async function printed(text: string, count: number): Promise<string[]> {
    const started = await start(text, count);
    return (await Promise.all(started.map((one) => one.succeeds()))).flat();
  }

  it('There are nineteen recipes', () => {
    expect(RECIPES).toHaveLength(19);
  });

  it(
    'A leader is followed at once after SIGTERM, and after the ttl when it is killed; there is one at a time',
    async () => {
      const candidates = await start('leader', 3);
      const leaders = () => candidates.filter(({ lines }) => lines.includes('leads'));
      const nextLeader = async (count: number): Promise<Program> => {
        await until(() => leaders().length === count, { within: TEST_LIMIT / 2 });
        const before = candidates.filter(({ hasExited }) => !hasExited && leaders().length > 0);
        return before.find(({ lines }) => lines.includes('leads')) as Program;
      };
      const first = await nextLeader(1);
      // All of them wait for the lock.
      await until(
        async () => (await programs.admin.pubSubNumSub('jobs-channel:jobs:leader'))['jobs-channel:jobs:leader'] === 2,
      );
      expect(leaders()).toHaveLength(1);
      const terminated = performance.now();
      first.child.kill('SIGTERM');
      await until(() => leaders().length === 2);
      expect(performance.now() - terminated).toBeLessThan(1_000 + machineDelay());
      await first.succeeds();

      const second = await nextLeader(2);
      const life = await programs.admin.pTTL('jobs:leader');
      expect(leaders()).toHaveLength(2);
      const killed = performance.now();
      await second.kill();
      await until(() => leaders().length === 3, { within: TEST_LIMIT / 2 });
      expect(performance.now() - killed).toBeGreaterThanOrEqual(life - 5);
      const third = candidates.find((one) => !one.hasExited) as Program;
      third.child.kill('SIGTERM');
      expect(await third.succeeds()).toEqual(['leads']);
    },
    TEST_LIMIT,
  );

  it('A job of cron runs once for all machines, also for one that starts it later', async () => {
    const outputs = [...(await printed('cleanup', 3)), ...(await printed('cleanup', 1))];
    expect(outputs.sort()).toEqual([...Array(3).fill('another process does it'), 'ran']);
    expect(await programs.admin.get('cleanups')).toBe('1');
    expect(await programs.admin.pTTL('jobs:cleanup')).toBeGreaterThan(0);
  });

  it.each([
    ['node-cron', 'backup'],
    ['croner', 'sweep'],
    ['@nestjs/schedule', 'Reports'],
  ])(
    'A job that %s starts in three processes runs once for each second',
    async (_, text) => {
      const machines = await start(text, 3);
      const runs = () => machines.flatMap(({ lines }) => lines.map((line) => Math.round(Number(line) / 1_000)));
      await until(() => runs().length >= 4, { within: TEST_LIMIT / 2 });
      for (const { child } of machines) child.kill('SIGTERM');
      for (const machine of machines) await machine.ended;
      // On a busy machine, schedulers say that they are late. An attempt of croner's may be under way when it is stopped.
      const mayClose = text === 'sweep' ? 'RegistryClosedError' : '-';
      for (const { stderr } of machines) expect(stderr.replaceAll(mayClose, '')).not.toContain('Error');
      expect([...new Set(runs())].sort()).toEqual(runs().sort());
    },
    TEST_LIMIT,
  );

  it(
    'A tenant has three jobs of BullMQ at a time, in two workers',
    async () => {
      const { host, port } = programs.admin.options.socket as { host: string; port: number };
      const connection = { host, port };
      const queue = new Queue('mails', { connection });
      const workers = await start('tenant', 2);
      await until(async () => (await queue.getWorkersCount()) === 2, { within: TEST_LIMIT / 2 });
      const tenants = ['a', 'b'];
      await queue.addBulk(Array.from({ length: 24 }, (_, i) => ({ name: 'mail', data: { tenant: tenants[i % 2] } })));
      const lines = () => workers.flatMap((one) => one.lines);
      await until(async () => (await queue.getCompletedCount()) === 24, { within: TEST_LIMIT / 2 });
      await queue.close();
      for (const { child } of workers) child.kill('SIGTERM');
      for (const one of workers) await one.succeeds();
      const expected = tenants.flatMap((tenant) => [1, 2, 3].map((running) => `${tenant} has ${running}`));
      expect(lines()).toHaveLength(24);
      expect([...new Set(lines())].sort()).toEqual(expected);
    },
    TEST_LIMIT,
  );

  it('Without Redis, a task that may run twice goes on without its lock, and one that must not stops', async () => {
    const output = () => printed('fillCache', 1);
    expect(await output()).toEqual(['filled', 'charged']);
    await programs.admin.set('shop:charge:42', 'somebody', { PX: 60_000 });
    expect(await output()).toEqual(['filled', 'somebody else does it']);
    await programs.admin.del('shop:charge:42');
    await programs.admin.configSet('maxmemory', '1');
    try {
      expect(await output()).toEqual(['filled without the lock', 'stopped: CannotAcquireLockError']);
    } finally {
      await programs.admin.configSet('maxmemory', '0');
    }
  });

  it('A rate limit is kept by all processes together', async () => {
    await printed('sent', 2);
    const times = (await programs.admin.lRange('sent', 0, -1)).map((line) => Number(line.split(' ')[0]));
    expect(times).toHaveLength(4);
    // Each may have been noted a little after its turn began.
    expect((times[3] as number) - (times[0] as number)).toBeGreaterThanOrEqual(2 * 500);
    expect(times).toEqual([...times].sort());
  });

  it(
    'A migration runs once, and again when its process was killed; all others wait for it',
    async () => {
      const services = await start('migration', 3);
      const begun = () => services.filter(({ lines }) => lines.includes('migrates'));
      await until(() => begun().length === 1, { within: TEST_LIMIT / 2 });
      await (begun()[0] as Program).kill();
      const others = services.filter(({ hasExited }) => !hasExited);
      const outputs = await Promise.all(others.map((one) => one.succeeds()));
      expect(outputs.flat().sort()).toEqual(['migrates', 'starts with schema 2', 'starts with schema 2']);
      expect(await printed('migration', 1)).toEqual(['starts with schema 2']);
    },
    TEST_LIMIT,
  );

  it(
    'Queue workers do every message once that is delivered twice',
    async () => {
      const ids = Array.from({ length: 20 }, (_, i) => `message-${i}`);
      await programs.admin.rPush(
        'queue',
        ids.flatMap((id) => [id, id]),
      );
      await printed('queue', 3);
      expect(await programs.admin.hGetAll('results')).toEqual(Object.fromEntries(ids.map((id) => [id, '1'])));
    },
    TEST_LIMIT,
  );

  it(
    'An order is placed once, and a process that was paused while it paid is refused',
    async () => {
      const data = await mkdtemp(join(tmpdir(), 'orders-'));
      const env = { DATABASE: join(data, 'shop.sqlite') };
      const [paused] = (await start('receipt', 1, env)) as [Program];
      await paused.prints('pays\n');
      paused.child.kill('SIGSTOP');
      // They wait for the end of its lease; then one of them places the order.
      const others = await start('receipt', 2, env);
      const outputs = await Promise.all(others.map((one) => one.succeeds()));
      paused.child.kill('SIGCONT');
      expect(await paused.succeeds()).toEqual(['pays', 'refused: a later holder of the lock has the order']);
      const receipts = outputs.flat().filter((line) => line.startsWith('receipt 42 from'));
      expect(receipts).toHaveLength(2);
      expect(new Set(receipts).size).toBe(1);
      expect(outputs.flat().filter((line) => line === 'pays')).toHaveLength(1);
      await rm(data, { recursive: true, force: true });
    },
    TEST_LIMIT,
  );

  it('A request locks and a worker unlocks: a report is made once for each request that was accepted', async () => {
    const outputs = await printed('report:42', 3);
    const accepted = outputs.filter((line) => line === 'accepted').length;
    expect(accepted).toBeGreaterThan(0);
    expect(outputs.filter((line) => line === 'in progress')).toHaveLength(3 - accepted);
    expect(await programs.admin.get('reports made')).toBe(String(accepted));
    expect(await programs.admin.exists('jobs:report:42')).toBe(0);
  });

  it('A process that restarts under its lock leaves it to the next one, and to nobody else', async () => {
    const [first] = (await start('import:lease', 1)) as [Program];
    await first.prints('begins');
    first.child.kill('SIGTERM');
    await first.succeeds();
    expect(await programs.admin.get('jobs:import')).toMatch(/^detached@/);
    const [next, other] = (await start('import:lease', 2)) as [Program, Program];
    await until(() => next.lines.concat(other.lines).length > 0, { within: TEST_LIMIT / 2 });
    expect(next.lines.concat(other.lines)).toEqual(['goes on']);
  });

  it('A workflow of several steps keeps its lock to the last step', async () => {
    const outputs = await printed('etl', 3);
    expect(outputs.length).toBeGreaterThan(0);
    expect(outputs.filter((line) => line === 'load')).toHaveLength(outputs.length / 2);
    expect(await programs.admin.exists('jobs:etl')).toBe(0);
  });

  it('A newer message interrupts the answer of another process to the one before, and is answered then', async () => {
    const [first] = (await start('onMessage', 1, { MESSAGE: 'first' })) as [Program];
    await first.prints('answers first');
    const [second] = (await start('onMessage', 1, { MESSAGE: 'second' })) as [Program];
    expect(await second.succeeds()).toEqual(['answers second', 'answered second']);
    expect(await first.succeeds()).toEqual(['answers first', 'first gave way to a newer one']);
  });

  it('A long job ends early when another process asks for its lock, which that one has then', async () => {
    const [builder] = (await start('index.ask', 1, { NAME: 'builder' })) as [Program];
    await builder.prints('builds');
    expect(await printed('index.ask', 1)).toEqual(['asked', 'deploys']);
    expect(await builder.succeeds()).toEqual([
      'builds',
      'stops early: Lock "index" is asked for by deployer: a deploy',
    ]);
  });

  it('A token that rotates is refreshed once for all processes', async () => {
    expect(await printed('token:shop', 3)).toEqual(['access 1', 'access 1', 'access 1']);
    expect(await programs.admin.get('refreshes')).toBe('1');
  });

  it('A cache fills once, and all processes have the page', async () => {
    const outputs = await printed('renders', 3);
    expect(outputs.sort()).toEqual([...Array(3).fill('<h1>home</h1>'), 'renders home']);
  });

  it('A request that is sent to several processes is done once, also one that is refused', async () => {
    const outputs = await printed('idempotencyKey', 3);
    expect(outputs.filter((line) => line === 'charges')).toHaveLength(2);
    expect(new Set(outputs.filter((line) => line.startsWith('a 200 charged 50 in'))).size).toBe(1);
    expect(outputs.filter((line) => line === 'b 402 declined')).toHaveLength(3);
  });
});
