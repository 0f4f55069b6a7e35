import 'reflect-metadata';
import { afterEach, expect, it, jest } from '@jest/globals';
import { Injectable, Module, SetMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { createClient as createClient5 } from 'redis5';
import { LockRegistry, RedisLockRegistry, RegistryClosedError } from '../../lib';
import { Locked, type LockedOptions, LockModule, type LockModuleOptions } from '../../lib/integrations/nestjs';
import { InMemoryLockRegistry } from '../../lib/testing';
import { createRealClient, describeReal, uniqueKey } from '../support/redis';
import { until } from '../support/until';

type Decorator = (target: object, name: string, descriptor: PropertyDescriptor) => unknown;

/** As `@decorator method() {}`. The first decorator is on top, so it is called last. */
function decorate(type: abstract new (...args: never[]) => unknown, name: string, ...decorators: Decorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, name) as PropertyDescriptor;
  for (const decorator of decorators.reverse()) decorator(type.prototype, name, descriptor);
  Object.defineProperty(type.prototype, name, descriptor);
}

/** Calls of its methods that have begun, and what lets them end. */
class Jobs {
  readonly begun: string[] = [];
  readonly ends: (() => void)[] = [];

  work(name: string): Promise<string> {
    this.begun.push(name);
    return new Promise((resolve) => this.ends.push(() => resolve(`done ${name}`)));
  }
}

const byName = (name: string): string => `job:${name}`;

/** `Jobs`, whose `work` is locked. */
function lockedJobs(options?: LockedOptions, above: Decorator[] = [], below: Decorator[] = []) {
  class LockedJobs extends Jobs {
    override work(name: string): Promise<string> {
      return super.work(name);
    }
  }
  Injectable()(LockedJobs);
  decorate(LockedJobs, 'work', ...above, Locked(byName, options), ...below);
  return LockedJobs;
}

const moduleOf = (imports: NonNullable<Parameters<typeof Module>[0]['imports']>, providers: (typeof Jobs)[] = []) => {
  class AppModule {}
  Module({ imports, providers })(AppModule);
  return AppModule;
};

