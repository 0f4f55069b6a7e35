import { channel } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { afterAll, afterEach, expect, it, jest } from '@jest/globals';
import { NotReplicatedError, type RedisClient } from '../../lib';
import { hashSlot } from '../../lib/redis/cluster';
import type { ScriptCommand } from '../../lib/redis/command';
import { ConnectionMonitor } from '../../lib/redis/connection';
import { ClientClosedError, NotSentError } from '../../lib/redis/failure';
import { onHandOff } from '../../lib/redis/hand-offs';
import { Line } from '../../lib/redis/line';
import { ReplicatedScripts, replyOfNotReplicated } from '../../lib/redis/replicas';
import { LockScript } from '../../lib/redis/script';
import { Silence } from '../../lib/redis/silence';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis, noScript, silence } from '../support/mock-redis';

const time = FakeClock.install();
const GRANTED = 1;
const acquire = new LockScript('acquire', 'return 1', true, (reply) => reply === GRANTED);
const CUT = new Error('Socket closed unexpectedly');
const moved = (kind: string, address: string) => new Error(`${kind} 1234 ${address}`);

/** A connection of our own, whose replicas acknowledge at once. */
function ownClient(parts: object = {}) {
  return Object.assign(new EventEmitter(), mockRedis(), {
    socketEpoch: 1 as number | undefined,
    isOpen: true,
    connect: jest.fn(async (): Promise<unknown> => undefined),
    destroy: jest.fn(),
    unref: jest.fn(),
    wait: jest.fn(async (_replicas: number, _ms: number): Promise<unknown> => 1),
    sendCommand: jest.fn(async (_words: readonly string[]): Promise<unknown> => undefined),
    ...parts,
  });
}

type Own = ReturnType<typeof ownClient>;

function orThrown<T>(answer: T | Error): T {
  if (answer instanceof Error) throw answer;
  return answer;
}

const sentOver = ({ evalSha }: Pick<Own, 'evalSha'>): number => evalSha.mock.calls.length;

/** A plain client, whose connections for acquisitions are `owns` in turn. */
function plainClient(...owns: Own[]) {
  const duplicate = jest.fn((_: object) => owns.shift());
  const client = Object.assign(new EventEmitter(), mockRedis(), { socketEpoch: 1, isOpen: true, duplicate });
  // As its registry does.
  ConnectionMonitor.of(client).onReconnect(() => undefined);
  return client;
}

/** A cluster of the masters `a:1`, which has every slot but that of `unserved`, and `b:2`. */
function cluster(a: Own, b: Own) {
  const masters = [
    { host: 'a', port: 1 },
    { host: 'b', port: 2 },
  ];
  const unserved = hashSlot('unserved');
  const slots = Array.from({ length: 16_384 }, (_, slot) => ({ master: slot === unserved ? undefined : masters[0] }));
  const nodeClient = jest.fn(async ({ port }: { port: number }) => plainClient(port === 1 ? a : b));
  return Object.assign(new EventEmitter(), mockRedis(), { isOpen: true, slots, masters, nodeClient });
}

// Somebody counts hand-offs: with a registry, the monitor of its client.
afterAll(onHandOff(() => undefined));

const made: ReplicatedScripts[] = [];
afterEach(() => {
  for (const scripts of made.splice(0)) scripts.close();
});

function opened(client: object, minReplicas = 1) {
  const scripts = new ReplicatedScripts(client as RedisClient, { minReplicas, replicaTimeout: 50.5 });
  made.push(scripts);
  const line = new Line<ScriptCommand>(new Silence(true), () => undefined);
  /** Its outcome so far, and whether its time is over. */
  const run = (key = 'key', script: LockScript | LockScript['forMany'] = acquire) => {
    const options = { keys: [key], arguments: [] };
    const command = { script, options, isOver: false, answer: jest.fn(), fail: jest.fn() };
    scripts.run(command, line);
    const outcome = async () => {
      await time.advance(0);
      return [...command.answer.mock.calls, ...command.fail.mock.calls].flat();
    };
    return Object.assign(command, { outcome });
  };
  return { scripts, line, run };
}

/** The outcome of one acquisition over this connection. */
const outcomeOver = (own: Own): Promise<unknown[]> => opened(plainClient(own)).run().outcome();

