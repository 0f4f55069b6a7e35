import { expect, it } from '@jest/globals';
import { startMonitor } from './monitor';
import { createRealClient, describeReal, uniqueKey } from './redis';

describeReal('startMonitor', () => {
  it('records all commands, also in scripts, with their exact arguments', async () => {
    const client = await createRealClient();
    const monitor = await startMonitor();
    const key = uniqueKey();
    await client.set(key, 'a "quoted"\\\r\n\u0001 value');
    await client.eval("return redis.call('get', KEYS[1])", { keys: [key] });
    await monitor.settle();
    const ours = monitor.commands.filter(({ args }) => args.includes(key));
    expect(ours.map(({ name }) => name)).toEqual(['SET', 'EVAL', 'GET']);
    expect(ours[0]?.args).toEqual([key, 'a "quoted"\\\r\n\u0001 value']);
    expect(ours[2]?.source).toBe('lua');
    expect(ours[0]?.source).not.toBe('lua');
    monitor.clear();
    expect(monitor.commands).toEqual([]);
    monitor.stop();
  });
});
