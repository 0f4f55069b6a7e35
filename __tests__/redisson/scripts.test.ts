import { beforeAll, expect, it } from '@jest/globals';
import * as fair from '../../lib/protocols/fair/fair-scripts';
import * as redissonFair from '../../lib/protocols/redisson/redisson-fair-scripts';
import { REDISSON_SCRIPTS } from '../../lib/protocols/redisson/redisson-scripts';
import * as shared from '../../lib/protocols/semaphore-read-write/shared-scripts';
import { SPRING_SCRIPTS } from '../../lib/protocols/spring/spring-scripts';
import { LockScript, Script } from '../../lib/redis/script';
import { createRealClient, describeReal, type TestClient } from '../support/redis';

/** Those of the module or family. */
function scriptsIn(values: object): Script[] {
  return Object.values(values).flatMap((value: unknown) => {
    if (value instanceof LockScript) return [value, value.forMany];
    if (value instanceof Script) return [value];
    return typeof value === 'object' && value !== null ? scriptsIn(value) : [];
  });
}

const scripts = [SPRING_SCRIPTS, REDISSON_SCRIPTS, redissonFair, fair, shared].flatMap(scriptsIn);

// Some are sent only in rare cases, and are then made of other parts than those that every test sends.
describeReal('The scripts', () => {
  let client: TestClient;
  beforeAll(async () => {
    client = await createRealClient();
  });

  it.each(scripts.map((script) => [script.name, script] as const))('%s: the server takes it', async (_, script) => {
    expect(await client.scriptLoad(script.source)).toBe(script.sha1);
  });
});