it('An acquisition with minReplicas goes over a connection of our own without hand-offs, and one WAIT serves all of one time', async () => {
  const own = ownClient();
  const client = plainClient(own);
  const { run, line } = opened(client, 2);
  own.wait.mockResolvedValue('2');
  const both = [run('a'), run('b')];
  // The connection may be long in the making.
  expect(line.unansweredSince).toBe(time.now);
  for (const one of both) expect(await one.outcome()).toEqual([GRANTED]);
  expect(line.unansweredSince).toBeUndefined();
  expect(client.duplicate.mock.calls).toEqual([[{ maintNotifications: 'disabled' }]]);
  expect([own.connect.mock.calls.length, own.unref.mock.calls.length]).toEqual([1, 1]);
  expect(own.wait.mock.calls).toEqual([[2, 51]]);
  await run('c').outcome();
  expect(own.wait).toHaveBeenCalledTimes(2);
  // Nothing is kept of those that were answered.
  for (let i = 0; i < 200; i++) await run(`${i}`).outcome();
  own.evalSha.mockImplementation(silence);
  run('d');
  await time.advance(600);
  expect(line.holdsBack(run('e') as unknown as ScriptCommand, time.now)).toBe(false);
});

it('An acquisition with minReplicas that is written during a WAIT has one of its own: the first says nothing of it (P1)', async () => {
  const waits = [lateReply(), lateReply()] as const;
  const own = ownClient();
  for (const { promise } of waits) own.wait.mockReturnValueOnce(promise);
  const { run } = opened(plainClient(own));
  const first = run('a');
  expect(await first.outcome()).toEqual([]);
  const second = run('b');
  expect(await second.outcome()).toEqual([]);
  expect(own.wait).toHaveBeenCalledTimes(2);
  waits[0].resolve(1);
  expect([await first.outcome(), await second.outcome()]).toEqual([[GRANTED], []]);
  waits[1].resolve(0);
  expect(await second.outcome()).toEqual([expect.objectContaining({ name: 'NotReplicatedError' })]);
});

it('An acquisition with minReplicas that goes out is no answer to those before it', async () => {
  const { run, line } = opened(plainClient(ownClient({ evalSha: silence })));
  const since = time.now;
  for (let i = 0; i < 3; i++) {
    run();
    await time.advance(1_000);
    expect(line.unansweredSince).toBe(since);
  }
});

it('An acquisition with minReplicas that is refused waits for no replica', async () => {
  const own = ownClient();
  own.evalSha.mockResolvedValue(0);
  expect(await outcomeOver(own)).toEqual([0]);
  expect(own.wait).not.toHaveBeenCalled();
});

it('An acquisition with minReplicas has replies of their own types, and no timeout of the client', async () => {
  const [own, commands] = [ownClient(), ownClient()];
  const withCommandOptions = jest.fn(() => commands);
  await outcomeOver(Object.assign(own, { withCommandOptions }));
  expect(withCommandOptions.mock.calls).toEqual([[{ timeout: 0, typeMapping: {} }]]);
  expect([sentOver(commands), commands.wait.mock.calls.length, sentOver(own)]).toEqual([1, 1, 0]);
});

it.each<[string, number | Error]>([
  ['too few have it', 0],
  ['the master became a replica during WAIT', new Error('UNBLOCKED force')],
  ['the master became a replica before WAIT', new Error('ERR WAIT cannot be')],
])('An acquisition with minReplicas lacks replicas where %s', async (_, answer) => {
  const [error] = await outcomeOver(ownClient({ wait: async () => orThrown(answer) }));
  expect(error).toMatchObject({ name: 'NotReplicatedError', wanted: 1, acknowledged: 0 });
  expect((error as Error).cause).toBe(answer === 0 ? undefined : answer);
});

it.each([CUT, new Error('The command UNBLOCKED nothing')])(
  'An acquisition with minReplicas has an unknown outcome where WAIT fails otherwise: %p',
  async (error) => {
    expect(await outcomeOver(ownClient({ wait: async () => orThrown(error) }))).toEqual([error]);
  },
);

it.each(['OK', undefined, {}])(
  'An acquisition with minReplicas fails where WAIT answers with nonsense: %p',
  async (reply) => {
    const own = ownClient();
    own.wait.mockResolvedValue(reply);
    const message = expect.stringContaining('script "WAIT"');
    expect(await outcomeOver(own)).toMatchObject([{ name: 'UnexpectedReplyError', message }]);
  },
);

it('An acquisition with minReplicas of a batch lacks them for those that were granted, and others were refused', async () => {
  const own = ownClient();
  const { run } = opened(plainClient(own));
  const replies = [GRANTED, 0, new Error('WRONGTYPE no')];
  own.evalSha.mockResolvedValue(replies);
  own.wait.mockResolvedValueOnce(0);
  const [answer] = await run('key', acquire.forMany).outcome();
  expect(answer).toEqual([expect.any(NotReplicatedError), 0, replies[2]]);
  own.wait.mockRejectedValueOnce(CUT);
  expect(await run('key', acquire.forMany).outcome()).toEqual([CUT]);
  own.evalSha.mockResolvedValue([0, new Error('WRONGTYPE no')]);
  own.wait.mockClear();
  await run('key', acquire.forMany).outcome();
  expect(own.wait).not.toHaveBeenCalled();
});

