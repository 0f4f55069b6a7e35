import 'reflect-metadata';
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { LockRegistry } from 'redis-lock-registry';
import { InMemoryLockRegistry } from 'redis-lock-registry/testing';
import { AppModule, Checkout } from './app.module.js';

test('with Redis: carts take turns, a double click gets 409, and the app closes', async () => {
  const app = await NestFactory.create(AppModule, { logger: ['error'] });
  const server = await app.listen(0, '127.0.0.1');
  const { port } = server.address() as AddressInfo;
  const post = (path: string) => fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST' });

  const carts = await Promise.all([post('/carts/1'), post('/carts/1'), post('/carts/1')]);
  assert.deepEqual(carts.map(({ status }) => status), [201, 201, 201]);
  assert.equal(app.get(Checkout).most, 1);

  const clicks = await Promise.all([post('/orders/1'), post('/orders/1')]);
  assert.deepEqual(clicks.map(({ status }) => status).sort(), [201, 409]);
  await app.close();
});

test('without Redis: the whole application with locks in memory', async () => {
  const registry = new InMemoryLockRegistry();
  const module = await Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(LockRegistry)
    .useValue(registry)
    .compile();
  assert.equal(await module.get(Checkout).checkOut('7'), 'checked out 7');

  registry.locks.steal('cart:8'); // somebody else has it
  await assert.rejects(module.get(Checkout).checkOut('8'), { name: 'LockTimeoutError' });
  await module.close(); // closes the registry too
});
