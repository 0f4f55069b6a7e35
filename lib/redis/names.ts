import { COMPANIONS, type Companion } from '../api/lock-types';
import { inOneLine } from '../internal/validation';

const COMPANION_NAME = new RegExp(`^\\{[^}]+\\}:(${COMPANIONS.join('|')})(:|$)`);

/** What the names of a registry's locks begin with. An empty registryKey, where the lock type allows that: nothing. */
export function lockPrefix(registryKey: string): string {
  return registryKey === '' ? '' : `${registryKey}:`;
}

/** The names of one lock in Redis. */
export class LockNames {
  readonly registryKey: string;
  readonly key: string;
  /** The key of the lock in Redis. */
  readonly lock: string;

  /** `lock`: where it is known. To make it anew for each command would cost a tenth of a batch. */
  constructor(registryKey: string, key: string, lock = lockPrefix(registryKey) + key) {
    this.registryKey = registryKey;
    this.key = key;
    this.lock = lock;
  }

  /** Throws `RangeError` for the name of a key that belongs to another lock: see `companion`. */
  static checked(registryKey: string, key: string): LockNames {
    const names = new LockNames(registryKey, key);
    if (!COMPANION_NAME.test(names.lock)) return names;
    const what = 'not to be the name of a key that belongs to another lock';
    throw new RangeError(inOneLine(`Expected "${names.lock}" ${what}`));
  }

  /** The channel of the lock's releases, as Spring Integration's RedisLockRegistry names it. */
  get channel(): string {
    return `${legacyChannel(this.registryKey)}:${this.lock}`;
  }

  /**
   * A key that belongs to the lock and shares its hash slot: `{name}:fence`, or `{tag}:fence:name` where the name has a
   * hash tag. A registryKey may begin with a brace, or be empty, so a lock could have a name of this form:
   * `checked` refuses it.
   * Throws `RangeError` for braces that make no hash tag: then no second key shares the slot.
   */
  companion(suffix: Companion): string {
    const name = this.companionOrNone(suffix);
    if (name === undefined) throw noHashTag(this.lock);
    return name;
  }

  /** What `companion` returns; `undefined` where it throws. */
  companionOrNone(suffix: Companion): string | undefined {
    const { lock } = this;
    const tag = hashTag(lock);
    if (tag !== undefined) return `{${tag}}:${suffix}:${lock}`;
    return /[{}]/.test(lock) ? undefined : `{${lock}}:${suffix}`;
  }
}

/** The one channel for all locks of a registry, of Spring Integration up to 6.4.7 and 6.5.2. */
export function legacyChannel(registryKey: string): string {
  return `${registryKey}-channel`;
}

/**
 * The part of a key that decides on its hash slot, where that is not the whole key: between the first { and the next }.
 */
export function hashTag(name: string): string | undefined {
  const open = name.indexOf('{');
  const close = open < 0 ? -1 : name.indexOf('}', open);
  return close > open + 1 ? name.slice(open + 1, close) : undefined;
}

/** For a name whose braces leave no second key its hash slot. */
export function noHashTag(lock: string): RangeError {
  return new RangeError(inOneLine(`Expected the braces in "${lock}" to make a hash tag, as in "{tag}:rest"`));
}

/** The glob that matches nothing but this text. */
export function literally(text: string): string {
  return text.replace(/[\\*?[\]^-]/g, '\\$&');
}

/** A character after a backslash; a set such as `[ab]`, `[a-z]`, `[^a]`, also without its end; any other character. */
const PARTS = /\\(.)|\[(\^?)((?:\\.|[^\]]-.|[^\]])*)(?:\]|$)|./gsu;

/** The members of a set: a character after a backslash, a range, any other character. */
const MEMBERS = /\\(.)|(.)-(.)|./gs;

/** The pattern of the texts that a glob of Redis matches. */
export function globPattern(glob: string): RegExp {
  const literal = (text: string): string => text.replace(/\W/g, '\\$&');
  const member = (text: string, escaped?: string, one?: string, other?: string): string => {
    // Redis takes the ends of a range in either order.
    if (one !== undefined) return [one, other as string].sort().map(literal).join('-');
    return literal(escaped ?? text);
  };
  const source = glob.replace(PARTS, (part, escaped?: string, negation?: string, members?: string) => {
    if (members !== undefined) return `[${negation}${members.replace(MEMBERS, member)}]`;
    if (part === '*') return '.*';
    return part === '?' ? '.' : literal(escaped ?? part);
  });
  return new RegExp(`^${source}$`, 's');
}