describeReal('LockModule', () => {
  const closing: { close(): Promise<void> }[] = [];

  afterEach(async () => {
    for (const one of closing.splice(0)) await one.close();
  });

  /** An application of NestJS, and its registry. */
  async function start(options: Partial<LockModuleOptions>, providers?: (typeof Jobs)[]) {
    const all: LockModuleOptions = { client: () => createRealClient(), registryKey: uniqueKey(), ...options };
    const app = await NestFactory.createApplicationContext(moduleOf([LockModule.forRoot(all)], providers), {
      logger: false,
    });
    closing.push(app);
    return { app, registry: app.get(LockRegistry), registryKey: all.registryKey };
  }

  it('provides a registry with its options, which is closed at shutdown before its client is ended', async () => {
    const client = await createRealClient();
    const { app, registry } = await start({ client: () => client, name: 'shop' });
    expect(registry).toBeInstanceOf(RedisLockRegistry);
    const lease = await registry.obtain('key').lock();
    expect(await registry.obtain('key').inspect()).toMatchObject({ name: 'shop', isOurs: true });
    const waiting = registry.obtain('key').lock();
    const rejected = expect(waiting).rejects.toBeInstanceOf(RegistryClosedError);
    const closed = app.close();
    await rejected;
    expect(client.isOpen).toBe(true); // the holder has it still
    await lease.unlock();
    await closed;
    expect(client.isOpen).toBe(false);
  });

  it('waits for holders for up to its closeTimeout', async () => {
    const messages: string[] = [];
    const { app, registry } = await start({ closeTimeout: 20, onWarning: ({ message }) => messages.push(message) });
    const lease = await registry.obtain('key').lock();
    await app.close();
    expect(lease.signal.reason).toMatchObject({ reason: 'closed' });
    expect(messages).toEqual([expect.stringContaining('gave up a lease after 20 ms')]);
  });

  it('refuses a bad closeTimeout when the application starts, and not only at its shutdown', async () => {
    const client = await createRealClient();
    const imports = [LockModule.forRoot({ client, registryKey: 'shop', closeTimeout: -1 })];
    const starting = Test.createTestingModule({ imports: [moduleOf(imports)] }).compile();
    await expect(starting).rejects.toThrow('Expected `closeTimeout` to be a number of milliseconds');
  });

  it('ends the client that it has made where an option is refused', async () => {
    const client = await createRealClient();
    const imports = [LockModule.forRoot({ client: () => client, registryKey: 'shop', expireAfter: 0 })];
    const starting = Test.createTestingModule({ imports: [moduleOf(imports)] }).compile();
    await expect(starting).rejects.toThrow('Expected `expireAfter` to be a number of milliseconds');
    expect(client.isOpen).toBe(false);
  });

  it('ends a client of ioredis that it has made, and refuses for want of its adapter', async () => {
    const client = new Redis({ lazyConnect: true });
    const imports = [LockModule.forRoot({ client: () => client as never, registryKey: 'shop' })];
    await expect(Test.createTestingModule({ imports: [moduleOf(imports)] }).compile()).rejects.toThrow('fromIoredis');
    await until(() => client.status === 'end');
  });

  it('leaves a client open that was given to it', async () => {
    const client = await createRealClient();
    const { app } = await start({ client });
    await app.close();
    expect(client.isOpen).toBe(true);
  });

  it('ends a client by `disconnect`, after the registry was closed', async () => {
    const order: string[] = [];
    const client = await createRealClient();
    const disconnect = async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      order.push('disconnected');
    };
    const { app, registry } = await start({ client: () => client, disconnect });
    const close = registry.close.bind(registry);
    registry.close = async (options) => {
      await close(options);
      order.push('closed');
    };
    await app.close();
    expect(order).toEqual(['closed', 'disconnected']);
    expect(client.isOpen).toBe(true);
  });

  it('does not fail at shutdown where the client that it has made is closed by then', async () => {
    const client = createClient5(); // as after the last try to connect
    const { app } = await start({ client: () => client });
    await app.close();
    const imports = [LockModule.forRoot({ client: () => client, registryKey: 'shop', expireAfter: 0 })];
    const starting = Test.createTestingModule({ imports: [moduleOf(imports)] }).compile();
    await expect(starting).rejects.toThrow('Expected `expireAfter` to be a number of milliseconds');
  });

  it('takes its options from a factory, with what that has injected', async () => {
    class Config {
      readonly registryKey = uniqueKey();
    }
    class ConfigModule {}
    Module({ providers: [Config], exports: [Config] })(ConfigModule);
    const locks = LockModule.forRootAsync({
      imports: [ConfigModule],
      inject: [Config],
      useFactory: ({ registryKey }: Config) => ({ client: () => createRealClient(), registryKey }),
    });
    const app = await NestFactory.createApplicationContext(moduleOf([locks]), { logger: false });
    closing.push(app);
    const { registryKey } = app.get(Config, { strict: false });
    await app.get(LockRegistry).run('key', async () => {
      const admin = await createRealClient();
      expect(await admin.exists(`${registryKey}:key`)).toBe(1);
    });
  });

  it('makes no client in a test that overrides LockRegistry, and closes what stands in for it', async () => {
    let clients = 0;
    const never = () => {
      clients++;
      return new Promise<never>(() => undefined);
    };
    const registry = new InMemoryLockRegistry();
    const type = lockedJobs();
    const module = await Test.createTestingModule({
      imports: [moduleOf([LockModule.forRoot({ client: never, registryKey: 'shop' })], [type])],
    })
      .overrideProvider(LockRegistry)
      .useValue(registry)
      .compile();
    registry.locks.steal('job:a');
    expect(await registry.obtain('job:a').tryLock()).toBeNull();
    const jobs = module.get(type, { strict: false });
    const working = jobs.work('b');
    await until(() => jobs.begun.length === 1);
    jobs.ends[0]?.();
    expect(await working).toBe('done b');
    await module.close();
    await expect(registry.obtain('key').lock()).rejects.toBeInstanceOf(RegistryClosedError);
    expect(clients).toBe(0);
  });

  it('lets a @Locked method run under the lock of its key, one call at a time over all applications', async () => {
    const type = lockedJobs();
    const one = await start({ idleBetweenTries: 10 }, [type]);
    const other = await start({ idleBetweenTries: 10, registryKey: one.registryKey }, [type]);
    const [first, second] = [one.app.get(type), other.app.get(type)];
    const results = [first.work('a')];
    await until(() => first.begun.length === 1);
    expect(await one.registry.obtain('job:a').inspect()).toMatchObject({ isOurs: true });
    results.push(second.work('a'), second.work('b'));
    await until(() => second.begun.length === 1);
    expect(second.begun).toEqual(['b']);
    first.ends[0]?.();
    await until(() => second.begun.length === 2);
    for (const end of second.ends) end();
    expect(await Promise.all(results)).toEqual(['done a', 'done a', 'done b']);
  });

  it('passes the options of @Locked on, and rejects as `run` does', async () => {
    const type = lockedJobs({ waitTime: 5 });
    const { app, registry } = await start({}, [type]);
    const lease = await registry.obtain('job:a').lock();
    await expect(app.get(type).work('a')).rejects.toMatchObject({ name: 'LockTimeoutError', waitTime: 5 });
    await lease.unlock();
  });

  it('leaves out a call of a @Locked method with `skip` while somebody has the lock', async () => {
    const type = lockedJobs({ skip: true, minHold: 60_000 });
    const { app } = await start({}, [type]);
    const jobs = app.get(type);
    const working = jobs.work('a');
    await until(() => jobs.begun.length === 1);
    expect(await jobs.work('a')).toBeUndefined();
    jobs.ends[0]?.();
    expect(await working).toBe('done a');
    expect(await jobs.work('a')).toBeUndefined(); // its minHold has not ended
  });

  it('leaves out a call of a @Locked method with `skip` when the registry is closed, and no error of its task', async () => {
    const type = lockedJobs({ skip: true });
    const { app, registry } = await start({}, [type]);
    const jobs = app.get(type);
    const failing = jobs.work('nested');
    await until(() => jobs.begun.length === 1);
    await registry.close({ timeout: 0 });
    expect(await jobs.work('late')).toBeUndefined();
    expect(jobs.begun).toEqual(['nested']);
    const other = await start({}, [type]);
    const closed = new RegistryClosedError('of another registry', 'key');
    jest.spyOn(Jobs.prototype, 'work').mockRejectedValueOnce(closed);
    await expect(other.app.get(type).work('other')).rejects.toBe(closed);
    jobs.ends[0]?.();
    await expect(failing).rejects.toThrow('was lost (closed)');
  });

  it('keeps what other decorators have noted about a @Locked method, above and below, and its name', async () => {
    const type = lockedJobs({}, [SetMetadata('above', 1)], [SetMetadata('below', 2)]);
    const { work } = type.prototype;
    expect(Reflect.getMetadata('above', work)).toBe(1);
    expect(Reflect.getMetadata('below', work)).toBe(2);
    expect(work.name).toBe('work');
  });

  it('says what is wrong with a @Locked method of an instance that Nest has not made', async () => {
    const type = lockedJobs();
    await expect(new type().work('a')).rejects.toThrow(
      'Expected work to be called on an instance that Nest has made: it is @Locked',
    );
  });
});

