import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Inject,
  Module,
  type ModuleMetadata,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import type { LockOptions } from '../api/distributed-lock';
import { RegistryClosedError } from '../api/errors';
import type { RedisLockRegistryOptions } from '../api/options';
import { notNegative } from '../internal/validation';
import type { RedisClient } from '../redis/client';
import { LockRegistry } from '../registry/lock-registry';
import { RedisLockRegistry } from '../registry/redis-lock-registry';

/** Options of `LockModule`: those of a registry, and its client. */
export interface LockModuleOptions extends RedisLockRegistryOptions {
  /**
   * A function that makes the client: it is called when the registry is made, and not in a test that overrides
   * `LockRegistry`. Or a client: it stays the application's, which ends it in `onApplicationShutdown`.
   */
  client: RedisClient | (() => RedisClient | Promise<RedisClient>);
  /**
   * Ends the client at `onApplicationShutdown`.
   * @default calls `destroy()`, or else `disconnect()`, of a client that a function made, if it has that
   */
  disconnect?: (() => unknown) | undefined;
  /**
   * ms for which `close()` waits for holders at shutdown.
   * @default 10_000
   */
  closeTimeout?: number | undefined;
}

/** Options of `LockModule.forRootAsync`, as Nest's own modules have them. */
export interface LockModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  inject?: Extract<Provider, { useFactory: unknown }>['inject'];
  useFactory(...dependencies: never[]): LockModuleOptions | Promise<LockModuleOptions>;
}

const OPTIONS = Symbol('options of LockModule');

/** What to do at shutdown about a registry that the module has made. */
const shutdowns = new WeakMap<LockRegistry, Pick<LockModuleOptions, 'disconnect' | 'closeTimeout'>>();

/** Nest shows the name of what a module does not provide. */
const REGISTRY = Symbol('LockRegistry: import LockModule.forRoot(options), and not LockModule');

/** Throws for what is no object with this member. Quotes nothing of it: a client has a password. */
function assertOptions(options: unknown, call: string, member: string): void {
  const isObject = typeof options === 'object' && options !== null;
  if (isObject && member in options) return;
  const got = isObject ? 'an object without it' : String(options && typeof options);
  throw new TypeError(`Expected the options of ${call} to be an object with \`${member}\`, got ${got}`);
}

async function make(given: LockModuleOptions): Promise<LockRegistry> {
  assertOptions(given, 'LockModule', 'client');
  const { client, disconnect, closeTimeout, ...options } = given;
  // At shutdown it would be too late.
  if (closeTimeout !== undefined) notNegative('closeTimeout', closeTimeout);
  const isOurs = typeof client === 'function';
  const made: RedisClient & { destroy?(): unknown; disconnect?(): unknown } = await (isOurs ? client() : client);
  // node-redis 5 throws where the client is closed by then, as after its last try to connect.
  const end = disconnect ?? (() => isOurs && made?.isOpen !== false && (made?.destroy ?? made?.disconnect)?.call(made));
  try {
    const registry = new RedisLockRegistry(made, options);
    shutdowns.set(registry, { disconnect: end, closeTimeout });
    return registry;
  } catch (error) {
    // There will be no shutdown, and its connection would keep the process alive.
    await end();
    throw error;
  }
}

/**
 * A global module that provides `LockRegistry`: an abstract class, which is its own token. At shutdown it closes the
 * registry before the server has drained, since a request that waits for a lock would hold that up. It ends the client
 * after that. Call `app.enableShutdownHooks()`.
 * @example
 * const connect = () => createClient({ url }).on('error', console.error).connect();
 *
 * @Module({ imports: [LockModule.forRoot({ client: connect, registryKey: 'shop', lockType: 'pub-sub' })] })
 * class AppModule {}
 */
