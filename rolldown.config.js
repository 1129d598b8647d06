import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defineConfig } from 'rolldown';

// Users of such a store install them next to nodelease. The API of OpenTelemetry is in the bundle.
const peers = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).peerDependencies).filter(
  (name) => !name.startsWith('@opentelemetry/'),
);

// Bundles the command line with the packages that it uses: most of the time of a start goes into finding,
// reading and compiling modules. CONTRIBUTING.md has the figures. CommonJS, since Node.js loads that faster;
// not minified, since stack traces are to be read.
const command = defineConfig({
  input: {
    main: 'src/app/cli/main.ts',
    'node-http-thread': 'src/app/cli/node-http/node-http-thread.ts',
    'keeper-thread': 'src/node/runtime/worker/keeper-thread.ts',
  },
  platform: 'node',
  external: peers,
  // The packages as ES modules, where they have them: only what is used of those gets into the bundle.
  resolve: { conditionNames: ['module', 'node'], mainFields: ['module', 'main'] },
  transform: { target: 'node20.9' },
  plugins: [chosenSdk(), required(peers), lazyBuiltins(), withoutUnused(), commonJs(), latin1(), licenses()],
  // What one command imports when it is needed, another may import at once.
  checks: { ineffectiveDynamicImport: false },
  output: {
    ...{
      dir: 'dist/cli',
      format: 'cjs',
      entryFileNames: '[name].js',
      chunkFileNames: '[name].js',
      cleanDir: true,
    },
    comments: { legal: true, annotation: false, jsdoc: false },
    // Each group has the imports of its modules, too. What no group has gets into separate files, loaded on
    // demand.
    codeSplitting: {
      groups: [
        {
          name: 'base',
          priority: 3,
          test: /\/src\/(app\/(cli\/commands\/command-line|kit\/terminal\/(standard-\w+|non-blocking-write))|core\/base\/(system|version|host\/facts))\.ts$/,
        },
        {
          name: 'run',
          priority: 2,
          test: /\/(run-command|workload|hold-node|lease-source|acquire-lease|inspect|open-store|store-driver|store\/changes)\.ts$/,
        },
        { name: 'aws', priority: 2, test: /\/src\/core\/store\/aws\/.*\.ts$/ },
        {
          name: 's3',
          priority: 1,
          test: /\/src\/(core\/store\/s3\/(?!describe-bucket|bucket-sdk|s3-kind).*|app\/cli\/s3-sdk)\.ts$/,
        },
      ],
    },
  },
});

// Bundles the console's pages with Preact: browsers find modules by their paths alone, and these pages load
// nothing from other servers.
const consolePages = defineConfig({
  input: {
    main: 'src/app/console/page/main.ts',
    services: 'src/app/console/services/services-page.ts',
    configurations: 'src/app/console/configuration/configurations-page.ts',
  },
  platform: 'browser',
  plugins: [licenses()],
  output: {
    dir: 'dist/console',
    entryFileNames: 'page/[name].js',
    chunkFileNames: 'page/[name].js',
    cleanDir: true,
    comments: { legal: true, annotation: false, jsdoc: false },
  },
});

export default [command, consolePages];

/**
 * Puts src/app/cli/s3-sdk.ts, which chooses between the SDK in the bundle and the installed one, between the S3
 * store and the SDK.
 */
function chosenSdk() {
  const choice = resolve('src/app/cli/s3-sdk.ts');
  return {
    name: 'chosen-sdk',
    resolveId: (id, importer) =>
      id === './sdk.js' && importer.includes('/src/core/store/s3/') ? choice : null,
  };
}

/**
 * Has the bundle require what it would import on demand: Node's own modules, since the first `import()` loads Node's loader of ES
 * modules, too; and the packages next to it, since a script with kept bytecode cannot import (nodelease.js).
 */
