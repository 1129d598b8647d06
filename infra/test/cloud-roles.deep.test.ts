import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { parse } from 'yaml';

const textOf = (path: string) =>
  readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

/** What the driver's own messages say that an operation needs. */
const needed = (driver: string, name: RegExp) =>
  [...new Set(textOf(`src/core/store/${driver}/classify-reply.ts`).match(name))].sort();

it('the role for Azure has what the store says that it needs, and nothing else', () => {
  const role = JSON.parse(textOf('infra/azure/lease-role.json'));
  const actions = needed('azure', /(?<=')blobs\/\w+(?=')/g).map(
    (action) => `Microsoft.Storage/storageAccounts/blobServices/containers/${action}`,
  );
  expect(actions).toHaveLength(3);
  expect([...role.DataActions].sort()).toEqual(actions);
  expect(role).toMatchObject({ IsCustom: true, Actions: [], NotActions: [], NotDataActions: [] });
  expect(textOf('infra/azure/lease-role-condition.txt')).toContain(`'${actions[0]}'`);
});

it.each([
  ['probe-1', true],
  ['orders/probe-1', true],
  ['orders/locks/probe-1', true],
  ['0.json', false],
  ['orders/0.json', false],
  ['orders/cluster.json', false],
])('the condition for Azure: whether a task may delete %s, also of a store without a prefix', (path, may) => {
  const condition = textOf('infra/azure/lease-role-condition.txt');
  const patterns = [...condition.matchAll(/StringLike '(.*)'/g)].map(([, pattern = '']) => pattern);
  expect(patterns.some((pattern) => new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(path))).toBe(may);
});

it('the role for Google has what the store says that it needs, and nothing else', () => {
  const role = parse(textOf('infra/google/lease-role.yaml'));
  const permissions = needed('gcs', /storage\.objects\.\w+/g);
  expect(permissions).toHaveLength(4);
  expect(role).toMatchObject({ stage: 'GA', includedPermissions: permissions });
});
