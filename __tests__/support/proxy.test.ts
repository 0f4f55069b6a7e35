import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { FaultyProxy } from '../../support/proxy';
import { machineDelay } from './machine-delay';
import { addressOf, createRealClient, describeReal, realRedis, type TestClient, uniqueKey } from './redis';
import { until } from './until';

describeReal('FaultyProxy', () => {
  let proxy: FaultyProxy;
  let client: TestClient;
  let direct: TestClient;

  beforeEach(async () => {
    proxy = await FaultyProxy.start(addressOf(realRedis));
    client = await createRealClient({ socket: { ...proxy.address, reconnectStrategy: () => 5 } });
    direct = await createRealClient();
  });

  afterEach(() => {
    client.destroy();
    proxy.stop();
  });

  it('delays one direction and keeps the order', async () => {
    const key = uniqueKey();
    proxy.replies.delay = 200;
    const before = proxy.replies.bytes;
    const sent = performance.now();
    const first = client.incr(key);
    await until(async () => (await direct.get(key)) === '1');
    expect(performance.now() - sent).toBeLessThan(200 + machineDelay());
    await until(() => proxy.replies.bytes > before); // the delay of a reply is fixed when it is read
    proxy.replies.delay = 0;
    const second = client.incr(key);
    expect(await Promise.race([second.then(() => 'second'), first.then(() => 'first')])).toBe('first');
    expect(performance.now() - sent).toBeGreaterThanOrEqual(199);
    expect([await first, await second]).toEqual([1, 2]);
  });

  it('holds replies until `hold` is false again', async () => {
    const key = uniqueKey();
    let settled = false;
    proxy.replies.hold = true;
    const reply = client.incr(key).finally(() => {
      settled = true;
    });
    await until(async () => (await direct.get(key)) === '1');
    expect(settled).toBe(false);
    proxy.replies.hold = false;
    expect(await reply).toBe(1);
  });

  it('loses a request: a reset, and no execution', async () => {
    const key = uniqueKey();
    const lost = proxy.loseRequest(key);
    await expect(client.incr(key)).rejects.toThrow();
    await lost;
    expect(await direct.get(key)).toBeNull();
    expect(await client.incr(key)).toBe(1);
    expect(proxy.connections).toBe(2);
  });

  it('loses a reply: an execution, then a reset', async () => {
    const key = uniqueKey();
    const lost = proxy.loseReply(key);
    await client.ping();
    await expect(client.incr(key)).rejects.toThrow();
    await lost;
    expect(await direct.get(key)).toBe('1');
  });

  it('delivers late what a client had sent whose connection has gone', async () => {
    const key = uniqueKey();
    proxy.requests.delay = 200;
    const before = proxy.requests.bytes;
    const gone = expect(client.incr(key)).rejects.toThrow();
    await until(() => proxy.requests.bytes > before);
    proxy.requests.delay = 0;
    proxy.hangUp();
    await gone;
    expect(await direct.exists(key)).toBe(0);
    expect(await client.ping()).toBe('PONG'); // over another connection, and before it
    await until(async () => (await direct.get(key)) === '1');
  });

  it('swallows everything as a black hole, until a reset', async () => {
    const key = uniqueKey();
    proxy.blackHole = true;
    const before = proxy.requests.bytes;
    const outcome = expect(client.incr(key)).rejects.toThrow();
    await until(() => proxy.requests.bytes > before);
    proxy.blackHole = false;
    proxy.reset();
    await outcome;
    expect(await direct.exists(key)).toBe(0);
  });

  it('can write single bytes', async () => {
    proxy.requests.bytewise = true;
    proxy.replies.bytewise = true;
    expect(await client.echo('a longer text with \u00e4\u00f6\u00fc')).toBe('a longer text with \u00e4\u00f6\u00fc');
  });

  it('refuses connections, and accepts them again on the same port', async () => {
    const { port } = proxy.address;
    proxy.refuse();
    expect(await client.ping()).toBe('PONG');
    proxy.reset();
    await expect(createRealClient({ socket: { ...proxy.address, reconnectStrategy: false } })).rejects.toThrow(
      'ECONNREFUSED',
    );
    await proxy.accept();
    expect(proxy.address.port).toBe(port);
    expect(await client.ping()).toBe('PONG');
  });
});
