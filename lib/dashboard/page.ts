import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

let made: { readonly html: string; readonly policy: string } | undefined;

/**
 * The page in one file, and what may run and be loaded on it: what is in it, and answers of its own server. The sources are
 * read when they are first needed. The build puts their texts in place of the calls.
 */
export function page() {
  if (made !== undefined) return made;
  const css = readFileSync(join(__dirname, 'page/page.css'), 'utf8');
  const script = readFileSync(join(__dirname, 'page/page.js'), 'utf8');
  const html = readFileSync(join(__dirname, 'page/page.html'), 'utf8')
    .replace('/* page.css */', () => css)
    .replace('/* page.js */', () => script);
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(css)}'`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  made = { html, policy: policy.join('; ') };
  return made;
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
