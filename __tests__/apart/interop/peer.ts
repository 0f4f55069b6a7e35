import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { nameOf, versions } from './versions';

/** The output of build-peer.ts. */
export const JAVA = join(__dirname, 'java');

const BUILD = join(JAVA, 'target', nameOf(versions));
const CLASSPATH = [join(BUILD, 'classes'), join(BUILD, 'libraries', '*')].join(':');

/** JVM options for a small, short-lived process: fast to start, and few threads. */
const JVM = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xmx128m'];

/** Of the Java process; its own follow. */
export const JAVA_ARGUMENTS = [...JVM, '-cp', CLASSPATH, 'Peer'];

/** The port of a server, or those of the masters of a cluster. */
export type At = number | { readonly cluster: readonly number[] };

export type Language = 'Java' | 'Node';

interface Answer {
  readonly resolve: (value: string) => void;
  readonly reject: (error: Error) => void;
}

/** What the locks of Spring are named by. */
export const REGISTRY_KEY = 'interop';

/** A process that executes lock commands, of all kinds. It ends with its stdin, and so with the test. */
export class Peer {
  readonly #child: ChildProcess;
  readonly #ready: Promise<unknown>;
  readonly #answers = new Map<string, Answer>();
  #asked = 0;

  static async start(language: Language, at: At): Promise<Peer> {
    const args = [typeof at === 'number' ? String(at) : `cluster:${at.cluster.join()}`, REGISTRY_KEY];
    return language === 'Java'
      ? Peer.run('java', [...JAVA_ARGUMENTS, ...args])
      : Peer.run(process.execPath, [
          '-r',
          require.resolve('esbuild-register'),
          join(__dirname, 'node-peer.ts'),
          ...args,
        ]);
  }

  /** Starts a program that speaks the protocol. It is the process itself that is killed: no shell, and no `go run`. */
  static async run(command: string, args: readonly string[]): Promise<Peer> {
    const peer = new Peer(command, args);
    await peer.#ready;
    return peer;
  }

  private constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const { stdout, stdin } = this.#child as { stdout: NodeJS.ReadableStream; stdin: NodeJS.WritableStream };
    stdin.on('error', () => undefined); // 'exit' reports it
    const lines = createInterface({ input: stdout });
    this.#ready = Promise.race([
      once(lines, 'line'),
      once(this.#child, 'exit').then(([code]) => Promise.reject(new Error(`${command} ended with ${code}`))),
    ]);
    lines.on('line', (line) => this.#hear(line));
    this.#child.on('exit', () => {
      for (const { reject } of this.#answers.values()) reject(new Error('The peer ended'));
    });
  }

  /**
   * Sends a command to a caller of the peer, and resolves to its outcome. `kind`: of `KINDS`; or a lock of Java, in Node
   * with a lock type of ours that shares it: `redisson-spin/redisson`; or a library of another language, in Node with our
   * registry key and type: `shared@orders/pub-sub`.
   */
  ask(
    kind: string,
    caller: string,
    ttl: number,
    verb: string,
    key: string,
    ...args: (number | string)[]
  ): Promise<string> {
    const id = String(++this.#asked);
    if (this.hasEnded) return Promise.reject(new Error('The peer ended'));
    return new Promise((resolve, reject) => {
      this.#answers.set(id, { resolve, reject });
      this.#child.stdin?.write(`${[id, kind, caller, ttl, verb, key, ...args].join(' ')}\n`);
    });
  }

  /** Stops the process, or lets it go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  /** Sends SIGKILL; resolves when the process has ended. */
  async kill(): Promise<void> {
    if (this.hasEnded) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #hear(line: string): void {
    const [, id = '', outcome, value = ''] = /^(\d+) (ok|error) (.*)$/.exec(line) ?? [];
    const answer = this.#answers.get(id);
    this.#answers.delete(id);
    if (outcome === 'ok') answer?.resolve(value);
    else answer?.reject(new Error(value));
  }
}
