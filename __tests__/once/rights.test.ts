import { expect, it } from '@jest/globals';
import { codeSpans, readPage, tableBelow } from '../readme/pages';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';

const PAGE = 'docs/operations.md';
const wordsIn = (text = '') => codeSpans(text).flatMap((span) => span.split(' '));

describePrivate('The rights of once', () => {
  const redis = PrivateRedis.install();

  it.each(['spin', 'pub-sub', 'redisson'] as const)(
    'The rights of once are in docs/operations.md, with %s',
    async (lockType) => {
      const [, ofType] =
        tableBelow(PAGE, 'ACL rules').find(([types = '']) => codeSpans(types).includes(lockType)) ?? [];
      const [, ofOnce] = /^- `once` and `forget` also need(.*)$/m.exec(readPage(PAGE)) ?? [];
      const username = `locks-${lockType}`;
      const rules = [...wordsIn(ofType), ...wordsIn(ofOnce).filter((word) => /^[~&+]/.test(word))];
      const all = ['on', '>secret', 'resetkeys', 'resetchannels', '-@all', '+hello', ...rules];
      await redis.admin.sendCommand(['ACL', 'SETUSER', username, ...all]);
      await redis.admin.sendCommand(['ACL', 'LOG', 'RESET']);
      const options = { registryKey: 'orders', lockType };
      const registries = await Promise.all(
        [1, 2].map(async () => createRegistry(await redis.connect({ username, password: 'secret' }), options).registry),
      );
      const results = registries.map((registry, i) => registry.once('order:42', () => `by ${i}`, { keepFor: 60_000 }));
      expect(new Set(await Promise.all(results)).size).toBe(1);
      expect(await registries[0]?.forget('order:42')).toBe(true);
      const denied = (await redis.admin.aclLog()).filter(({ object }) => !object.startsWith('client'));
      expect(denied.map(({ reason, object }) => `${reason} ${object}`)).toEqual([]);
    },
  );
});
