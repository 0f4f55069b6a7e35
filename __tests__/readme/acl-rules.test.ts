import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { LockType } from '../../lib';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { Contention } from './contention';
import { codeSpans, tableBelow } from './pages';

const RULES = tableBelow('docs/operations.md', 'ACL rules').map((cells) => {
  const [lockType, rules = '', withFencing = ''] = cells.map((cell) => codeSpans(cell)[0]);
  return { lockType: lockType as LockType, rules: rules.split(' '), withFencing: withFencing.split(' ') };
});

const CASES = RULES.flatMap(({ lockType, rules, withFencing }) => [
  { lockType, name: lockType, rules, fencing: false },
  { lockType, name: `${lockType} with fencing`, rules: [...rules, ...withFencing], fencing: true },
]);

/** What node-redis needs to connect. It also sends its name by CLIENT, and goes on when that is denied. */
const OF_NODE_REDIS = ['+hello'];

describePrivate('The ACL rules of docs/operations.md', () => {
  const redis = PrivateRedis.install();
  let contention: Contention | undefined;

  beforeEach(async () => {
    await redis.admin.flushAll();
    // Unknown scripts are sent by EVAL.
    await redis.admin.scriptFlush();
    await redis.admin.sendCommand(['ACL', 'LOG', 'RESET']);
    await redis.admin.sendCommand(['CONFIG', 'RESETSTAT']);
  });

  afterEach(async () => {
    await contention?.close();
  });

  async function callsOf(rule: string): Promise<number> {
    const stats = await redis.admin.info('commandstats');
    return Number(new RegExp(`^cmdstat_${rule.slice(1).replace('|', '\\|')}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  }

  it.each(CASES)('for $name let a user do everything, and nothing that is not needed', async (aCase) => {
    const { lockType, name, rules, fencing } = aCase;
    const username = name.replaceAll(' ', '-');
    const all = ['on', '>secret', 'resetkeys', 'resetchannels', '-@all', ...OF_NODE_REDIS, ...rules];
    await redis.admin.sendCommand(['ACL', 'SETUSER', username, ...all]);

    contention = new Contention(redis, lockType, fencing, { username, password: 'secret' });
    await contention.run();

    expect(contention.warnings).toEqual([]);
    const denied = (await redis.admin.aclLog()).filter(({ object }) => !object.startsWith('client'));
    expect(denied.map(({ reason, object }) => `${reason} ${object}`)).toEqual([]);
    const commands = rules.filter((rule) => rule.startsWith('+'));
    const unused = [];
    for (const command of commands) if ((await callsOf(command)) === 0) unused.push(command);
    expect(unused).toEqual([]);
  });

  it('are given for every lock type', () => {
    const types = new Set(tableBelow('README.md', 'Lock types').flatMap(([cell = '']) => codeSpans(cell)));
    expect(new Set(RULES.map(({ lockType }) => `'${lockType}'`))).toEqual(types);
  });
});
