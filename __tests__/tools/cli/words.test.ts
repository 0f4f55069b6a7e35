import { expect, it } from '@jest/globals';
import { type Arguments, helpOf, readArguments } from '../../../lib/tools/cli/arguments';
import { completionOf, nextWords } from '../../../lib/tools/cli/completion';
import { run } from '../../../lib/tools/cli/run';
import { inspect, list, ui, watch } from '../../../lib/tools/cli/show';
import type { Signals } from '../../../lib/tools/cli/signals';
import { describePrivate } from '../../support/private-redis';
import type { Program } from '../../support/program';
import { until } from '../../support/until';
import { COMMAND } from './command';
import { commandLine, LIMIT } from './command-line';

/** What redis-locks does with words before it connects. */
async function begin(argv: readonly string[]): Promise<unknown> {
  const args = readArguments(argv);
  const commands: Record<string, (args: Arguments, signals: Signals) => unknown> = {
    completion: completionOf,
    inspect,
    ls: list,
    run,
    ui,
    watch,
  };
  return commands[args.command ?? '']?.(args, {} as Signals);
}

it.each([
  ['unknown command', ['frobnicate'], /no command "frobnicate"; there are run, ls/],
  ['misspelt command', ['relaese'], /no command "relaese"; did you mean release\?/],
  ['URL for a command', ['redis://:hunter2@host/', 'ls'], /no command "redis:\/\/…@host\/"/],
  ['URL for a key', ['inspect', 'key', 'rediss://me:hunter@2@host'], /not "key" "rediss:\/\/…@host"$/],
  ['URL for a type', ['ls', '--type', 'redis://:hunter2@host'], /not "redis:\/\/…@host"$/],
  ['unknown option', ['ls', '--bogus'], /'--bogus'$/],
  ['misspelt option', ['ls', '--registrykey', 'a'], /; did you mean --registry-key\?/],
  ['option with two letters swapped', ['run', 'a', '--wiat', '5'], /; did you mean --wait\?$/],
  [
    'key that begins with a dash',
    ['inspect', '-key'],
    /Unknown option '-k'; a KEY that begins with - stands behind --$/,
  ],
  ['option of another command', ['ls', '--grace', '1s'], /ls has no option --grace; it is one of run$/],
  ['option of two others', ['ui', '--sort', 'held'], /ui has no option --sort; it is one of ls and watch$/],
  ['type of a page of all types', ['ui', '--type', 'fair'], /ui has no option --type; it is one of run and ls and/],
  [
    'JSON of a command that prints none',
    ['run', 'a', '--json', '--', 'true'],
    /run has no option --json; it is one of ls/,
  ],
  ['URL for a help text', ['help', '--url', 'redis://localhost'], /help has no option --url; it is one of run and ls/],
  ['option like one of another command', ['run', 'a', '--waiting'], /--waiting; did you mean --wait\?$/],
  ['misspelt option of another command', ['ls', '--grac', '1s'], /Unknown option '--grac'$/],
  [
    'duration that begins with a dash',
    ['run', 'a', '--wait', '-1', '--', 'true'],
    /ambiguous\. Did you.*'--wait=-XYZ'/,
  ],
  ['option with a full stop', ['ls', '--a. b'], /Unknown option '--a\. b'$/],
  ['URL that is none', ['ls', '--url', 'nonsense'], /--url is not a URL/],
  ['shell that is none', ['completion', 'csh'], /bash, zsh, fish, not "csh"/],
  ['exit code that is none', ['run', 'a', '-E', '256', '--', 'true'], /--conflict-exit-code.*255, not "256"/],
  ['lock of two kinds', ['run', 'a', '--shared', '--permits', '2', '--', 'true'], /--shared and --permits exclude/],
  ['missing key', ['inspect'], /takes one KEY, not none$/],
  ['empty key', ['inspect', ''], /takes one KEY, not ""$/],
  ['key too many', ['inspect', 'a', 'b\n'], /takes one KEY, not "a" "b\\n"$/],
  ['missing command', ['run', 'nightly'], /command is missing/],
  ['command without its dashes', ['run', 'nightly', './backup.sh'], /command is missing: .* KEY -- COMMAND$/],
  ['duration that is none', ['run', 'nightly', '--wait', '30x', '--', 'true'], /--wait.*"30x"/],
  ['key and no command', ['run', '--', 'nightly'], /command is missing/],
  ['database that is none', ['ls', '--url', 'redis://localhost/abc'], /--url is not a URL/],
  ['key of all locks', ['ui', 'order:42'], /takes no KEY/],
  ['short token', ['ui', '--token', 'short'], /--token takes at least 16 characters/],
  ['token that no header can have', ['ui', '--token', 'a token of 文字 characters'], /--token takes .* ASCII/],
  ['page of no registryKey', ['ui', '--registry-key', ''], /^ui takes no empty --registry-key: without one, it shows/],
  ['list of no registryKey', ['ls', '--registry-key', ''], /^ls takes no empty --registry-key: without one, it shows/],
  ['watch of no registryKey', ['watch', '--registry-key', ''], /^watch takes no empty --registry-key: without one,/],
  ['name of others without a token', ['ui', '--host', '127.example.org'], /Others can reach 127\.example\.org: give a/],
  ['address of others without a token', ['ui', '--host', '0.0.0.0'], /Others can reach 0\.0\.0\.0: give a --token/],
  ['escape that is none', ['ls', '--url', 'redis://:%zz@localhost'], /--url is not a URL such as[^%]*$/],
  [
    'escape that name and password are none of',
    ['ls', '--url', 'redis://a%4:1@localhost'],
    /--url is not a URL such as/,
  ],
  [
    'password that ends the address',
    ['ls', '--url', 'redis://a:4711#b@localhost'],
    /^--url is not a URL such as(?!.*4711)/,
  ],
])('Words with a(n) %s are refused, in one line: %j', async (_what, args, line) => {
  const refusal = await begin(args).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ exitCode: 64, message: expect.stringMatching(line) });
  expect(String(refusal)).not.toContain('\n');
});

