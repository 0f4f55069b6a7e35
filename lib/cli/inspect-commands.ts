import { createInterface } from 'node:readline/promises';
import { type Arguments, keyOf, lockTypeOf } from './arguments';
import { shown } from './durations';
import { EXIT, ExitError } from './exit-codes';
import { holderOf, jsonOf, listOf, print, printable, tableOf, waitingIn } from './output';
import { openSession } from './session';

/** `redis-locks ls` */
export async function list({ values, operands }: Arguments): Promise<number> {
  if (operands.length > 0) throw new ExitError(EXIT.usage, 'redis-locks ls takes no KEY; --match takes a pattern');
  const session = await openSession(values, { fencing: values.fencing });
  try {
    const locks = await session.list(values.match);
    if (values.json) for (const lock of locks) print(jsonOf(lock));
    else print(listOf(locks));
    return EXIT.ok;
  } finally {
    await session.close();
  }
}

/** `redis-locks inspect KEY` */
export async function inspect(args: Arguments): Promise<number> {
  const { values } = args;
  const key = keyOf(args);
  const session = await openSession(values, { fencing: values.fencing });
  try {
    const state = await session.registry.obtain(key).inspect();
    if (values.json) print(jsonOf({ key, ...state }));
    else if (state.held) {
      const rows = [
        ['key', key],
        ['holder', holderOf(state)],
        ...(state.holders === undefined ? [] : [['holders', String(state.holders)]]),
        ['owner', state.owner ?? ''],
        ['left', `${shown(state.remaining)}, unless it is renewed`],
        ['waiting', waitingIn(state)],
        ...(state.fencingToken === undefined ? [] : [['fencing token', String(state.fencingToken)]]),
      ];
      print(tableOf([], rows));
    } else {
      throw free(key, values['registry-key'], lockTypeOf(values));
    }
    return state.held ? EXIT.ok : EXIT.unavailable;
  } finally {
    await session.close();
  }
}

/** `redis-locks release KEY --force` */
export async function release(args: Arguments): Promise<number> {
  const { values } = args;
  const key = keyOf(args);
  if (!values.force) {
    throw new ExitError(EXIT.usage, 'Its holder may still be at work: release takes --force, to say that you know');
  }
  const session = await openSession(values);
  try {
    const lock = session.registry.obtain(key);
    if (process.stdin.isTTY && !values.yes) {
      const before = await lock.inspect();
      if (!before.held) throw free(key, values['registry-key'], lockTypeOf(values));
      const question = `Release "${printable(key)}", held by ${printable(holderOf(before))}? [y/N] `;
      if (!(await confirm(question))) return EXIT.notFree;
    }
    const state = await lock.forceUnlock();
    if (!state.held) throw free(key, values['registry-key'], lockTypeOf(values));
    print(
      values.json ? jsonOf({ key, ...state }) : `Released "${printable(key)}", held by ${printable(holderOf(state))}.`,
    );
    return EXIT.ok;
  } finally {
    await session.close();
  }
}

async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}

function free(key: string, registryKey = 'locks', lockType: string): ExitError {
  const message = `Nobody holds "${printable(key)}" (--registry-key ${registryKey}, --type ${lockType})`;
  return new ExitError(EXIT.unavailable, message);
}
