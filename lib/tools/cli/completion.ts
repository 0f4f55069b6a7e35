import { setTimeout as sleep } from 'node:timers/promises';
import { LOCK_TYPES } from '../../api/lock-types';
import { findLocks } from '../inspection/find-locks';
import {
  type Arguments,
  COMMANDS,
  ORDERS,
  optionsOf,
  parse,
  registryKeyOf,
  takesValue,
  type Values,
} from './arguments';
import { connectTo } from './connect';
import { usageError } from './output';

const SHELLS = ['bash', 'zsh', 'fish'];

/** The commands that a KEY follows. */
const WITH_KEY = ['run', 'inspect', 'release', 'ask'];

/** ms that somebody who has pressed Tab waits for Redis. */
const PATIENCE = 1_000;

/** A shell inserts a word as it is: one with other characters would be another word there, or a command. */
const IS_PLAIN = /^[\w.:/@+%{}][\w.:/@+=%{}-]*$/;

/** `redis-locks completion SHELL`: what the shell reads. */
export function completionOf({ operands: [shell = ''] }: Arguments): string {
  const complete = "complete -o default -C 'redis-locks completion' redis-locks\n";
  if (shell === 'bash') return complete;
  if (shell === 'zsh') return `autoload -U +X bashcompinit && bashcompinit\n${complete}`;
  if (shell === 'fish') return "complete -c redis-locks -a '(COMP_LINE=(commandline -cp) redis-locks completion)'\n";
  throw usageError(`redis-locks completion takes ${SHELLS.join(', ')}, not "${shell}"`);
}

/**
 * The words that may be meant by the last one. A shell then calls `redis-locks completion`, with what was typed. Bash
 * also says what it takes for the last word: that begins after a colon.
 */
export async function nextWords(typed: string, [, part]: readonly string[]): Promise<string> {
  const words = typed.trimStart().split(/ +/).slice(1);
  const word = words.pop() ?? '';
  const meant = (await wordsAfter(words, word)).filter((one) => one.startsWith(word));
  const start = part !== undefined && word.endsWith(part) ? word.length - part.length : 0;
  return meant.map((one) => one.slice(start)).join('\n');
}

async function wordsAfter(words: readonly string[], word: string): Promise<readonly string[]> {
  const [command] = words;
  const last = words.at(-1) ?? '';
  if (words.includes('--')) return [];
  if (command === undefined || command === 'help') return Object.keys(COMMANDS);
  if (last === '--type') return LOCK_TYPES;
  if (last === '--sort') return ORDERS;
  if (takesValue(last)) return [];
  if (command === 'completion') return SHELLS;
  const { positionals, values } = parse(words, false);
  const wantsKey = WITH_KEY.includes(command) && positionals.length === 1 && !word.startsWith('-');
  const keys = wantsKey ? await keysLike(word, command === 'run', values) : [];
  return keys.length > 0 ? keys : optionsOf(command).map((name) => `--${name}`);
}

/** The keys of locks that begin with a word; none where Redis cannot be asked in time. */
function keysLike(word: string, isRun: boolean, values: Values): Promise<readonly string[]> {
  const none: string[] = [];
  return Promise.race([heldLike(word, isRun, values), sleep(PATIENCE, none)]).catch(() => none);
}

async function heldLike(word: string, isRun: boolean, values: Values): Promise<string[]> {
  const registryKey = registryKeyOf(values) ?? (isRun ? 'locks' : undefined);
  const { client } = await connectTo(values);
  // The names that a pattern finds do not begin with it.
  const { locks } = await findLocks(client, { registryKey, match: `${word}*` });
  // A key that may be data of an application may be a secret too.
  const sure = locks.filter(({ isSure }) => isSure);
  const names = sure.map(({ lock, key }) => (registryKey === undefined ? lock : (key ?? lock)));
  const ends = names.flatMap((name) => [...name.matchAll(/:/g)].map(({ index }) => name.slice(index + 1)));
  // Without a registryKey, a KEY is a name or the end of one.
  const isName = registryKey !== undefined || names.some((name) => name.startsWith(word));
  return (isName ? names : ends).filter((name) => IS_PLAIN.test(name));
}
