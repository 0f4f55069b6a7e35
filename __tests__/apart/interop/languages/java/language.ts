import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import build from '../../build-peer';
import { JAVA, JAVA_ARGUMENTS } from '../../peer';
import { runsHere } from '../cache';
import type { Language } from '../language';

const POM = readFileSync(join(JAVA, 'pom.xml'), 'utf8');
const [, version = ''] = /<shedlock.version>(.*)<\/shedlock.version>/.exec(POM) ?? [];

/** ShedLock, in the Java process that has Spring's and Redisson's locks too. */
export const java: Language = {
  name: 'java',
  title: 'Java',
  missing: () => (runsHere('java', '-version') && runsHere('mvn', '--version') ? undefined : 'java and mvn'),
  install: build,
  peer: ['java', ...JAVA_ARGUMENTS],
  libraries: [
    {
      id: 'shedlock',
      title: '`ShedLock` (redis-spring), `safeUpdate(true)`',
      version,
      there: 'NAME',
      registryKey: 'job-lock',
      key: 'default:NAME',
      token: /^ADDED:[\d-]+T[\d:.]+Z@.+$/,
      tokenText: 'text with time and host',
      expiry: '`lockAtMostFor`',
      waits: 'skips the job',
      about: 'lock: empty',
      lateRelease: 'silent',
    },
  ],
};
