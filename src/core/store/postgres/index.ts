// Leases in PostgreSQL: `nodelease/store/postgres`.

export { openPostgresStore, type PostgresStoreOptions } from './open-postgres-store.js';
export { PostgresLeaseStore, type PostgresLeaseStoreOptions } from './postgres-lease-store.js';
export type { PostgresClient, PostgresServer } from './postgres-server.js';
