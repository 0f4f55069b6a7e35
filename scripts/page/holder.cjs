// A process of an application, for the tests of the page: its name, and what it does with the locks at this port.
const { createClient } = require('redis');
const { RedisLockRegistry } = require('../../dist');

const [name, port, ...jobs] = process.argv.slice(2);

async function main() {
  const client = await createClient({ url: `redis://localhost:${port}` })
    .on('error', () => undefined)
    .connect();
  const registry = new RedisLockRegistry(client, { registryKey: 'shop', lockType: 'fair', name });
  const does = {
    hold: (key) => registry.obtain(key).lock(),
    keep: async (key) => (await registry.obtain(key).lock({ minHold: 50_000 })).unlock(),
    enter: (key) => registry.semaphore(key, { permits: 2 }).lock(),
    read: (key) => registry.readWrite(key).read.lock(),
    async contend(key) {
      for (;;) await registry.run(key, () => new Promise((resolve) => setTimeout(resolve, 700))).catch(() => undefined);
    },
  };
  for (const job of jobs) {
    const [what, key] = job.split('=');
    void does[what](key);
  }
  process.stdout.write('ready\n');
}

void main();
