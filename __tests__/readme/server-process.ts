import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { freePort } from '../../support/free-port';
import { until } from '../support/until';

/** ms */
const START_LIMIT = 45_000;

/** The status of a response; `undefined`: the server closed the connection, or accepts none. */
export type Status = number | undefined;

/** A server of a page in a process of its own. */
export class ServerProcess {
  /** Each caller has a connection of its own, which it uses for all its requests. */
  readonly #agents = new Map<string, Agent>();
  readonly #port: number;
  readonly #child: ChildProcess;
  #output = '';
  errors = '';

  private constructor(script: string, port: number) {
    this.#port = port;
    this.#child = spawn(process.execPath, [script], { env: { ...process.env, PORT: String(port) } });
    this.#child.stdout?.on('data', (text) => {
      this.#output += text;
    });
    this.#child.stderr?.on('data', (text) => {
      this.errors += text;
    });
  }

  static async start(script: string): Promise<ServerProcess> {
    const server = new ServerProcess(script, await freePort());
    await until(() => server.#output.includes('listening') || server.hasExited, { within: START_LIMIT });
    if (server.hasExited) throw new Error(`The server ended at once: ${server.errors}`);
    return server;
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** SIGTERM; resolves to how the process ended, an exit code or a signal, and after how many ms. */
  async terminate(limit: number): Promise<{ end: unknown; after: number }> {
    const start = performance.now();
    this.#child.kill('SIGTERM');
    await until(() => this.hasExited, { within: limit });
    return { end: this.#child.exitCode ?? this.#child.signalCode, after: performance.now() - start };
  }

  async kill(): Promise<void> {
    for (const agent of this.#agents.values()) agent.destroy();
    if (this.hasExited) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }

  post(path: string, caller: string): Promise<Status> {
    const agent = this.#agents.get(caller) ?? new Agent({ keepAlive: true, maxSockets: 1 });
    this.#agents.set(caller, agent);
    return new Promise((resolve) => {
      const sent = request({ host: '127.0.0.1', port: this.#port, path, method: 'POST', agent }, (response) => {
        response.resume().once('close', () => resolve(response.statusCode));
      });
      sent.once('error', () => resolve(undefined)).end();
    });
  }
}
