import { rm } from 'node:fs/promises';
import { connect, type NetConnectOpts } from 'node:net';
import { beforeAll, expect, it } from '@jest/globals';
import { answerIn, isInScript, type ServerErrorName } from '../../lib/redis/server-errors';
import { startCluster } from '../support/cluster';
import type { Node } from '../support/node';
import { describePrivate, installed, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';

/** What a command is refused with: what the server of this run writes. */
async function textOf(command: Promise<unknown>): Promise<string> {
  const [outcome] = await Promise.allSettled([command]);
  if (outcome.status === 'rejected') return (outcome.reason as Error).message;
  throw new Error(`It was not refused: ${outcome.value}`);
}

/** The same by the command itself, and by a script that calls it. */
function expectEach(name: ServerErrorName, command: string, inScript: string, inScriptName = name): void {
  expect({ [command]: answerIn(command)?.name, [inScript]: answerIn(inScript)?.name }).toEqual({
    [command]: name,
    [inScript]: inScriptName,
  });
  expect([isInScript(command), isInScript(inScript)]).toEqual([false, true]);
}

async function find(fits: (key: string) => Promise<boolean>): Promise<string> {
  for (let i = 0; ; i++) if (await fits(`key-${i}`)) return `key-${i}`;
}

const call = (...words: string[]) => `return redis.call(${words.map((word) => `'${word}'`).join()})`;

describePrivate('the texts of this server', () => {
  const redis = PrivateRedis.install('--lua-time-limit', '50');
  let admin: TestClient;
  let few: TestClient;
  const send = (client: TestClient, ...words: string[]) => textOf(client.sendCommand(words));
  const evaluated = (client: TestClient, script: string) => textOf(client.eval(script));

  beforeAll(async () => {
    admin = redis.admin;
    await admin.set('text', 'value');
    await admin.sendCommand(['ACL', 'SETUSER', 'few', 'on', '>secret', '~own*', '+@all', '-hget']);
    few = await redis.connect({ username: 'few', password: 'secret' });
  });

  it('of a script that it does not know, a command that it does not have, and a key of another type are known', async () => {
    expect(answerIn(await send(admin, 'EVALSHA', 'f'.repeat(40), '0'))?.name).toBe('noScript');
    expectEach('unknownCommand', await send(admin, 'NOSUCH', 'x'), await evaluated(admin, call('NOSUCH')), 'other');
    const mistaken = call('HGET', 'text', 'field');
    expectEach('wrongType', await send(admin, 'HGET', 'text', 'field'), await evaluated(admin, mistaken));
    // As the library's scripts pass it on.
    const passedOn = await textOf(admin.eval(mistaken.replace('call', 'pcall')));
    expect(answerIn(passedOn)?.name).toBe('wrongType');
  });

  it('of a right that a user lacks, to a command, a key, or in a script, are known', async () => {
    const [command, key] = [call('HGET', 'own', 'field'), call('GET', 'text')];
    expectEach('noRight', await send(few, 'HGET', 'own', 'field'), await evaluated(few, command), 'noRightInScript');
    expectEach('noRightToScripts', await send(few, 'GET', 'text'), await evaluated(few, key), 'noRightInScript');
    for (const script of [command, key]) {
      const passedOn = await evaluated(few, script.replace('call', 'pcall'));
      expect([passedOn, answerIn(passedOn)?.name, isInScript(passedOn)]).toEqual([passedOn, 'noRightInScript', true]);
    }
    await admin.sendCommand(['ACL', 'SETUSER', 'few', '-eval', '-evalsha']);
    for (const text of [await evaluated(few, 'return 1'), await send(few, 'EVALSHA', 'f'.repeat(40), '0')])
      expect([text, answerIn(text)?.name]).toEqual([text, 'noRightToScripts']);
  });

  it('of a server that cannot write now are known, also in a script', async () => {
    const set = call('SET', 'text', 'other');
    const refused = async (name: ServerErrorName, begin: () => Promise<unknown>, end: () => Promise<unknown>) => {
      await begin();
      expectEach(name, await send(admin, 'SET', 'text', 'other'), await evaluated(admin, set));
      await end();
    };
    const configured = (name: string, on: string, off: string) =>
      [() => admin.configSet(name, on), () => admin.configSet(name, off)] as const;
    await refused('outOfMemory', ...configured('maxmemory', '1', '0'));
    await refused('noReplicas', ...configured('min-replicas-to-write', '1', '0'));
    const follow = () => admin.replicaOf('127.0.0.1', 1);
    const lead = () => admin.sendCommand(['REPLICAOF', 'NO', 'ONE']);
    await refused('readOnly', follow, lead);
  });

  it('of a server that cannot save are known, also in a script', async () => {
    const other = await PrivateRedis.start();
    const client = await other.connect();
    await rm(other.dir, { recursive: true });
    await client.configSet('save', '3600 1');
    await client.bgSave();
    await until(async () => (await client.info('persistence')).includes('rdb_last_bgsave_status:err'));
    expectEach(
      'misconf',
      await send(client, 'SET', 'text', 'other'),
      await evaluated(client, call('SET', 'text', 'other')),
    );
  });

  it('of a replica, also to WAIT, are known', async () => {
    const waiting = await redis.connect();
    const unblocked = send(waiting, 'WAIT', '1', '0');
    await until(async () => /blocked_clients:1/.test(await admin.info('clients')));
    await admin.replicaOf('127.0.0.1', 1);
    const texts = { unblocked: await unblocked, waitOnReplica: await send(admin, 'WAIT', '1', '1') };
    await admin.configSet('replica-serve-stale-data', 'no');
    const masterDown = await send(admin, 'GET', 'text');
    await admin.sendCommand(['REPLICAOF', 'NO', 'ONE']);
    await admin.configSet('replica-serve-stale-data', 'yes');
    for (const [name, text] of Object.entries({ ...texts, masterDown }))
      expect([text, answerIn(text)?.name]).toEqual([text, name]);
  });

  it('of a script that runs for too long are known', async () => {
    const busy = await redis.connect();
    const killed = textOf(busy.eval('while true do end'));
    await until(async () => (await admin.ping().catch(String)).includes('BUSY'));
    expect(answerIn(await send(admin, 'GET', 'text'))?.name).toBe('busy');
    await admin.sendCommand(['SCRIPT', 'KILL']);
    expect(answerIn(await killed)?.name).toBe('other');
  });

  it('of a new connection, which has no password or is one too many, are known', async () => {
    const first = (command?: string): Promise<string> =>
      new Promise((resolve) => {
        const socket = connect(redis.address as NetConnectOpts);
        let text = '';
        socket.on('data', (part) => (text += part));
        socket.on('close', () => resolve(text.trim()));
        // One too many is answered, and closed, before it says anything.
        if (command !== undefined) socket.end(command);
      });
    await admin.configSet('requirepass', 'secret');
    const noAuth = await first('GET text\r\n');
    const noAuthForLong = await first('*11\r\n');
    await admin.configSet('requirepass', '');
    await admin.configSet('maxclients', '1');
    const tooMany = await first();
    await admin.configSet('maxclients', '1000');
    expect([noAuth, noAuthForLong, tooMany].map((text) => [text, answerIn(text)?.name])).toEqual([
      [noAuth, 'noAuth'],
      [noAuthForLong, 'noAuthForLong'],
      [tooMany, 'tooManyClients'],
    ]);
  });
});

describePrivate('the texts of a node of this server', () => {
  const cluster = installed(() => startCluster());

  it('about slots that are elsewhere, not served, or on the move are known', async () => {
    const { slot, master: source } = await cluster().ownersOf('{tag}');
    const target = cluster().masters.find((node) => node !== source) as Node;
    const ids = await Promise.all([source, target].map(async (node) => String(await node.send('CLUSTER', 'MYID'))));
    const [sourceId, targetId] = ids as [string, string];
    const [here, there] = ['{tag}here', '{tag}there'];
    await source.send('SET', here, 'value');
    const refusedBy = (node: Node, ...words: string[]) => textOf(node.send(...words));
    const texts: Partial<Record<ServerErrorName, string[]>> = {
      crossSlot: [await refusedBy(source, 'EVAL', 'return 1', '2', here, '{other}')],
      moved: [await refusedBy(target, 'GET', here), await refusedBy(target, 'EVAL', 'return 1', '1', here)],
    };
    await target.send('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', sourceId);
    await source.send('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', targetId);
    texts.ask = [await refusedBy(source, 'GET', there)];
    texts.onTheMove = [
      await refusedBy(source, 'EVAL', "redis.call('DEL', KEYS[1]) return redis.call('GET', KEYS[1])", '1', here),
    ];
    // What is asked for has only come in part.
    const [asking, tryAgain] = await Promise.allSettled([
      target.send('ASKING'),
      refusedBy(target, 'EVAL', 'return 1', '2', here, there),
    ]);
    expect(asking.status).toBe('fulfilled');
    texts.tryAgain = [(tryAgain as PromiseFulfilledResult<string>).value];
    await source.send('CLUSTER', 'SETSLOT', String(slot), 'STABLE');
    await source.send('CLUSTER', 'DELSLOTS', String(slot));
    texts.clusterDown = [await refusedBy(source, 'EVAL', 'return 1', '1', here)];
    await until(async () => String(await source.send('CLUSTER', 'INFO')).includes('cluster_state:fail'));
    // Another key, which a node of the rest has.
    const name = await find(async (key) => (await cluster().ownersOf(key)).master === source);
    texts.clusterDownInScript = [await refusedBy(source, 'EVAL', `return redis.call('GET', '${name}')`, '0')];
    const known = Object.entries(texts).flatMap(([name, written]) => written.map((text) => [text, name] as const));
    expect(known.map(([text]) => [text, answerIn(text)?.name])).toEqual(known);
  });
});
