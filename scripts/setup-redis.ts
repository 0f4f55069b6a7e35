import { findRedisBinary, identifyRedis } from '../support/redis-binary';
import { installRedis } from '../support/redis-install';
import { runMain } from '../support/run-main';

async function setup(): Promise<number> {
  const found = findRedisBinary();
  const binary = found ?? (await installRedis({ mayChangeSystem: true }));
  const { name, version } = identifyRedis(binary);
  console.log(`${name} ${version} ${found ? 'is already installed' : 'is ready'}: ${binary}`);
  return 0;
}

void runMain(setup);
