import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, posix, relative } from 'node:path';

/**
 * VitePress writes the path from which a site is served into every page and script. This one is a mark: afterwards it is
 * replaced by what each page finds out by itself, so that the site can be served from any path.
 */
export const BASE = '/__base__/';

/** The name in the browser of the path that was found. */
const FOUND = 'window.__BASE__';

interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The part of TypeScript 5 that is needed; it is installed for the reference, and knows where literals are. */
interface Parser {
  createSourceFile(name: string, text: string, target: number): Node;
  forEachChild(node: Node, visit: (child: Node) => void): void;
  readonly SyntaxKind: Readonly<Record<string, number>>;
}

interface Node {
  readonly kind: number;
  readonly end: number;
  getStart(file: Node): number;
}

/** Makes the site in this folder independent of the path from which it is served. */
export function makeRelative(folder: string, packages: string): void {
  const parser = createRequire(join(packages, 'package.json'))('typescript') as Parser;
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, file);
    const toRoot = posix.relative(posix.dirname(file.replaceAll('\\', '/')), '.') || '.';
    const kind = /\.(html|js|css)$/.exec(file)?.[1];
    if (kind === undefined) continue;
    const text = readFileSync(path, 'utf8');
    if (kind === 'html') writeFileSync(path, page(text, `${toRoot}/`));
    else if (kind === 'css') writeFileSync(path, text.replaceAll(BASE, `${toRoot}/`));
    else if (text.includes(BASE)) writeFileSync(path, script(text, parser));
  }
}

function page(text: string, toRoot: string): string {
  const find = `<script>${FOUND}=new URL(${JSON.stringify(toRoot)},location.href).pathname</script>`;
  return (
    text
      .replace('<head>', `<head>${find}`)
      // The data of the site, as text in a script.
      .replace(/JSON\.parse\(("(?:[^"\\]|\\.)*")\)/g, `JSON.parse($1.replaceAll("${BASE}",${FOUND}))`)
      .split(/(<script>.*?<\/script>)/s)
      .map((part) => (part.startsWith('<script>') ? part : part.replaceAll(BASE, toRoot)))
      .join('')
  );
}

/** Replaces the mark in literals: the literal becomes an expression. */
function script(text: string, parser: Parser): string {
  const { SyntaxKind: kinds } = parser;
  const file = parser.createSourceFile('script.js', text, 99);
  const replacements: Replacement[] = [];
  const literals = [kinds.StringLiteral, kinds.NoSubstitutionTemplateLiteral, kinds.TemplateExpression];
  const visit = (node: Node): void => {
    if (literals.includes(node.kind)) {
      const start = node.getStart(file);
      const literal = text.slice(start, node.end);
      if (!literal.includes(BASE)) return;
      replacements.push({ start, end: node.end, text: `${literal}.replaceAll("${BASE}",${FOUND})` });
      return;
    }
    parser.forEachChild(node, visit);
  };
  visit(file);
  return replacements
    .reverse()
    .reduce((whole, { start, end, text: expression }) => whole.slice(0, start) + expression + whole.slice(end), text);
}

/** What still names the mark where it would be a path. For a check after the build. */
export function namesBase(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(html|css)$/.test(file))
    .filter((file) => /(?:href|src)="\/__base__|url\(\/__base__/.test(readFileSync(join(folder, file), 'utf8')))
    .map((file) => relative('.', file));
}
