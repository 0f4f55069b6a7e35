// Compiles as @swc/jest does, with one constant of lib multiplied: BOUND=core/watchdog:LEAST_INTERVAL, BY=10 or BY=0.1.
const { createTransformer } = require('@swc/jest');

const { BOUND = '', BY = '1' } = process.env;
const [file, name] = BOUND.split(':');

/** What is whole stays whole, and what is more than 0 stays more. */
const multiply = `(function by(value) {
  if (Array.isArray(value)) return value.map(by);
  return Number.isInteger(value) ? Math.ceil(value * ${Number(BY)}) : value * ${Number(BY)};
})`;

const isIn = (path) => path.replaceAll('\\', '/').endsWith(`/lib/${file}.ts`);

function multiplied(source, path) {
  if (!isIn(path)) return source;
  const changed = source.replace(new RegExp(`^((?:export )?const ${name} = )([^;]+);`, 'm'), `$1${multiply}($2);`);
  if (changed === source) throw new Error(`There is no constant ${BOUND}`);
  return changed;
}

module.exports = {
  createTransformer(options) {
    const swc = createTransformer(options);
    return {
      process: (source, path, settings) => swc.process(multiplied(source, path), path, settings),
      getCacheKey: (source, path, settings) => {
        const key = swc.getCacheKey(source, path, settings);
        return isIn(path) ? `${key}-${BOUND}-${BY}`.replace(/\W/g, '-') : key;
      },
    };
  },
};
