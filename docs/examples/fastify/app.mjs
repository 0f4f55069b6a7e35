import { setTimeout as sleep } from 'node:timers/promises';
import Fastify from 'fastify';
import { locks } from './locks.mjs';

export function buildApp(url = process.env.REDIS_URL ?? 'redis://localhost:6379') {
  const app = Fastify({ logger: { level: 'warn' } });
  app.register(locks, { url });

  // Waits for its turn, for up to two seconds.
  app.post('/carts/:id', async (request) =>
    app.locks.run(`cart:${request.params.id}`, () => sleep(200, 'checked out'), { waitTime: 2_000 }),
  );

  // A double click doesn't wait: it gets 409.
  app.post('/orders/:id', async (request, reply) => {
    const placed = await app.locks.tryRun(`order:${request.params.id}`, () => sleep(200, 'placed'));
    return placed.ran ? placed.value : reply.code(409).send('being placed already');
  });
  return app;
}
