import { readFileSync } from 'node:fs';
import { Converter, ReflectionKind } from 'typedoc';

/** Gives each part the name by which it is imported: `nodelease/services`, not the folder of its file. */
export function load(app) {
  const { name, exports } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const imported = new Map();
  for (const [path, { types }] of Object.entries(exports)) {
    if (types === undefined) continue;
    const module = types.replace('./dist/', '').replace(/(\/?index)?\.d\.ts$/, '');
    imported.set(module === '' ? 'index' : module, path.replace('.', name));
  }
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module))
      module.name = imported.get(module.name) ?? module.name;
  });
}
