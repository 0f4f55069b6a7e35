import type { LuaValues } from '../../internal/lua';
import { LockScript, Script } from '../../redis/script';
import { inspectionScripts } from './inspector';
import { isFound, isGrant } from './replies';
import { kindLua } from './script-parts';

/*
 * The scripts about a lock that processes contend for. They are the same for all kinds but for the pieces of a kind, which
 * lie in its folder under these names:
 *
 *   acquire        a whole script: takes the lock if it is free or its owner's
 *   holder         reads who holds KEYS[1]
 *   held           finds whether the lock is the owner's
 *   give           gives the lock to another owner value
 *   publish        publishes the release, and sets `heard`: the listeners
 *   publish-left   publishes that the lock is left to pollers, and sets `heard`
 *   before-tokens  reads what `tokens` needs
 *   tokens         returns the next fencing tokens, or 1 without fencing
 *
 * In their headers:
 *
 *   notification  in ARGV: what `ScriptedFormat.notification` returns
 *   listeners     in a reply: the connections that got the message, or one of `LISTENERS`
 *
 * Every kind has all of them, also one whose waiters only poll (`polls`): the scripts that give a lock back include
 * `publish`, or `publish-left`, since others may listen for the same locks, as those of `pub-sub` for a lock of `spin`. Where
 * nobody can, these two are `local heard = 0`; of the format, `channels` and `notification` return `[]`, and `releaseOf` any
 * text, as `MESSAGE_LEFT` is.
 */

/** What the scripts of a kind name. */
interface OwnerFormat extends LuaValues {
  /** Lua: whether the lock, which is not the owner's, is that of the owner `to`. */
  readonly IS_GIVEN: string;
  /** The message that a lock is left to pollers. */
  readonly MESSAGE_LEFT: string;
}

export type LockScripts = ReturnType<typeof lockScripts>;

/** `kind`: its folder. */
export function lockScripts(kind: string, format: OwnerFormat) {
  const values = { ...format, THIS_KIND: kind, NOTIFY_PIECE: `${kind}/publish` };
  const common = (name: string) => kindLua(`common/${name}`, values);
  return {
    held: kindLua(`${kind}/held`),
    ACQUIRE: new LockScript(`acquire (${kind})`, kindLua(`${kind}/acquire`), true, isGrant),
    RENEW: new LockScript(`renew (${kind})`, common('renew')),
    CONFIRM_OR_RELEASE: new LockScript(`confirm or release (${kind})`, common('confirm-or-release')),
    RELEASE: new LockScript(`release (${kind})`, common('release')),
    LEAVE: new LockScript(`leave to pollers (${kind})`, common('leave')),
    leftToPollers: format.MESSAGE_LEFT,
    KEEP: new LockScript(`keep (${kind})`, common('keep')),
    DETACH: new LockScript(`detach (${kind})`, common('detach')),
    ADOPT: new LockScript(`adopt (${kind})`, common('adopt'), false, isFound),
    REPLACE: new LockScript(`replace (${kind})`, common('replace'), false, isFound),
    NOTIFY: new Script(`notify (${kind})`, common('notify')),
    inspection: inspectionScripts(kind, values),
  };
}
