import { SimpleError } from 'redis';
import { isError, type Reply } from '../server/reply';

/** A command whose reply has not come. */
export interface Command {
  readonly words: readonly string[];
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** The client sends it by itself, on each new connection. */
  readonly isGreeting?: true;
}

/** node-redis' options of `eval` and `evalSha`. */
export interface ScriptOptions {
  keys?: string[];
  arguments?: string[];
}

export function scriptArguments({ keys = [], arguments: args = [] }: ScriptOptions): string[] {
  return [String(keys.length), ...keys, ...args];
}

/** As node-redis gives a reply to its caller; an error inside of an array is an element of it. */
export function toClient(reply: Reply): unknown {
  if (isError(reply)) return new SimpleError(reply.err);
  if (Array.isArray(reply)) return reply.map(toClient);
  return typeof reply === 'object' && reply !== null ? (reply as { ok: string }).ok : reply;
}