it('The help of release says how a key is named that may be data', async () => {
  const help = helpOf('release').replaceAll(/\s+/g, ' ');
  expect(help).toMatch(/ --may-be-data .* with --registry-key, or for a UUID its whole name as KEY /);
});

it('Commands, options and lock types are completed, as bash asks for them', async () => {
  const next = async (...words: string[]) => {
    const typed = ['redis-locks', ...words].join(' ');
    const found = await nextWords(typed, ['redis-locks', words.at(-1) ?? '', words.at(-2) ?? 'redis-locks']);
    return found.split('\n');
  };
  expect(await next('in')).toEqual(['inspect']);
  expect(await next('help', 'wa')).toEqual(['watch']);
  expect(await next('run', '--wa')).toEqual(['--wait']);
  expect(await next('ls', '--type', 'redisson')).toEqual(['redisson', 'redisson-fair']);
  expect(await next('completion', '')).toEqual(['bash', 'zsh', 'fish']);
  expect(await next('run', 'nightly', '--', '')).toEqual(['']);
  expect(await next('toString', '--url')).toEqual(['--url']);
  expect(await next('inspect', '--url', '')).toEqual(['']);
  expect(await next('inspect', 'nightly', '--js')).toEqual(['--json']);
  for (const shell of ['bash', 'zsh', 'fish']) {
    const text = completionOf({ command: 'completion', operands: [shell], rest: undefined, values: {} });
    expect(text).toMatch(/^complete .*redis-locks/m);
  }
});

