import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  type FactoryProvider,
  Module,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { createClient } from 'redis';
import { LockRegistry, RedisLockRegistry, type RedisLockRegistryOptions } from 'redis-lock-registry';

export interface LocksOptions extends RedisLockRegistryOptions {
  readonly url: string;
}

/** As in Nest's own modules: `{ inject: [ConfigService], useFactory: (config: ConfigService) => … }`. */
type AsyncLocksOptions = Pick<FactoryProvider<LocksOptions>, 'inject' | 'useFactory'>;

const OPTIONS = Symbol('options of the locks');

type Client = Awaited<ReturnType<typeof connect>>;

/** A test that overrides `LockRegistry` has no client, and needs no Redis. */
const clients = new WeakMap<LockRegistry, Client>();

function connect(url: string) {
  return createClient({ url }).on('error', console.error).connect();
}

/** Provides `LockRegistry`, an abstract class that is its own token: `constructor(private readonly locks: LockRegistry)`. */
@Module({})
export class LocksModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(private readonly registry: LockRegistry) {}

  static forRootAsync({ inject = [], useFactory }: AsyncLocksOptions): DynamicModule {
    return {
      module: LocksModule,
      global: true,
      providers: [
        { provide: OPTIONS, inject, useFactory },
        {
          provide: LockRegistry,
          inject: [OPTIONS],
          useFactory: async ({ url, ...options }: LocksOptions) => {
            const client = await connect(url);
            const registry = new RedisLockRegistry(client, options);
            clients.set(registry, client);
            return registry;
          },
        },
      ],
      exports: [LockRegistry],
    };
  }

  /** Before the server has drained: a request that waits for a lock would hold that up. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.registry.close({ timeout: 5_000 });
  }

  /** Requests may use the client until the server has drained. */
  onApplicationShutdown(): void {
    clients.get(this.registry)?.destroy();
  }
}
