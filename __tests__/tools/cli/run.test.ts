import { expect, it } from '@jest/globals';
import { describePrivate } from '../../support/private-redis';
import { COMMAND } from './command';
import { commandLine } from './command-line';

describePrivate('redis-locks run', () => {
  const { start, launch, hold, isHeld, send } = commandLine();

  it('run gives the exit code of the command, its environment, and the lock back', async () => {
    const ran = start('run', 'nightly', '--', 'sh', '-c', 'echo "$LOCK_KEY $LOCK_OWNER $LOCK_FENCING_TOKEN"; exit 7');
    expect(await ran.ended).toBe(7);
    expect(ran.stdout).toMatch(new RegExp(`^nightly .+:${ran.child.pid}:[\\w-]{22}:\\d{16} \\d+\n$`));
    expect(await isHeld()).toBe(false);
  });

  it('a command under a lock without a fencing token has not that of a run around it', async () => {
    const words = ['run', 'nightly', '--permits', '2', '--', 'sh', '-c', 'echo "$LOCK_KEY <$LOCK_FENCING_TOKEN>"'];
    const ran = launch([...COMMAND, ...words], { LOCK_KEY: 'around', LOCK_FENCING_TOKEN: '7' });
    expect(await ran.ended).toBe(0);
    expect(ran.stdout).toBe('nightly <>\n');
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

  it('exits with 70 when a command ended well, and its lock turns out to be lost', async () => {
    const holder = await hold([], 'read end');
    await send('DEL', 'locks:nightly');
    holder.child.stdin?.end('\n');
    expect(await holder.ended).toBe(70);
    expect(holder.stderr).toMatch(/"nightly" was lost/);
  });

  it("run says for whom it waits, and has an exit code of the caller's for a lock that is not free", async () => {
    const holder = await hold(['--name', 'web-7', '--shared'], 'read end');
    const reader = start('run', 'nightly', '--shared', '--', 'echo', 'read');
    expect(await reader.ended).toBe(0);
    expect(reader.stdout).toBe('read\n');
    // Later, as the reader was a holder too.
    const [writer, quiet] = [
      start('run', 'nightly', '-x', '-w', '3.5', '-E', '9', '--', 'true'),
      start('run', 'nightly', '-x', '-q', '-w', '3500ms', '--', 'true'),
    ];
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
