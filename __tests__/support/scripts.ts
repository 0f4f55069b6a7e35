import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { LockScript, Script } from '../../lib/redis/script';

const PROTOCOLS = join(__dirname, '../../lib/protocols');

/** All scripts that the modules of the protocols export, also within a table. */
export function allScripts(): Script[] {
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
