import { type BeforeApplicationShutdown, type DynamicModule, Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import { createClient } from 'redis';
import { LockRegistry, RedisLockRegistry, type RedisLockRegistryOptions } from 'redis-lock-registry';

export interface LocksOptions extends RedisLockRegistryOptions {
  readonly url: string;
}

interface AsyncLocksOptions {
  readonly inject?: never[];
  readonly useFactory: (...dependencies: never[]) => LocksOptions | Promise<LocksOptions>;
}

const OPTIONS = Symbol('options of the locks');
const CLIENT = Symbol('client of the locks');

type Client = Awaited<ReturnType<typeof connect>>;

function connect(url: string) {
  return createClient({ url }).on('error', console.error).connect();
}

/** Provides `LockRegistry`, an abstract class that is its own token: `constructor(private readonly locks: LockRegistry)`. */
@Module({})
export class LocksModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(
    @Inject(CLIENT) private readonly client: Client,
    private readonly registry: LockRegistry,
  ) {}

  static forRootAsync({ inject = [], useFactory }: AsyncLocksOptions): DynamicModule {
    return {
      module: LocksModule,
      global: true,
      providers: [
        { provide: OPTIONS, inject, useFactory },
        { provide: CLIENT, inject: [OPTIONS], useFactory: ({ url }: LocksOptions) => connect(url) },
        {
          provide: LockRegistry,
          inject: [CLIENT, OPTIONS],
          useFactory: (client: Client, { url: _, ...options }: LocksOptions) => new RedisLockRegistry(client, options),
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
    this.client.destroy();
  }
}
