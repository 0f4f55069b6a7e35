import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import { Command } from '../../../lib/tools/cli/child';
import { fromPs, type Listed, ProcessTree, processes } from '../../../lib/tools/cli/process-tree';
import { until } from '../../support/until';

const ofThis = <T extends { readonly pid: number }>(all: readonly T[]) => all.find(({ pid }) => pid === process.pid);

describe('The processes of the system', () => {
  it('are listed with their parents and groups, and the same by `ps`', () => {
    const [listed, byPs] = [ofThis(processes()), ofThis(fromPs())];
    expect(listed).toMatchObject({ parent: process.ppid, group: expect.any(Number), isStopped: false });
    expect(byPs).toMatchObject({ parent: process.ppid, group: listed?.group, isStopped: false });
    expect(listed?.id).toMatch(new RegExp(`^${process.pid} \\d+$`));
    expect(byPs?.id).toMatch(new RegExp(`^${process.pid} \\S+ \\S+ `));
  });

  it('are no zombies', async () => {
    const parent = spawn(process.execPath, [
      '-e',
      `const { pid } = require('node:child_process').spawn('true');
       require('node:fs').writeSync(1, pid + '\\n');
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);`,
    ]);
    const [line] = await once(parent.stdout, 'data');
    const pid = Number(line);
    const isListed = (all: readonly { readonly pid: number }[]) => all.some((one) => one.pid === pid);
    await until(() => !isListed(processes()));
    expect(isListed(fromPs())).toBe(false);
    parent.kill('SIGKILL');
  });
});

describe('A tree of processes', () => {
  it('has what the root has started, also after that has ended, and nothing that comes with its pid', async () => {
    // A name that has in it what comes behind the name in the list of the system.
    const shell = join(mkdtempSync(join(tmpdir(), 'tree-')), 'a) Z 1');
    symlinkSync('/bin/sh', shell);
    const stdio = ['pipe', 'pipe', 'ignore'] as ['pipe', 'pipe', 'ignore'];
    const root = spawn(shell, ['-c', 'sleep 60 & echo $!; read end'], { argv0: 'sh', stdio });
    const [line] = await once(root.stdout, 'data');
    const sleeping = Number(line);
    const tree = new ProcessTree(root.pid ?? 0, 'NO_MARK=1');
    expect(tree.members().map(({ pid }) => pid)).toEqual([root.pid, sleeping]);
    root.stdin.end('\n');
    await once(root, 'exit');
    tree.isRootOver = true;
    expect(tree.members().map(({ pid }) => pid)).toEqual([sleeping]);
    const [another] = tree.members();
    // Another process with the pid of the one that has ended.
    const reused = processes().map((one) => (one.pid === sleeping ? { ...one, id: `${another?.pid} later` } : one));
    expect(tree.members(reused)).toEqual([]);
    const own = ofThis(processes()) as Listed;
    expect(tree.members([own, { ...own, pid: root.pid ?? 0, id: 'later' }])).toEqual([]);
    tree.send('SIGKILL');
    await until(() => tree.members().length === 0);
    rmSync(dirname(shell), { recursive: true });
  });

  // Elsewhere the environment of a process is not known.
  (process.platform === 'linux' ? it : it.skip)(
    'has a process whose parent has ended, by its environment',
    async () => {
      const env = { ...process.env, LOCK_OWNER: 'büro:1' };
      const root = spawn('sh', ['-c', '(sleep 60 & echo $!); read end'], { env, stdio: ['pipe', 'pipe', 'ignore'] });
      const [line] = await once(root.stdout, 'data');
      const tree = new ProcessTree(root.pid ?? 0, 'LOCK_OWNER=büro:1');
      const daemon = spawn('sleep', ['60'], { env, stdio: 'ignore', detached: true });
      const parentOf = (all: readonly Listed[], child: number) => all.find(({ pid }) => pid === child)?.parent;
      await until(() => {
        const all = processes();
        return parentOf(all, parentOf(all, Number(line)) ?? 0) !== root.pid;
      });
      await until(() => tree.members().some(({ pid }) => pid === Number(line)));
      expect(tree.members().some(({ pid }) => pid === daemon.pid)).toBe(false);
      daemon.kill('SIGKILL');
      tree.send('SIGKILL');
      await until(() => tree.members().length === 0);
    },
  );

  it('has no process any more that this user may not end', async () => {
    const root = spawn('sleep', ['60'], { stdio: 'ignore' });
    const tree = new ProcessTree(root.pid ?? 0, 'NO_MARK=1');
    const said = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    const killed = jest.spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
    });
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) tree.send(signal);
    expect([tree.members(), said.mock.calls.length]).toEqual([[], 2]);
    killed.mockRestore();
    said.mockRestore();
    root.kill('SIGKILL');
  });

  it('goes on when it is stopped, to get the signal that ends it', async () => {
    const root = spawn('sleep', ['60'], { stdio: 'ignore' });
    const tree = new ProcessTree(root.pid ?? 0, 'NO_MARK=1');
    root.kill('SIGSTOP');
    await until(() => tree.members()[0]?.isStopped);
    tree.send('SIGTERM');
    expect(await once(root, 'exit')).toEqual([null, 'SIGTERM']);
  });
});

describe('A command', () => {
  it('gets SIGKILL for what it left after a signal when the grace since its end is over, though a loss came meanwhile', async () => {
    const grace = 3_000;
    const folder = mkdtempSync(join(tmpdir(), 'tree-'));
    const words = ['sh', '-c', `cd ${folder}; trap '' TERM; sleep 60 & touch ignores; sleep 0.3; touch ends; exit 3`];
    const command = (await Command.start(words, { LOCK_OWNER: 'me:1' }, grace)) as Command;
    await until(() => existsSync(join(folder, 'ignores')));
    command.expect('SIGTERM');
    command.pass('SIGTERM', false);
    await until(() => existsSync(join(folder, 'ends')));
    const endedAt = performance.now();
    rmSync(folder, { recursive: true });
    await setTimeout(grace - 300);
    command.end();
    expect(await command.exitCode).toBe(3);
    // One that began anew with the loss would end at twice the time.
    expect(performance.now() - endedAt).toBeLessThan(2 * grace - 600);
  });

  // Elsewhere the environment of a process is not known.
  (process.platform === 'linux' ? it : it.skip)(
    'is ended with what a run inside it has left behind, whose lock is another one',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'tree-'));
      const file = join(folder, 'pid');
      const inner = `LOCK_OWNER=me:2 sh -c 'sleep 60 & echo $! > ${file}'`;
      const words = ['sh', '-c', `${inner}; exec sleep 60`];
      const command = (await Command.start(words, { LOCK_OWNER: 'me:1' }, 60_000)) as Command;
      const pid = await until(() => existsSync(file) && Number(readFileSync(file, 'utf8')));
      command.end();
      expect(await command.exitCode).toBe(143);
      expect(processes().map((one) => one.pid)).not.toContain(pid);
      rmSync(folder, { recursive: true });
    },
  );
});
