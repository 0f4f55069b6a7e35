import { libraryScripts } from '../support/all-scripts';
import { faultOf } from '../support/lua-faults';
import { runMain } from '../support/run-main';

/** `npm run lint:lua`: scripts are Lua 5.1 as they are sent, and use no global variable that Redis does not have. */

void runMain(() => {
  const scripts = libraryScripts();
  const faults = scripts.flatMap(({ name, source }) => {
    const fault = faultOf(source);
    return fault === undefined ? [] : [`${name}: ${fault}`];
  });
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) return 1;
  console.log(`${scripts.length} Lua scripts have no fault`);
  return 0;
});
