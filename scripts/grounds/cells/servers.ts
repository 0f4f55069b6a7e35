import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Cell, NotToBeHad } from '../../../support/grounds/cell';
import { identifyRedis } from '../../../support/redis-binary';
import { unpackDebian, withLibrariesOf } from '../../servers/debian';
import { fetchServer } from '../../servers/fetch';
import { GROUNDS, installTools } from '../folder';
import { nodes, type Runtime } from '../runtimes';
import { ownServer, redisCommand, type ServerCommand } from '../server';
import { JS_REDIS_SERVER, MINIREDIS, titleOf } from '../versions';
import { LIMIT, runPair } from './runtimes';

const run = promisify(execFile);

interface Source {
  readonly name: string;
  /** What it is called until it has said what it is. */
  readonly title: string;
  /** It has a version of its own to tell. */
  readonly isBinary: boolean;
  command(): Promise<ServerCommand>;
}

/** A server that a package for Python has. */
const fetched = (name: string, title: string): Source => ({
  name,
  title,
  isBinary: true,
  command: async () => redisCommand(await orNotToBeHad(fetchServer(name))),
});

const REDICT = ['redict-server', 'redict-tools'];
/** What it is linked with, of the same release. */
const OF_REDICT = ['libc6', 'libatomic1', 'libhiredict1.3.1', 'libjemalloc2', 'liblzf1', 'libssl3t64', 'libsystemd0'];
/** What these are linked with. */
const OF_THESE = ['libcap2', 'libgcc-s1', 'libstdc++6', 'zlib1g', 'libzstd1'];

/** Redict, which no package for Python has: from Debian. */
async function redict(): Promise<ServerCommand> {
  const folder = join(GROUNDS, 'tools/redict');
  await orNotToBeHad(unpackDebian('sid', [...REDICT, ...OF_REDICT, ...OF_THESE], folder));
  const wrapped = join(folder, 'redict-server');
  const words = [...withLibrariesOf(folder), join(folder, 'usr/bin/redict-server')];
  await writeFile(wrapped, `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`, { mode: 0o755 });
  return redisCommand(wrapped);
}

/** Redis in JavaScript. */
async function jsRedisServer(): Promise<ServerCommand> {
  const folder = await installTools('js-redis-server', { 'js-redis-server': JS_REDIS_SERVER });
  const [node = ''] = await newest.command('redis-6');
  const cli = join(folder, 'node_modules/js-redis-server/dist/cli.js');
  return (port) => [node, cli, '--port', `${port}`];
}

/** Its time stands still unless somebody moves it. */
const TICKED = `package main

import (
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr("127.0.0.1:" + os.Args[1]); err != nil {
		panic(err)
	}
	for range time.Tick(5 * time.Millisecond) {
		server.FastForward(5 * time.Millisecond)
	}
}
`;

async function miniredis(): Promise<ServerCommand> {
  const folder = join(GROUNDS, 'tools/miniredis');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'main.go'), TICKED);
  const module = `module ticked\n\ngo 1.21\n\nrequire github.com/alicebob/miniredis/v2 v${MINIREDIS}\n`;
  await writeFile(join(folder, 'go.mod'), module);
  const go = (...words: string[]) => run('go', words, { cwd: folder, timeout: 300_000 });
  await orNotToBeHad(go('mod', 'tidy').then(() => go('build', '-o', 'ticked', '.')));
  return (port) => [join(folder, 'ticked'), `${port}`];
}

async function orNotToBeHad<T>(having: Promise<T>): Promise<T> {
  return having.catch((error: Error & { stderr?: string }) => {
    throw new NotToBeHad((error.stderr?.trim().split('\n').at(-1) || error.message).slice(0, 300));
  });
}

const SERVERS: readonly Source[] = [
  fetched('redis-6.2', 'Redis 6.2.14'),
  { name: 'own', title: 'the server of this machine', isBinary: true, command: async () => ownServer() },
  fetched('redis-8.2', 'Redis 8.2.3'),
  fetched('redis-8.10', 'Redis 8.10.2'),
  fetched('valkey-9.1', 'Valkey 9.1.2'),
  { name: 'redict', title: 'Redict', isBinary: true, command: redict },
  { name: 'js-redis-server', title: `js-redis-server ${JS_REDIS_SERVER}`, isBinary: false, command: jsRedisServer },
  {
    name: 'miniredis',
    title: `miniredis ${MINIREDIS}, its clock moved every 5 ms`,
    isBinary: false,
    command: miniredis,
  },
];

/** The Node that most people have. */
const newest = nodes.find(({ name }) => name === 'node-24') as Runtime;

/** Each server with node-redis. */
export const serverCells: readonly Cell[] = SERVERS.map(({ name, title, isBinary, command }) => ({
  name: `server/${name}`,
  ground: 'server',
  title,
  through: `${titleOf('redis-6')} on ${newest.title}`,
  limit: LIMIT,
  run: async (report) => {
    const words = await command();
    await runPair(newest, 'redis-6', report, words);
    if (!isBinary) return undefined;
    const [binary = ''] = words(0, '');
    const { name: server, version } = identifyRedis(binary);
    return `${server.charAt(0).toUpperCase()}${server.slice(1).replace(/-server$/, '')} ${version}`;
  },
}));
