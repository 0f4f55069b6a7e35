import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface EmbeddedRedis {
  readonly url: string;
  readonly pid: number;
  readonly name: string;
  readonly version: string;
  stop(): Promise<void>;
}

/**
 * Starts js-redis-server: Redis in JavaScript, for where there is no real one. It runs in a process of its own because
 * EVAL fails inside Jest's sandbox, and because a server must not share the event loop of the code that it is to test.
 */
export async function startEmbeddedRedis(): Promise<EmbeddedRedis> {
  const child = fork(join(__dirname, 'embedded-redis-process.cjs'), {
    execArgv: [],
    // Own process group: Ctrl-C is for the caller, which may still need the server.
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const failed = exited.then(([code]) => {
    throw new Error(`js-redis-server ended at once, with exit code ${code}`);
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
