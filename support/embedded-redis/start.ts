import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { installLockedPackages } from '../npm-install';

export interface EmbeddedRedis {
  readonly url: string;
  readonly pid: number;
  readonly name: string;
  readonly version: string;
  stop(): Promise<void>;
}

/**
 * js-redis-server declares Node 22 or later. It works on Node 20 too, as the contract tests show, but `npm ci` of the
 * project would warn about it there.
 */
export function installEmbeddedRedis(): void {
  installLockedPackages(__dirname, 'Installing js-redis-server into support/embedded-redis/node_modules, once …');
}

/**
 * Starts js-redis-server: Redis in JavaScript, for machines without a real one. It runs in its own process because EVAL
 * fails inside Jest's sandbox, and because a server must not share the event loop of the code under test.
 */
export async function startEmbeddedRedis(): Promise<EmbeddedRedis> {
  const child = fork(join(__dirname, 'server-process.cjs'), {
    execArgv: [],
    // Own process group: Ctrl-C reaches only the caller, which may still need the server.
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const failed = exited.then(([code]) => {
    throw new Error(`js-redis-server exited during its start, with exit code ${code}`);
  });
  failed.catch(() => undefined);
  const [started] = (await Promise.race([once(child, 'message'), failed])) as [{ port: number; version: string }];
  child.unref();
  child.channel?.unref();
  return {
    url: `redis://127.0.0.1:${started.port}`,
    pid: child.pid as number,
    name: 'js-redis-server',
    version: started.version,
    async stop() {
      child.ref();
      child.kill('SIGKILL');
      await exited;
    },
  };
}
