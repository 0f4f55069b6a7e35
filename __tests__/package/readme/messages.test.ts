import { describe, expect, it } from '@jest/globals';
import { answerIn, PASSING } from '../../../lib/redis/server-errors';
import { codeSpans, SOURCES, tableBelow } from './pages';

/** What stands for a part that is known only at run time, on the page too. */
const HOLE = '…';

/** Messages of the library itself to nobody but itself, or of its parts that speak to no application, or only to tests. */
const INTERNAL = [/^lib\/tools\/cli\//, /^lib\/integrations\/opentelemetry/, /^lib\/testing\//];

/** The code in front of a message: an error that is made, a warning, or a part of a message that has a name. */
const BEFORE = [
  /new \w*(?:Error|Warning)\(\s*/,
  /super\(\s*/,
  /\bmessage: /,
  /(?:cannotAcquire|notHeld|notReleased)\([^,()]*, /,
  /\b(?:why|message|expectation|NO_ANSWER) =\s*/,
];

/** A part of a template that is known only at run time; it may have braces of its own. */
const PART = /\$\{(?:[^{}]|\{[^{}]*\})*\}/g;
const LITERAL = new RegExp(
  `(['"])(?<plain>(?:\\\\.|(?!\\1).)*)\\1|\`(?<template>(?:\\\\.|${PART.source}|[^\`\\\\])*)\``,
  'sy',
);

/** The text of the literal that begins at this place, with a hole for each part that is known only at run time. */
function literalAt(source: string, start: number): string | undefined {
  LITERAL.lastIndex = start;
  const { plain, template } = LITERAL.exec(source)?.groups ?? {};
  return (plain ?? template?.replaceAll(PART, HOLE))?.replaceAll(/\\(.)/g, '$1').replaceAll('`', '');
}

interface Message {
  readonly file: string;
  readonly text: string;
}

/**
 * A message that says what was expected, what to do, what was wrong with the call, or what is missing: it needs no row.
 * Those about a silent Redis or a connection have one together.
 */
const SAYS_ITSELF = [
  /^(?:Expected|Unknown option) /,
  /(?:^|[:.(,] ?)(?:Allow|Keep|Take|Use|pass|take|unlock|say|To delete it)\b/,
  /\bneeds\b/,
  /would wait for its own result|by this lease any more|cannot work with a cluster/,
  /^A (?:name|lock) cannot |has no use with|removes it$|^Nothing was |was unlocked by force; |asked for it$|^asked …/,
  /\bhas(?: not answered| not said| no connection| no duplicate| no sharded pub)|\bno answer to\b|did not answer (?:in|within)/,
  /connection was lost before|(?:client|connection) (?:is|was) closed|it was closed while it connected|^It was not sent/,
  /has no (?:semaphores|read\/write locks|locks of several keys)|keeps no results|adopts no leases|this version of valkey-glide/,
  // The part behind these says so.
  /inside its own (?:read )?scope|cannot run a script/,
];
const saysItself = (message: string) => SAYS_ITSELF.some((pattern) => pattern.test(message));

function messagesOf({ file, text: whole }: Message): Message[] {
  const source = whole.replace(/^\s*(\*|\/\/).*$/gm, '');
  const places = source.matchAll(new RegExp(BEFORE.map((one) => one.source).join('|'), 'g'));
  return [...places].flatMap((match) => {
    const text = literalAt(source, match.index + match[0].length);
    // A name, or the continuation of a message, is no message.
    const isMessage = text !== undefined && / /.test(text) && !text.startsWith(`${HOLE},`) && partsOf(text).length > 0;
    return isMessage ? [{ file, text }] : [];
  });
}

/** What is fixed in a message. */
function partsOf(message: string): string[] {
  return message
    .split(HOLE)
    .map((part) => part.trim())
    .filter((part) => /\w{2}/.test(part));
}

/** Whether all that is fixed in one message is in the other, in its order. */
function contains(whole: string, message: string): boolean {
  let from = 0;
  return partsOf(message).every((part) => {
    const at = whole.indexOf(part, from);
    from = at + part.length;
    return at >= 0;
  });
}

const MESSAGES = SOURCES.filter(({ file }) => !INTERNAL.some((internal) => internal.test(file))).flatMap(messagesOf);

const PAGE = 'docs/reference.md';
const ROWS = tableBelow(PAGE, 'Messages').flatMap(([messages = '']) => codeSpans(messages));
/** With the messages of warnings, which stand beside their codes. */
const LISTED = [...ROWS, ...tableBelow('docs/operations.md', 'Warnings').flatMap(([, text = '']) => codeSpans(text))];

describe(PAGE, () => {
  it(`${PAGE} lists many messages`, () => {
    expect(MESSAGES.length).toBeGreaterThan(60);
    expect(LISTED.length).toBeGreaterThan(60);
  });

  it(`${PAGE} has every message of the code that does not say by itself what to do`, () => {
    const missing = MESSAGES.filter(({ text }) => !saysItself(text) && !LISTED.some((one) => contains(one, text)));
    expect(missing.map(({ file, text }) => `${file}: ${text}`)).toEqual([]);
  });

  it(`${PAGE} does not repeat a message that says by itself what to do`, () => {
    expect(MESSAGES.filter(({ text }) => saysItself(text)).length).toBeGreaterThan(15);
    expect(ROWS.filter(saysItself)).toEqual([]);
  });

  it(`${PAGE} has no message that the code has not`, () => {
    const sources = SOURCES.map(({ text }) => text.replaceAll(/[`\\]/g, '')).join('\n');
    // A message may be made of several literals.
    const known = (part: string) =>
      sources.includes(part) || MESSAGES.some(({ text }) => partsOf(text).some((one) => part.includes(one)));
    expect(ROWS.filter((one) => !partsOf(one).every(known))).toEqual([]);
  });

  it(`${PAGE} has every answer of the server that is tried again, and no other as such`, () => {
    const answers = tableBelow(PAGE, 'Answers of the server').flatMap(([spans = '', isRepeated]) =>
      codeSpans(spans).map((text) => ({ text, isRepeated: isRepeated === 'yes' })),
    );
    const read = answers.map(({ text, isRepeated }) => ({
      text,
      isRepeated,
      ...answerIn(`${text.replace('… ', '')} `),
    }));
    expect(read.filter(({ passes, isRepeated }) => passes !== isRepeated)).toEqual([]);
    const missing = PASSING.filter((one) => !read.some(({ name }) => name === one));
    expect([PASSING.length > 5, missing]).toEqual([true, []]);
  });
});
