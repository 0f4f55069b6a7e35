import { afterAll, beforeAll } from '@jest/globals';
import type { RedisLockRegistryOptions } from '../../../lib';
import { FaultyProxy } from '../../../support/proxy';
import { connectToNode, Node } from '../../support/node';
import type { TestClient } from '../../support/redis';
import { createRegistry, type TestRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

/** A master and its replicas. What the master sends to them goes through a proxy, which can hold it up. */
export class ReplicaFixture {
  readonly #clients: TestClient[] = [];
  #link: FaultyProxy | undefined;
  #nodes: Node[] = [];

  /** Registers the hooks that start and stop the servers. */
  static install(replicas: number): ReplicaFixture {
    const fixture = new ReplicaFixture();
    beforeAll(() => fixture.start(replicas));
    afterAll(() => fixture.stop());
    return fixture;
  }

  async start(replicas: number): Promise<void> {
    const master = await Node.start('--repl-diskless-sync-delay', '0');
    this.#link = await FaultyProxy.start(master.address);
    const { host, port } = this.#link.address as { host: string; port: number };
    this.#nodes = [master];
    for (let i = 0; i < replicas; i++) this.#nodes.push(await Node.start('--replicaof', host, String(port)));
    await this.follow();
  }

  get master(): Node {
    return this.#nodes[0] as Node;
  }

  get replica(): Node {
    return this.#nodes[1] as Node;
  }

  /** From now on the replicas receive nothing, though they are connected. */
  holdUp(): void {
    (this.#link as FaultyProxy).replies.hold = true;
  }

  /** From now on the replicas receive everything `ms` later. */
  lagBy(ms: number): void {
    (this.#link as FaultyProxy).replies.delay = ms;
  }

  /** The replicas receive everything again. Resolves when they are up to date. */
  async follow(): Promise<void> {
    (this.#link as FaultyProxy).replies.hold = false;
    this.lagBy(0);
    const replicas = this.#nodes.length - 1;
    await until(async () => Number(await this.master.send('WAIT', String(replicas), '100')) === replicas, {
      within: 20_000,
    });
  }

  async connect(node = this.master): Promise<TestClient> {
    const client = await connectToNode(node.address);
    this.#clients.push(client);
    return client;
  }

  /** A registry of a client of its own. */
  async registry(options: Partial<RedisLockRegistryOptions>, node = this.master): Promise<TestRegistry> {
    return createRegistry(await this.connect(node), { expireAfter: 120_000, ...options });
  }

  async stop(): Promise<void> {
    this.#link?.stop();
    for (const client of this.#clients) client.destroy();
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }
}
