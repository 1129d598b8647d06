import { type CommandRow, JSON_LINE, OF_STORE } from '../kit/command-row.js';

export const AUDIT_COMMANDS: readonly CommandRow[] = [
  {
    name: 'audit',
    door: 'Look and operate',
    description: 'judge by what a bucket with versioning, or etcd, has kept: was each promise kept?',
    examples: ['audit --store s3://bucket/prefix', 'audit --store s3://bucket/prefix --json --tenures'],
    options: [JSON_LINE, ['--tenures', 'list each tenure that has ended, and how']],
    settings: OF_STORE,
    load: async () => (await import('./audit-command.js')).auditCommand,
  },
];
