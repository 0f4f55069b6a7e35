import { UnexpectedReplyError } from './failure';
import type { Script } from './script';

/** A number in a reply. Tokens and times come as text, since they are too large for the numbers of Lua. */
export function numberIn(script: Script, reply: unknown, value: unknown): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number)) throw new UnexpectedReplyError(script.name, reply);
  return number;
}

/** An array in a reply, with at least this many elements. */
export function arrayIn(script: Script, reply: unknown, least: number, most = least): readonly unknown[] {
  if (!Array.isArray(reply) || reply.length < least || reply.length > most) {
    throw new UnexpectedReplyError(script.name, reply);
  }
  return reply;
}

export function textIn(script: Script, reply: unknown, value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') throw new UnexpectedReplyError(script.name, reply);
  return String(value);
}