it('An acquisition with minReplicas that is granted by a reply of several values lacks them too', async () => {
  const own = ownClient({ evalSha: async () => ['granted', GRANTED], wait: async () => 0 });
  const fair = new LockScript('acquire', 'return 1', true, (reply) => Array.isArray(reply));
  const [error] = await opened(plainClient(own)).run('key', fair).outcome();
  expect(error).toEqual(expect.any(NotReplicatedError));
  expect([replyOfNotReplicated(error), replyOfNotReplicated(CUT)]).toEqual([['granted', GRANTED], undefined]);
});

it('An acquisition with minReplicas is not sent by a client that is closed', async () => {
  const client = Object.assign(plainClient(ownClient()), { isOpen: false });
  expect(await opened(client).run().outcome()).toMatchObject([
    { name: 'ClientClosedError', message: 'The client is closed' },
  ]);
  expect(client.duplicate).not.toHaveBeenCalled();
});

it('An acquisition with minReplicas that was held back until its registry is closed makes no connection', async () => {
  const client = plainClient(ownClient());
  const { run, scripts } = opened(client);
  scripts.close();
  await run().outcome();
  expect(client.duplicate).not.toHaveBeenCalled();
});

it('An acquisition with minReplicas whose time is over when the connection is made is not sent', async () => {
  const { promise, resolve } = lateReply();
  const own = ownClient({ connect: () => promise });
  const { run } = opened(plainClient(own));
  const command = run();
  await time.advance(700);
  command.isOver = true;
  resolve(undefined);
  expect(await command.outcome()).toEqual([new NotSentError(700)]);
  expect(sentOver(own)).toBe(0);
});

it('A connection for minReplicas brings no script to the server whose caller has left', async () => {
  const own = ownClient();
  const { run } = opened(plainClient(own));
  own.evalSha.mockImplementationOnce(async () => {
    command.isOver = true;
    throw noScript();
  });
  const command = run();
  expect(await command.outcome()).toEqual([noScript()]);
  expect(own.eval).not.toHaveBeenCalled();
});

it('A connection for minReplicas that cannot be made is tried again by the next acquisition', async () => {
  // node-redis' client is closed when it could not connect.
  const failing = ownClient({ connect: () => Promise.reject(CUT), isOpen: false });
  const client = plainClient(failing, ownClient());
  client.duplicate.mockImplementationOnce(() => {
    throw CUT;
  });
  const { run, line } = opened(client);
  expect(await run().outcome()).toEqual([CUT]);
  expect(line.unansweredSince).toBeUndefined();
  expect(await run().outcome()).toEqual([CUT]);
  expect(await run().outcome()).toEqual([GRANTED]);
});

it('A connection for minReplicas that is closed while it connects does not say that the client of the caller is closed', async () => {
  // node-redis: `connect` resolves when `destroy` ends it.
  const own = ownClient({ connect: async () => (own.isOpen = false) });
  own.evalSha.mockRejectedValue(new ClientClosedError('The client is closed'));
  const { run } = opened(plainClient(own, ownClient()));
  expect(await run().outcome()).toEqual([new Error('The connection was closed while it was made')]);
  expect(await run().outcome()).toEqual([GRANTED]);
});

it('A connection for minReplicas that was closed is followed by another one', async () => {
  const owns = [ownClient(), ownClient()];
  const client = plainClient(...owns);
  const { run } = opened(client);
  await run().outcome();
  (owns[0] as Own).isOpen = false;
  const both = [run('a'), run('b')];
  for (const one of both) expect(await one.outcome()).toEqual([GRANTED]);
  expect([client.duplicate.mock.calls.length, sentOver(owns[1] as Own)]).toEqual([2, 2]);
});

it('A connection for minReplicas is lost with its socket, by a hand-off, or by what a sentinel client reports', async () => {
  const lost = new Error('The connection was lost before the replicas acknowledged the lock');
  const losses: ((own: Own) => unknown)[] = [
    (own) => (own.socketEpoch = 2),
    () => channel('node-redis:connection:handoff').publish({}),
  ];
  for (const loss of losses) {
    const own = ownClient();
    own.wait.mockImplementation(async () => {
      loss(own);
      return 1;
    });
    expect(await outcomeOver(own)).toEqual([lost]);
  }
  for (const event of ['error', 'client-error', 'topology-change']) {
    const own = ownClient({ socketEpoch: undefined });
    own.wait.mockImplementation(async () => Number(own.emit(event, CUT)));
    expect([event, await outcomeOver(own)]).toEqual([event, [lost]]);
  }
});

