import { runInNewContext } from 'node:vm';
import { expect, it } from '@jest/globals';
import {
  answered,
  answerOf,
  ClientClosedError,
  CommandTimeoutError,
  causeOf,
  isErrorReply,
  isFinal,
  isNoScript,
  isNotExecuted,
  isServerAnswer,
  isUnknownCommand,
  LateGrantError,
  mayBeErrorReply,
  mayHaveWritten,
  messageOf,
  NotSentError,
  noteErrorReply,
  ReplyError,
  reasonOf,
  serverErrorCode,
  UnexpectedReplyError,
} from '../../lib/redis/failure';
import { FakeClock } from '../support/fake-clock';

/** A class of node-redis, as a minifier names it. */
class Minified extends Error {}

/** A script was stopped half-way, since its slot moves to another node. */
const ON_THE_MOVE = [
  'ERR Script attempted to access a non local key in a cluster node script: 68f, on @user_script:45.',
  'ERR Error running script (call to f_68f): @user_script:45: @user_script: 45: Lua script attempted to access a non local key in a cluster node',
];

/** By the code of the error: messages of the server, which has executed nothing. */
const PASSING: readonly (readonly [code: string, message: string])[] = [
  ['LOADING', 'LOADING Redis is loading the dataset in memory'],
  ['LOADING', '-LOADING Redis is loading the dataset in memory'],
  ['BUSY', 'BUSY Redis is busy running a script.'],
  ['READONLY', "READONLY You can't write against a read only replica."],
  ['READONLY', "READONLY You can't write against a read only replica. script: 7d1, on @user_script:2."],
  // Before Redis 7, an error in a script had a prefix.
  ['READONLY', "ERR Error running script (call to f_4a2): @user_script: 3: -READONLY You can't write."],
  ['MASTERDOWN', 'MASTERDOWN Link with MASTER is down'],
  ['CLUSTERDOWN', 'CLUSTERDOWN The cluster is down'],
  ['TRYAGAIN', 'TRYAGAIN Multiple keys request during rehashing of slot'],
  ['MISCONF', 'MISCONF Redis is configured to save RDB snapshots'],
  ['NOREPLICAS', 'NOREPLICAS Not enough good replicas to write.'],
  ['MOVED', 'MOVED 3999 127.0.0.1:6381'],
  ['ASK', 'ASK 3999 127.0.0.1:6381'],
  ...ON_THE_MOVE.map((message) => ['ERR', message] as const),
];
const FINAL: typeof PASSING = [
  ['OOM', "OOM command not allowed when used memory > 'maxmemory'."],
  ['NOAUTH', 'NOAUTH Authentication required.'],
  ['WRONGPASS', 'WRONGPASS invalid username-password pair'],
  ['NOPERM', "NOPERM this user has no permissions to run the 'evalsha' command"],
  ['WRONGTYPE', 'WRONGTYPE Operation against a key holding the wrong kind of value script: 5f, on @user_script:2.'],
  ['WRONGTYPE', 'ERR Error running script (call to f_4a2): @user_script:2: WRONGTYPE Operation against a key'],
  ['WRONGTYPE', 'ERR Error running script (call to f_4a2): @user_script: 12:-WRONGTYPE Operation against a key'],
  ['ERR', "ERR unknown command 'EVALSHA'"],
  ['CROSSSLOT', "CROSSSLOT Keys in request don't hash to the same slot"],
];
/** Errors of the client: it is unknown whether the command was executed. */
const UNANSWERED = [
  'Socket closed unexpectedly',
  'connect ECONNREFUSED 127.0.0.1:6379',
  'Redis did not answer within 50 ms',
  '',
];

it.each([
  ...PASSING.map(([code, message]) => [message, code, 'passing', 'answered'] as const),
  ...FINAL.map(([code, message]) => [message, code, 'final', 'answered'] as const),
  ...UNANSWERED.map((message) => [message, undefined, 'passing', 'not answered'] as const),
])('"%s" has the code %s, is %s, and was %s by the server', (message, code, lasting, answered) => {
  const error = new Error(message);
  expect(serverErrorCode(error)).toBe(code);
  expect(isFinal(error)).toBe(lasting === 'final');
  expect(isServerAnswer(error)).toBe(answered === 'answered');
  expect(isNoScript(error)).toBe(false);
});

