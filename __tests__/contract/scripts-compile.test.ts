import { expect, it } from '@jest/globals';
import { allScripts } from '../../support/all-scripts';
import { createRealClient, describeReal } from '../support/redis';

// A script that seldom runs would fail only then.
describeReal('Redis compiles', () => {
  it.each(allScripts().map((script) => [script.name, script] as const))('%s (%#)', async (_name, script) => {
    const client = await createRealClient();
    expect(await client.scriptLoad(script.source)).toBe(script.sha1);
  });
});
