import { createHash } from 'node:crypto';

/** A Lua script, with the name that EVALSHA knows it by. */
export class Script {
  readonly source: string;
  readonly sha1: string;

  constructor(source: string) {
    this.source = source;
    this.sha1 = createHash('sha1').update(source).digest('hex');
  }
}
