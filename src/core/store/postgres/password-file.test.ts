import { expect, it } from 'vitest';
import { passwordIn } from './password-file.js';

const FILE = `
# db-1:5432:leases:orders:a comment
db-1:5432:leases:billing:first
db-1:5432:*:orders:with \\: and \\\\
db-2:5432:leases:orders:two:more
*:*:leases:or\\:ders:colon\r
half:5432:leases
`;

it.each([
  [['db-1', '5432', 'leases', 'billing'], 'first'],
  [['db-1', '5432', 'any', 'orders'], 'with : and \\'],
  [['db-2', '5432', 'leases', 'orders'], 'two'],
  [['db-9', '6432', 'leases', 'or:ders'], 'colon'],
  [['db-9', '6432', 'leases', 'orders'], undefined],
  [['db-1', '6432', 'leases', 'orders'], undefined],
  [['half', '5432', 'leases', 'orders'], undefined],
])('%j has the password %j', (connection, password) => {
  expect(passwordIn(FILE, connection)).toBe(password);
});
