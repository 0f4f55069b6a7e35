import { EXPLANATIONS } from '../profile/explanations';
import type { Profile } from '../profile/measure-profile';
import { SUBJECTS } from '../profile/subjects';
import { headingOf, tableOf } from '../profile/tables';
import type { Environment } from './environment';
import { table } from './page';
import { sectionOf, withSection } from './sections';

export const PROFILE_HEADING = '## What the rest is made of';

/** Where the section goes on a page that has none. */
const BEFORE = /^## Method$/m;

const INTRODUCTION = `${PROFILE_HEADING}

Written by \`npm run bench -- --profile --page\`; do not edit. With \`--scenario\`, it writes the parts of these scenarios.

Where the targets are missed, this is what is left: what one cycle or acquisition costs, by whose code it is. "Ours" and the floor run the same load, and warm up as in the scenarios. The time of a client is taken apart by V8's CPU profiler, in proportion to its samples; its sum is the CPU time of the process without the profiler. A builtin counts for the function that called it. "Kernel, and C++ of Node" is what V8 counts as native: writes to the socket, and libuv. V8 counts reads from the socket partly as idle time, so the kernel has more than that: "of it in the kernel" is what the operating system counts. "Times that a process slept" are its voluntary context switches: each of them ends with a wake-up. Other work on the machine makes all times longer, and changes the counts and the shares little.`;

/** Puts the measured parts on the page docs/benchmarks.md, in place of the same parts of an earlier run. */
export function withProfiles(page: string, environment: Environment, profiles: readonly Profile[]): string {
  const before = sectionOf(page, PROFILE_HEADING) ?? '';
  const parts = SUBJECTS.flatMap((subject) => {
    const measured = profiles.find((profile) => profile.subject === subject);
    if (measured !== undefined) return partOf(environment, measured);
    return sectionOf(before, `### ${headingOf(subject)}`) ?? [];
  });
  return withSection(page, [INTRODUCTION, ...parts].join('\n\n'), BEFORE);
}

function partOf({ date, cpu, cores, node, redis, load }: Environment, profile: Profile): string {
  const { head, rows } = tableOf(profile);
  const busy = load < 1 ? '' : `, with other work on the machine (load average ${load})`;
  return [
    `### ${headingOf(profile.subject)}`,
    table(head, rows),
    EXPLANATIONS[profile.subject.title] ?? '',
    `Measured ${date}, ${cpu}, ${cores} cores, Node ${node}, ${redis}${busy}.`,
  ].join('\n\n');
}