it('A script may have written something where it was refused for good, or stopped half-way', () => {
  const written = [...FINAL.map(([, message]) => message), ...ON_THE_MOVE];
  for (const message of written) expect(mayHaveWritten(new Error(message))).toBe(true);
  for (const message of ['TRYAGAIN no', ...UNANSWERED]) expect(mayHaveWritten(new Error(message))).toBe(false);
});

it('A script was not executed where its command was refused, and not one in it', () => {
  const refused = [
    'NOAUTH Authentication required.',
    "NOPERM this user has no permissions to run the 'evalsha' command or its subcommand",
    "-NOPERM User bob has no permissions to run the 'eval' command",
    'NOPERM this user has no permissions to access one of the keys used as arguments',
    'NOPERM No permissions to access a key',
  ];
  for (const message of refused) expect(isNotExecuted(new Error(message))).toBe(true);
  const inside =
    'ERR Error running script (call to f_68f): @user_script:4: @user_script: 4: -NOPERM No permissions to access a key';
  const others = [
    inside,
    "NOPERM User bob has no permissions to run the 'wait' command",
    'NOPERM no',
    'ERR the application says NOAUTH to this',
    'OOM no',
    '',
    ...UNANSWERED,
  ];
  for (const message of others) expect(isNotExecuted(new Error(message))).toBe(false);
  expect(isNotExecuted(undefined)).toBe(false);
});

it('NOSCRIPT is recognised, and the error of a closed client is final', () => {
  const errors = ['NOSCRIPT No matching script. Use EVAL.', 'ERR NOSCRIPT No matching script', 'NOSCRIPT no template'];
  expect(errors.map((message) => isNoScript(new Error(message)))).toEqual([true, false, false]);
  expect(isFinal(new Minified('The client is closed'))).toBe(true);
});

it('Errors of another realm are recognised, and values that are not errors are accepted', () => {
  expect(isNoScript(runInNewContext("new Error('NOSCRIPT No matching script.')"))).toBe(true);
  for (const thrown of [undefined, null, 'NOSCRIPT text', 42, {}]) {
    expect(isNoScript(thrown)).toBe(false);
    expect(isFinal(thrown)).toBe(false);
    expect(isServerAnswer(thrown)).toBe(false);
  }
});

it('A silence says how long the command waited, keeps a late reply, and never leaves it unhandled', async () => {
  const late = Promise.reject(new Error('too late'));
  const error = new CommandTimeoutError(51.4, late);
  expect(error.message).toBe('Redis did not answer within 51 ms');
  expect(error.name).toBe('CommandTimeoutError');
  expect(isServerAnswer(error)).toBe(false);
  await expect(error.late).rejects.toThrow('too late');
});

