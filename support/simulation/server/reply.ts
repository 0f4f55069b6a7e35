/** What a command answers, as RESP2 has it. */
export type Reply = null | number | string | { readonly ok: string } | { readonly err: string } | readonly Reply[];

export const OK: Reply = { ok: 'OK' };

export const WRONG_TYPE: Reply = { err: 'WRONGTYPE Operation against a key holding the wrong kind of value' };

export function isError(reply: Reply): reply is { readonly err: string } {
  return typeof reply === 'object' && reply !== null && 'err' in reply;
}

/** A command ends with this error. */
export class CommandError extends Error {
  readonly reply: { readonly err: string };

  constructor(reply: Reply) {
    super(JSON.stringify(reply));
    this.reply = reply as { readonly err: string };
  }
}

export function syntaxError(): CommandError {
  return new CommandError({ err: 'ERR syntax error' });
}
