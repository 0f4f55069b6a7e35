import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The page in one file, and what may run and be loaded on it: what is in it, and answers of its own server. */
interface Page {
  readonly html: string;
  readonly policy: string;
}

let made: Page | undefined;

/** The sources are read when they are first needed. The build puts their texts in place of the calls. */
export function page(): Page {
  made ??= pageOf(
    readFileSync(join(__dirname, 'page/page.html'), 'utf8'),
    readFileSync(join(__dirname, 'page/page.css'), 'utf8'),
    readFileSync(join(__dirname, 'page/page.js'), 'utf8'),
  );
  return made;
}

function pageOf(html: string, css: string, script: string): Page {
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
  return {
    html: html.replace('/* page.css */', () => css).replace('/* page.js */', () => script),
    policy: policy.join('; '),
  };
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