it('A connection for minReplicas of a sentinel client has one socket to the master, for all commands', async () => {
  const own = ownClient();
  const { duplicate } = plainClient(own);
  const client = Object.assign(new EventEmitter(), mockRedis(), { duplicate, getMasterNode: () => undefined });
  expect(await opened(client).run().outcome()).toEqual([GRANTED]);
  const pools = { masterPoolSize: 1, replicaPoolSize: 0, reserveClient: true };
  expect(duplicate.mock.calls).toEqual([[{ ...pools, passthroughClientErrorEvents: true }]]);
});

it('A connection for minReplicas that connects after it was closed is closed again', async () => {
  const own = ownClient();
  const { run, scripts } = opened(plainClient(own));
  await run().outcome();
  own.emit('ready');
  expect(own.destroy).not.toHaveBeenCalled();
  scripts.close();
  await time.advance(0);
  own.emit('ready');
  expect(own.destroy).toHaveBeenCalledTimes(2);
});

it('A connection for minReplicas is made again by itself only while it is of use', async () => {
  const destroyed = async (change: (client: ReturnType<typeof plainClient>, scripts: ReplicatedScripts) => unknown) => {
    const own = ownClient();
    const client = plainClient(own);
    const { run, scripts } = opened(client);
    await run().outcome();
    change(client, scripts);
    await time.advance(0);
    const before = own.destroy.mock.calls.length;
    own.emit('reconnecting');
    return [before, own.destroy.mock.calls.length - before];
  };
  expect(await destroyed(() => undefined)).toEqual([0, 0]);
  expect(await destroyed((client) => (client.isOpen = false))).toEqual([0, 1]);
  expect(await destroyed(() => channel('node-redis:connection:handoff').publish({}))).toEqual([0, 1]);
  expect(await destroyed((_, scripts) => scripts.close())).toEqual([1, 1]);
  // A sentinel client would stay connected.
  expect(await destroyed((client) => client.emit('end'))).toEqual([1, 0]);
});

it('Connections for minReplicas of several registries have one listener at their client, until they are closed', async () => {
  const owns = [ownClient(), ownClient(), ownClient()];
  const client = plainClient(...owns);
  const monitor = ConnectionMonitor.of(client);
  let listeners = 0;
  const { onClose } = monitor;
  jest.spyOn(monitor, 'onClose').mockImplementation((listener) => {
    const stop = onClose.call(monitor, listener);
    listeners++;
    return () => {
      stop();
      listeners--;
    };
  });
  const [one, other] = [opened(client), opened(client)];
  await one.run().outcome();
  await other.run().outcome();
  client.emit('end');
  await time.advance(0);
  expect([owns.map((own) => own.destroy.mock.calls.length), listeners]).toEqual([[1, 1, 0], 0]);
  await one.run().outcome();
  expect([client.listenerCount('end'), listeners]).toEqual([1, 1]);
  one.scripts.close();
  expect(listeners).toBe(0);
});

it('On a cluster, an acquisition goes to the master of its key, and to the node that this one redirects to, until the client is closed', async () => {
  const [a, b] = [ownClient(), ownClient()];
  const client = cluster(a, b);
  const { run } = opened(client);
  expect(await run().outcome()).toEqual([GRANTED]);
  expect([sentOver(a), sentOver(b)]).toEqual([1, 0]);
  a.evalSha.mockRejectedValueOnce(moved('MOVED', 'b:2'));
  expect(await run().outcome()).toEqual([GRANTED]);
  expect([sentOver(a), sentOver(b), b.sendCommand.mock.calls.length]).toEqual([2, 1, 0]);
  // The caller's client learns of the move by being redirected itself.
  expect(client.eval.mock.calls).toEqual([['return 1', { keys: ['key'] }]]);
  a.evalSha.mockRejectedValueOnce(moved('ASK', 'b:2'));
  b.sendCommand.mockRejectedValueOnce(CUT);
  expect(await run().outcome()).toEqual([GRANTED]);
  // ASKING is about one command: it does not go before an EVALSHA that may be answered by NOSCRIPT.
  expect([sentOver(b), b.eval.mock.calls.length, b.sendCommand.mock.calls]).toEqual([1, 1, [[['ASKING']]]]);
  const [asking, asked] = [b.sendCommand, b.eval].map(({ mock }) => mock.invocationCallOrder[0] as number);
  expect(asking).toBeLessThan(asked as number);
  ConnectionMonitor.of(client).onReconnect(() => undefined);
  client.emit('disconnect');
  await time.advance(0);
  expect([a.destroy.mock.calls.length, b.destroy.mock.calls.length]).toEqual([1, 1]);
});

