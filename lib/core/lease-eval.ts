import type { LeaseEvalOptions } from '../api/distributed-lock';
import { LeaseEvalError } from '../api/errors';
import { checkedOptions, nonEmptyString, strings } from '../internal/validation';
import { causeOf, isErrorReply, messageOf } from '../redis/failure';
import type { EvalCall } from './backend';

/** Checks what `Lease.eval` is called with. */
export function evalCall(script: string, options: LeaseEvalOptions): EvalCall {
  nonEmptyString('script', script);
  const { keys = [], arguments: args = [] } = checkedOptions<LeaseEvalOptions>(
    { keys: strings, arguments: strings },
    options,
  );
  return { script, keys, args };
}

/** An answer of the server is the script's own error. Without an answer nobody knows whether the script ran. */
export function evalError(key: string, error: unknown, of: { readonly lastError: unknown }): unknown {
  if (isErrorReply(error)) return error;
  const cause = causeOf(error, of);
  const why = `it may have run, or may still run while the lease is held (${messageOf(cause)})`;
  return new LeaseEvalError(`The script under lock "${key}" was not answered: ${why}`, key, { cause });
}
