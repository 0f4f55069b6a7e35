import { channel } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { beforeEach, expect, it, jest } from '@jest/globals';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis5';
import { ConnectionMonitor } from '../../lib/redis/connection';

let client: EventEmitter & { isReady?: boolean };
let monitor: ConnectionMonitor;
let heard: jest.Mock;
let stop: () => void;

beforeEach(() => {
  client = Object.assign(new EventEmitter(), { isReady: true });
  monitor = ConnectionMonitor.of(client);
  heard = jest.fn();
  stop = monitor.onReconnect(heard);
  client.on('error', () => undefined);
});

/** What changed: how often the listener was called, lost connections, interruptions, the last error. */
const state = () => [
  heard.mock.calls.length,
  monitor.lostConnections,
  monitor.interruptions,
  String(monitor.lastError ?? ''),
];

it.each<[string, unknown[]]>([
  ['ready', [1, 0, 0, '']],
  ['node-ready', [1, 0, 0, '']],
  ['topology-change', [2, 1, 0, '']],
  ['client-error', [1, 1, 0, 'refused before']],
  ['node-lost', [0, 1, 0, 'refused before']],
  ['end', [0, 0, 1, 'refused before']],
  ['disconnect', [0, 0, 1, 'refused before']],
  ['node-error', [0, 0, 0, 'refused by a node']],
  ['error', [0, 0, 0, 'refused by a node']],
])('A connection that emits %s changes what is known of it: %j', (event, expected) => {
  client.emit('error', 'refused before');
  client.emit(event, 'refused by a node');
  expect(state()).toEqual(expected);
});

it('A connection of a pool was perhaps made again when it emits an error, as a pool says no more', () => {
  const pool = new EventEmitter();
  ConnectionMonitor.of(pool).onReconnect(heard);
  pool.on('error', () => undefined).emit('error', 'refused');
  expect(heard).toHaveBeenCalledTimes(1);
});

it('A connection says that its client was closed to those that listen for it', () => {
  const stopHearing = monitor.onClose(heard);
  client.emit('end');
  stopHearing();
  client.emit('end');
  expect(state()).toEqual([1, 0, 2, '']);
});

it('A connection that is handed over to another server is interrupted, and its listeners hear it', () => {
  channel('node-redis:connection:handoff').publish({});
  expect(state()).toEqual([1, 0, 1, '']);
});

it('A connection is listened to until its last listener has left, and has the listeners of one', () => {
  const other = jest.fn(() => stopOther());
  const third = jest.fn();
  const stopOther = monitor.onReconnect(other);
  const stopThird = monitor.onReconnect(third);
  expect(client.listenerCount('ready')).toBe(1);
  stop();
  client.emit('ready');
  client.emit('ready');
  // A listener that leaves while it is called takes none away from the others.
  expect([heard, other, third].map(({ mock }) => mock.calls.length)).toEqual([0, 1, 2]);
  stopThird();
  stopThird();
  // The application listens to it by now.
  monitor.onReconnect(third)();
  channel('node-redis:connection:handoff').publish({});
  expect([client.eventNames(), monitor.interruptions]).toEqual([['error'], 0]);
});

it('A connection has no error of before it was listened to again, unless it is down still', () => {
  const errorAfter = (isReady: boolean): unknown => {
    client.isReady = false;
    client.emit('error', 'refused');
    stop();
    client.isReady = isReady;
    if (isReady) client.emit('ready');
    stop = monitor.onReconnect(heard);
    return monitor.lastError;
  };
  expect([errorAfter(true), errorAfter(false), errorAfter(true)]).toEqual([undefined, 'refused', undefined]);
});

it.each([
  ['redis 6', createClient],
  ['redis 5', createClient5 as never as typeof createClient],
])('A client of %s with another type mapping is listened to again after its last registry was closed', (_, create) => {
  const original = create().on('error', () => undefined);
  const typed = original.withTypeMapping({});
  for (let registry = 1; registry <= 3; registry++) {
    const stopListening = ConnectionMonitor.of(typed).onReconnect(heard);
    original.emit('ready');
    stopListening();
    original.emit('ready');
    expect(heard).toHaveBeenCalledTimes(registry);
  }
  expect(original.listenerCount('error')).toBe(1);
});
