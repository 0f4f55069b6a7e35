import plugin from 'fastify-plugin';
import { createClient } from 'redis';
import {
  CannotAcquireLockError,
  LockTimeoutError,
  RedisLockRegistry,
  RegistryClosedError,
} from 'redis-lock-registry';

/** Adds `app.locks`, and maps the errors of locks to responses. */
export const locks = plugin(async (app, { url }) => {
  const client = await createClient({ url })
    .on('error', (error) => app.log.error(error))
    .connect();
  const registry = new RedisLockRegistry(client, {
    registryKey: 'shop',
    lockType: 'pub-sub',
    onWarning: (warning) => app.log.warn(warning),
  });
  app.decorate('locks', registry);

  // Before the open requests have drained: some of them may be waiting for a lock.
  app.addHook('preClose', () => registry.close({ timeout: 5_000 }));
  app.addHook('onClose', () => client.destroy());

  app.setErrorHandler((error, _request, reply) => {
    const isBusy = error instanceof LockTimeoutError || error instanceof RegistryClosedError;
    if (isBusy || error instanceof CannotAcquireLockError) return reply.code(503).header('retry-after', 1).send('busy');
    throw error;
  });
});
