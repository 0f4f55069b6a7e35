import { afterEach, beforeEach, it } from '@jest/globals';
import { connectToNode, Node } from '../support/node';
import { describePrivate } from '../support/private-redis';
import { FaultyProxy } from '../support/proxy';
import type { TestClient } from '../support/redis';
import { measure } from './measure';

/** ms */
const PROMPTLY = 500;
const OUTAGE = 2_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describePrivate('one server', () => {
  let node: Node;
  let proxies: FaultyProxy[];
  let clients: TestClient[];

  async function open(...args: string[]): Promise<void> {
    node = await Node.start(...args);
    proxies = await Promise.all([FaultyProxy.start(node.address), FaultyProxy.start(node.address)]);
    clients = await Promise.all(proxies.map(({ address }) => connectToNode(address as { host: string; port: number })));
  }

  beforeEach(() => {
    proxies = [];
    clients = [];
  });

  afterEach(async () => {
    for (const client of clients) client.destroy();
    for (const proxy of proxies) proxy.stop();
    await node.stop();
  });

  const run = (fault: string, double: number, make: () => Promise<void>) =>
    measure(`one server: ${fault}`, clients, 'a', { double }, make, [node]);

  it('is killed and restarted with its data', async () => {
    await open('--appendonly', 'yes', '--appendfsync', 'always');
    await run('restart with data', 0, async () => {
      await node.kill();
      await node.restart();
    });
  });

  it('is killed and restarted without data', async () => {
    await open();
    await run('restart without data', PROMPTLY, async () => {
      await node.kill();
      await node.restart();
    });
  });

  it.each(['requests', 'replies'] as const)('is cut off from one process: %s are lost', async (direction) => {
    await open();
    await run(`partition, ${direction} lost`, 0, async () => {
      const [proxy] = proxies as [FaultyProxy];
      proxy[direction].swallow = true;
      await pause(OUTAGE);
      proxy[direction].swallow = false;
      proxy.reset();
    });
  });

  it('takes rights away and gives them back', async () => {
    await open();
    await run('ACL change', 0, async () => {
      await node.send('ACL', 'SETUSER', 'default', '-evalsha', '-eval');
      await pause(OUTAGE);
      await node.send('ACL', 'SETUSER', 'default', '+evalsha', '+eval');
    });
  });

  it('has another password for a while', async () => {
    await open();
    await run('password change', 0, async () => {
      const admin = await node.admin();
      await admin.sendCommand(['CONFIG', 'SET', 'requirepass', 'other']);
      for (const proxy of proxies) proxy.reset();
      await pause(OUTAGE);
      await admin.sendCommand(['CONFIG', 'SET', 'requirepass', '']);
    });
  });

  it('closes subscriptions again and again', async () => {
    await open();
    await run('subscriptions killed', 0, async () => {
      for (let i = 0; i < 5; i++) {
        await node.send('CLIENT', 'KILL', 'TYPE', 'PUBSUB');
        await pause(OUTAGE / 5);
      }
    });
  });

  it('is frozen for a while', async () => {
    await open();
    await run('frozen for 2 s', 0, async () => {
      node.freeze();
      await pause(OUTAGE);
      node.thaw();
    });
  });
});
