import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { exports } = JSON.parse(readFileSync(here('../../package.json'), 'utf8'));

// Every way into the package is documented, also one that is added later.
const entryPoints = Object.values(exports)
  .map(({ types }) => types)
  .filter((types) => types !== undefined)
  .map((types) => here(`../../${types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts')}`));

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  name: 'nodelease',
  entryPoints,
  plugin: [here('entry-names.js')],
  tsconfig: here('tsconfig.json'),
  out: here('../site/html/api'),
  readme: here('index.md'),
  // There are no links to sources to keep right.
  disableSources: true,
  excludePrivate: true,
  excludeProtected: true,
  excludeInternal: true,
  // Parameters, and a property of a lease, that are for other rooms only.
  intentionallyNotExported: ['LeaseHome', 'ReconcileLoop', 'Retry'],
  validation: {
    notExported: true,
    invalidLink: true,
    invalidPath: true,
    rewrittenLink: true,
    notDocumented: true,
    unusedMergeModuleWith: true,
  },
  // Everything but properties whose name and type say it all, such as a `nodeId`.
  requiredToBeDocumented: [
    'Enum',
    'Variable',
    'Function',
    'Class',
    'Interface',
    'Method',
    'Accessor',
    'TypeAlias',
  ],
  treatWarningsAsErrors: true,
  treatValidationWarningsAsErrors: true,
};