describePrivate('The words of redis-locks', () => {
  const { start, launch, isHeld, send } = commandLine();

  it('takes an empty variable of the environment for none, and says which one has no URL in it', async () => {
    const [empty, keyless, none] = [
      launch([...COMMAND, 'ls'], { REDIS_URL: '' }),
      launch([...COMMAND, 'run', 'nightly', '--', 'true'], { REDIS_LOCKS_REGISTRY_KEY: '' }),
      launch([...COMMAND, 'ls'], { REDIS_URL: 'localhost:6379' }),
    ] as const;
    expect([await keyless.ended, await none.ended]).toEqual([0, 64]);
    await empty.ended;
    expect(empty.stderr).not.toContain('is not a URL');
    expect(none.stderr).toMatch(/^redis-locks: REDIS_URL is not a URL such as/);
  });

  it.each([
    [64, 'unknown lock type', ['ls', '--type', 'foo'], /spin, pub-sub.*"foo"/],
    [64, 'order that is none', ['ls', '--sort', 'hold'], /--sort is one of held, waiting, left.*did you mean held\?/],
    [64, 'time that is none', ['watch', '--longer-than', 'long'], /--longer-than takes a duration/],
    [64, 'bad name', ['run', 'a', '--name', 'a b', '--', 'true'], /`name`/],
    [64, 'release that can ask nobody', ['release', 'nightly'], /--yes/],
    [69, 'Redis that is not there', ['ls', '--url', 'redis://127.0.0.1:1'], /cannot be reached/],
    [66, 'key to inspect that does not exist', ['inspect', 'nightly'], /Nobody holds a lock "nightly"/],
    [66, 'key to release that does not exist', ['release', 'nightly', '--yes'], /Nobody holds a lock "nightly"/],
    [
      127,
      'command that does not exist',
      ['run', 'nightly', '--', 'no-such-command'],
      /no-such-command cannot be started/,
    ],
    [126, 'command in a file', ['run', 'nightly', '--', '/etc/passwd/x'], /\/etc\/passwd\/x cannot be started/],
  ])('exits with %d and one line for a(n) %s', async (exitCode, _what, args, line) => {
    const failed = start(...args);
    expect(await failed.ended).toBe(exitCode);
    expect(failed.stderr).toMatch(line);
    expect(failed.stderr.trim().split('\n')).toHaveLength(1);
    expect(failed.stdout).toBe('');
    expect(await isHeld()).toBe(false);
  });

  it('helps without a Redis, with all commands or with one', async () => {
    const [all, one, other] = [
      start('--help', '--url', 'redis://127.0.0.1:1'),
      start('help', 'run'),
      start('ls', '-h'),
    ];
    expect(await Promise.all([all.ended, one.ended, other.ended])).toEqual([0, 0, 0]);
    expect(all.stdout).toMatch(/redis-locks run KEY.*redis-locks ls.*--url URL/s);
    expect(one.stdout).toMatch(/--min-hold 30s.*--url URL/s);
    expect(one.stdout).not.toContain('redis-locks ls');
    for (const { stdout } of [all, other]) expect(stdout).toMatch(/Exit codes: .* 65 .* 66 .*67 /s);
    expect(other.stdout).not.toContain('--min-hold');
    expect(all.stdout.split('\n').filter((line) => line.length > 120)).toEqual([]);
  });

  it('completes the KEY of a lock by what Redis has, and nothing that a shell would execute or that may be a secret', async () => {
    const owner = (name: string) => `${name}:${'A'.repeat(22)}:1`;
    const names = [
      'locks:nightly',
      'locks:night:2',
      'orders:order:42',
      'orders:a b',
      'orders:$(id)',
      '-x',
      'orders:night:9',
    ];
    for (const name of names) await send('SET', name, owner('web-7'), 'PX', '60000');
    await send('SET', 'orders:secret', '8bfa1e76-70c1-4b13-9c53-7b3a3f6a2a0e', 'PX', '60000');
    const next = async (line: string, ...ofBash: string[]) => {
      const asked = launch([...COMMAND, 'completion', ...ofBash], { COMP_LINE: `redis-locks ${line}` });
      expect([await asked.ended, asked.stderr]).toEqual([0, '']);
      return asked.stdout.trim().split('\n').sort();
    };
    const completes = async (expected: string[], ...asked: [string, ...string[]]) => {
      // On a busy machine Redis may not answer in the time that it has.
      const words = await until(async () => {
        const found = await next(...asked);
        return found.some((word) => word !== '' && !word.startsWith('--')) && found;
      }, LIMIT);
      expect(words).toEqual(expected);
    };
    await completes(['locks:night:2', 'locks:nightly', 'orders:night:9', 'orders:order:42'], 'inspect ');
    await completes(['orders:order:42'], 'inspect orders:o');
    // As bash takes it: its word begins after the colon.
    await completes(['order:42'], 'inspect orders:o', 'redis-locks', 'o', ':');
    await completes(['order:42'], 'release order:');
    await completes(['night:2', 'nightly'], 'run --wait 3s ni');
    await completes(['order:42'], 'run --registry-key orders o');
    expect(await next('inspect --url redis://127.0.0.1:1 loc')).toEqual(['']);
  });

  it('a KEY that begins with a dash stands behind `--`', async () => {
    const holder = start(
      'run',
      '--wait',
      '20s',
      '--',
      '-x',
      '--',
      'sh',
      '-c',
      'echo begun; read end; exit 3',
      '--',
      '-y',
    );
    await until(() => holder.stdout.includes('begun'), LIMIT);
    const [inspect, release] = [start('inspect', '--json', '--', '-x'), start('inspect', '-x')];
    expect([await inspect.ended, JSON.parse(inspect.stdout).lock]).toEqual([0, 'locks:-x']);
    expect([await release.ended, release.stderr]).toEqual([64, expect.stringContaining('no option --exclusive')]);
    holder.child.stdin?.end('\n');
    expect(await holder.ended).toBe(3);
  });

  it('no control or formatting character of Redis is written, as JSON or as text', async () => {
    const name = 'locks:\u009b31m\u202e\u{e0001}\u0007\ud83d\ude00';
    let holds = 0;
    const take = () => send('SET', name, `web\u009b7:${'A'.repeat(22)}:${++holds}`, 'PX', '60000');
    await take();
    const [list, inspect, none, watch] = [
      ['ls', '--json'],
      ['inspect', name],
      ['inspect', `${name}:no`],
      ['watch'],
    ].map((args) => start(...args)) as [Program, Program, Program, Program];
    expect([await list.ended, await inspect.ended, await none.ended]).toEqual([0, 0, 66]);
    await until(async () => (await take()) && watch.stdout.includes('\n'), LIMIT);
    const written = [list.stdout, inspect.stdout, none.stderr, watch.stdout].join('').replaceAll('\n', '');
    expect(written).not.toMatch(/\p{C}/u);
    expect(JSON.parse(list.stdout).lock).toBe(name);
  });
});