it.each(['is redirected', 'learns which node has its key'])(
  'On a cluster, an acquisition that %s when its registry is closed makes no connection',
  async (how) => {
    const [a, b] = [ownClient(), ownClient()];
    const client = cluster(a, b);
    const { run, scripts } = opened(client);
    const { promise, resolve, reject } = lateReply();
    if (how === 'is redirected') a.evalSha.mockReturnValueOnce(promise);
    else client.eval.mockReturnValueOnce(promise);
    const acquisition = run(how === 'is redirected' ? 'key' : 'unserved');
    await time.advance(0);
    scripts.close();
    reject(moved('MOVED', 'b:2'));
    client.slots.fill({ master: client.masters[1] });
    resolve(1);
    expect(await acquisition.outcome()).toEqual([expect.any(ClientClosedError)]);
    expect(b.connect).not.toHaveBeenCalled();
  },
);

it('On a cluster, an acquisition fails that is redirected twice, to a node that is not known, or too late', async () => {
  const [a, b] = [ownClient(), ownClient()];
  const client = cluster(a, b);
  client.eval.mockRejectedValue(CUT);
  const { run } = opened(client);
  const [first, second] = [moved('MOVED', 'b:2'), moved('MOVED', 'a:1')];
  a.evalSha.mockRejectedValueOnce(first);
  b.evalSha.mockRejectedValueOnce(second);
  expect(await run().outcome()).toEqual([second]);
  const unknown = moved('MOVED', 'c:3');
  a.evalSha.mockRejectedValueOnce(unknown);
  expect(await run().outcome()).toEqual([unknown]);
  const sent = sentOver(b);
  a.evalSha.mockImplementationOnce(async () => {
    late.isOver = true;
    throw first;
  });
  const late = run();
  expect([await late.outcome(), sentOver(b) - sent]).toEqual([[first], 0]);
  a.evalSha.mockRejectedValueOnce(CUT);
  client.eval.mockClear();
  expect(await run().outcome()).toEqual([CUT]);
  const told = new Error('ERR MOVED 1234 b:2');
  a.evalSha.mockRejectedValueOnce(told);
  expect(await run().outcome()).toEqual([told]);
  // These were no redirections.
  expect(client.eval).not.toHaveBeenCalled();
});

it('On a cluster, an acquisition that is redirected says why the node that it is redirected to cannot be reached', async () => {
  const [a, b] = [ownClient(), ownClient({ connect: () => Promise.reject(CUT) })];
  a.evalSha.mockRejectedValueOnce(moved('MOVED', 'b:2'));
  expect(await opened(cluster(a, b)).run().outcome()).toEqual([CUT]);
});

it('On a cluster, an acquisition says so where no node has its slot, and a connection ends whose node is gone', async () => {
  const [a, b] = [ownClient(), ownClient()];
  const client = cluster(a, b);
  const { run } = opened(client);
  const message = `No node serves slot ${hashSlot('unserved')} of the cluster`;
  expect(await run('unserved').outcome()).toEqual([new Error(message)]);
  await run().outcome();
  a.emit('reconnecting');
  expect(a.destroy).not.toHaveBeenCalled();
  client.masters.shift();
  a.emit('reconnecting');
  expect(a.destroy).toHaveBeenCalledTimes(1);
});

it('Without a cluster, a redirection is an error like any other', async () => {
  const own = ownClient();
  const error = moved('MOVED', 'b:2');
  own.evalSha.mockRejectedValueOnce(error);
  expect(await outcomeOver(own)).toEqual([error]);
});

it('minReplicas needs a client that can make such a connection, and says so', () => {
  const needed =
    'Expected `client` to be a client, cluster or sentinel of node-redis, or one that fromIoredis made, and no pool';
  const duplicate = () => undefined;
  for (const parts of [{}, { duplicate }, { socketEpoch: 1 }, { duplicate, getMasterNode: 1 }]) {
    expect(() => opened(Object.assign(new EventEmitter(), mockRedis(), parts), 2)).toThrow(
      new TypeError(`${needed}, since minReplicas 2 needs a connection of its own, got an instance of EventEmitter`),
    );
  }
});
