import { expect, it } from '@jest/globals';
import { answerIn, PASSING, type ServerErrorName } from '../../lib/redis/server-errors';

const SHA = 'b085978451f560271f890f5fe5c8c00279a1ffe1';

/** What a server of before 7, of 7 and later, and Valkey 9 put round the error of a command in a script. */
const inScript = {
  before7: (text: string) => `ERR Error running script (call to f_${SHA}): @user_script:1: ${text}`,
  since7: (text: string) => `${text} script: ${SHA}, on @user_script:1.`,
  valkey9: (text: string) => `${text} script: on @user_script:1.`,
};
const { before7, since7, valkey9 } = inScript;

const ALL = 'all';
const UP_TO_7 = 'Redis 6.2, 7.0';
const FROM_8 = 'Redis 8.2, 8.10, Valkey 9.1';
const REDIS_FROM_7 = 'Redis 7.0, 8.2, 8.10';

/**
 * As these servers wrote it: Redis 6.2.14, 7.0.15, 8.2.3, 8.10.2 and Valkey 9.1.2. That the server of this run does so,
 * `faults/texts-of-servers` finds out.
 */
const WRITTEN: readonly (readonly [name: ServerErrorName, servers: string, text: string])[] = [
  ['noScript', 'Redis 6.2 to 8.10', 'NOSCRIPT No matching script. Please use EVAL.'],
  ['noScript', 'Valkey 9.1', 'NOSCRIPT No matching script.'],
  ['unknownCommand', 'Redis 6.2', 'ERR unknown command `NOSUCH`, with args beginning with: `x`, '],
  ['unknownCommand', `${REDIS_FROM_7}, Valkey 9.1`, "ERR unknown command 'NOSUCH', with args beginning with: 'x' "],
  ['other', 'Redis 6.2', before7('@user_script: 1: Unknown Redis command called from Lua script')],
  ['other', REDIS_FROM_7, since7('ERR Unknown Redis command called from script')],
  ['other', 'Valkey 9.1', valkey9('ERR Unknown command called from script')],
  ['wrongType', ALL, 'WRONGTYPE Operation against a key holding the wrong kind of value'],
  ['wrongType', 'Redis 6.2', before7('WRONGTYPE Operation against a key holding the wrong kind of value')],
  ['wrongType', REDIS_FROM_7, since7('WRONGTYPE Operation against a key holding the wrong kind of value')],
  ['wrongType', 'Valkey 9.1', valkey9('WRONGTYPE Operation against a key holding the wrong kind of value')],
  ['noRightToScripts', UP_TO_7, 'NOPERM this user has no permissions to access one of the keys used as arguments'],
  ['noRightToScripts', FROM_8, 'NOPERM No permissions to access a key'],
  ['noRightToScripts', 'Redis 6.2', "NOPERM this user has no permissions to run the 'eval' command or its subcommand"],
  ['noRightToScripts', 'Redis 7.0', "NOPERM this user has no permissions to run the 'evalsha' command"],
  ['noRightToScripts', FROM_8, "NOPERM User few has no permissions to run the 'evalsha' command"],
  ['noRight', 'Redis 7.0', "NOPERM this user has no permissions to run the 'hget' command"],
  ['noRight', FROM_8, "NOPERM User few has no permissions to run the 'hget' command"],
  ['noRight', FROM_8, 'NOPERM No permissions to access a channel'],
  ...[
    "The user executing the script can't access at least one of the keys mentioned in the command arguments",
    "The user executing the script can't run this command or subcommand",
  ].flatMap(
    (text) =>
      [
        ['noRightInScript', 'Redis 6.2', before7(`@user_script: 1: ${text}`)],
        ['noRightInScript', 'Redis 6.2, by pcall', `@user_script: 1: ${text}`],
        ['noRightInScript', 'Redis 7.0', since7(`ERR ${text}`)],
        ['noRightInScript', 'Redis 7.0, by pcall', `ERR ${text}`],
      ] as const,
  ),
  ...['No permissions to access a key', "User few has no permissions to run the 'hget' command"].flatMap(
    (text) =>
      [
        ['noRightInScript', 'Redis 8.2, 8.10', since7(`ERR ACL failure in script: ${text}`)],
        ['noRightInScript', 'Valkey 9.1', valkey9(`ERR ACL failure in script: ${text}`)],
        ['noRightInScript', `${FROM_8}, by pcall`, `ERR ACL failure in script: ${text}`],
      ] as const,
  ),
  ['outOfMemory', ALL, "OOM command not allowed when used memory > 'maxmemory'."],
  ['outOfMemory', 'Redis 6.2', before7("@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.")],
  ['noReplicas', ALL, 'NOREPLICAS Not enough good replicas to write.'],
  ['noReplicas', 'Redis 6.2', before7('@user_script: 1: -NOREPLICAS Not enough good replicas to write.')],
  ['noReplicas', REDIS_FROM_7, since7('NOREPLICAS Not enough good replicas to write.')],
  ['readOnly', ALL, "READONLY You can't write against a read only replica."],
  ['readOnly', 'Redis 6.2', before7("@user_script: 1: -READONLY You can't write against a read only replica.")],
  ['readOnly', 'Redis 6.2, by pcall', "@user_script: 1: -READONLY You can't write against a read only replica."],
  ['readOnly', REDIS_FROM_7, since7("READONLY You can't write against a read only replica.")],
  ['readOnly', 'Valkey 9.1', valkey9("READONLY You can't write against a read only replica.")],
  ['masterDown', ALL, "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."],
  ['busy', 'Redis', 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.'],
  ['busy', 'Valkey 9.1', 'BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.'],
  ['noAuth', ALL, 'NOAUTH Authentication required.'],
  ['noAuthForLong', ALL, 'ERR Protocol error: unauthenticated multibulk length'],
  ['other', ALL, 'WRONGPASS invalid username-password pair or user is disabled.'],
  ['tooManyClients', ALL, 'ERR max number of clients reached'],
  ['tooManyClients', 'all, as nodes of a cluster', 'ERR max number of clients + cluster connections reached'],
  ['waitOnReplica', ALL, 'ERR WAIT cannot be used with replica instances. Please also note that if a replica is'],
  ['unblocked', ALL, 'UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)'],
  ['clusterDown', ALL, 'CLUSTERDOWN Hash slot not served'],
  [
    'clusterDownInScript',
    'Redis 7.0',
    since7('ERR Script attempted to execute a write command while the cluster is down and readonly'),
  ],
  [
    'clusterDownInScript',
    'Redis 6.2',
    before7('@user_script: 1: Lua script attempted to execute a command while the cluster is down'),
  ],
  ['clusterDownInScript', 'Valkey 9.1', valkey9("ERR Can not execute a command 'get' while the cluster is down")],
  ['moved', ALL, 'MOVED 4748 127.0.0.1:35017'],
  ['ask', ALL, 'ASK 4748 127.0.0.1:35017'],
  ['tryAgain', ALL, 'TRYAGAIN Multiple keys request during rehashing of slot'],
  ['crossSlot', ALL, "CROSSSLOT Keys in request don't hash to the same slot"],
  [
    'onTheMove',
    'Redis 6.2',
    before7('@user_script: 1: Lua script attempted to access a non local key in a cluster node'),
  ],
  ['onTheMove', REDIS_FROM_7, since7('ERR Script attempted to access a non local key in a cluster node')],
  ['onTheMove', 'Valkey 9.1', valkey9('ERR Attempted to access a non local key in a cluster node')],
  ['other', 'Redis 6.2', before7('user_script:1: boom')],
  ['other', REDIS_FROM_7, since7('ERR user_script:1: boom')],
];

/** A call that waits goes on after these, and ends with all others. */
const PASSES: readonly ServerErrorName[] = [
  ...(['loading', 'busy', 'masterDown', 'tooManyClients', 'readOnly', 'misconf', 'noReplicas'] as const),
  ...(['clusterDown', 'clusterDownInScript', 'tryAgain', 'moved', 'ask', 'onTheMove'] as const),
];

it('A call that waits goes on after an error that passes', () => {
  expect(PASSING).toEqual(PASSES);
});

it.each(WRITTEN)('The error %s, as written by %s, is known: "%s"', (name, _, text) => {
  const ways = [text, `-${text}`, text.replace(SHA, '')];
  // A text without any code is no answer of a server, unless servers are known to write it.
  if (name !== 'other') ways.push(text.replace(/^ERR /, ''));
  for (const said of ways) expect(answerIn(said)?.name).toBe(name);
  expect(answerIn(text)).toMatchObject({ passes: PASSES.includes(name), stopsHalfWay: name === 'onTheMove' });
});

it.each(WRITTEN.filter(([name]) => !/^(other|moved|ask)$/.test(name)))(
  'The error %s, as written by %s, is known in other letters: "%s"',
  (name, _, text) => {
    const [, code = '', rest = ''] = /^((?:.*user_script: ?\d+:\s*)?-?(?:[A-Z]{3,}\s)?)(.*)$/s.exec(text) ?? [];
    for (const said of [code + rest.toUpperCase(), code + rest.toLowerCase()]) expect(answerIn(said)?.name).toBe(name);
  },
);

it('A redirection names the other node, and what is no answer of a server has no name', () => {
  expect([answerIn('MOVED 1 a:1'), answerIn('ASK 2 b:2')].map((answer) => answer?.to)).toEqual(['a:1', 'b:2']);
  for (const text of ['', 'Socket closed unexpectedly', 'connect ECONNREFUSED 127.0.0.1:6379', 'The client is closed'])
    expect(answerIn(text)).toBeUndefined();
});
