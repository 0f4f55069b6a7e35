import { closeSync, openSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { describePrivate } from '../../support/private-redis';
import type { Program } from '../../support/program';
import { until } from '../../support/until';
import { COMMAND, hasScript } from './command';
import { commandLine, LIMIT } from './command-line';

describePrivate('redis-locks', () => {
  const { start, launch, inTerminal, hold, send } = commandLine();

  it('a reader that goes away ends no command, and output that cannot be written is an error', async () => {
    const holder = await hold([], 'read end');
    const [list, missing] = [start('ls'), start('inspect', 'weekly')];
    list.child.stdout?.destroy();
    missing.child.stderr?.destroy();
    const full = openSync('/dev/full', 'w');
    const unwritten = launch([...COMMAND, 'ls'], {}, full);
    expect([await list.ended, await missing.ended, await unwritten.ended]).toEqual([0, 66, 74]);
    closeSync(full);
    const watch = start('watch', '--json', '--interval', '20ms');
    watch.child.stdout?.destroy();
    let holds = 0;
    const ended = watch.ended.finally(() => (holds = Number.NaN));
    await until(async () => {
      await send('SET', 'locks:often', `web-7:${'A'.repeat(22)}:${++holds}`);
      return Number.isNaN(holds);
    }, LIMIT);
    expect(await ended).toBe(0);
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
    const name = 'locks:nightly\u202e';
    await send('SET', name, 'web-7:AAAAAAAAAAAAAAAAAAAAAA:1', 'PX', '600000');
    const release = inTerminal(['release', 'nightly\u202e']);
    await until(() => release.stdout.includes('[y/N]'), LIMIT);
    expect(release.stdout).toContain('Release "locks:nightly\ufffd", held by web-7?');
    release.child.stdin?.write(typed);
    expect(await release.ended).toBe(exitCode);
    expect(await send('EXISTS', name)).toBe(exitCode === 0 ? 0 : 1);
  });

  it.each([
    ['n', 75],
    ['y', 0],
  ])('release says that a key may be data of an application, and takes %s for an answer', async (typed, exitCode) => {
    await send('SET', 'session:7', '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11', 'PX', '600000');
    const release = inTerminal(['release', 'session:7']);
    await until(() => release.stdout.includes('[y/N]'), LIMIT);
    expect(release.stdout).toContain('may be data of an application.\r\nA release deletes it.');
    expect(release.stdout).toContain('Release "session:7", whose holder is not shown?\r\n[y/N]');
    release.child.stdin?.write(`${typed}\r`);
    expect(await release.ended).toBe(exitCode);
    expect(await send('EXISTS', 'session:7')).toBe(exitCode === 0 ? 0 : 1);
  });

  it('does not say that nobody holds a lock where the server refuses all reads, as while it loads its data', async () => {
    await send('CONFIG', 'SET', 'replica-serve-stale-data', 'no');
    await send('REPLICAOF', '127.0.0.1', '1');
    const looks = [
      ['inspect', 'orders:x'],
      ['inspect', 'x', '--registry-key', 'orders'],
      ['release', 'x', '--yes'],
    ];
    const programs = looks.map((words) => start(...words));
    const ends = await Promise.all(programs.map(async ({ ended }) => ended));
    await send('REPLICAOF', 'NO', 'ONE');
    expect(ends).toEqual([69, 69, 69]);
    for (const { stderr } of programs)
      expect(stderr).toMatch(/^redis-locks: [\w.:]+ could not be asked: MASTERDOWN.*\n$/);
  });

  it('says that a lease was detached, and not that its process holds the lock', async () => {
    await send('SET', 'orders:travels', `detached@web-7:${'A'.repeat(22)}:1`, 'PX', '600000');
    const [list, inspect] = [start('ls'), start('inspect', 'travels')];
    const run = start('run', 'travels', '--registry-key', 'orders', '--no-wait', '--', 'true');
    expect([await list.ended, await inspect.ended, await run.ended]).toEqual([0, 0, 75]);
    const release = start('release', 'travels', '--yes');
    expect(await release.ended).toBe(0);
    expect(list.stdout).toMatch(/orders:travels +spin… +detached \(web-7\) +\d+m/);
    expect(inspect.stdout).toMatch(/\ndetached by +web-7\n.*\nleft +\d+m\d+s, unless it is adopted\n/s);
    expect(run.stderr).toMatch(/"travels" is not free: web-7 had it, and has detached its lease\n$/);
    expect(release.stdout).toBe('Released "orders:travels", which web-7 has detached.\n');
  });

  it('release takes no answer for a key whose value has changed since the question', async () => {
    const [value, later] = ['0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11', '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f12'];
    await send('SET', 'session:7', value, 'PX', '600000');
    const release = inTerminal(['release', 'session:7']);
    await until(() => release.stdout.includes('[y/N]'), LIMIT);
    await send('SET', 'session:7', later, 'PX', '600000');
    release.child.stdin?.write('y\r');
    expect([await release.ended, await send('GET', 'session:7')]).toEqual([75, later]);
    expect(release.stdout).toContain('Nothing was released: by now it is another one');
  });

  it('does not say that a registryKey shows the value of a key where one was given', async () => {
    await send('SET', 'locks:count', '5');
    const [list, inspect] = ['ls', 'inspect count'].map((words) => {
      return inTerminal([...words.split(' '), '--registry-key', 'locks']);
    }) as [Program, Program];
    expect([await list.ended, await inspect.ended]).toEqual([0, 0]);
    expect(list.stdout).toMatch(/locks:count .* not shown .*\n\?: may be data of an application\.\r\nSearched/s);
    expect(inspect.stdout).toMatch(/may be data of an application\.\r\nholder +not shown\r\nleft +no expiry\r\n/);
  });

  it('a permit that has been held for long makes its semaphore one, though the lease of another lasts longer', async () => {
    const since = (name: string, ms: number) => `${name}:${'A'.repeat(22)}:${(Date.now() - ms) * 1_000}`;
    const permit = (name: string, heldFor: number, left: number) => {
      return [String(Date.now() + left), `semaphore:${since(name, heldFor)}`];
    };
    const sums = ['-2', 'semaphore:held', '-2', 'semaphore:leases'];
    await send('ZADD', 'locks:render', ...permit('old', 3_600_000, 30_000), ...permit('new', 0, 60_000), ...sums);
    await send('SET', 'locks:a', since('web-7', 60_000), 'PX', '60000');
    const [long, sorted] = [start('ls', '--json', '--longer-than', '5m'), start('ls', '--json', '--sort', 'held')];
    expect([await long.ended, await sorted.ended]).toEqual([0, 0]);
    const namesOf = ({ lines }: Program) => lines.map((line) => JSON.parse(line).lock);
    expect([namesOf(long), namesOf(sorted)]).toEqual([['locks:render'], ['locks:render', 'locks:a']]);
  });

  it('kill -9 frees the lock when its ttl ends, and watch shows that of a lock that was held for long', async () => {
    await send('CONFIG', 'RESETSTAT');
    const watch = start('watch', '--json', '--interval', '100ms', '--longer-than', '500ms');
    // Its first list takes three scans.
    await until(async () => /cmdstat_scan:calls=[4-9]/.test(String(await send('INFO', 'commandstats'))), LIMIT);
    // By then `watch` has to have seen it held for longer than 500 ms.
    const holder = await hold(['--ttl', '5s'], 'sleep 4');
    holder.child.kill('SIGKILL');
    await until(() => watch.stdout.includes('"free"'), LIMIT);
    expect(JSON.parse(watch.stdout)).toMatchObject({ lock: 'locks:nightly', what: 'free' });
    watch.child.kill('SIGINT');
    expect(await watch.ended).toBe(0);
  });

  it('watch --type does not call a lock free whose waiters show that it is of another type', async () => {
    const owner = (number: number) => `web-7:${'A'.repeat(22)}:${number}`;
    for (const name of ['locks:fair', 'locks:spin']) await send('SET', name, owner(1), 'PX', '600000');
    await send('CONFIG', 'RESETSTAT');
    const watch = start('watch', '--json', '--interval', '20ms', '--type', 'spin');
    const looks = async () => Number(/cmdstat_time:calls=(\d+)/.exec(String(await send('INFO', 'commandstats')))?.[1]);
    await until(async () => (await looks()) > 1, LIMIT);
    await send('ZADD', '{locks:fair}:queue', String(Date.now() * 1_000), owner(2));
    const before = await looks();
    await until(async () => (await looks()) > before + 1, LIMIT);
    await send('DEL', 'locks:spin');
    await until(() => watch.lines.some((line) => line.includes('locks:spin')), LIMIT);
    expect(watch.lines.map((line) => JSON.parse(line))).toMatchObject([{ lock: 'locks:spin', what: 'free' }]);
    watch.child.kill('SIGINT');
    expect(await watch.ended).toBe(0);
  });

  (hasScript() ? it : it.skip)('watch keeps the head of its table on a small terminal, whatever changes', async () => {
    const words = [...COMMAND, 'watch', '--interval', '20ms'].map((word) => `'${word}'`).join(' ');
    const watch = launch(['script', '-qec', `stty rows 8 cols 60; exec ${words}`, '/dev/null']);
    // The last part may be incomplete.
    const screen = () => watch.stdout.split('\u001b[H\u001b[2J').at(-2)?.split('\r\n') ?? [];
    await until(() => screen().length > 0, LIMIT);
    for (let i = 0; i < 9; i++) await send('SET', `locks:${i}`, `web-7:${'A'.repeat(22)}:1`, 'EX', '60');
    await until(() => /and \d+ more/.test(screen().join()), LIMIT);
    expect(screen().length).toBeLessThanOrEqual(8);
    expect(screen()[0]).toMatch(/LOCK .*LEFT/);
    expect(screen().at(-1)).toMatch(/locks:\d: taken by web-7$/);
    watch.child.stdin?.write('\u0003');
    expect(await watch.ended).toBe(0);
  });

  (hasScript() ? it : it.skip)('watch is a live table in a pseudo-terminal, and ends with Ctrl-C', async () => {
    const holder = await hold(['--type', 'redisson'], 'read end');
    const watch = inTerminal(['watch', '--interval', '100ms']);
    await until(() => /HELD.*\r\n.*nightly .* \d+m?s +\d+s/s.test(watch.stdout), LIMIT);
    expect(watch.stdout).toContain(`/${holder.child.pid}`);
    for (let i = 0; i < 40; i++)
      await send('SET', `locks:a${i}`, `${'long'.repeat(15)}:${'A'.repeat(22)}:1`, 'EX', '60');
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
    expect(watch.stdout).toMatch(/\r\n$/);
  });
});