it.each([
  [new Error('connect ECONNREFUSED'), 'connect ECONNREFUSED'],
  // Node's error for a host name with several addresses.
  [Object.assign(new Error(''), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
  [new RangeError(''), 'RangeError'],
  ['text', 'text'],
  [undefined, 'undefined'],
  [new Error('READONLY no'), 'READONLY no (this server is a replica: connect to the master)'],
  [new Error('NOAUTH no'), 'NOAUTH no (the client has no password, or a wrong one)'],
  [
    new Error('MOVED 1 a:1'),
    'MOVED 1 a:1 (another node of the cluster has this key: only a client of the cluster finds it)',
  ],
  [new Minified('The client is closed'), /^The client is closed \(or it was never connected: call its/],
  [new ClientClosedError('The client is closed'), 'The client is closed'],
])('The message of %p is %p', (error, message) => {
  expect(messageOf(error)).toEqual(typeof message === 'string' ? message : expect.stringMatching(message));
});

it('The reason of a failure says that the client failed, unless Redis answered, or did not', () => {
  const ours = [new CommandTimeoutError(1, Promise.resolve()), new LateGrantError(1), new UnexpectedReplyError('a', 1)];
  for (const error of [...ours, new ReplyError('of a script'), new Error('ERR no')]) {
    expect(reasonOf(error)).toBe(error.message);
  }
  expect(reasonOf(new Error('socket closed'))).toBe('the client failed: socket closed');
  class ErrorReply extends Error {}
  class SimpleError extends ErrorReply {}
  class NoReplyError extends Error {}
  class ReplyErrors extends Error {}
  expect([new NoReplyError('no'), new ReplyErrors('no')].map(isErrorReply)).toEqual([false, false]);
  expect([...ours.slice(1), new ReplyError('')].map(({ name }) => name)).toEqual([
    'LateGrantError',
    'UnexpectedReplyError',
    'ReplyError',
  ]);
  expect(new UnexpectedReplyError('a', ['x'.repeat(1_000), [[['y']]]]).message).toMatch(/^.{130,250}$/);
  const ofAdapter = Object.assign(new Minified('of a script'), { name: 'ReplyError' });
  expect([new SimpleError('of a script'), ofAdapter].map(isErrorReply)).toEqual([true, true]);
  const others = [new Error('text'), undefined, null, 'ERR text', Object.create(null)];
  expect(others.filter(isErrorReply)).toEqual([]);
  expect([new Error("ERR unknown command 'X'"), new Error('ERR no'), 'unknown command'].map(isUnknownCommand)).toEqual([
    true,
    false,
    false,
  ]);
});

it('A silence is explained by the last error of the client, and an answer by itself', () => {
  const [silent, refused, lastError] = [new NotSentError(1), new Error('ERR no'), new Error('ECONNREFUSED')];
  expect([undefined, silent, refused].map((failure) => causeOf(failure, { lastError }))).toEqual([
    lastError,
    lastError,
    refused,
  ]);
  expect([undefined, silent].map((failure) => causeOf(failure, { lastError: undefined }))).toEqual([undefined, silent]);
});

it('An answer is waited for beyond its deadlines, but not where nothing was sent', async () => {
  const [inner, sent] = [new CommandTimeoutError(1, Promise.resolve('late')), new NotSentError(1)];
  await expect(answerOf(Promise.reject(new CommandTimeoutError(1, Promise.reject(inner))))).resolves.toBe('late');
  await expect(answerOf(Promise.reject(sent))).rejects.toBe(sent);
  await expect(answerOf(Promise.reject(new CommandTimeoutError(1, Promise.reject('ERR'))))).rejects.toBe('ERR');
  await expect(answerOf(Promise.resolve('in time'))).resolves.toBe('in time');
});

it('A reply that is not there in time is a silence, and one that is there leaves no timer', async () => {
  using time = new FakeClock();
  await expect(answered(Promise.resolve('reply'), 100)).resolves.toBe('reply');
  await expect(answered(Promise.reject('error'), 100)).rejects.toBe('error');
  await null;
  expect(time.pending).toBe(0);
  const end = await time.settled(answered(new Promise(() => undefined), 100));
  expect(end).toMatchObject({ after: 100, error: { message: 'Redis did not answer within 100 ms' } });
});

it('A class of errors that a minifier has renamed is known from an answer of the server on, and no other is', () => {
  class Base extends Error {}
  class Reply extends Base {}
  class Aborted extends Base {}
  const [reply, aborted] = [new Reply('sold out'), new Aborted('sold out')];
  expect([reply, aborted].map(isErrorReply)).toEqual([false, false]);
  expect([reply, aborted].map(mayBeErrorReply)).toEqual([true, true]);
  for (const nothing of [new Error('ERR no'), null, undefined, 'ERR no', Object.create(null), {}])
    noteErrorReply(nothing);
  noteErrorReply(new Reply('NOSCRIPT No matching script.'));
  expect([reply, aborted, new Error('sold out'), new TypeError('no'), {}].map(isErrorReply)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
  const ofSystem = Object.assign(new Aborted('read ECONNRESET'), { code: 'ECONNRESET' });
  const known = [reply, ofSystem, new Error('text'), new Aborted('The client is closed'), new LateGrantError(1)];
  const nothing = [undefined, null, 'text', Object.create(null), Object.assign(Object.create(null), { message: 'no' })];
  expect([...known, ...nothing].filter(mayBeErrorReply)).toEqual([]);
});
