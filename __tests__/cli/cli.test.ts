import { execFileSync } from 'node:child_process';
import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { Node } from '../support/node';
import { atTheEnd, describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { CliProcess, COMMAND } from './cli-process';

const LIMIT = { within: 30_000 };

function hasScript(): boolean {
  try {
    return execFileSync('script', ['--version'], { encoding: 'utf8' }).includes('util-linux');
  } catch {
    return false;
  }
}

describePrivate('redis-locks', () => {
  let url: string;
  let server: Node;
  const processes: CliProcess[] = [];

  beforeAll(async () => {
    server = await Node.start();
    atTheEnd(() => server.stop());
    url = `redis://${server.address.host}:${server.address.port}`;
  });

  afterEach(async () => {
    for (const { child } of processes) if (child.exitCode === null) child.kill('SIGKILL');
    await Promise.all(processes.splice(0).map(({ ended }) => ended));
    await server.send('FLUSHALL');
  });

  const start = (...args: string[]): CliProcess => {
    const started = new CliProcess([...COMMAND, ...args], { REDIS_URL: url });
    processes.push(started);
    return started;
  };

  /** Starts a `run` whose command says that it has begun, and waits for that. */
  const hold = async (options: string[], script: string): Promise<CliProcess> => {
    const holder = start('run', 'nightly', ...options, '--', 'sh', '-c', `echo begun; ${script}`);
    await until(() => holder.stdout.includes('begun'), LIMIT);
    return holder;
  };

  const isHeld = async (): Promise<boolean> => (await server.send('EXISTS', 'locks:nightly')) === 1;

  it('run gives the exit code of the command, its environment, and the lock back', async () => {
    const ran = start('run', 'nightly', '--', 'sh', '-c', 'echo "$LOCK_KEY $LOCK_OWNER $LOCK_FENCING_TOKEN"; exit 7');
    expect(await ran.ended).toBe(7);
    expect(ran.stdout).toMatch(new RegExp(`^nightly .+:${ran.child.pid}:[\\w-]{22}:1 \\d+\n$`));
    expect(await isHeld()).toBe(false);
  });

  it('run --min-hold keeps the lock after the command has ended, for at most the ttl', async () => {
    expect(await start('run', 'nightly', '--min-hold', '30s', '--', 'true').ended).toBe(0);
    const [second, tooLong] = [
      start('run', 'nightly', '--no-wait', '--', 'true'),
      start('run', 'weekly', '--min-hold', '2m', '--', 'true'),
    ];
    expect(await second.ended).toBe(75);
    expect(second.stderr).toMatch(/"nightly" is not free: [^ ]+ had it, and its minimum hold has not ended/);
    expect(second.stderr).not.toContain('kept@');
    expect(await tooLong.ended).toBe(64);
    expect(tooLong.stderr).toContain('`minHold` to be at most the ttl of 60000 ms, got 120000');
  });

  it('a second run --no-wait exits with 75, ls and inspect show the holder, and its end frees the lock', async () => {
    const holder = await hold([], 'read end');
    const second = start('run', 'nightly', '--no-wait', '--', 'true');
    expect(await second.ended).toBe(75);
    expect(second.stderr).toMatch(/"nightly" is not free.*holds it/);
    const [ls, inspect, waiting] = [
      start('ls'),
      start('inspect', 'nightly', '--json'),
      start('run', 'nightly', '--', 'echo', 'mine'),
    ];
    expect([await ls.ended, await inspect.ended]).toEqual([0, 0]);
    expect(ls.stdout).toContain(`:${holder.child.pid}`);
    expect(ls.stdout).not.toContain('\u001b');
    expect(JSON.parse(inspect.stdout)).toMatchObject({
      key: 'nightly',
      held: true,
      name: expect.stringContaining(`:${holder.child.pid}`),
    });
    holder.child.stdin?.end('\n');
    expect([await holder.ended, await waiting.ended]).toEqual([0, 0]);
    expect(waiting.stdout).toBe('mine\n');
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'] as const)('passes %s on to the command', async (signal) => {
    const holder = await hold([], `trap 'echo got it; exit 5' ${signal.slice(3)}; while :; do sleep 0.05; done`);
    await new Promise((resolve) => setTimeout(resolve, 200)); // the shell sets its trap after it has begun
    holder.child.kill(signal);
    expect(await holder.ended).toBe(5);
    expect(holder.stdout).toContain('got it');
    expect(await isHeld()).toBe(false);
  });

  it('a signal ends the wait, and leaves nothing behind', async () => {
    const holder = await hold([], 'read end');
    const waiting = start('run', 'nightly', '--', 'true');
    await until(async () => /^db0:/m.test(String(await server.send('INFO', 'keyspace'))), LIMIT);
    await until(
      async () => (String(await server.send('CLIENT', 'LIST')).match(/cmd=evalsha/g) ?? []).length > 1,
      LIMIT,
    );
    waiting.child.kill('SIGTERM');
    expect(await waiting.ended).toBe(143);
    holder.child.stdin?.end('\n');
    expect(await holder.ended).toBe(0);
    expect(await isHeld()).toBe(false);
  });

  it('a command that loses its lock gets SIGTERM, and after the grace SIGKILL', async () => {
    const holder = await hold(
      ['--ttl', '6s', '--grace', '200ms'],
      "trap 'echo told' TERM; while :; do sleep 0.05; done",
    );
    const release = start('release', 'nightly', '--force');
    expect(await release.ended).toBe(0);
    expect(release.stdout).toMatch(/^Released "nightly", held by .+\.\n$/);
    expect(await holder.ended).toBe(137);
    expect(holder.stdout).toContain('told');
    expect(holder.stderr).toMatch(/"nightly" was lost.*SIGTERM/);
  });

  it('kill -9 frees the lock when its ttl ends, and watch shows that', async () => {
    const watch = start('watch', '--json', '--interval', '100ms');
    await new Promise((resolve) => setTimeout(resolve, 1_000)); // it takes its first list
    const holder = await hold(['--ttl', '2s'], 'sleep 4');
    await until(() => watch.stdout.includes('"taken"'), LIMIT);
    holder.child.kill('SIGKILL');
    await until(() => watch.stdout.includes('"free"'), LIMIT);
    const changes = watch.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(changes.map(({ key, what }) => [key, what])).toEqual([
      ['nightly', 'taken'],
      ['nightly', 'free'],
    ]);
    watch.child.kill('SIGINT');
    expect(await watch.ended).toBe(0);
  });

  (hasScript() ? it : it.skip)('watch is a live table in a pseudo-terminal, and ends with Ctrl-C', async () => {
    const holder = await hold([], 'read end');
    const words = [...COMMAND, 'watch', '--interval', '100ms'].map((word) => `'${word}'`).join(' ');
    // With `exec`, no shell is left that Ctrl-C would end too: dash then exits with 130.
    const watch = new CliProcess(['script', '-qec', `exec ${words}`, '/dev/null'], { REDIS_URL: url });
    processes.push(watch);
    await until(() => /held for.*\r\n.*nightly.*over \d/s.test(watch.stdout), LIMIT);
    expect(watch.stdout).toContain(`:${holder.child.pid}`);
    holder.child.stdin?.end('\n');
    await until(() => /nightly: free \(was held by/.test(watch.stdout), LIMIT);
    watch.child.stdin?.write('\u0003');
    expect(await watch.ended).toBe(0);
  });

  it.each([
    [64, 'unknown lock type', ['ls', '--type', 'foo'], /spin, pub-sub.*"foo"/],
    [64, 'URL that is none', ['ls', '--url', 'nonsense'], /--url is not a URL/],
    [64, 'unknown command', ['frobnicate'], /no command "frobnicate"/],
    [64, 'unknown option', ['ls', '--bogus'], /--bogus/],
    [64, 'option of another command', ['ls', '--grace', '1s'], /no option --grace/],
    [64, 'missing key', ['inspect'], /takes one KEY/],
    [64, 'missing command', ['run', 'nightly'], /command is missing/],
    [64, 'duration that is none', ['run', 'nightly', '--wait', '30', '--', 'true'], /--wait.*"30"/],
    [64, 'bad name', ['ls', '--name', 'a b'], /`name`/],
    [64, 'release without --force', ['release', 'nightly'], /--force/],
    [69, 'Redis that is not there', ['ls', '--url', 'redis://127.0.0.1:1'], /cannot be reached/],
    [69, 'key that does not exist', ['inspect', 'nightly'], /Nobody holds "nightly"/],
    [69, 'key that does not exist', ['release', 'nightly', '--force'], /Nobody holds "nightly"/],
    [
      127,
      'command that does not exist',
      ['run', 'nightly', '--', 'no-such-command'],
      /no-such-command cannot be started/,
    ],
  ])('exits with %d and one line for a(n) %s', async (exitCode, _what, args, line) => {
    const failed = start(...args);
    expect(await failed.ended).toBe(exitCode);
    expect(failed.stderr).toMatch(line);
    expect(failed.stderr.trim().split('\n')).toHaveLength(1);
    expect(failed.stdout).toBe('');
    expect(await isHeld()).toBe(false);
  });

  it('helps without a Redis', async () => {
    const help = start('--help', '--url', 'redis://127.0.0.1:1');
    expect(await help.ended).toBe(0);
    expect(help.stdout).toContain('redis-locks run KEY');
  });
});