function required(packages) {
  const names = ['node:[^\'"]+', ...packages].join('|');
  const imported = new RegExp(`\\bimport\\((['"](?:${names})['"])\\)`, 'g');
  const asModule = (name) =>
    name.includes('node:')
      ? `require(${name})`
      : `(async () => Object.create(require(${name}), { default: { value: require(${name}) } }))()`;
  return {
    name: 'required',
    transform: {
      filter: { code: imported },
      handler: (code) => code.replace(imported, (_, name) => asModule(name)),
    },
  };
}

/** Loads a module of Node's own when it is first used: one command needs few of them. */
function lazyBuiltins() {
  const lazy = (code, declaration) =>
    [...code.matchAll(declaration)].reduce((whole, [statement, name, module]) => {
      const rest = whole.replace(statement, `let ${name};`);
      const uses = (next) => new RegExp(`(?<![.\\w$]|let |function )${name}\\b${next}`, 'g');
      // Only where each use of the name is one of the module: then no other variable has it.
      return rest.match(uses(''))?.length === rest.match(uses('(?=[.(])'))?.length
        ? rest.replace(uses(''), `(${name} ??= require("${module}"))`)
        : whole;
    }, code);
  return {
    name: 'lazy-builtins',
    // In the packages, modules that are imported as a whole; in the chunks what is imported by name.
    transform: {
      filter: { id: /\/node_modules\/.*\.[cm]?js$/ },
      handler: (code) =>
        lazy(
          lazy(code, /^(?:const|let|var) (\w+) = require\(['"]((?:node:)?[a-z_]+)['"]\);?$/gm),
          /^import (?:\* as )?(\w+) from ['"](node:[^'"]+)['"];?$/gm,
        ),
    },
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle).filter(({ type }) => type === 'chunk'))
        chunk.code = lazy(chunk.code, /^let (\w+) = require\("(node:[^"]+)"\);$/gm);
    },
  };
}

/** Leaves out what packages load at once, and the command line never uses. */
function withoutUnused() {
  const unused = [
    // Threads that write the log.
    [/\/pino\/lib\/transport\.js$/, /^.*$/s, 'module.exports = undefined;'],
    [
      /\/pino\/lib\/tools\.js$/,
      "const { isMainThread } = require('worker_threads')",
      'const isMainThread = true',
    ],
    // A checksum by Node's own compression; S3 is asked for none.
    [/\/checksum\/crc32\/Crc32Node\.js$/, /^.*$/s, "export { Crc32Js as Crc32Node } from './Crc32Js.js';"],
  ];
  return {
    name: 'without-unused',
    transform: {
      filter: { id: unused.map(([file]) => file) },
      handler: (code, id) =>
        unused.filter(([file]) => file.test(id)).reduce((rest, [, from, to]) => rest.replace(from, to), code),
    },
  };
}

/** Escapes what is not Latin-1: one such character, and V8 keeps two bytes for each of the file. */
function latin1() {
  return {
    name: 'latin-1',
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle).filter(({ type }) => type === 'chunk')) {
        const escaped = (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
        chunk.code = chunk.code.replace(/[\u0100-\uffff]/g, escaped);
      }
    },
  };
}

/** Declares to Node.js that the bundle has no ES modules, unlike the package around it. */
function commonJs() {
  return {
    name: 'common-js',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'package.json', source: '{ "type": "commonjs" }\n' });
    },
  };
}

/** Writes LICENSES: under what the packages in the bundle are distributed, each text once. */
function licenses() {
  return {
    name: 'licenses',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap(({ moduleIds = [] }) => moduleIds);
      const folders = modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []);
      const packagesOf = new Map();
      for (const folder of [...new Set(folders)].sort()) {
        const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
        const text = licenseText(folder) || `${license}; the package has no text of it.`;
        packagesOf.set(text, [...(packagesOf.get(text) ?? []), `${name} ${version}`]);
      }
      const source = [...packagesOf].map(([text, names]) => `== ${names.join(', ')}\n\n${text}\n`).join('\n');
      this.emitFile({ type: 'asset', fileName: 'LICENSES', source });
    },
  };
}

function licenseText(folder) {
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copyright)/i.test(file));
  return files.map((file) => readFileSync(join(folder, file), 'utf8').trim()).join('\n\n');
}
