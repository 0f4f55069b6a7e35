import { execFileSync } from 'node:child_process';

/** The browser that tests look with: CHROMIUM_BIN, or the first one on the PATH. */
export function browserBinary() {
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  const found = process.env.CHROMIUM_BIN ?? names.map((name) => which(name)).find(Boolean);
  if (!found) throw new Error('No Chromium: set CHROMIUM_BIN, or install it (Debian: apt-get install chromium)');
  return found;
}

function which(name) {
  try {
    return execFileSync('which', [name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}
