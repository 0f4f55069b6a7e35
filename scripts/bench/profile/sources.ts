import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FrameNode } from './frame-tree';

/** Finds the sources of what the bench has bundled, by the source maps beside the bundles. */
export class Sources {
  readonly #maps: ReadonlyMap<string, SourceMap>;

  constructor(...bundles: readonly string[]) {
    const mapOf = (file: string) => new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
    this.#maps = new Map(bundles.map((file) => [file, mapOf(file)]));
  }

  /** The path of the source; of other files their own. */
  of({ url, lineNumber, columnNumber }: FrameNode['frame']): string {
    if (!url.startsWith('file:') && !url.startsWith('/')) return url;
    const file = url.startsWith('file:') ? fileURLToPath(url) : url;
    const entry = this.#maps.get(file)?.findEntry(lineNumber, columnNumber);
    return entry !== undefined && 'originalSource' in entry ? resolve(dirname(file), entry.originalSource) : file;
  }
}
