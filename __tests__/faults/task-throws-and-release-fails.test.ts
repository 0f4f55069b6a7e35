import { expect, it } from '@jest/globals';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';

describePrivate('a task throws, and then its release fails', () => {
  async function open() {
    const redis = await PrivateRedis.start();
    const proxy = await redis.proxy();
    const locks = createRegistry(await connectTo(proxy.address), { commandTimeout: 300 });
    return { ...locks, proxy, admin: await redis.connect() };
  }

  const failure = new Error('out of stock');

  it('P7: run: settles as the task did, with its error or its result, and warns of the error of the release', async () => {
    for (const task of [() => Promise.reject(failure), () => Promise.resolve('sold')]) {
      const { registry, warnings, proxy } = await open();
      const running = registry.run('key', () => {
        proxy.blackHole = true;
        return task();
      });
      expect(await running.catch((error: unknown) => error)).toBe(await task().catch((error: unknown) => error));
      expect(warnings).toMatchObject([{ code: 'RELEASE_FAILED', key: 'key', cause: { name: 'LockReleaseError' } }]);
    }
  });

  it('P7: await using: throws the error of the body, also after a loss or a failed release', async () => {
    const { registry, warnings, proxy, admin, nameOf } = await open();
    async function body(prepare: () => unknown): Promise<void> {
      await using _lease = await registry.obtain('key').lock();
      await prepare();
      throw failure;
    }
    await expect(body(() => admin.del(nameOf('key')))).rejects.toBe(failure);
    expect(warnings).toEqual([]);
    await expect(
      body(() => {
        proxy.blackHole = true;
      }),
    ).rejects.toBe(failure);
    expect(warnings).toMatchObject([{ code: 'RELEASE_FAILED' }]);
  });
});
