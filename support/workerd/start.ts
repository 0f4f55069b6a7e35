import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../free-port';
import { installLockedPackages } from '../npm-install';

export interface Workerd {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts workerd with one worker, an ES module whose imports are those of Node only. `env`: what it gets as such. */
export async function startWorkerd(worker: string, env: Readonly<Record<string, string>>): Promise<Workerd> {
  installLockedPackages(__dirname, 'Installing workerd into support/workerd/node_modules, once …');
  const { default: binary } = createRequire(join(__dirname, 'start.ts'))('workerd') as { default: string };
  const folder = await mkdtemp(join(tmpdir(), 'workerd-'));
  const port = await freePort();
  const bindings = Object.entries(env).map(([name, text]) => `(name = "${name}", text = ${JSON.stringify(text)})`);
  await writeFile(join(folder, 'worker.js'), worker);
  await writeFile(
    join(folder, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["public", "private", "local"]))
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "2026-04-01",
  compatibilityFlags = ["nodejs_compat"],
  bindings = [${bindings}]
);
`,
  );
  // It says on its control channel when it listens.
  const args = ['serve', '--control-fd=3', join(folder, 'config.capnp')];
  const child = spawn(binary, args, { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] });
  const exited = once(child, 'exit');
  const failed = exited.then(([code]) => Promise.reject(new Error(`workerd exited with ${code} during its start`)));
  failed.catch(() => undefined);
  await Promise.race([once(child.stdio[3] as NodeJS.ReadableStream, 'data'), failed]);
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
