import type { LeaseEvalOptions } from '../api/distributed-lock';
import { LeaseEvalError } from '../api/errors';
import { checkOptions, expected, nonEmptyString, string } from '../internal/validation';
import { isErrorReply, messageOf } from '../redis/failure';
import type { HeldCall } from './backend';

/** Checks what `Lease.eval` is called with. */
export function evalCall(script: string, options: LeaseEvalOptions): HeldCall {
  nonEmptyString('script', script);
  checkOptions({ keys: strings, arguments: strings }, options);
  return { script, keys: options.keys ?? [], args: options.arguments ?? [] };
}

function strings(name: string, value: unknown): void {
  if (!Array.isArray(value)) throw new TypeError(expected(name, 'an array of strings', value));
  value.forEach((one, i) => void string(`${name}[${i}]`, one));
}

/** An answer of the server is the script's own error. Without an answer nobody knows whether the script ran. */
export function evalError(key: string, error: unknown): unknown {
  if (isErrorReply(error)) return error;
  const why = `it may have run, or may still run while the lease is held (${messageOf(error)})`;
  return new LeaseEvalError(`The script under lock "${key}" was not answered: ${why}`, key, { cause: error });
}
