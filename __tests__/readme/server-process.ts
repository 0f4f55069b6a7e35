import { Agent, request } from 'node:http';
import { freePort } from '../../support/free-port';
import { Program } from '../support/program';
import { until } from '../support/until';

/** The status of a response; `undefined`: the server closed the connection, or accepts none. */
export type Status = number | undefined;

/** A server of a page in a process of its own. */
export class ServerProcess extends Program {
  /** Each caller has a connection of its own, which it uses for all its requests. */
  readonly #agents = new Map<string, Agent>();
  readonly #port: number;

  private constructor(script: string, port: number) {
    super([process.execPath, script], { PORT: String(port) });
    this.#port = port;
  }

  static async start(script: string): Promise<ServerProcess> {
    const server = new ServerProcess(script, await freePort());
    await server.prints('listening');
    return server;
  }

  /** SIGTERM; resolves to how the process ended, an exit code or a signal, and after how many ms. */
  async terminate(limit: number): Promise<{ end: unknown; after: number }> {
    const start = performance.now();
    this.child.kill('SIGTERM');
    await until(() => this.hasExited, { within: limit });
    return { end: this.child.exitCode ?? this.child.signalCode, after: performance.now() - start };
  }

  override async kill(): Promise<void> {
    for (const agent of this.#agents.values()) agent.destroy();
    await super.kill();
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
