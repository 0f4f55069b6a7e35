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

  it('P7: run: rejects with the error of the task, and warns of the error of the release', async () => {
    const { registry, warnings, proxy } = await open();
    const failure = new Error('out of stock');
    const running = registry.run('key', () => {
      proxy.blackHole = true;
      throw failure;
    });
    await expect(running).rejects.toBe(failure);
    expect(warnings).toMatchObject([{ code: 'RELEASE_FAILED', key: 'key', cause: { name: 'LockReleaseError' } }]);
  });

  it('P7: run: resolves to the result of the task when only the release failed', async () => {
    const { registry, warnings, proxy } = await open();
    const running = registry.run('key', () => {
      proxy.blackHole = true;
      return 'sold';
    });
    expect(await running).toBe('sold');
    expect(warnings).toMatchObject([{ code: 'RELEASE_FAILED', key: 'key' }]);
  });

  it('P7: await using: throws the error of the body, also after a loss or a failed release', async () => {
    const { registry, warnings, proxy, admin, nameOf } = await open();
    const failure = new Error('out of stock');
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
