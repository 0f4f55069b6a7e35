import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { type ClassDeclaration, type ModuleItem, parseSync } from '@swc/core';
import { nameOf } from './lua-files';

const LIB = join(__dirname, '..', 'lib') + sep;

/**
 * A part of `lib` that has a name, which stays when the part moves to another file: a class (`Hold`), one of its members
 * (`Hold.#fileUnder`), a function or a constant; in Lua a script (`common/release`).
 */
export interface Place {
  readonly name: string;
  readonly path: string;
  /** Where it begins and ends in the text of its file. */
  readonly start: number;
  readonly end: number;
}

/** The outer ones come before those that are in them. */
export function placesIn(path: string, text = readFileSync(path, 'utf8')): Place[] {
  if (path.endsWith('.lua')) return [{ name: nameOf(path.slice(LIB.length)), path, start: 0, end: text.length }];
  const bytes = Buffer.from(text);
  // swc counts bytes, and from 1.
  const at = (offset: number): number => bytes.subarray(0, offset - 1).toString().length;
  const { body } = parseSync(text, { syntax: 'typescript', decorators: true });
  return namedIn(body).map(({ name, span }) => ({ name, path, start: at(span.start), end: at(span.end) }));
}

interface Named {
  readonly name: string;
  readonly span: { readonly start: number; readonly end: number };
}

function namedIn(items: readonly ModuleItem[]): Named[] {
  return items.flatMap((item): Named[] => {
    const one = item.type === 'ExportDeclaration' ? item.declaration : item;
    if (one.type === 'ClassDeclaration') return [{ name: one.identifier.value, span: one.span }, ...membersOf(one)];
    if (one.type === 'FunctionDeclaration') return [{ name: one.identifier.value, span: one.span }];
    if (one.type !== 'VariableDeclaration') return [];
    return one.declarations.flatMap(({ id, span }) => (id.type === 'Identifier' ? [{ name: id.value, span }] : []));
  });
}

function membersOf({ identifier, body }: ClassDeclaration): Named[] {
  return body.flatMap((member): Named[] => {
    if (!('key' in member)) return [];
    const { key, span } = member;
    if (key.type !== 'PrivateName' && key.type !== 'Identifier') return [];
    // The types of swc have another name for what a private name has.
    const { value } = key as { readonly value: string };
    return [{ name: `${identifier.value}.${key.type === 'PrivateName' ? '#' : ''}${value}`, span }];
  });
}

let known: readonly Place[] | undefined;

/** Several where files have functions of one name. */
export function placesNamed(name: string): readonly Place[] {
  known ??= placesOfLib();
  return known.filter((place) => place.name === name);
}

function placesOfLib(): Place[] {
  const files = readdirSync(LIB, { recursive: true, encoding: 'utf8' }).filter((file) => /\.(lua|ts)$/.test(file));
  return files.flatMap((file) => placesIn(join(LIB, file)));
}

/** Where code stands in a text, however it is broken into lines. */
export function findCode(code: string, text: string): { readonly start: number; readonly end: number }[] {
  const tokens = code.match(/\w+|[^\w\s]/g) ?? [];
  const pattern = tokens.map((token) => token.replace(/\W/, '\\$&')).join('\\s*');
  // No part of a longer word.
  const whole = `${/^\w/.test(code) ? '\\b' : ''}${pattern}${/\w$/.test(code) ? '\\b' : ''}`;
  return [...text.matchAll(new RegExp(whole, 'g'))].map(({ 0: found, index }) => ({
    start: index,
    end: index + found.length,
  }));
}
