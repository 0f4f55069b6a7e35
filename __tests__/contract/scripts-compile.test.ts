import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { LockScript, Script } from '../../lib/redis/script';
import { createRealClient, describeReal } from '../support/redis';

const PROTOCOLS = join(__dirname, '../../lib/protocols');

/** All scripts that the modules of the protocols export, also within a table. */
function scripts(): Script[] {
  const files = readdirSync(PROTOCOLS, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const exported = files.flatMap((name) => Object.values(require(join(PROTOCOLS, name)) as object));
  const found = exported.flatMap((value): Script[] => {
    const values = value instanceof Script ? [value] : value && typeof value === 'object' ? Object.values(value) : [];
    return values.filter((one) => one instanceof Script);
  });
  return [...new Set(found)].flatMap((script) =>
    script instanceof LockScript ? [script, script.forMany, script.inOrder] : [script],
  );
}

// A script that seldom runs would fail only then.
describeReal('Redis compiles', () => {
  it.each(scripts().map((script) => [script.name, script] as const))('%s', async (_name, script) => {
    const client = await createRealClient();
    expect(await client.scriptLoad(script.source)).toBe(script.sha1);
  });
});
