import { unpackDebian, withLibrariesOf } from './debian';

/** The release of Debian that they are taken from, and what the servers are linked with. */
const RELEASE = 'trixie';
const PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1', 'libssl3t64', 'libzstd1', 'zlib1g', 'libatomic1'];

/**
 * For a binary that wants a newer C library than this Debian has: the words before it that run it with those of a later
 * release, in `folder`. Throws where that cannot be had.
 */
export async function withNewerLibraries(folder: string): Promise<string[]> {
  await unpackDebian(RELEASE, PACKAGES, folder);
  return withLibrariesOf(folder);
}
