import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { Node } from '../support/node';
import { atTheEnd, describePrivate } from '../support/private-redis';
import { Program } from '../support/program';
import { until } from '../support/until';
import { COMMAND, hasScript } from './command';

const LIMIT = { within: 30_000 };

describePrivate('redis-locks', () => {
  let url: string;
  let server: Node;
  const processes: Program[] = [];

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

  const start = (...args: string[]): Program => {
    const started = new Program([...COMMAND, ...args], { REDIS_URL: url });
    processes.push(started);
    return started;
  };

  /** As `start`, in a pseudo-terminal. `redirect`: what a shell adds to the words. */
  const inTerminal = (args: string[], redirect = ''): Program => {
    const words = [...COMMAND, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
    // With `exec`, no shell is left that Ctrl-C would end too: dash then exits with 130.
    const started = new Program(['script', '-qec', `stty rows 24 cols 80; exec ${words} ${redirect}`, '/dev/null'], {
      REDIS_URL: url,
    });
    processes.push(started);
    return started;
  };

  /** Starts a `run` whose command sets its traps and says that it has begun, and waits for that. */
  const hold = async (options: string[], script: string, traps = ':'): Promise<Program> => {
    const holder = start('run', 'nightly', ...options, '--', 'sh', '-c', `${traps}; echo begun; ${script}`);
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
      lock: 'locks:nightly',
      holder: expect.stringContaining(`:${holder.child.pid}`),
    });
    holder.child.stdin?.end('\n');
    expect([await holder.ended, await waiting.ended]).toEqual([0, 0]);
    expect(waiting.stdout).toBe('mine\n');
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'] as const)('passes %s on to the command', async (signal) => {
    const holder = await hold([], 'while :; do sleep 0.05; done', `trap 'echo got it; exit 5' ${signal.slice(3)}`);
    holder.child.kill(signal);
    expect(await holder.ended).toBe(5);
    expect(holder.stdout).toContain('got it');
    expect(await isHeld()).toBe(false);
  });

  it.each(['start', 'end'])(
    'a signal at the %s of the command leaves no lock and no command behind',
    async (moment) => {
      const [node = '', main = ''] = COMMAND;
      const script = `echo begun; ${moment === 'start' ? 'exec sleep 30' : 'exit 3'}`;
      const preload = join(__dirname, 'signal-after-spawn.cjs');
      const ran = new Program([node, '-r', preload, main, 'run', 'nightly', '--', 'sh', '-c', script], {
        REDIS_URL: url,
        SIGNAL_AT: moment,
      });
      processes.push(ran);
      // It ends with its streams: the command has them too.
      expect(await ran.ended).toBe(moment === 'start' ? 143 : 3);
      expect(await isHeld()).toBe(false);
    },
  );

  (hasScript() ? it : it.skip).each([
    ['a terminal', ''],
    ['redirected', '</dev/null'],
  ])('Ctrl-C and kill reach the command once each, when stdin is %s', async (_stdin, redirect) => {
    // A shell runs its trap once for two signals at a time.
    const script = `
      process.on('SIGINT', () => console.log('interrupted'));
      process.on('SIGHUP', () => console.log('hung up'));
      process.on('SIGUSR2', () => process.exit(4));
      setInterval(() => undefined, 1_000);
      console.log(process.ppid + ' begun');`;
    const holder = inTerminal(['run', 'nightly', '--', process.execPath, '-e', script], redirect);
    await until(() => holder.stdout.includes('begun'), LIMIT);
    const interruptions = () => holder.stdout.split('interrupted').length - 1;
    holder.child.stdin?.write('\u0003');
    await until(() => interruptions() > 0, LIMIT);
    const pid = Number(/(\d+) begun/.exec(holder.stdout)?.[1]);
    process.kill(pid, 'SIGHUP'); // the system makes one of two SIGINTs that come before the process runs
    await until(() => holder.stdout.includes('hung up'), LIMIT);
    process.kill(pid, 'SIGINT');
    await until(() => interruptions() > 1, LIMIT);
    process.kill(pid, 'SIGUSR2'); // signals are passed on in their order
    expect(await holder.ended).toBe(4);
    expect(interruptions()).toBe(2);
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
      'while :; do sleep 0.05; done',
      "trap 'echo told' TERM",
    );
    const release = start('release', 'nightly', '--yes');
    expect(await release.ended).toBe(0);
    expect(release.stdout).toMatch(/^Released "locks:nightly", held by .+\.\n$/);
    expect(await holder.ended).toBe(137);
    expect(holder.stdout).toContain('told');
    expect(holder.stderr).toMatch(/"nightly" was lost.*SIGTERM/);
  });

  it('exits with 70 when a command ended well, and its lock turns out to be lost', async () => {
    const holder = await hold([], 'read end');
    await server.send('DEL', 'locks:nightly');
    holder.child.stdin?.end('\n');
    expect(await holder.ended).toBe(70);
    expect(holder.stderr).toMatch(/"nightly" was lost/);
  });

  it('a grace longer than any timer gives the command all the time it needs', async () => {
    const holder = await hold(
      ['--ttl', '600ms', '--grace', '600h'],
      'while :; do sleep 0.05; done',
      "trap 'sleep 0.3; exit 5' TERM",
    );
    expect(await holder.ended).toBe(5);
  });

  it('a reader that goes away ends no command, and output that cannot be written is an error', async () => {
    const holder = await hold([], 'read end');
    const [list, missing] = [start('ls'), start('inspect', 'weekly')];
    list.child.stdout?.destroy();
    missing.child.stderr?.destroy();
    const full = openSync('/dev/full', 'w');
    const unwritten = new Program([...COMMAND, 'ls'], { REDIS_URL: url }, full);
    processes.push(unwritten);
    expect([await list.ended, await missing.ended, await unwritten.ended]).toEqual([0, 69, 74]);
    closeSync(full);
    expect([list.stderr, unwritten.stderr]).toEqual(['', expect.stringMatching(/^redis-locks: .*ENOSPC.*\n$/)]);
    holder.child.stdin?.end('\n');
    expect(await holder.ended).toBe(0);
  });

  it.each([
    ['Ctrl-D', '\u0004', 75],
    ['Ctrl-C', '\u0003', 130],
    ['n', 'n\r', 75],
    ['y', 'y\r', 0],
  ])('release takes %s for an answer', async (_key, typed, exitCode) => {
    await server.send('SET', 'locks:nightly', 'web-7:AAAAAAAAAAAAAAAAAAAAAA:1', 'PX', '600000');
    const release = inTerminal(['release', 'nightly']);
    await until(() => release.stdout.includes('[y/N]'), LIMIT);
    release.child.stdin?.write(typed);
    expect(await release.ended).toBe(exitCode);
    expect(await isHeld()).toBe(exitCode !== 0);
  });

  it('kill -9 frees the lock when its ttl ends, and watch shows that', async () => {
    await server.send('CONFIG', 'RESETSTAT');
    const watch = start('watch', '--json', '--interval', '100ms');
    // Its first list takes three scans.
    await until(async () => /cmdstat_scan:calls=[4-9]/.test(String(await server.send('INFO', 'commandstats'))), LIMIT);
    const holder = await hold(['--ttl', '2s'], 'sleep 4');
    await until(() => watch.stdout.includes('"taken"'), LIMIT);
    holder.child.kill('SIGKILL');
    await until(() => watch.stdout.includes('"free"'), LIMIT);
    const changes = watch.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(changes.map(({ lock, what }) => [lock, what])).toEqual([
      ['locks:nightly', 'taken'],
      ['locks:nightly', 'free'],
    ]);
    watch.child.kill('SIGINT');
    expect(await watch.ended).toBe(0);
  });

  (hasScript() ? it : it.skip)('watch is a live table in a pseudo-terminal, and ends with Ctrl-C', async () => {
    // Without a token that is a time, Redis does not say since when it is held.
    const holder = await hold(['--type', 'redisson'], 'read end');
    const watch = inTerminal(['watch', '--interval', '100ms']);
    await until(() => /HELD.*\r\n.*nightly.*>\d/s.test(watch.stdout), LIMIT);
    expect(watch.stdout).toContain(`/${holder.child.pid}`);
    for (let i = 0; i < 40; i++)
      await server.send('SET', `locks:a${i}`, `${'long'.repeat(15)}:${'A'.repeat(22)}:1`, 'EX', '60');
    // The last part may be incomplete.
    const screens = () => watch.stdout.split('\u001b[H\u001b[2J').slice(0, -1);
    const full = await until(() => screens().find((text) => /and \d+ more/.test(text)), LIMIT);
    const screen = String(full).split('\r\n');
    expect(screen.length).toBeLessThanOrEqual(24);
    expect(screen[0]).toMatch(/LOCK .*HELD/);
    expect(screen.slice(1).filter((line) => line.length > 80)).toEqual([]);
    holder.child.stdin?.end('\n');
    await until(() => /nightly: free/.test(watch.stdout), LIMIT);
    watch.child.stdin?.write('\u0003');
    expect(await watch.ended).toBe(0);
  });

  it.each([
    [64, 'unknown lock type', ['ls', '--type', 'foo'], /spin, pub-sub.*"foo"/],
    [64, 'URL that is none', ['ls', '--url', 'nonsense'], /--url is not a URL/],
    [64, 'unknown command', ['frobnicate'], /no command "frobnicate"; there are run, ls/],
    [64, 'misspelt command', ['relaese'], /no command "relaese"; did you mean release\?/],
    [64, 'unknown option', ['ls', '--bogus'], /'--bogus'\n$/],
    [64, 'misspelt option', ['ls', '--registrykey', 'a'], /; did you mean --registry-key\?/],
    [64, 'shell that is none', ['completion', 'csh'], /bash, zsh, fish, not "csh"/],
    [64, 'exit code that is none', ['run', 'a', '-E', '256', '--', 'true'], /--conflict-exit-code.*255, not "256"/],
    [
      64,
      'lock of two kinds',
      ['run', 'a', '--shared', '--permits', '2', '--', 'true'],
      /--shared and --permits exclude/,
    ],
    [64, 'option of another command', ['ls', '--grace', '1s'], /no option --grace/],
    [64, 'missing key', ['inspect'], /takes one KEY/],
    [64, 'missing command', ['run', 'nightly'], /command is missing/],
    [64, 'duration that is none', ['run', 'nightly', '--wait', '30x', '--', 'true'], /--wait.*"30x"/],
    [64, 'bad name', ['run', 'a', '--name', 'a b', '--', 'true'], /`name`/],
    [64, 'release that can ask nobody', ['release', 'nightly'], /--yes/],
    [69, 'Redis that is not there', ['ls', '--url', 'redis://127.0.0.1:1'], /cannot be reached/],
    [69, 'key that does not exist', ['inspect', 'nightly'], /Nobody holds a lock "nightly"/],
    [69, 'key that does not exist', ['release', 'nightly', '--yes'], /Nobody holds a lock "nightly"/],
    [
      127,
      'command that does not exist',
      ['run', 'nightly', '--', 'no-such-command'],
      /no-such-command cannot be started/,
    ],
    [126, 'command in a file', ['run', 'nightly', '--', '/etc/passwd/x'], /\/etc\/passwd\/x cannot be started/],
  ])('exits with %d and one line for a(n) %s', async (exitCode, _what, args, line) => {
    const failed = start(...args);
    expect(await failed.ended).toBe(exitCode);
    expect(failed.stderr).toMatch(line);
    expect(failed.stderr.trim().split('\n')).toHaveLength(1);
    expect(failed.stdout).toBe('');
    expect(await isHeld()).toBe(false);
  });

  it('helps without a Redis, with all commands or with one', async () => {
    const [all, one, other] = [
      start('--help', '--url', 'redis://127.0.0.1:1'),
      start('help', 'run'),
      start('ls', '-h'),
    ];
    expect(await Promise.all([all.ended, one.ended, other.ended])).toEqual([0, 0, 0]);
    expect(all.stdout).toMatch(/redis-locks run KEY.*redis-locks ls.*--url URL/s);
    expect(one.stdout).toMatch(/--min-hold 30s.*--url URL/s);
    expect(one.stdout).not.toContain('redis-locks ls');
    expect(other.stdout).not.toContain('--min-hold');
    expect(all.stdout.split('\n').filter((line) => line.length > 120)).toEqual([]);
  });

  it('completes commands, options and lock types, called as bash does', async () => {
    const next = async (...words: string[]) => {
      const line = ['redis-locks', ...words].join(' ');
      const args = ['completion', 'redis-locks', words.at(-1) ?? '', words.at(-2) ?? 'redis-locks'];
      const asked = new Program([...COMMAND, ...args], { COMP_LINE: line });
      processes.push(asked);
      expect([await asked.ended, asked.stderr]).toEqual([0, '']);
      return asked.stdout.trim().split('\n');
    };
    expect(await next('in')).toEqual(['inspect']);
    expect(await next('help', 'wa')).toEqual(['watch']);
    expect(await next('run', '--wa')).toEqual(['--wait']);
    expect(await next('ls', '--type', 'redisson')).toEqual(['redisson', 'redisson-fair']);
    expect(await next('completion', '')).toEqual(['bash', 'zsh', 'fish']);
    expect(await next('run', 'nightly', '--', '')).toEqual(['']);
    const shells = [start('completion', 'bash'), start('completion', 'zsh'), start('completion', 'fish')];
    for (const { ended } of shells) expect(await ended).toBe(0);
    for (const { stdout } of shells) expect(stdout).toMatch(/^complete .*redis-locks/m);
  });

  it("run says for whom it waits, and has an exit code of the caller's for a lock that is not free", async () => {
    const holder = await hold(['--name', 'web-7', '--shared'], 'read end');
    const [reader, writer, quiet] = [
      start('run', 'nightly', '--shared', '--', 'echo', 'read'),
      start('run', 'nightly', '-x', '-w', '1.5', '-E', '9', '--', 'true'),
      start('run', 'nightly', '-x', '-q', '-w', '1200ms', '--', 'true'),
    ];
    expect(await reader.ended).toBe(0);
    expect(reader.stdout).toBe('read\n');
    expect([await writer.ended, await quiet.ended]).toEqual([9, 75]);
    expect(writer.stderr).toMatch(
      /^redis-locks: waits for the lock "nightly", web-7 holds it\n.*"nightly" is not free/,
    );
    expect(quiet.stderr.trim().split('\n')).toHaveLength(1);
    holder.child.stdin?.end('\n');
    expect(await holder.ended).toBe(0);
  });

  it('run takes one of several permits', async () => {
    const holder = await hold(['--permits', '2'], 'read end');
    const second = await hold(['--permits', '2'], 'read end');
    expect(await start('run', 'nightly', '--permits', '2', '-n', '--', 'true').ended).toBe(75);
    for (const { child } of [holder, second]) child.stdin?.end('\n');
    expect([await holder.ended, await second.ended]).toEqual([0, 0]);
  });
});
