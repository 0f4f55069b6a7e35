import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Address } from '../candidate';
import { type Library, TTL, WAIT } from './library';

/**
 * A library of another language: a program that reads requests, one a line, and answers each when it knows the answer.
 *
 *   lock <call> <key>   lock <call> yes | no | failed <why>
 *   state <call>        state <call> yes | no | failed <why> | <ms for which it says that the lock may be relied on>
 *   release <call>      release <call> yes | failed <why>
 *
 * It says `ready` first, and ends with its stdin.
 */
export async function openPeer(program: readonly string[], { host, port }: Address): Promise<Library> {
  const [command = '', ...args] = [...program, host, port, TTL, WAIT].map(String);
  const peer = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  peer.once('exit', () => process.exit(1));
  peer.stdin.on('error', () => undefined);
  const lines = createInterface({ input: peer.stdout });
  await once(lines, 'line');
  const waiting = new Map<string, (answer: string) => void>();
  lines.on('line', (line) => {
    const [, request = '', answer = ''] = /^(\w+ \w+) (.*)$/.exec(line) ?? [];
    waiting.get(request)?.(answer);
    waiting.delete(request);
  });
  const ask = (request: string, key = '') =>
    new Promise<string>((resolve) => {
      waiting.set(request, resolve);
      peer.stdin.write(`${request} ${key}\n`);
    });
  let calls = 0;
  return {
    async lock(key) {
      const call = ++calls;
      const answer = await ask(`lock ${call}`, key);
      if (answer === 'no') return null;
      if (answer !== 'yes') throw new Error(answer);
      return {
        async remaining() {
          const state = await ask(`state ${call}`);
          // One that fails doesn't say yes.
          return state === 'yes' ? undefined : Number(state) || 0;
        },
        async release() {
          const released = await ask(`release ${call}`);
          if (released !== 'yes') throw new Error(released);
        },
      };
    },
  };
}
