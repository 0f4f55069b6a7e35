import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { metrics, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { type AcquireMessage, LockLostError, RegistryClosedError } from '../../../lib';
import {
  type InstrumentLocksOptions,
  instrumentLocks,
  type LockInstrumentation,
} from '../../../lib/integrations/opentelemetry';
import { InMemoryLockRegistry } from '../../../lib/testing';
import packageJson from '../../../package.json';
import { block } from '../../support/block';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createRegistry, lossOf } from '../../support/test-registry';
import { until } from '../../support/until';
import { Exported, eventNames, parentOf } from './exported';

describePrivate('Instrumented locks', () => {
  const redis = PrivateRedis.install();
  let exported: Exported;
  let end: LockInstrumentation;

  const instrument = (options: InstrumentLocksOptions = {}) => {
    end = instrumentLocks({ tracer: exported.tracer, meter: exported.meter, ...options });
  };

  beforeAll(() => Exported.useContexts());

  beforeEach(() => {
    exported = new Exported();
  });

  afterEach(async () => {
    end();
    await exported.stop();
  });

  /** A registry on a client of its own, with the waits and sections of its locks. */
  const traced = async (options: Parameters<typeof createRegistry>[1] = {}) => {
    const client = await redis.connect();
    const created = createRegistry(client, options);
    const spans = (kind: 'lock' | 'hold') => exported.spans(`${kind} ${created.registryKey}`);
    return { ...created, client, waits: () => spans('lock'), sections: () => spans('hold') };
  };

  const outcomesOf = (spans: readonly ReadableSpan[]) =>
    spans.map(({ attributes }) => attributes['redis_lock.outcome']);
  const keysOf = (spans: readonly ReadableSpan[]) => spans.map(({ attributes }) => attributes['redis_lock.key']);

  const two = async () => {
    const first = await traced({ lockType: 'fair', fencing: true });
    const { registryKey } = first;
    const second = await traced({ lockType: 'fair', fencing: true, registryKey });
    const labels = { registry_key: registryKey, lock_type: 'fair' };
    return { first: first.registry, second: second.registry, registryKey, labels };
  };

  it('Instrumented locks show the wait and the section of a contended run under the span of its caller', async () => {
    const { first, second, registryKey } = await two();
    const holder = await first.obtain('key').lock();
    instrument();
    const begun: AcquireMessage[] = [];
    const note = (message: unknown) => void begun.push(message as AcquireMessage);
    subscribe('tracing:redis-lock-registry:acquire:start', note);
    const running = exported.under('request', () =>
      second.run('key', async () => {
        await new Promise(setImmediate);
        await exported.under('work', async () => undefined);
      }),
    );
    await until(() => begun.at(-1)?.contention === 'remote');
    expect((await exported.points())['redis_lock.waiting']?.[0]?.value).toBe(1);
    await holder.unlock();
    await running;
    unsubscribe('tracing:redis-lock-registry:acquire:start', note);
    await exported.under('later', async () => undefined);

    const request = exported.span('request').spanContext();
    const wait = exported.span(`lock ${registryKey}`);
    const section = exported.span(`hold ${registryKey}`);
    expect([wait, section].map(parentOf)).toEqual([request.spanId, request.spanId]);
    expect(parentOf(exported.span('work'))).toBe(section.spanContext().spanId);
    expect(section.spanContext().traceId).toBe(request.traceId);
    expect(parentOf(exported.span('later'))).toBeUndefined();
    expect(eventNames(wait)).toEqual(['waiting', 'granted']);
    expect(eventNames(section)).toEqual([]);
    expect(wait.attributes).toMatchObject({
      ...{ 'redis_lock.registry_key': registryKey, 'redis_lock.key': 'key', 'redis_lock.type': 'fair' },
      ...{ 'redis_lock.outcome': 'acquired', 'redis_lock.contention': 'remote', 'redis_lock.reentry': false },
    });
    expect(section.attributes).toMatchObject({
      ...{ 'redis_lock.key': 'key', 'redis_lock.outcome': 'ended' },
      'redis_lock.fencing_token': wait.attributes['redis_lock.fencing_token'],
    });
    expect([wait, section].map(({ status }) => status.code)).toEqual([SpanStatusCode.UNSET, SpanStatusCode.UNSET]);
    // The event has the time at which it was known that the caller had to wait.
    const at = (time: [number, number] | undefined) =>
      time === undefined ? Number.NaN : time[0] * 1e3 + time[1] / 1e6;
    const [waiting, granted] = wait.events.map(({ time }) => at(time));
    expect(waiting).toBeGreaterThanOrEqual(at(wait.startTime) - 5);
    expect(waiting).toBeLessThanOrEqual(granted as number);
  });

  it('Instrumented locks count calls by outcome, what is held, and what waits', async () => {
    const startedAt = performance.now();
    const { first, second, registryKey, labels } = await two();
    instrument();
    const lease = await first.obtain('key').lock();
    expect(await second.obtain('key').tryLock()).toBeNull();
    const stop = new AbortController();
    const aborted = second.obtain('key').lock({ signal: stop.signal });
    await until(async () => (await exported.points())['redis_lock.waiting']?.[0]?.value === 1);
    stop.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    expect((await exported.points())['redis_lock.held']).toEqual([{ attributes: labels, value: 1 }]);
    await lease.unlock();
    await first.run('key', () => first.run('key', () => undefined));

    const byOutcome = (outcome: string, value: number) => ({ attributes: { ...labels, outcome }, value });
    const outcomes = [byOutcome('acquired', 2), byOutcome('timed_out', 1), byOutcome('aborted', 1)];
    expect(await exported.points()).toEqual({
      'redis_lock.acquisitions': expect.arrayContaining(outcomes),
      'redis_lock.wait.duration': expect.arrayContaining(outcomes),
      'redis_lock.hold.duration': [byOutcome('ended', 2)],
      'redis_lock.held': [{ attributes: labels, value: 0 }],
      'redis_lock.waiting': [{ attributes: labels, value: 0 }],
    });
    expect((await exported.points())['redis_lock.acquisitions']).toHaveLength(3);
    // Neither contention nor an abort is an error.
    const codes = exported.spans(`lock ${registryKey}`).map(({ status }) => status.code);
    expect(new Set(codes)).toEqual(new Set([SpanStatusCode.UNSET]));
    const seconds = (performance.now() - startedAt) / 1_000;
    for (const name of ['redis_lock.wait.duration', 'redis_lock.hold.duration']) {
      const { longest, unit } = await exported.histogram(name);
      expect([unit, Number(longest) < seconds]).toEqual(['s', true]);
    }
  });

  it('Instrumented locks report a loss, in the section and by reason', async () => {
    const { first, second, registryKey, labels } = await two();
    instrument();
    const running = first.run('key', async (lease) => {
      await second.obtain('key').forceUnlock();
      await lease.renew().catch(() => undefined);
      await lossOf(lease);
    });
    await expect(running).rejects.toThrow(LockLostError);
    const lease = await first.obtain('key').lock();
    await second.obtain('key').forceUnlock();
    await lease.renew().catch(() => undefined);
    await expect(lease.unlock()).rejects.toThrow(LockLostError);

    const sections = exported.spans(`hold ${registryKey}`);
    expect(sections.map(({ status }) => status.code)).toEqual([SpanStatusCode.ERROR, SpanStatusCode.ERROR]);
    for (const section of sections) {
      expect(section.events.find(({ name }) => name === 'lost')?.attributes).toEqual({
        'redis_lock.reason': 'expired',
      });
      expect(section.attributes['redis_lock.outcome']).toBe('lost');
    }
    const points = await exported.points();
    expect(points['redis_lock.lost']).toEqual([{ attributes: { ...labels, reason: 'expired' }, value: 2 }]);
    expect(points['redis_lock.hold.duration']).toEqual([{ attributes: { ...labels, outcome: 'lost' }, value: 2 }]);
    expect(points['redis_lock.held']).toEqual([{ attributes: labels, value: 0 }]);
  });

  it('Instrumented locks keep keys out of metrics, unless there are groups', async () => {
    const { registry } = await traced();
    instrument();
    const cycle = async () => {
      await registry.run('customer-1', () => undefined);
      await registry.run('customer-2', () => undefined);
      const lease = await registry.obtain('other').lock();
      await registry.obtain('other').forceUnlock();
      await lease.renew().catch(() => undefined);
      await lease.unlock().catch(() => undefined);
    };
    await cycle();
    const points = Object.values(await exported.points()).flat();
    expect(points).toHaveLength(7);
    expect(JSON.stringify(points)).not.toMatch(/customer|other/);
    end();
    instrument({ group: (key) => (key === 'other' ? undefined : key.split('-')[0]) });
    await cycle();
    const grouped = Object.values(await exported.points()).flat();
    expect(grouped.filter(({ attributes }) => attributes.group === 'customer')).toHaveLength(5);
    const groups = grouped.map(({ attributes }) => ('group' in attributes ? attributes.group : 'none'));
    expect(new Set(groups)).toEqual(new Set(['none', 'customer']));
  });

  it('Instrumented locks report the errors of a task and of Redis on the span', async () => {
    const { registry, registryKey } = await traced();
    instrument();
    const error = new Error('of the task');
    await expect(registry.run('key', () => Promise.reject(error))).rejects.toBe(error);
    const section = exported.span(`hold ${registryKey}`);
    expect(section.status).toEqual({ code: SpanStatusCode.ERROR, message: 'of the task' });
    expect(section.attributes['error.type']).toBe('Error');
    await expect(registry.run('key', () => Promise.reject(null))).rejects.toBeNull();
    const [, other] = exported.spans(`hold ${registryKey}`) as [ReadableSpan, ReadableSpan];
    expect([other.status.message, eventNames(other)]).toEqual(['null', ['exception']]);
    const failing = { eval: async () => 1, evalSha: () => Promise.reject(new Error('NOPERM no right')) };
    const broken = createRegistry(failing, { registryKey: 'broken' });
    await expect(broken.registry.obtain('key').tryLock()).rejects.toThrow();
    const span = exported.span('lock broken');
    expect(span.status.code).toBe(SpanStatusCode.ERROR);
    expect(span.attributes).toMatchObject({ 'redis_lock.outcome': 'failed', 'error.type': 'ERR_CANNOT_ACQUIRE_LOCK' });
    expect(eventNames(span)).toEqual(['exception']);
  });

  it('Instrumented locks report a loss that only the release finds, in the section that has ended', async () => {
    const { client, registry, nameOf, sections } = await traced();
    instrument();
    const running = registry.run('key', () => client.sendCommand(['DEL', nameOf('key')]));
    await expect(running).rejects.toThrow(LockLostError);
    const lease = await registry.obtain('key').lock();
    await client.sendCommand(['DEL', nameOf('key')]);
    await expect(lease.unlock()).rejects.toThrow(LockLostError);
    expect(sections().map(eventNames)).toEqual([['lost'], ['lost']]);
    for (const { attributes, endTime, events, status } of sections()) {
      expect(status.code).toBe(SpanStatusCode.ERROR);
      expect(attributes).toMatchObject({ 'error.type': 'ERR_LOCK_LOST', 'redis_lock.outcome': 'lost' });
      expect(endTime).toEqual(events[0]?.time);
    }
  });

  it('Instrumented locks have one section each, whether the lock is passed on, unlocked inside the task, or taken with others', async () => {
    const { registry, sections } = await traced();
    instrument();
    await Promise.all([1, 2, 3].map(() => registry.run('key', () => new Promise(setImmediate))));
    await Promise.all([1, 2].map(() => registry.run('key', (lease) => lease.unlock())));
    await registry.multi(['key', 'other']).run(() => undefined);
    expect(outcomesOf(sections())).toEqual(new Array(6).fill('ended'));
    expect(keysOf(sections()).at(-1)).toBe('key + other');
    expect(sections().flatMap(eventNames)).toEqual([]);
  });

  it('Instrumented locks have one section for each permit, each writer and each reader, though readers share a hold', async () => {
    const { registry, waits, sections } = await traced();
    instrument();
    const semaphore = registry.semaphore('seats', { permits: 3 });
    const { read, write } = registry.readWrite('page');
    const held = async () => (await exported.points())['redis_lock.held']?.map(({ value }) => value);
    const leases = [await semaphore.lock(), await semaphore.lock({ permits: 2 }), await read.lock(), await read.lock()];
    expect((await held())?.reduce((sum, value) => sum + value, 0)).toBe(4);
    expect(await semaphore.tryLock()).toBeNull();
    for (const lease of leases) await lease.unlock();
    await write.run(() => undefined);
    expect((await held())?.every((value) => value === 0)).toBe(true);
    expect(outcomesOf(waits())).toEqual([...new Array(4).fill('acquired'), 'timed_out', 'acquired']);
    const types = waits().map(({ attributes }) => attributes['redis_lock.type']);
    expect(types).toEqual(['semaphore', 'semaphore', 'read', 'read', 'semaphore', 'write']);
    expect(keysOf(sections())).toEqual(['seats', 'seats', 'page', 'page', 'page']);
    expect(outcomesOf(sections())).toEqual(new Array(5).fill('ended'));
    expect(sections().flatMap(eventNames)).toEqual([]);
  });

  it('Instrumented locks show a loss on the section that lost its lease, and on no other of the same hold or key', async () => {
    const { registry, sections } = await traced({ expireAfter: 60_000 });
    instrument();
    for (const lock of [registry.readWrite('page').read, registry.semaphore('seats', { permits: 3 })]) {
      const [first, short, last] = [await lock.lock(), await lock.lock({ ttl: 200 }), await lock.lock()];
      await lossOf(short);
      for (const lease of [first, last]) await lease.unlock();
    }
    // Spans that begin in one ms have no order.
    const shown = sections().map((section) =>
      [keysOf([section]), outcomesOf([section]), section.status.code, eventNames(section)].join(' '),
    );
    const [ended, lost] = [`ended ${SpanStatusCode.UNSET} `, `lost ${SpanStatusCode.ERROR} lost,exception`];
    const ofEach = ['page', 'seats'].flatMap((key) => [ended, ended, lost].map((one) => `${key} ${one}`));
    expect(shown.toSorted()).toEqual(ofEach);
  });

  it('Instrumented locks count and show the loss of a hold for each of its readers', async () => {
    const { registry, sections } = await traced();
    instrument();
    const { read } = registry.readWrite('page');
    const leases = await Promise.all([read.lock(), read.lock(), read.lock()]);
    const losses = Promise.all(leases.map(lossOf));
    await read.forceUnlock();
    await losses;
    expect(outcomesOf(sections())).toEqual(['lost', 'lost', 'lost']);
    expect(sections().map(eventNames)).toEqual(new Array(3).fill(['lost', 'exception']));
    const lost = (await exported.points())['redis_lock.lost'];
    expect(lost?.map(({ attributes, value }) => [attributes.reason, value])).toEqual([['expired', 3]]);
  });

  it('Instrumented locks show the loss of any of several keys on their section, found by a renewal or by the release', async () => {
    const { client, registry, nameOf, sections } = await traced();
    instrument();
    const multi = registry.multi(['a', 'b', 'c']);
    const renewed = multi.run(async (lease) => {
      await client.sendCommand(['DEL', nameOf('b')]);
      await lease.renew().catch(() => undefined);
    });
    await expect(renewed).rejects.toThrow(LockLostError);
    await expect(multi.run(() => client.sendCommand(['DEL', nameOf('c')]))).rejects.toThrow(LockLostError);
    const lease = await multi.lock();
    await client.sendCommand(['DEL', nameOf('b'), nameOf('c')]);
    await expect(lease.renew()).rejects.toThrow(LockLostError);
    await expect(lease.unlock()).rejects.toThrow(LockLostError);
    await multi.run(() => undefined);

    expect(sections().map(eventNames)).toEqual([['lost', 'exception'], ['lost'], ['lost', 'exception', 'lost'], []]);
    expect(outcomesOf(sections())).toEqual(['lost', 'lost', 'lost', 'ended']);
    const { ERROR, UNSET } = SpanStatusCode;
    expect(sections().map(({ status }) => status.code)).toEqual([ERROR, ERROR, ERROR, UNSET]);
    const types = sections().map(({ attributes }) => attributes['error.type']);
    expect(types).toEqual([...new Array(3).fill('ERR_LOCK_LOST'), undefined]);
  });

  it('Instrumented locks cause no uncaught error where a task, or `group`, throws an object without a prototype', async () => {
    const { registry, sections } = await traced();
    const uncaught: unknown[] = [];
    const note = (error: unknown) => void uncaught.push(error);
    process.on('uncaughtException', note);
    const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue();
    const thrown = Object.create(null);
    const raise = (): never => {
      throw thrown;
    };
    instrument({ group: raise });
    expect(await registry.run('key', raise).catch((error: unknown) => error)).toBe(thrown);
    await new Promise(setImmediate);
    process.off('uncaughtException', note);
    expect(emitWarning.mock.calls.length).toBe(1);
    emitWarning.mockRestore();
    expect([uncaught, keysOf(sections())]).toEqual([[], ['key']]);
  });

  it('Instrumented locks go on without a group where the option `group` throws, and warn of it once', async () => {
    const { registry, sections } = await traced();
    const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue();
    instrument({ group: (key) => (key.split(':')[1] as string).toUpperCase() });
    await registry.run('order:42', () => undefined);
    await registry.run('nightly', () => undefined);
    const message = expect.stringMatching(
      /^The option `group` threw TypeError: .* for key "nightly": its metrics have/,
    );
    expect(emitWarning.mock.calls).toEqual([[message, { type: 'LockWarning', code: 'GROUP_FAILED' }]]);
    emitWarning.mockRestore();
    expect(keysOf(sections())).toEqual(['order:42', 'nightly']);
    const held = (await exported.points())['redis_lock.hold.duration'];
    expect(held?.map(({ attributes, value }) => [attributes.group, value])).toEqual([
      ['42', 1],
      [undefined, 1],
    ]);
  });

  it('Instrumented locks show when a wait began, though the beginning of its span took long', async () => {
    const { registry, waits } = await traced();
    const startSpan: Tracer['startSpan'] = (...args) => {
      block(20);
      return exported.tracer.startSpan(...args);
    };
    instrument({ tracer: Object.assign(Object.create(exported.tracer), { startSpan }) });
    const first = await registry.obtain('key').lock();
    const waiting = registry.obtain('key').lock();
    await first.unlock();
    await (await waiting).unlock();
    const [event] = waits()[1]?.events ?? [];
    const at = ([seconds, nanoseconds]: readonly [number, number] = [0, 0]) => seconds + nanoseconds / 1e9;
    expect(at(event?.time)).toBeGreaterThanOrEqual(at(waits()[1]?.startTime));
    expect(at(event?.time)).toBeLessThanOrEqual(at(waits()[1]?.endTime));
  });

  it('Instrumented locks end the section of a lease that is detached, and begin another one where it is adopted', async () => {
    const { registry, sections } = await traced();
    instrument();
    const text = await (await registry.obtain('key').lock()).detach();
    expect(outcomesOf(sections())).toEqual(['ended']);
    await (await registry.adopt(text)).unlock();
    await registry.run('key', (lease) => lease.detach());
    expect(outcomesOf(sections())).toEqual(['ended', 'ended', 'ended']);
  });

  it('Instrumented locks end a section that is being released when the instrumentation ends', async () => {
    const { registry, sections } = await traced();
    instrument();
    const lease = await registry.obtain('key').lock();
    const unlocking = lease.unlock();
    end();
    expect(sections()).toHaveLength(1);
    await unlocking;
  });

  it('Instrumented locks end the section of a run whose lease was lost before its task began', async () => {
    instrument();
    const ends: unknown[] = [];
    for (let turns = 0; turns < 12; turns++) {
      const registry = new InMemoryLockRegistry({ onWarning: () => undefined });
      const running = registry.run('key', () => undefined).catch((error: unknown) => error);
      for (let i = 0; i < turns; i++) await Promise.resolve();
      await registry.close({ timeout: 0 });
      ends.push(await running);
    }
    expect(ends.filter((end) => end instanceof LockLostError)).not.toEqual([]);
    const begun = ends.filter((end) => !(end instanceof RegistryClosedError));
    expect(exported.spans('hold test')).toHaveLength(begun.length);
  });

  it('Instrumented locks count warnings by code', async () => {
    const { registry, registryKey } = await traced({ warnHeldAfter: 50 });
    const labels = { registry_key: registryKey, lock_type: 'spin', code: 'LONG_HOLD' };
    instrument();
    const lease = await registry.obtain('key').lock();
    await until(async () => (await exported.points())['redis_lock.warnings'] !== undefined);
    await lease.unlock();
    const { 'redis_lock.warnings': warnings } = await exported.points();
    expect(warnings).toEqual([{ attributes: labels, value: expect.any(Number) }]);
  });

  it('Instrumented locks count a silence of Redis once, and not when it is over: an alert would begin then', async () => {
    instrument();
    for (const isOver of [false, true]) {
      const warning = { code: 'REDIS_SILENT', message: '', silence: { isOver } };
      channel('redis-lock-registry:warning').publish({ registryKey: 'orders', lockType: 'spin', warning });
    }
    const labels = { registry_key: 'orders', lock_type: 'spin', code: 'REDIS_SILENT' };
    expect((await exported.points())['redis_lock.warnings']).toEqual([{ attributes: labels, value: 1 }]);
  });

  it('Instrumented locks come from a scope with the name and the version of the package', () => {
    const scopes = [jest.spyOn(trace, 'getTracer'), jest.spyOn(metrics, 'getMeter')];
    end = instrumentLocks();
    for (const scope of scopes) {
      expect(scope.mock.calls).toEqual([[packageJson.name, packageJson.version]]);
      scope.mockRestore();
    }
  });

  it('Instrumented locks are no longer measured when the instrumentation has ended: what is open ends with it', async () => {
    const { registry, waits, sections } = await traced();
    instrument();
    const lease = await registry.obtain('key').lock();
    const stop = new AbortController();
    const waiting = registry.obtain('key').lock({ signal: stop.signal });
    end[Symbol.dispose]();
    expect([waits(), sections()].map(({ length }) => length)).toEqual([2, 1]);
    const before = await exported.points();
    expect([before['redis_lock.held']?.[0]?.value, before['redis_lock.waiting']?.[0]?.value]).toEqual([0, 0]);
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await lease.unlock();
    await registry.run('key', () => undefined);
    end();
    expect(await exported.points()).toEqual(before);
    expect([waits(), sections()].map(({ length }) => length)).toEqual([2, 1]);
  });

  it('Instrumented locks ignore what has begun before', async () => {
    const { registry } = await traced();
    const lease = await registry.obtain('key').lock();
    instrument();
    await lease.unlock();
    expect(await exported.points()).toEqual({});
  });

  it('Instrumented locks run in two instrumentations, both with their sections', async () => {
    const { registry, registryKey, sections } = await traced();
    instrument();
    const other = new Exported();
    const endOther = instrumentLocks({ tracer: other.tracer, meter: other.meter });
    const active = await registry.run('key', async () => trace.getActiveSpan()?.spanContext().spanId);
    endOther();
    // What one puts around the task stays there inside what the other does.
    expect(active).toBe(sections()[0]?.spanContext().spanId);
    expect([sections(), other.spans(`hold ${registryKey}`)].map(({ length }) => length)).toEqual([1, 1]);
    await other.stop();
  });

  it.each([
    [{ tracer: 7 }, 'Expected `tracer` to be a Tracer of OpenTelemetry, got 7 (number)'],
    [{ meter: null }, 'Expected `meter` to be a Meter of OpenTelemetry, got null (null)'],
    [{ group: 'orders' }, "Expected `group` to be a function, got 'orders' (string)"],
    [
      { groups: () => 'orders' },
      'Unknown option `groups` (function); did you mean `group`?; known are tracer, meter, group',
    ],
  ])('Instrumented locks reject %p', (options, message) => {
    instrument();
    expect(() => instrumentLocks(options as InstrumentLocksOptions)).toThrow(new TypeError(message));
  });
});
