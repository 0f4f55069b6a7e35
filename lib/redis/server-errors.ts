/*
 * The errors that servers answer, as far as the library tells them apart. Everything that is read in such a text is read
 * here: each server words it in its own way, and a new version in another. `__tests__/unit/server-errors.test.ts` has what
 * each version writes, and `__tests__/faults/texts-of-servers.test.ts` makes the server of the run write it.
 */

/** One error. `code` is the first word of its text; `text` is the rest. Without a `code` it has none of its own: ERR, or nothing. */
interface ServerError {
  readonly code?: string;
  readonly text?: RegExp;
  /** The server will be able to execute the command at another time: a call that waits asks again. Else the call ends. */
  readonly passes?: true;
  /** It passes, and may stop a script half-way. What does not pass may do so too, as far as is known. */
  readonly stopsHalfWay?: true;
  /** What to do about it, where the text does not say that. */
  readonly advice?: string;
}

export type ServerErrorName = keyof typeof ERRORS;

const NO_PASSWORD = 'the client has no password, or a wrong one';

/** The first one that fits counts. */
const ERRORS = {
  // The server cannot execute anything now.
  loading: { code: 'LOADING', passes: true },
  busy: { code: 'BUSY', passes: true },
  masterDown: { code: 'MASTERDOWN', passes: true },
  // Also "max number of clients + cluster connections reached". It is the answer to the first command of a new connection.
  tooManyClients: { text: /^max number of clients\b/i, passes: true },
  // It cannot write now. Refused is the first write of a script.
  readOnly: { code: 'READONLY', passes: true, advice: 'this server is a replica: connect to the master' },
  misconf: { code: 'MISCONF', passes: true },
  noReplicas: { code: 'NOREPLICAS', passes: true },
  outOfMemory: { code: 'OOM' },
  // A cluster.
  clusterDown: { code: 'CLUSTERDOWN', passes: true },
  // The same, to a script without keys.
  clusterDownInScript: { text: /\bwhile the cluster is down/i, passes: true },
  tryAgain: { code: 'TRYAGAIN', passes: true },
  moved: {
    code: 'MOVED',
    passes: true,
    advice: 'another node of the cluster has this key: only a client of the cluster finds it',
  },
  ask: { code: 'ASK', passes: true },
  // While its slot moves to another node, a script cannot use a key any more that it has removed, or that has expired.
  onTheMove: { text: /\battempted to access a non local key/i, passes: true, stopsHalfWay: true },
  crossSlot: { code: 'CROSSSLOT' },
  // Rights.
  noAuth: { code: 'NOAUTH', advice: NO_PASSWORD },
  // A command of more than ten arguments, as some scripts have. The server closes the connection, too.
  noAuthForLong: { text: /^protocol error: unauthenticated\b/i, advice: NO_PASSWORD },
  noRightToScripts: { code: 'NOPERM', text: / 'eval(sha)?'| access (a|one of the) key/i },
  noRight: { code: 'NOPERM' },
  // In a script: up to 7.0, and since.
  noRightInScript: { text: /^(the user executing the script can't|acl failure in script)/i },
  // WAIT on a server that became a replica: before, and meanwhile.
  waitOnReplica: { text: /^wait cannot\b/i },
  unblocked: { code: 'UNBLOCKED' },
  // Others.
  wrongType: { code: 'WRONGTYPE' },
  noScript: { code: 'NOSCRIPT', text: /^no matching script/i },
  // Not that of a script, which has a word between the two, or "called from script" after them.
  unknownCommand: { text: /^unknown command(?! called)/i },
  other: {},
} satisfies Record<string, ServerError>;

const NAMES = Object.keys(ERRORS) as ServerErrorName[];

/** Those after which a call that waits asks again. */
export const PASSING = NAMES.filter((name) => 'passes' in ERRORS[name]);

/** What scripts look for in the error of a command: also behind the preamble of servers before 7. */
export const IN_LUA = {
  readOnly: ERRORS.readOnly.code,
  wrongType: ERRORS.wrongType.code,
  noRight: [`${ERRORS.noRight.code} `, 'The user executing ', 'ACL failure in script'],
} as const;

/** What the text of an error says. */
export interface Answer {
  readonly code: string;
  readonly name: ServerErrorName;
  readonly passes: boolean;
  readonly stopsHalfWay: boolean;
  readonly advice: string | undefined;
  /** Of `moved` and `ask`: the address of the other node. */
  readonly to: string | undefined;
}

/**
 * Servers before 7 put an error inside a script behind a preamble that ends with the script's line number:
 * `ERR Error running script (call to f_68f): @user_script:45: @user_script: 45: -READONLY You can't …`
 */
const PREAMBLE = /^.*user_script:\s*\d+:\s*/s;

/** What a text says; `undefined`: it is not the error of a server. */
export function answerIn(message: string): Answer | undefined {
  const preamble = PREAMBLE.exec(message)?.[0] ?? '';
  const said = message.slice(preamble.length).replace(/^-/, '');
  const [start = '', word] = /^([A-Z]{3,})\s+/.exec(said) ?? [];
  const afterCode = said.slice(start.length);
  const withoutCode = word === 'ERR' ? afterCode : said;
  const fits = ({ code, text }: ServerError): boolean =>
    code === undefined ? text?.test(withoutCode) === true : code === word && text?.test(afterCode) !== false;
  const known = NAMES.find((name) => fits(ERRORS[name]));
  if (known === undefined && word === undefined && preamble === '') return undefined;
  const name = known ?? 'other';
  const { code = known === undefined && word !== undefined ? word : 'ERR', ...rest }: ServerError = ERRORS[name];
  const { passes = false, stopsHalfWay = false, advice } = rest;
  const to = name === 'moved' || name === 'ask' ? /^\d+ (\S+)/.exec(afterCode)?.[1] : undefined;
  return { code, name, passes, stopsHalfWay, advice, to };
}

/** A command in a script was refused, perhaps after the first half of the script. */
export function isInScript(message: string): boolean {
  return /\bscript: |user_script/.test(message) || answerIn(message)?.name === 'noRightInScript';
}
