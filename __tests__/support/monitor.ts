import { randomUUID } from 'node:crypto';
import type { RedisClientOptions } from 'redis';
import { createRealClient } from './redis';
import { until } from './until';

export interface MonitoredCommand {
  readonly name: string;
  readonly args: readonly string[];
  /** `lua` for a call in a script, else the address of the client. */
  readonly source: string;
}

export interface Monitor {
  /** The commands executed since the start, or since `clear`. */
  readonly commands: readonly MonitoredCommand[];
  /** Waits until all commands executed before this call are in `commands`. */
  settle(): Promise<void>;
  clear(): void;
  stop(): void;
}

/** Records every command that a real Redis executes. */
export async function startMonitor(options: RedisClientOptions = {}): Promise<Monitor> {
  const listener = await createRealClient(options);
  const marker = await createRealClient(options);
  const commands: MonitoredCommand[] = [];
  await listener.monitor((line) => commands.push(parse(String(line))));
  return {
    commands,
    async settle() {
      const mark = randomUUID();
      await marker.echo(mark);
      const position = await until(() => commands.findIndex(({ args }) => args[0] === mark) + 1);
      commands.splice(position - 1, 1);
    },
    clear() {
      commands.length = 0;
    },
    stop() {
      listener.destroy();
      marker.destroy();
    },
  };
}

/** A line reads: 1700000000.123456 [0 127.0.0.1:5000] "SET" "key" "a \"quoted\" value" */
function parse(line: string): MonitoredCommand {
  const [, source = '', quoted = ''] = /^\S+ \[\d+ (\S+)\] (.*)$/s.exec(line) ?? [];
  const words = [...quoted.matchAll(/"((?:[^"\\]|\\.)*)"/gs)].map((match) => unquote(match[1] as string));
  const [name = '', ...args] = words;
  return { name: name.toUpperCase(), args, source: source.startsWith('unix:') ? 'unix' : source };
}

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' };

function unquote(text: string): string {
  return text.replace(/\\(?:x([0-9a-f]{2})|(.))/gs, (_, hex: string | undefined, char: string) =>
    hex ? String.fromCharCode(Number.parseInt(hex, 16)) : (escapes[char] ?? char),
  );
}
