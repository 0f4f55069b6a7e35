import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { describePrivate } from '../../support/private-redis';
import type { Program } from '../../support/program';
import { until } from '../../support/until';
import { COMMAND, hasScript } from './command';
import { commandLine, LIMIT } from './command-line';

describePrivate('The command of redis-locks run', () => {
  const { start, launch, inTerminal, hold, isHeld, send } = commandLine();

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'] as const)('passes %s on to the command', async (signal) => {
    const holder = await hold([], 'while :; do sleep 0.05; done', `trap 'echo got it; exit 5' ${signal.slice(3)}`);
    holder.child.kill(signal);
    expect(await holder.ended).toBe(5);
    expect(holder.stdout).toContain('got it');
    expect(await isHeld()).toBe(false);
  });

  it.each(['start', 'end', 'exit'])(
    'a signal at the %s of the command leaves no lock and no command behind, and changes no exit code',
    async (moment) => {
      const [node = '', main = ''] = COMMAND;
      const script = `echo begun; ${moment === 'start' ? 'exec sleep 30' : 'exit 3'}`;
      const preload = join(__dirname, 'signal-after-spawn.cjs');
      const ran = launch([node, '-r', preload, main, 'run', 'nightly', '--', 'sh', '-c', script], {
        SIGNAL_AT: moment,
      });
      // It ends with its streams: the command has them too.
      expect(await ran.ended).toBe(moment === 'start' ? 143 : 3);
      expect(await isHeld()).toBe(false);
    },
  );

  it.each(['threw', 'unpiped'])(
    'where no process can be started but the command, which is %s, the lock is held to its end, and signals reach it',
    async (failure) => {
      const [node = '', main = ''] = COMMAND;
      const preload = ['-r', join(__dirname, 'signal-after-spawn.cjs'), main];
      const script = "trap 'exit 5' TERM; echo begun; while :; do sleep 0.05; done";
      const ran = launch([node, ...preload, 'run', 'nightly', '--', 'sh', '-c', script], { SIGNAL_AT: failure });
      await until(() => ran.stdout.includes('begun'), LIMIT);
      expect(await isHeld()).toBe(true);
      ran.child.kill('SIGTERM');
      expect(await ran.ended).toBe(5);
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

  it.each(['spin', 'fair'])('a signal ends the wait, and leaves nothing behind: %s', async (type) => {
    const holder = await hold(['--type', type], 'read end');
    const waiting = start('run', 'nightly', '--type', type, '--', 'true');
    await until(async () => /^db0:/m.test(String(await send('INFO', 'keyspace'))), LIMIT);
    await until(async () => (String(await send('CLIENT', 'LIST')).match(/cmd=eval/g) ?? []).length > 1, LIMIT);
    waiting.child.kill('SIGTERM');
    expect(await waiting.ended).toBe(143);
    expect(await send('KEYS', '*:queue')).toEqual([]);
    holder.child.stdin?.end('\n');
    expect(await holder.ended).toBe(0);
    expect(await isHeld()).toBe(false);
  });

  it('a command that loses its lock gets SIGTERM, and after the grace SIGKILL', async () => {
    const holder = await hold(
      ['--ttl', '6s', '--grace', '3s'],
      'while :; do sleep 0.05; done',
      "trap 'echo told' TERM",
    );
    const release = start('release', 'nightly', '--yes');
    expect(await release.ended).toBe(0);
    expect(release.stdout).toMatch(/^Released "locks:nightly", held by .+\. Its process could not be told\.\n$/);
    expect(await holder.ended).toBe(137);
    expect(holder.stdout).toContain('told');
    expect(holder.stderr).toMatch(/"nightly" was lost.*SIGTERM/);
  });

  /** A `run` that loses its lock when its command has begun, which takes a longer ttl on a busy machine. */
  const losing = async (begun: string, ...rest: string[]): Promise<Program> => {
    for (const ttl of ['1500ms', '6s']) {
      const run = start('run', 'nightly', '--ttl', ttl, ...rest);
      await until(() => run.stdout.includes(begun) || run.hasExited, LIMIT);
      if (run.stdout.includes(begun)) return run;
    }
    return start('run', 'nightly', '--ttl', '24s', ...rest);
  };

  it('a grace longer than any timer gives the command all the time it needs', async () => {
    const script = "trap 'sleep 0.3; exit 5' TERM; echo begun; while :; do sleep 0.05; done";
    const holder = await losing('begun', '--grace', '600h', '--', 'sh', '-c', script);
    expect(await holder.ended).toBe(5);
  });

  it('a signal ends `run` while it still loads, also one that starts a debugger in Node', async () => {
    const [node = '', main = ''] = COMMAND;
    const preload = join(__dirname, 'signal-after-spawn.cjs');
    const ran = launch([node, '-r', preload, main, 'run', 'nightly', '--', 'echo', 'ran'], { SIGNAL_AT: 'load' });
    expect([await ran.ended, ran.stdout, ran.stderr]).toEqual([138, '', '']);
    expect(await isHeld()).toBe(false);
  });

  const CLEANS_UP = "setTimeout(() => { console.log('cleaned up'); process.exit(); }, 300)";
  /** A program that says its pid, and works on for a while after each SIGTERM. */
  const PROGRAM = `
    process.on('SIGTERM', () => ${CLEANS_UP});
    process.on('SIGINT', () => console.log('interrupted'));
    process.on('SIGHUP', () => undefined);
    setTimeout(() => console.log('at its own end'), 60_000);
    console.log('pid ' + process.pid);`;
  const node = (program: string) => `'${process.execPath}' -e "${program.replaceAll('\n', ' ')}"`;
  const pidIn = async (run: Program): Promise<number> => {
    return Number(await until(() => /pid (\d+)/.exec(run.stdout)?.[1], LIMIT));
  };
  /** A process that has ended, and whose parent does not know that yet, is a zombie. */
  const isAlive = (pid: number): boolean => {
    const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
    return /^[^Z\s]/.test(stdout);
  };

  it.each([
    ['a signal', (run: Program) => run.child.kill('SIGTERM'), 143],
    ['the loss of the lock', undefined, 143],
    [
      'SIGKILL for the shell',
      ({ stdout }: Program) => process.kill(Number(/shell (\d+)/.exec(stdout)?.[1]), 'SIGKILL'),
      137,
    ],
  ])('ends with all that a script has started, by %s, and the lock is kept until then', async (_by, end, code) => {
    // It has not cleaned up before the test has looked.
    const told =
      "console.log('told'), process.stdin.once('data', () => { console.log('cleaned up'); process.exit(); })";
    const command = ['--', 'sh', '-c', `echo shell $$; ${node(PROGRAM.replace(CLEANS_UP, told))}; echo next`];
    const run = end === undefined ? await losing('pid ', ...command) : start('run', 'nightly', ...command);
    const pid = await pidIn(run);
    end?.(run);
    await until(() => run.stdout.includes('told'), LIMIT);
    if (end === undefined) await until(async () => !(await isHeld()), LIMIT);
    else expect(await isHeld()).toBe(true);
    run.child.stdin?.write('\n');
    expect(await run.ended).toBe(code);
    expect(run.stdout).toContain('cleaned up');
    expect([isAlive(pid), run.stdout.includes('next'), await isHeld()]).toEqual([false, false, false]);
  });

  it.each(['SIGTERM', 'loss'])('gets SIGKILL for all that does not end in the grace after a %s', async (what) => {
    const stubborn = node(PROGRAM.replace(CLEANS_UP, 'undefined'));
    const command = ['--grace', '300ms', '--', 'sh', '-c', `${stubborn}; echo next`];
    const run = what === 'loss' ? await losing('pid ', ...command) : start('run', 'nightly', ...command);
    const pid = await pidIn(run);
    if (what === 'SIGTERM') run.child.kill('SIGTERM');
    expect(await run.ended).toBe(143);
    expect([isAlive(pid), run.stdout.includes('next'), await isHeld()]).toEqual([false, false, false]);
    expect(run.stdout).not.toContain('at its own end');
  });

  it.each([
    ['timeout', '60'],
    ['setsid', '-w'],
  ])('gets a signal to the process group, in the group that %s makes', async (...words) => {
    const args = ['run', 'nightly', '--', ...words, process.execPath, '-e', PROGRAM];
    // The leader of a group of its own.
    const run = launch(['setsid', ...COMMAND, ...args]);
    const pid = await pidIn(run);
    process.kill(-Number(run.child.pid), 'SIGTERM');
    // The program ends well.
    expect(await run.ended).toBe(0);
    expect([isAlive(pid), run.stdout.includes('cleaned up'), await isHeld()]).toEqual([false, true, false]);
  });

  const INTERRUPTED = PROGRAM.replace(
    "console.log('interrupted')",
    "(console.log('interrupted'), setTimeout(() => process.exit(), 300))",
  );
  const count = ({ stdout }: Program, text: string): number => stdout.split(text).length - 1;

  (hasScript() ? it : it.skip)('gets Ctrl-C once, in a group of its own too', async () => {
    const run = inTerminal(['run', 'nightly', '--', 'setsid', '-w', process.execPath, '-e', INTERRUPTED]);
    const pid = await pidIn(run);
    run.child.stdin?.write('\u0003');
    await run.ended;
    expect([count(run, 'interrupted'), isAlive(pid), await isHeld()]).toEqual([1, false, false]);
  });

  // Elsewhere the environment of a process is not known.
  (hasScript() && process.platform === 'linux' ? it : it.skip)(
    'gets Ctrl-C also for what a process has started that ends by it at once',
    async () => {
      // A shell waits for its program.
      const words = JSON.stringify(['60', process.execPath, '-e', INTERRUPTED]);
      const parent = `require('node:child_process').spawn('timeout', ${words}, { stdio: 'inherit' })`;
      const run = inTerminal(['run', 'nightly', '--', process.execPath, '-e', parent]);
      const pid = await pidIn(run);
      run.child.stdin?.write('\u0003');
      expect(await run.ended).toBe(130);
      expect([count(run, 'interrupted') > 0, isAlive(pid), await isHeld()]).toEqual([true, false, false]);
    },
  );

  it('gets SIGUSR1 and SIGUSR2 alone: they would end what it has started', async () => {
    const parent = `
      const child = require('node:child_process').spawn('sleep', ['60']);
      child.on('exit', (code, signal) => console.log('ended by ' + signal));
      process.on('SIGUSR2', () => { console.log('got it'); child.kill(); });
      console.log('pid ' + child.pid);`;
    const run = start('run', 'nightly', '--', process.execPath, '-e', parent);
    await pidIn(run);
    run.child.kill('SIGUSR2');
    expect(await run.ended).toBe(0);
    expect(run.stdout).toMatch(/got it\nended by SIGTERM\n$/);
  });

  it('may leave something behind, which goes on, when it ends by itself', async () => {
    const run = start('run', 'nightly', '--', 'sh', '-c', 'sleep 60 >/dev/null 2>&1 & echo pid $!; exit 3');
    const pid = await pidIn(run);
    expect(await run.ended).toBe(3);
    expect([isAlive(pid), await isHeld()]).toEqual([true, false]);
    process.kill(pid);
  });

  (hasScript() ? it : it.skip)('reads from the terminal', async () => {
    const run = inTerminal(['run', 'nightly', '--', 'sh', '-c', 'echo begun; read line; echo "<$line>"']);
    await until(() => run.stdout.includes('begun'), LIMIT);
    run.child.stdin?.write('hello\r');
    expect(await run.ended).toBe(0);
    expect(run.stdout).toContain('<hello>');
  });
});