export class LockModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #registry: LockRegistry;

  constructor(registry: LockRegistry) {
    this.#registry = registry;
  }

  static forRoot(options: LockModuleOptions): DynamicModule {
    assertOptions(options, 'LockModule.forRoot', 'client');
    return LockModule.forRootAsync({ useFactory: () => options });
  }

  static forRootAsync(options: LockModuleAsyncOptions): DynamicModule {
    assertOptions(options, 'LockModule.forRootAsync', 'useFactory');
    const { imports = [], inject = [], useFactory } = options;
    return {
      module: LockModule,
      global: true,
      imports,
      providers: [
        { provide: OPTIONS, inject, useFactory },
        { provide: LockRegistry, inject: [OPTIONS], useFactory: make },
        { provide: REGISTRY, useExisting: LockRegistry },
      ],
      exports: [LockRegistry],
    };
  }

  async beforeApplicationShutdown(): Promise<void> {
    const { closeTimeout: timeout } = shutdowns.get(this.#registry) ?? {};
    await this.#registry.close({ timeout });
  }

  async onApplicationShutdown(): Promise<void> {
    await shutdowns.get(this.#registry)?.disconnect?.();
  }
}

// Decorators as functions: the library is compiled without the syntax.
Module({})(LockModule);
Inject(REGISTRY)(LockModule, undefined, 0);

/** Options of `@Locked`. */
export interface LockedOptions extends LockOptions {
  /**
   * Leaves the call out while somebody else has the lock, as `tryRun` does, and when the application shuts down: the
   * method returns `undefined` then, whatever its type says. For cron, with a `minHold`.
   * @default false
   */
  skip?: boolean | undefined;
}

const LOCKS = Symbol('LockRegistry of @Locked: import LockModule.forRoot(options) in the root module');

/** What reflect-metadata adds, which Nest needs. */
type ReflectMetadata = {
  getOwnMetadataKeys(target: object): unknown[];
  getOwnMetadata(key: unknown, target: object): unknown;
  defineMetadata(key: unknown, value: unknown, target: object): void;
};

/** A key, or a function from the arguments of a method to one. */
type KeyOf<Arguments extends unknown[]> = string | ((...args: Arguments) => string);

/** The method, where its key function takes whatever the method does; else a method of the function's own arguments. */
type LockedMethod<Method extends (...args: never[]) => Promise<unknown>, Key> =
  Key extends KeyOf<Parameters<Method>>
    ? Method
    : Key extends (...args: infer Arguments) => string
      ? (...args: Arguments) => Promise<unknown>
      : never;

/**
 * Runs a method of a provider under the lock of `key`, or of the key that a function makes of its arguments, with the
 * errors of `run`, or of `tryRun` with `skip`. Other decorators of the method may stand above and below it.
 * @example
 * @Locked((cart: string) => `cart:${cart}`, { waitTime: 2_000 })
 * async checkOut(cart: string): Promise<Order> { … }
 */
export function Locked<Key extends KeyOf<never[]>>(key: Key, { skip = false, ...options }: LockedOptions = {}) {
  return <Method extends (...args: never[]) => Promise<unknown>>(
    target: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<LockedMethod<Method, Key>>,
  ): void => {
    Inject(LockRegistry)(target, LOCKS);
    const method = descriptor.value as unknown as (...args: unknown[]) => Promise<unknown>;
    async function locked(this: { [LOCKS]?: LockRegistry }, ...args: unknown[]): Promise<unknown> {
      const { [LOCKS]: registry } = this;
      if (registry === undefined) {
        throw new TypeError(`Expected ${String(name)} to be called on an instance that Nest has made: it is @Locked`);
      }
      const lock = registry.obtain(typeof key === 'string' ? key : key(...(args as never[])));
      let hasBegun = false;
      const task = (): Promise<unknown> => {
        hasBegun = true;
        return method.apply(this, args);
      };
      if (!skip) return lock.run(task, options);
      try {
        const result = await lock.tryRun(task, options);
        return result.ran ? result.value : undefined;
      } catch (error) {
        // Schedulers are stopped after the registry.
        if (error instanceof RegistryClosedError && !hasBegun) return undefined;
        throw error;
      }
    }
    // What other decorators have noted about the method, and what they call it.
    const reflect = Reflect as unknown as ReflectMetadata;
    for (const noted of reflect.getOwnMetadataKeys(method)) {
      reflect.defineMetadata(noted, reflect.getOwnMetadata(noted, method), locked);
    }
    Object.defineProperty(locked, 'name', { value: method.name });
    descriptor.value = locked as unknown as LockedMethod<Method, Key>;
  };
}
