import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisAddress } from './redis';

/** What happens to the bytes of one direction. Changes apply to chunks that arrive later. */
export class Direction {
  /** ms of delay for every chunk, in order. */
  delay = 0;
  /** A black hole: drops everything, also the end of the connection. */
  swallow = false;
  /** Holds everything back until this is false again. */
  hold = false;
  /** Bytes received, delivered or not. */
  bytes = 0;
}

interface Loss {
  readonly what: 'request' | 'reply';
  readonly match: string;
  readonly done: () => void;
}

/** A request that contains the command SUBSCRIBE or SSUBSCRIBE. node-redis writes the first in lower case. */
const SUBSCRIBES = /\r\ns?subscribe\r\n/i;

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** A SUBSCRIBE of any kind went over it. */
  isSubscribed: boolean;
}

/** Node would answer the end of one direction with the end of the other, and fails to reset a socket that is doing that. */
const HALF_OPEN = { allowHalfOpen: true };

/** A TCP proxy on loopback in front of a Redis that simulates network faults. Clients connect to `address`. */
export class FaultyProxy {
  readonly requests = new Direction();
  readonly replies = new Direction();
  /** Connections accepted so far. */
  connections = 0;
  /** A black hole for connections that have subscribed. */
  isDeaf = false;
  /** For connections to come. */
  target: RedisAddress;
  readonly #links = new Set<Link>();
  readonly #listener: Server;
  #losses: Loss[] = [];
  #port = 0;

  static async start(target: RedisAddress): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(target);
    await proxy.accept();
    return proxy;
  }

  private constructor(target: RedisAddress) {
    this.target = target;
    this.#listener = createServer(HALF_OPEN, (client) => this.#link(client));
  }

  get address(): { host: string; port: number } {
    return { host: '127.0.0.1', port: this.#port };
  }

  get open(): number {
    return this.#links.size;
  }

  /** ms of delay for every chunk in both directions. */
  set delay(ms: number) {
    this.requests.delay = ms;
    this.replies.delay = ms;
  }

  /** Drops everything in both directions. */
  set blackHole(on: boolean) {
    this.requests.swallow = on;
    this.replies.swallow = on;
  }

  /** Refuses new connections, as a closed port does. Open connections stay open. */
  refuse(): void {
    // `close` calls back after all connections have ended; the port is closed at once.
    if (this.#listener.listening) this.#listener.close();
  }

  /** Accepts connections again, on the same port. */
  async accept(): Promise<void> {
    this.#listener.listen(this.#port, '127.0.0.1');
    await once(this.#listener, 'listening');
    this.#port = (this.#listener.address() as AddressInfo).port;
  }

  /** Resets all open connections. */
  reset(): void {
    for (const link of this.#links) this.#reset(link);
  }

  /** Connections that have subscribed are a black hole from now on, until `isDeaf` is false. `isGone`: for the server they have ended. */
  deafen(isGone: boolean): void {
    this.isDeaf = true;
    for (const { server, isSubscribed } of this.#links) if (isGone && isSubscribed) server.destroy();
  }

  /** Resets the connections that have subscribed. */
  resetSubscribed(): void {
    for (const link of this.#links) if (link.isSubscribed) this.#reset(link);
  }

  /**
   * Ends all connections for the clients, as if their hosts were gone. What they had sent is still delivered, after its
   * delay; then the server sees the end of the connection.
   */
  hangUp(): void {
    for (const { client } of this.#links) client.resetAndDestroy();
  }

  /** Drops the next request that contains `match` and resets its connection. Resolves after the reset. */
  loseRequest(match = ''): Promise<void> {
    return this.#lose('request', match);
  }

  /** Lets the next request that contains `match` be executed and resets the connection in place of its reply. */
  loseReply(match = ''): Promise<void> {
    return this.#lose('reply', match);
  }

  /** Pushes `MOVING` to all clients, as Redis Enterprise does when it is about to serve them at another address. */
  moveTo({ host, port }: { host: string; port: number }): void {
    const address = `${host}:${port}`;
    const push = `>4\r\n+MOVING\r\n:1\r\n:15\r\n$${address.length}\r\n${address}\r\n`;
    for (const { client } of this.#links) client.write(push);
  }

  stop(): void {
    this.refuse();
    this.reset();
  }

  #lose(what: Loss['what'], match: string): Promise<void> {
    return new Promise((done) => this.#losses.push({ what, match, done }));
  }

  #link(client: Socket): void {
    this.connections += 1;
    const server = connect({ ...this.target, ...HALF_OPEN });
    const link: Link = { client, server, isSubscribed: false };
    this.#links.add(link);
    let losing: Loss | undefined;
    this.#carry(link, client, server, this.requests, (chunk) => {
      link.isSubscribed ||= SUBSCRIBES.test(chunk.toString('latin1'));
      const loss = losing ? undefined : this.#losses.find(({ match }) => chunk.includes(match));
      if (!loss) return true;
      this.#losses = this.#losses.filter((other) => other !== loss);
      losing = loss;
      if (loss.what === 'reply') return true;
      this.#reset(link);
      loss.done();
      return false;
    });
    this.#carry(link, server, client, this.replies, () => {
      if (!losing) return true;
      this.#reset(link);
      losing.done();
      return false;
    });
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', () => {}); // 'close' follows
      socket.on('end', () => socket.destroy());
      socket.on('close', () => {
        if (client.destroyed && server.destroyed) this.#links.delete(link);
      });
    }
  }

  /** Chunks wait in one queue for each connection and direction, so that no delay changes their order. */
  #carry(link: Link, from: Socket, to: Socket, direction: Direction, mayPass: (chunk: Buffer) => boolean): void {
    const isLost = () => direction.swallow || (this.isDeaf && link.isSubscribed);
    let queue = Promise.resolve();
    const enqueue = (deliver: () => Promise<void> | void) => {
      const due = performance.now() + direction.delay;
      queue = queue.then(async () => {
        const early = due - performance.now();
        if (early > 0) await sleep(early);
        while (direction.hold && !to.destroyed) await sleep(1);
        await deliver();
      });
    };
    from.on('data', (chunk) => {
      direction.bytes += chunk.length;
      if (!mayPass(chunk) || isLost()) return;
      enqueue(() => void to.write(chunk));
    });
    from.on('close', () => {
      if (!isLost()) enqueue(() => void to.destroy());
    });
  }

  #reset({ client, server }: Link): void {
    client.resetAndDestroy();
    server.destroy();
  }
}
