import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A source of the page. The build puts the text in place of the call. */
const HTML = readFileSync(join(__dirname, 'page/page.html'), 'utf8');
const CSS = readFileSync(join(__dirname, 'page/page.css'), 'utf8');
const SCRIPT = readFileSync(join(__dirname, 'page/page.js'), 'utf8');

/** The page, in one file. */
export const PAGE = HTML.replace('/* page.css */', () => CSS).replace('/* page.js */', () => SCRIPT);

/** What may run and be loaded on the page: what is in it, and answers of its own server. */
export const POLICY = [
  "default-src 'none'",
  `script-src '${hashOf(SCRIPT)}'`,
  `style-src '${hashOf(CSS)}'`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
