import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { CommandTimeoutError, isFinal, isNoScript, isServerAnswer, serverErrorCode } from '../../lib/redis/failure';

class ClientClosedError extends Error {}

/** Which errors are transient, which are final, and whether the server answered, so that nothing was executed. */
const table: readonly [string, { code: string | undefined; final: boolean; answered: boolean }][] = [
  ['LOADING Redis is loading the dataset in memory', { code: 'LOADING', final: false, answered: true }],
  ['BUSY Redis is busy running a script.', { code: 'BUSY', final: false, answered: true }],
  ["READONLY You can't write against a read only replica.", { code: 'READONLY', final: false, answered: true }],
  [
    "READONLY You can't write against a read only replica. script: 7d1, on @user_script:2.",
    { code: 'READONLY', final: false, answered: true },
  ],
  ['MASTERDOWN Link with MASTER is down', { code: 'MASTERDOWN', final: false, answered: true }],
  ['CLUSTERDOWN The cluster is down', { code: 'CLUSTERDOWN', final: false, answered: true }],
  ['TRYAGAIN Multiple keys request during rehashing of slot', { code: 'TRYAGAIN', final: false, answered: true }],
  ['MISCONF Redis is configured to save RDB snapshots', { code: 'MISCONF', final: false, answered: true }],
  ['NOREPLICAS Not enough good replicas to write.', { code: 'NOREPLICAS', final: false, answered: true }],
  ['MOVED 3999 127.0.0.1:6381', { code: 'MOVED', final: false, answered: true }],
  ['ASK 3999 127.0.0.1:6381', { code: 'ASK', final: false, answered: true }],
  ["OOM command not allowed when used memory > 'maxmemory'.", { code: 'OOM', final: true, answered: true }],
  ['NOAUTH Authentication required.', { code: 'NOAUTH', final: true, answered: true }],
  ['WRONGPASS invalid username-password pair', { code: 'WRONGPASS', final: true, answered: true }],
  ["NOPERM this user has no permissions to run the 'evalsha' command", { code: 'NOPERM', final: true, answered: true }],
  [
    'WRONGTYPE Operation against a key holding the wrong kind of value script: 5f, on @user_script:2.',
    { code: 'WRONGTYPE', final: true, answered: true },
  ],
  ["ERR unknown command 'EVALSHA'", { code: 'ERR', final: true, answered: true }],
  ["CROSSSLOT Keys in request don't hash to the same slot", { code: 'CROSSSLOT', final: true, answered: true }],
  // Before Redis 7, an error in a script had a prefix.
  [
    'ERR Error running script (call to f_4a2): @user_script:2: WRONGTYPE Operation against a key',
    { code: 'WRONGTYPE', final: true, answered: true },
  ],
  [
    "ERR Error running script (call to f_4a2): @user_script: 3: -READONLY You can't write against a read only replica.",
    { code: 'READONLY', final: false, answered: true },
  ],
  ['-LOADING Redis is loading the dataset in memory', { code: 'LOADING', final: false, answered: true }],
  // Errors of the client: it is unknown whether the command was executed.
  ['Socket closed unexpectedly', { code: undefined, final: false, answered: false }],
  ['connect ECONNREFUSED 127.0.0.1:6379', { code: undefined, final: false, answered: false }],
  ['The client is closed', { code: undefined, final: false, answered: false }],
  ['Redis did not answer within 50 ms', { code: undefined, final: false, answered: false }],
  ['', { code: undefined, final: false, answered: false }],
];

describe.each(table)('%s', (message, { code, final, answered }) => {
  it(`has the code ${code}, is ${final ? 'final' : 'passing'}, and was ${answered ? '' : 'not '}answered by the server`, () => {
    const error = new Error(message);
    expect(serverErrorCode(error)).toBe(code);
    expect(isFinal(error)).toBe(final);
    expect(isServerAnswer(error)).toBe(answered);
    expect(isNoScript(error)).toBe(false);
  });
});

it('recognises NOSCRIPT', () => {
  expect(isNoScript(new Error('NOSCRIPT No matching script. Please use EVAL.'))).toBe(true);
  expect(isNoScript(new Error('ERR NOSCRIPT'))).toBe(false);
  expect(isNoScript(new Error('NOSCRIPT there is no such template'))).toBe(false);
});

it('treats a closed client as final', () => {
  expect(isFinal(new ClientClosedError('The client is closed'))).toBe(true);
});

it('recognises errors of another realm, and accepts values that are not errors', () => {
  expect(isNoScript(runInNewContext("new Error('NOSCRIPT No matching script.')"))).toBe(true);
  for (const thrown of [undefined, null, 'NOSCRIPT text', 42, {}]) {
    expect(isNoScript(thrown)).toBe(false);
    expect(isFinal(thrown)).toBe(false);
    expect(isServerAnswer(thrown)).toBe(false);
  }
});

it('reports how long it waited, keeps a late reply, and never leaves it unhandled', async () => {
  const late = Promise.reject(new Error('too late'));
  const error = new CommandTimeoutError(51.4, late);
  expect(error.message).toBe('Redis did not answer within 51 ms');
  expect(error.name).toBe('CommandTimeoutError');
  expect(isServerAnswer(error)).toBe(false);
  await expect(error.late).rejects.toThrow('too late');
});
