import { parseArgs } from 'node:util';
import { libraryScripts } from '../support/all-scripts';
import { runMain } from '../support/run-main';

const USAGE = `npm run scripts -- [options]
  The Lua scripts that the library sends, as Redis gets them.
  --print NAME    the text of one, such as "acquire (spring)"`;

void runMain(() => {
  const { values } = parseArgs({ options: { print: { type: 'string' }, help: { type: 'boolean', default: false } } });
  const scripts = libraryScripts();
  if (values.help) {
    console.log(USAGE);
  } else if (values.print === undefined) {
    for (const { name, sha1 } of scripts) console.log(`${sha1}  ${name}`);
  } else {
    const script = scripts.find(({ name }) => name === values.print);
    if (script === undefined) throw new RangeError(`No script is named "${values.print}": npm run scripts lists them`);
    console.log(`-- ${script.name}, sha1 ${script.sha1}\n${script.source.trim()}`);
  }
  return 0;
});
