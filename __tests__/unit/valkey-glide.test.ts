import { expect, it } from '@jest/globals';
import { LockInspectionError, RedisLockRegistry } from '../../lib';
import { fromGlide, type Glide } from '../../lib/valkey-glide';

class ClosingError extends Error {}

it('A list over a closed client of valkey-glide says so, as every other call', async () => {
  const client: Glide & { invokeScript(): void } = {
    customCommand: () => Promise.reject(new ClosingError('Unable to execute requests; the client is closed.')),
    invokeScript: () => undefined,
    close: () => undefined,
  };
  const registry = new RedisLockRegistry(fromGlide(client), { registryKey: 'orders' });
  const error = await registry
    .list()
    .next()
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockInspectionError);
  expect(error).toMatchObject({ cause: { name: 'ClientClosedError' } });
  await registry.close();
});
