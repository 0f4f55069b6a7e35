import { findRedisBinary, identifyRedis } from '../support/redis-binary';
import { installRedis } from '../support/redis-install';

async function setup(): Promise<void> {
  const found = findRedisBinary();
  const binary = found ?? (await installRedis({ mayChangeSystem: true }));
  const { name, version } = identifyRedis(binary);
  console.log(`${name} ${version} ${found ? 'is already installed' : 'is ready'}: ${binary}`);
}

setup().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