const compiled = (imports: NonNullable<Parameters<typeof Module>[0]['imports']>, providers: (typeof Jobs)[] = []) =>
  Test.createTestingModule({ imports: [moduleOf(imports, providers)] }).compile();

it.each<[string, unknown, string]>([
  ['nothing', undefined, 'got undefined'],
  ['null', null, 'got null'],
  ['a text, which may be a secret', 'redis://:secret@host', 'got string'],
  ['options without a client', { registryKey: 'jobs', password: 'secret' }, 'got an object without it'],
])('LockModule.forRoot() that is given %s says what it needs', async (_what, options, got) => {
  const said = `to be an object with \`client\`, ${got}`;
  expect(() => LockModule.forRoot(options as LockModuleOptions)).toThrow(
    `Expected the options of LockModule.forRoot ${said}`,
  );
  const late = compiled([LockModule.forRootAsync({ useFactory: () => options as LockModuleOptions })]);
  await expect(late).rejects.toThrow(`Expected the options of LockModule ${said}`);
});

it('LockModule.forRootAsync() without a factory says that it needs one', () => {
  expect(() => LockModule.forRootAsync(undefined as never)).toThrow(
    /LockModule\.forRootAsync .* `useFactory`, got undefined/,
  );
});

it('A provider with @Locked without LockModule, and LockModule without forRoot, say what to import', async () => {
  await expect(compiled([], [lockedJobs()])).rejects.toThrow('import LockModule.forRoot(options) in the root module');
  await expect(compiled([LockModule])).rejects.toThrow('import LockModule.forRoot(options), and not LockModule');
});
